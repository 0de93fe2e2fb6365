-- nothing -> kept.*: what earlier runs counted; every number of it is a sum over sequences
-- Rows of a segment are what one run added and, with a minus, what it took back; readers sum over segments.
create table if not exists kept.mark (
    watermark bigint,          -- everything the log held up to this change is counted here
    identity text              -- what the numbers depend on beside the log
);
create table if not exists kept.skills (skill integer, skill_id text);
create table if not exists kept.witnesses (witness integer, name text);
create table if not exists kept.sessions (
    session_id text,
    actor text,
    events bigint,
    calls bigint,
    suggested_calls bigint,
    first_called_at timestamp,
    last_called_at timestamp,
    ids ubigint,               -- which events: their hashes, xored
    digest ubigint             -- of the content, the same in whatever order the events arrived
);
create table if not exists kept.sequences (
    sequence bigint,
    session_id text,
    stream_id text,
    session_group text,
    actor text,
    witness integer,
    began_at timestamp,
    length_bucket text,
    weeks bigint
);
create table if not exists kept.steps (
    sequence bigint,
    turn bigint,
    position bigint,
    skill integer,
    called_at timestamp,
    suggested boolean
);
create table if not exists kept.cells (
    segment integer, actor text, length_bucket text, weeks bigint, witness integer, n bigint
);
create table if not exists kept.cell_skills (
    segment integer, actor text, length_bucket text, weeks bigint, witness integer, skill integer, n bigint
);
create table if not exists kept.pairs (
    segment integer, a integer, b integer, witness integer, forward bigint, backward bigint, parallel bigint
);
create table if not exists kept.adjacent (segment integer, a integer, b integer, forward bigint, backward bigint);
create table if not exists kept.suggested (segment integer, a integer, b integer, n bigint);
create table if not exists kept.circumstances (
    -- one row a session that has any; skills by name
    session_id text,
    shown_calls bigint,        -- calls that followed our advice without saying so
    ended bigint,              -- calls whose end is known
    failed text[],             -- skills of which the last of a row of tries failed
    turned_to struct(failed text, next text)[], -- what was called next
    nested struct(caller text, callee text)[] -- which skill called which; the caller's name as the agent wrote it
);
