-- rejected_by_reason -> what was refused, why, and since when
select code, field, source, n, first_at, last_at, example
from rejected_by_reason
order by n desc, code, source;
