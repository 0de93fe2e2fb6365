-- events, changed -> fresh_sessions, profile: what each changed session holds, and what the whole log does
create or replace temp table fresh_sessions as
select
    session_id,
    min(actor) filter (kind = 'activated') as actor,
    count(*) as events,
    count(*) filter (kind = 'activated') as calls,
    count(*) filter (kind = 'activated' and suggested_by is not null) as suggested_calls,
    min(called_at) filter (kind = 'activated' and clock = 'ok') as first_called_at,
    max(called_at) filter (kind = 'activated' and clock = 'ok') as last_called_at,
    bit_xor(hash(event_id)) as ids,
    bit_xor(
        md5_number_lower(
            concat_ws('|', event_id, session_id, stream_id, seq, skill_id, called_at, kind, outcome, batch_id, suggested_by)
        )
    ) as digest
from events
semi join changed using (session_id)
group by session_id;

create or replace temp table profile as
with sessions as (
    from kept.sessions
    anti join changed using (session_id)
    union all by name
    from fresh_sessions
)
select
    coalesce(sum(events), 0)::bigint as events,
    coalesce(sum(calls), 0)::bigint as calls,
    coalesce(sum(suggested_calls), 0)::bigint as suggested_calls,
    count(*) filter (calls > 0) as sessions,
    count(*) filter (calls > 0 and actor is not null) as named_sessions,
    count(distinct actor) as actors,
    count(distinct first_called_at::date) as days, -- on which a session began
    min(first_called_at) as first_called_at,
    max(last_called_at) as last_called_at,
    coalesce(bit_xor(digest), 0) as digest
from sessions;
