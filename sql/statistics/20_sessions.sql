-- events, changed -> fresh_sessions: what each changed session holds
create or replace temp table fresh_sessions as
select
    session_id,
    min(actor) filter (kind = 'activated') as actor,
    count(*) as events,
    count(*) filter (kind = 'activated') as calls,
    count(*) filter (kind = 'activated' and suggested_by is not null) as suggested_calls,
    min(called_at) filter (kind = 'activated' and clock = 'ok') as first_called_at,
    max(called_at) filter (kind = 'activated' and clock = 'ok') as last_called_at,
    bit_xor(hash(event_id)) as ids,
    bit_xor(
        hash(event_id, session_id, stream_id, seq, skill_id, called_at, kind, outcome, batch_id, suggested_by)
    ) as digest
from events
semi join changed using (session_id)
group by session_id;
