-- events -> the calls of one session in order, in the stream that was called in last; $session
with calls as (
    select stream_id, skill_id, seq, coalesce(called_at, stored_at) as happened_at, arrival
    from events
    where session_id = $session
        and kind = 'activated'
        and outcome <> 'denied'
),

latest as (
    select stream_id
    from calls
    order by happened_at desc, arrival desc
    limit 1
)

select skill_id
from calls
where stream_id = (select stream_id from latest)
order by seq nulls last, happened_at, arrival;
