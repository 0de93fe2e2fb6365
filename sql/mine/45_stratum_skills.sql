-- firsts, strata -> stratum_skills: in how many sequences of each stratum a skill occurs
create or replace table stratum_skills as
select
    stratum,
    size,
    skill_id,
    count(*) as n
from firsts
join strata using (sequence_id)
group by stratum, size, skill_id;
