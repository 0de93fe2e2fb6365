-- events -> completions, completed_events: what later copies of an event knew that the first one did not
-- Rows of events never change: an update or delete beside inserts is what DuckDB's write-ahead log could not replay.
create table if not exists completions (
    event_id text not null,
    completes bigint not null,    -- arrival of the event that this completes
    trigger text,                 -- null: nothing new
    outcome text,
    duration_ms double,
    actor text,                   -- keyed hash
    agent text,
    agent_version text,
    suggested_by text,
    batch_id text,
    source text not null,         -- who saw the event too
    stored_at timestamp not null, -- our clock, UTC
    arrival bigint not null
);

create or replace view completed_events as
with later as (
    select
        completes,
        arg_min(trigger, arrival) as trigger,
        arg_min(outcome, arrival) as outcome,
        arg_min(duration_ms, arrival) as duration_ms,
        arg_min(actor, arrival) as actor,
        arg_min(agent, arrival) as agent,
        arg_min(agent_version, arrival) as agent_version,
        arg_min(suggested_by, arrival) as suggested_by,
        arg_min(batch_id, arrival) as batch_id,
        list(distinct source) as sources,
        max(arrival) as arrival
    from completions
    group by completes
)
select
    e.event_id, e.session_id, e.stream_id, e.seq, e.skill, e.called_at, e.stored_at, e.kind,
    case when e.trigger = 'unknown' then coalesce(l.trigger, e.trigger) else e.trigger end as trigger,
    case when e.outcome = 'unknown' then coalesce(l.outcome, e.outcome) else e.outcome end as outcome,
    coalesce(e.duration_ms, l.duration_ms) as duration_ms,
    coalesce(e.batch_id, l.batch_id) as batch_id,
    coalesce(e.actor, l.actor) as actor,
    coalesce(e.agent, l.agent) as agent,
    coalesce(e.agent_version, l.agent_version) as agent_version,
    e.source, e.confidence,
    coalesce(e.suggested_by, l.suggested_by) as suggested_by,
    e.clock, e.extra, e.arrival,
    case
        when l.sources is null then e.source
        else array_to_string(list_sort(list_distinct(list_append(l.sources, e.source))), ', ')
    end as sources,
    coalesce(l.arrival, e.arrival) as changed
from events as e
left join later as l on l.completes = e.arrival;
