-- moved_* -> kept.adjacent: in how many sequences one skill directly followed the other
insert into kept.adjacent
with turns as (
    select
        sequence,
        skill,
        dense_rank() over (partition by sequence order by turn) as turn
    from moved_steps
    where not suggested
),
followed as (
    select distinct
        now.sequence,
        now.skill as source,
        later.skill as target
    from turns as now
    join turns as later on later.sequence = now.sequence and later.turn = now.turn + 1
    where now.skill <> later.skill
)
select
    $segment,
    least(source, target) as a,
    greatest(source, target) as b,
    coalesce(sum(sign::double) filter (source < target), 0) as forward,
    coalesce(sum(sign::double) filter (source > target), 0) as backward
from followed
join moved_sequences using (sequence)
group by all
having forward <> 0 or backward <> 0;
