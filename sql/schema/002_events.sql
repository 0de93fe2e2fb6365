-- journal -> events, rejected, drained: what the collector keeps in live.duckdb
create table if not exists events (
    event_id text not null,
    session_id text not null,
    stream_id text not null,      -- '' is the main stream; a subagent is a stream of its own
    seq bigint,                   -- the client's own order inside the stream
    skill text not null,          -- raw name as the agent used it
    called_at timestamp,          -- the agent's clock, UTC
    stored_at timestamp not null, -- our clock, UTC
    kind text not null,           -- only 'activated' is a call
    trigger text not null,
    outcome text not null,
    duration_ms double,
    batch_id text,                -- calls made in parallel
    actor text,                   -- keyed hash
    agent text,
    agent_version text,
    source text not null,
    confidence double not null,
    suggested_by text,            -- the call followed our own advice
    clock text not null,          -- ok, none, future, ancient
    extra text not null,          -- bounded JSON
    arrival bigint not null       -- position in the journal: rises for ever
);

create table if not exists rejected (
    code text not null,
    field text,
    message text not null,
    event_id text,
    source text not null,
    stored_at timestamp not null,
    body text not null,           -- the refused item, bounded
    arrival bigint not null
);

create table if not exists drained (
    segment bigint not null,      -- journal position up to which this file holds everything
    position bigint not null
);
