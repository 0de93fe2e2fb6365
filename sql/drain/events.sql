-- fresh_batch -> events: the events of a journal batch whose event_id is not kept yet, already in their order
insert into events
select
    event_id, session_id, stream_id, seq, skill, called_at, stored_at, kind, trigger, outcome, duration_ms,
    batch_id, actor, agent, agent_version, source, confidence, suggested_by, clock, extra, arrival
from fresh_batch;
