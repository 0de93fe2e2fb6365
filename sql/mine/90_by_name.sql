-- stratum_skills, kept.suggested -> named_strata, suggested_pairs: what explanations read, skills by name
create or replace table named_strata as
select stratum, size, skill_id, n
from stratum_skills
join kept.skills using (skill)
order by stratum, skill_id;

create or replace table suggested_pairs as
select
    least(one.skill_id, other.skill_id) as a,
    greatest(one.skill_id, other.skill_id) as b,
    sum(n)::bigint as suggested
from kept.suggested
join kept.skills as one on one.skill = a
join kept.skills as other on other.skill = b
group by all
having sum(n) > 0
order by a, b;
