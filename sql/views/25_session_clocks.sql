-- events -> session_clocks: how far the clock of each session's sender is off, for calendars and nothing else
-- Time on the way counts as skew too and only ever adds to it: the least of a session's batches says most of its clock.
create or replace view session_clocks as
with noted as (
    select session_id, try_cast(extra ->> '$.clock_skew_s' as bigint) as skew_s
    from events
    where contains(extra, '"clock_skew_s"')
)
select session_id, min(skew_s) as skew_s
from noted
where skew_s between -3000000000 and 3000000000
group by session_id;
