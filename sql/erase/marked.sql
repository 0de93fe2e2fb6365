-- erased_sessions, erased_actors, age -> erased_events: the events that go
create or replace temp table erased_before as
select $before::timestamp as before;

-- an event that nobody was named in may have been completed by a later copy that named somebody
create or replace temp table erased_events as
select event_id
from completed_events
where session_id in (select value from erased_sessions)
    or coalesce(actor in (select value from erased_actors), false)
    or coalesce(coalesce(case when clock = 'ok' then called_at end, stored_at) < $before::timestamp, false);
