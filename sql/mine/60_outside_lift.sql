-- witnessed_pairs, witness_skills, expected_pairs -> outside_lift: lift among the others, and how surprising, whoever of the witnesses is left out
-- Chance for the others is the whole's, scaled by how much of each skill, and of all sequences, is theirs.
create or replace table outside_lift as
with everything as (
    select sum(n)::double as size
    from kept.cells
),
skill_counts as (
    select
        skill,
        sum(n)::double as n
    from stratum_skills
    group by skill
),
outside as (
    select
        witness,
        skill,
        skill_counts.n as n,
        skill_counts.n - witness_skills.n as theirs,
        everything.size as size,
        everything.size - witness_skills.size as their_size
    from witness_skills
    join skill_counts using (skill)
    cross join everything
),
summed as (
    select
        a,
        b,
        sum(forward + backward + parallel)::bigint as o
    from witnessed_pairs
    group by a, b
),
totals as (
    select a, b, o, expected
    from summed
    join expected_pairs using (a, b)
),
others as (
    select
        a,
        b,
        o - forward - backward - parallel as seen,
        -- in brackets that make it the same to the last bit whichever of the two is a
        expected * (one.theirs * other.theirs) * one.size / ((one.n * other.n) * one.their_size) as chance
    from witnessed_pairs
    join totals using (a, b)
    join outside as one on one.witness = witnessed_pairs.witness and one.skill = a
    join outside as other on other.witness = witnessed_pairs.witness and other.skill = b
)
select
    a,
    b,
    min(case when seen > 0 then seen / chance else 0 end) as lift,
    min(case when seen > 0 then (seen - chance) / sqrt(chance) else 0 end) as z
from others
group by a, b;
