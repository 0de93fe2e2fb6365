-- events -> profile: what the log holds, without our own clock in it
create or replace table profile as
select
    count(*) as events,
    count(*) filter (kind = 'activated') as calls,
    count(*) filter (kind = 'activated' and suggested_by is not null) as suggested_calls,
    count(distinct session_id) filter (kind = 'activated') as sessions,
    count(distinct skill_id) filter (kind = 'activated') as skills,
    count(distinct actor) filter (kind = 'activated') as actors,
    count(distinct session_id) filter (kind = 'activated' and actor is not null) as named_sessions,
    count(distinct called_at::date) filter (kind = 'activated' and clock = 'ok') as days,
    min(called_at) filter (kind = 'activated' and clock = 'ok') as first_called_at,
    max(called_at) filter (kind = 'activated' and clock = 'ok') as last_called_at,
    -- one number for the whole content, the same in whatever order the events arrived
    coalesce(
        bit_xor(
            md5_number_lower(
                concat_ws('|', event_id, session_id, stream_id, seq, skill_id, called_at, kind, outcome, batch_id, suggested_by)
            )
        ),
        0
    ) as digest
from events;
