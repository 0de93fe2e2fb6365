-- events, changed, calls -> shown, calls: a call soon after its skill was shown to the stream followed our advice, said or not
-- The client's own order where the whole stream has one, else the time; at one place what was shown came first.
-- Nothing was shown to a session of the holdout.
create or replace temp table told_sessions as
select distinct session_id
from events
semi join changed using (session_id)
where kind = 'impression';

create or replace temp table shown as
with calls_and_shown as (
    select session_id, stream_id, event_id, skill_id, kind, suggested_by, seq, called_at, stored_at
    from events
    semi join told_sessions using (session_id)
    where kind = 'activated'
    union all
    select
        session_id,
        stream_id,
        event_id,
        unnest(coalesce(from_json(extra -> 'shown', '["varchar"]'), [skill_id])) as skill_id,
        kind,
        suggested_by,
        seq,
        called_at,
        stored_at
    from events
    semi join told_sessions using (session_id)
    where kind = 'impression'
        and (extra ->> 'policy') is distinct from 'holdout'
),
told as (
    select
        session_id,
        stream_id,
        event_id,
        skill_id,
        kind,
        suggested_by,
        case
            when count(seq) over (partition by session_id, stream_id) = count(*) over (partition by session_id, stream_id)
                then seq
            else epoch_us(coalesce(called_at, stored_at))
        end as place
    from calls_and_shown
),
counted as (
    select
        *,
        count(*) filter (kind = 'activated') over (
            partition by session_id, stream_id
            order by place, kind = 'activated', event_id
            rows between unbounded preceding and current row
        ) as calls_so_far
    from told
),
shown_before as (
    select
        session_id,
        event_id,
        kind,
        suggested_by,
        calls_so_far,
        max(case when kind = 'impression' then calls_so_far end) over (
            partition by session_id, stream_id, skill_id
            order by place, kind = 'activated', event_id
            rows between unbounded preceding and current row
        ) as shown_at
    from counted
)
select session_id, event_id, suggested_by is null as unsaid
from shown_before
where kind = 'activated'
    and calls_so_far - shown_at <= $shown_within;

update calls
set suggested = true
where event_id in (
    select event_id
    from shown
);
