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
totals as (
    select
        a,
        b,
        sum(forward + backward + parallel)::bigint as o
    from witnessed_pairs
    group by a, b
),
others as (
    select
        a,
        b,
        o - forward - backward - parallel as seen,
        -- in brackets that make it the same to the last bit whichever of the two is a
        expected * ((na.n - wa.n) * (nb.n - wb.n)) * everything.size / ((na.n * nb.n) * (everything.size - wa.size)) as chance
    from witnessed_pairs
    join totals using (a, b)
    join expected_pairs using (a, b)
    join skill_counts as na on na.skill = a
    join skill_counts as nb on nb.skill = b
    join witness_skills as wa on wa.witness = witnessed_pairs.witness and wa.skill = a
    join witness_skills as wb on wb.witness = witnessed_pairs.witness and wb.skill = b
    cross join everything
)
select
    a,
    b,
    min(case when seen > 0 then seen / chance else 0 end) as lift,
    min(case when seen > 0 then (seen - chance) / sqrt(chance) else 0 end) as z
from others
group by a, b;
