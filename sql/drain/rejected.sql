-- rejected_batch -> rejected: the dead letters of a journal batch
insert into rejected
select code, field, message, event_id, source, stored_at, body, arrival
from rejected_batch
order by arrival;
