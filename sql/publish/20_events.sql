-- completed_events, skill_alias -> usage.events: every event exactly once, complete, its raw skill name resolved
-- The drain keeps each id once; homes written before it did may hold doubles: the first one wins.
-- What telemetry told twice, with and without the call's id, is one call; numbers that order nothing are left out.
create table usage.events as
with doubles as (
    select event_id, min(arrival) as first_arrival
    from events
    group by event_id
    having count(*) > 1
)
select
    e.event_id, e.session_id, e.stream_id,
    case when u.session_id is null then e.seq end as seq,
    e.skill, e.called_at, e.stored_at, e.kind, e.trigger, e.outcome, e.duration_ms, e.batch_id, e.actor, e.agent,
    e.agent_version, e.source, e.confidence, e.suggested_by, e.clock, e.extra, e.arrival,
    coalesce(a.skill_id, e.skill) as skill_id,
    e.sources,
    e.changed
from completed_events as e
left join doubles as d on d.event_id = e.event_id
left join usage.skill_alias as a on a.name = e.skill
left join unnumbered_streams as u on u.session_id = e.session_id and u.stream_id = e.stream_id
anti join seen_again as s on s.event_id = e.event_id
where d.event_id is null or d.first_arrival = e.arrival;
