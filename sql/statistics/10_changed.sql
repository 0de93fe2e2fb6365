-- events -> changed: the sessions of which something arrived, or was completed, since the last run
create or replace temp table changed as
select distinct session_id
from events
where changed > $watermark;
