-- rejected_batch -> rejected: the dead letters of a journal batch; one with an id is kept once a reason
insert into rejected
with first_of_batch as (
    select *
    from rejected_batch
    qualify event_id is null or row_number() over (partition by event_id, code order by arrival) = 1
)
select b.code, b.field, b.message, b.event_id, b.source, b.stored_at, b.body, b.arrival
from first_of_batch as b
where not exists (
    select 1
    from rejected as r
    where r.event_id = b.event_id and r.code = b.code
)
order by b.arrival;
