-- counted_batch -> counted: the counts of a journal batch that are not kept yet; equal points have equal ids
insert into counted
with first_of_batch as (
    select *
    from counted_batch
    qualify row_number() over (partition by count_id order by arrival) = 1
)
select
    count_id, series, skill, n, cumulative, began_at, counted_at, stored_at, trigger, outcome, actor, agent,
    agent_version, source, arrival
from first_of_batch
anti join counted using (count_id)
order by arrival;
