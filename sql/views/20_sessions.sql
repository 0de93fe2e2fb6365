-- skill_calls -> sessions: one row a session, with what it held
create or replace view sessions as
select
    session_id,
    min(happened_at) as first_at,
    max(happened_at) as last_at,
    count(*) as calls,
    count(distinct skill_id) as skills,
    count(distinct stream_id) as streams,
    count(*) filter (where outcome in ('error', 'denied')) as failed_calls,
    count(*) filter (where not spontaneous) as suggested_calls,
    min(actor) as actor,
    min(agent) as agent,
    string_agg(distinct source, ', ' order by source) as sources
from skill_calls
group by session_id;
