-- skill_calls -> which skills are used most, by how many sessions and people
-- $days = 36500: only the last so many days
select
    skill_id,
    count(*) as calls,
    count(distinct session_id) as sessions,
    count(distinct actor) as actors,
    max(happened_at) as last_at
from skill_calls
where happened_at >= (select max(happened_at) from skill_calls) - to_days(cast($days as integer))
group by skill_id
order by calls desc, skill_id;
