-- counted, skill_alias -> usage.counted: every count, its raw skill name resolved
create table usage.counted as
select
    c.count_id, c.series, c.skill, c.n, c.cumulative, c.began_at, c.counted_at, c.stored_at, c.trigger, c.outcome,
    c.actor, c.agent, c.agent_version, c.source, c.arrival,
    coalesce(a.skill_id, c.skill) as skill_id
from counted as c
left join usage.skill_alias as a on a.name = c.skill;
