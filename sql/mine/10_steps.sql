-- events -> steps: each stream's calls in order, parallel calls on one turn, repeats of a skill folded
create or replace table steps as
with calls as (
    select
        dense_rank() over (order by session_id, stream_id) as sequence_id,
        event_id,
        skill_id,
        seq,
        coalesce(called_at, stored_at) as happened_at,
        case when clock = 'ok' then called_at end as called_at, -- a broken clock names no day
        case when seq is null and called_at is null then arrival end as arrival, -- the only order there is
        batch_id,
        actor,
        coalesce(extra ->> 'group', session_id) as session_group,
        suggested_by is not null as suggested,
        count(seq) over (partition by session_id, stream_id) = count(*) over (partition by session_id, stream_id) as has_seq
    from events
    where kind = 'activated'
        and outcome <> 'denied'
        and confidence >= $min_confidence
),
placed as (
    -- the client's own order where the whole stream has one, else the time; equal keys are parallel
    select
        *,
        dense_rank() over (
            partition by sequence_id
            order by
                case when has_seq then seq end,
                case when not has_seq then happened_at end,
                case when not has_seq then seq end,
                case when not has_seq then arrival end
        ) as place
    from calls
),
turned as (
    select
        *,
        case when batch_id is null then place else min(place) over (partition by sequence_id, batch_id) end as turn
    from placed
),
folded as (
    select
        sequence_id,
        turn,
        skill_id,
        suggested,
        min(place) as place,
        min(event_id) as event_id,
        min(called_at) as called_at,
        min(actor) as actor,
        min(session_group) as session_group
    from (
        select
            * exclude (turn),
            dense_rank() over (partition by sequence_id, suggested order by turn) as turn
        from turned
    )
    group by sequence_id, turn, skill_id, suggested
),
first_of_run as (
    -- a call is a repeat where the same skill already stood on the turn before
    select *
    from folded
    qualify lag(turn) over (partition by sequence_id, suggested, skill_id order by turn) is distinct from turn - 1
)
select
    sequence_id,
    turn,
    row_number() over (partition by sequence_id, suggested order by turn, place, event_id) as position,
    skill_id,
    called_at,
    actor,
    session_group,
    suggested
from first_of_run;
