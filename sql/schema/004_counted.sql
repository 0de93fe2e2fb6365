-- journal -> counted: how often skills were used, from agents that count and tell nothing else; never a sequence
create table if not exists counted (
    count_id text not null,
    series text not null,         -- one counter of one process
    skill text not null,          -- raw name as the agent used it
    n bigint not null,
    cumulative boolean not null,  -- later points of the series with the same begin hold this one
    began_at timestamp,           -- the agent's clock, UTC
    counted_at timestamp,         -- the agent's clock, UTC
    stored_at timestamp not null, -- our clock, UTC
    trigger text not null,
    outcome text not null,
    actor text,                   -- keyed hash
    agent text,
    agent_version text,
    source text not null,
    arrival bigint not null
);
