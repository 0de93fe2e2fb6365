-- kept.sessions, changed, fresh_sessions -> profile: what the whole log holds, without our own clock in it
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
