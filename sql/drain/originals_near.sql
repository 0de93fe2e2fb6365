-- repeat_batch, events -> the kept events of these ids, looked for around the time of the repeats only
select event_id, arrival, trigger, outcome, duration_ms, actor, agent, agent_version, suggested_by, batch_id, source
from events
semi join repeat_batch using (event_id)
where called_at between $first_called_at - interval 1 minute and $last_called_at + interval 1 minute;
