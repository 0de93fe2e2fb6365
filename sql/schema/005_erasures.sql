-- erasures -> erasures: what was erased when, and how much of it, without saying whose it was
create table if not exists erasures (
    erased_at timestamp not null, -- our clock, UTC
    kind text not null,           -- actor, session, age
    subject text not null,        -- keyed hash; '' where the kind is age
    removed text not null         -- JSON: place -> how much was removed there
);
