-- sessions, session_clocks -> the sessions that began on one UTC day, by their agent's clock put right
-- $day = : the day as 2026-11-30; empty means the last one with sessions
with dated as (
    select s.*, cast(s.first_at + to_seconds(coalesce(k.skew_s, 0)) as date) as day
    from sessions as s
    left join session_clocks as k on k.session_id = s.session_id
)
select session_id, first_at, last_at, calls, skills, failed_calls, agent, sources
from dated
where day = coalesce(try_cast($day as date), (select max(day) from dated))
order by first_at, session_id;
