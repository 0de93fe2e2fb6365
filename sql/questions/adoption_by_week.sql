-- skill_calls -> how many sessions and people used a skill in each week; all skills together where none is named
-- $skill = : the skill; empty means any
select
    cast(date_trunc('week', happened_at) as date) as week,
    count(*) as calls,
    count(distinct session_id) as sessions,
    count(distinct actor) as actors,
    count(distinct skill_id) as skills
from skill_calls
where $skill = '' or skill_id = $skill
group by week
order by week;
