-- witnessed_pairs, witness_skills, expected_pairs -> outside_lift: lift among the others, whoever of the witnesses is left out
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
)
select
    a,
    b,
    min(
        case when o > forward + backward + parallel then
            (o - forward - backward - parallel)
            -- in brackets that make it the same to the last bit whichever of the two is a
            / (expected * ((na.n - wa.n) * (nb.n - wb.n)) * everything.size / ((na.n * nb.n) * (everything.size - wa.size)))
        else 0 end
    ) as lift
from witnessed_pairs
join totals using (a, b)
join expected_pairs using (a, b)
join skill_counts as na on na.skill = a
join skill_counts as nb on nb.skill = b
join witness_skills as wa on wa.witness = witnessed_pairs.witness and wa.skill = a
join witness_skills as wb on wb.witness = witnessed_pairs.witness and wb.skill = b
cross join everything
group by a, b;
