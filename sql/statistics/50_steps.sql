-- calls, fresh_sequences -> fresh_steps: each stream's calls in order, parallel calls on one turn, repeats of a skill folded
create or replace temp table fresh_steps as
with placed as (
    -- the client's own order where the whole stream has one, else the time; equal keys are parallel
    select
        sequence,
        skill,
        event_id,
        calls.called_at,
        batch_id,
        suggested,
        dense_rank() over (
            partition by sequence
            order by
                case when has_seq then seq else epoch_us(happened_at) end,
                case when not has_seq then seq end,
                case when not has_seq then arrival end
        ) as place
    from calls
    join fresh_sequences using (session_id, stream_id)
),
batches as (
    select
        sequence,
        batch_id,
        min(place) as place
    from placed
    where batch_id is not null
    group by sequence, batch_id
),
turned as (
    select
        placed.* exclude (batch_id),
        dense_rank() over (
            partition by sequence, suggested
            order by coalesce(batches.place, placed.place)
        ) as turn
    from placed
    left join batches using (sequence, batch_id)
),
first_of_run as (
    -- a call is a repeat where the same skill stands before it on its own turn, or on the turn before
    select *
    from turned
    qualify coalesce(
        lag(turn) over (partition by sequence, suggested, skill order by turn, place, event_id) < turn - 1,
        true
    )
)
select
    sequence,
    turn,
    row_number() over (partition by sequence, suggested order by turn, place, event_id) as position,
    skill,
    called_at,
    suggested
from first_of_run;
