-- chosen_pairs, kept.* -> when the skills of each pair were used in one sequence first and last
-- From the sequences to the pairs: from each pair to all sequences of its skills took twice as long, and memory.
with chosen as (
    select
        chosen_pairs.a,
        chosen_pairs.b,
        one.skill as first_skill,
        other.skill as second_skill
    from chosen_pairs
    join kept.skills as one on one.skill_id = chosen_pairs.a
    join kept.skills as other on other.skill_id = chosen_pairs.b
),
uses as (
    select sequence, skill
    from kept.steps
    where not suggested
        and skill in (
            select first_skill from chosen
            union all
            select second_skill from chosen
        )
),
together as (
    select
        one.skill as first_skill,
        other.skill as second_skill,
        min(began_at) as first_seen,
        max(began_at) as last_seen
    from uses as one
    join uses as other using (sequence)
    join kept.sequences using (sequence)
    where exists (
        select 1
        from chosen
        where first_skill = one.skill and second_skill = other.skill
    )
    group by all
)
select a, b, first_seen, last_seen
from chosen
join together using (first_skill, second_skill)
order by a, b;
