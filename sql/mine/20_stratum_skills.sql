-- kept.cell_skills, strata -> stratum_skills, witness_skills: in how many sequences of each stratum, of each witness, a skill occurs
create or replace table stratum_skills as
select
    stratum,
    number,
    size,
    skill,
    sum(n)::bigint as n
from kept.cell_skills
join strata using (actor, length_bucket, weeks)
group by all
having sum(n) > 0;

create or replace table witness_skills as
with sizes as (
    select
        witness,
        sum(n)::bigint as size
    from kept.cells
    group by witness
)
select
    witness,
    size,
    skill,
    sum(n)::bigint as n
from kept.cell_skills
join sizes using (witness)
group by all
having sum(n) > 0;
