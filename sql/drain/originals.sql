-- repeat_batch, events -> the kept events of these ids, wherever they are
select event_id, arrival, trigger, outcome, duration_ms, actor, agent, agent_version, suggested_by, batch_id, source
from events
semi join repeat_batch using (event_id);
