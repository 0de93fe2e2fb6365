-- witnessed_pairs, stratum_skills -> expected_pairs: co-uses expected were skills independent in each stratum
-- One product over all pairs of a stratum, as of a matrix with itself, is faster than looking up each seen pair.
-- Summed as whole numbers of 2^-30: a sum of fractions would differ in its last bits with the order of its terms.
create or replace table expected_pairs as
with numbered as (
    select
        skill_id,
        n,
        size,
        dense_rank() over (order by skill_id) as skill,
        dense_rank() over (order by stratum) as stratum
    from stratum_skills
),
chance as (
    select
        one.skill as a,
        other.skill as b,
        sum((one.n * other.n / one.size::double * (1 << 30))::bigint)::double / (1 << 30) as expected,
        count(*) as strata
    from numbered as one
    join numbered as other on other.stratum = one.stratum and other.skill > one.skill
    group by one.skill, other.skill
),
skills as (
    select distinct skill_id, skill
    from numbered
),
pairs as (
    select distinct a, b
    from witnessed_pairs
)
select
    pairs.a,
    pairs.b,
    expected,
    strata
from pairs
join skills as first_skill on first_skill.skill_id = pairs.a
join skills as second_skill on second_skill.skill_id = pairs.b
join chance on chance.a = first_skill.skill and chance.b = second_skill.skill;
