-- skill_calls -> who starts each skill: a person, the agent, another skill
select
    skill_id,
    count(*) as calls,
    count(*) filter (where trigger = 'user') as by_user,
    count(*) filter (where trigger = 'agent') as by_agent,
    count(*) filter (where trigger = 'nested') as nested,
    count(*) filter (where trigger = 'unknown') as unknown
from skill_calls
group by skill_id
order by calls desc, skill_id;
