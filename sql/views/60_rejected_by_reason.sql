-- rejected -> rejected_by_reason: what was refused, why, and since when
create or replace view rejected_by_reason as
select
    code,
    field,
    source,
    count(*) as n,
    min(stored_at) as first_at,
    max(stored_at) as last_at,
    any_value(message) as example
from rejected
group by code, field, source;
