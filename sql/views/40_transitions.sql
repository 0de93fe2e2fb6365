-- skill_calls -> transitions: directly-follows counts inside a stream
-- Parallel calls (one batch_id, or one place in the order) say nothing about order and are not counted as steps.
create or replace view transitions as
with ordered as (
    select
        session_id, skill_id, spontaneous, seq, called_at, batch_id,
        lead(skill_id) over stream as next_skill_id,
        lead(seq) over stream as next_seq,
        lead(called_at) over stream as next_called_at,
        lead(batch_id) over stream as next_batch_id,
        lead(spontaneous) over stream as next_spontaneous
    from skill_calls
    window stream as (
        partition by session_id, stream_id
        order by seq nulls last, coalesce(called_at, stored_at), arrival, event_id
    )
)
select
    skill_id,
    next_skill_id,
    count(*) as n,
    count(distinct session_id) as sessions,
    count(*) filter (where next_spontaneous) as spontaneous_n
from ordered
where next_skill_id is not null
    and batch_id is distinct from coalesce(next_batch_id, '')
    and not (
        (seq is not null or called_at is not null)
        and seq is not distinct from next_seq
        and (seq is not null or called_at is not distinct from next_called_at)
    )
group by skill_id, next_skill_id;
