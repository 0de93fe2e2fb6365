-- kept.sequences, kept.steps -> recent_pairs: which came first in the latest sequences
create or replace table recent_pairs as
with cut as (
    select quantile_disc(began_at, 1 - $recent_share) as recent_from
    from kept.sequences
    where length_bucket is not null
),
firsts as (
    select
        sequence,
        skill,
        min(turn) as turn
    from kept.steps
    where not suggested
        and sequence in (
            select sequence
            from kept.sequences, cut
            where began_at > recent_from and length_bucket is not null
        )
    group by sequence, skill
)
select
    a.skill as a,
    b.skill as b,
    count(*) filter (a.turn < b.turn) as forward,
    count(*) filter (a.turn > b.turn) as backward
from firsts as a
join firsts as b using (sequence)
where a.skill < b.skill
group by a.skill, b.skill;
