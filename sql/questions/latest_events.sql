-- events -> the events stored last
-- $n = 20: how many
select stored_at, called_at, kind, skill_id, session_id, outcome, source
from events
order by arrival desc
limit cast($n as integer);
