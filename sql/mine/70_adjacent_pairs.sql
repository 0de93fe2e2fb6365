-- steps -> adjacent_pairs: in how many sequences one skill directly followed the other
create or replace table adjacent_pairs as
with turns as (
    select
        sequence_id,
        skill_id,
        dense_rank() over (partition by sequence_id order by turn) as turn
    from steps
    where not suggested
),
followed as (
    select distinct
        now.sequence_id,
        now.skill_id as source,
        later.skill_id as target
    from turns as now
    join turns as later on later.sequence_id = now.sequence_id and later.turn = now.turn + 1
    where now.skill_id <> later.skill_id
)
select
    least(source, target) as a,
    greatest(source, target) as b,
    count(*) filter (source < target) as adjacent_forward,
    count(*) filter (source > target) as adjacent_backward
from followed
group by least(source, target), greatest(source, target);
