-- sessions -> the sessions that began on one UTC day
-- $day = : the day as 2026-11-30; empty means the last one with sessions
select session_id, first_at, last_at, calls, skills, failed_calls, agent, sources
from sessions
where cast(first_at as date) = coalesce(try_cast($day as date), (select cast(max(first_at) as date) from sessions))
order by first_at, session_id;
