-- completion_batch -> completions: what repeats knew that the kept event did not, and who else saw it
insert into completions
select
    event_id, completes, trigger, outcome, duration_ms, actor, agent, agent_version, suggested_by, batch_id, source,
    stored_at, arrival
from completion_batch
order by arrival;
