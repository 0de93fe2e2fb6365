-- chosen_pairs, kept.* -> when the skills of each pair were used in one sequence first and last
with chosen as (
    select chosen_pairs.a, chosen_pairs.b, one.skill as first_skill, other.skill as second_skill
    from chosen_pairs
    join kept.skills as one on one.skill_id = chosen_pairs.a
    join kept.skills as other on other.skill_id = chosen_pairs.b
),
uses as (
    select distinct sequence, skill
    from kept.steps
    where not suggested
)
select
    a,
    b,
    min(began_at) as first_seen,
    max(began_at) as last_seen
from chosen
join uses as one on one.skill = first_skill
join uses as other on other.skill = second_skill and other.sequence = one.sequence
join kept.sequences on kept.sequences.sequence = one.sequence
group by a, b
order by a, b;
