-- rejected -> usage.rejected: the dead letters
create table usage.rejected as
select code, field, message, event_id, source, stored_at, body, arrival
from rejected;
