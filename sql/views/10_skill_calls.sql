-- events -> skill_calls: the calls, and nothing but calls; happened_at is the agent's clock where that can be trusted
create or replace view skill_calls as
select
    event_id, session_id, stream_id, seq, skill_id, skill as skill_as_named,
    called_at, stored_at, clock,
    case when clock = 'ok' then called_at else stored_at end as happened_at,
    trigger, outcome, duration_ms, batch_id, actor, agent, agent_version, source, confidence,
    suggested_by, suggested_by is null as spontaneous,
    arrival
from events
where kind = 'activated';
