-- event_batch -> events: the events of a journal batch whose event_id is not kept yet
-- A repeat carries the same called_at, so only rows of the batch's own times are looked at; without a
-- primary key this stays flat however many rows there are.
insert into events
with first_of_batch as (
    select *
    from event_batch
    qualify row_number() over (partition by event_id order by arrival) = 1
),
kept as (
    select event_id from events where called_at between $first_called_at and $last_called_at
    union all
    select event_id from events where called_at <= $last_ancient
    union all
    select event_id from events where called_at >= $first_future
    union all
    select event_id from events where called_at is null and $some_untimed
)
select
    event_id, session_id, stream_id, seq, skill, called_at, stored_at, kind, trigger, outcome, duration_ms,
    batch_id, actor, agent, agent_version, source, confidence, suggested_by, clock, extra, arrival
from first_of_batch
anti join kept using (event_id)
order by arrival;
