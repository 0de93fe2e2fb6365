-- events, changed, shown -> kept.circumstances: how the calls of a session ended, what was called after a failure, and by whom
delete from kept.circumstances
where session_id in (from changed);

insert into kept.circumstances by name
with counted as (
    select
        session_id,
        stream_id,
        event_id,
        skill_id,
        outcome,
        trigger,
        suggested_by is not null or event_id in (select event_id from shown) as suggested,
        extra,
        seq,
        coalesce(called_at, stored_at) as happened_at
    from events
    semi join changed using (session_id)
    where kind = 'activated'
        and outcome <> 'denied'
        and confidence >= $min_confidence
),
ended as (
    select
        session_id,
        count(*) as ended
    from counted
    where outcome in ('ok', 'error', 'abandoned')
    group by session_id
),
placed as (
    select
        session_id,
        stream_id,
        skill_id,
        outcome,
        suggested,
        row_number() over (
            partition by session_id, stream_id
            order by case when all_numbered then seq else epoch_us(happened_at) end, event_id
        ) as place
    from (
        select *, count(seq) over (partition by session_id, stream_id) = count(*) over (partition by session_id, stream_id) as all_numbered
        from counted
        where session_id in (
            select session_id
            from counted
            where outcome in ('error', 'abandoned')
        )
    )
),
tries as (
    -- a skill tried again and again is one try, and ends as its last call did
    select
        *,
        lead(skill_id) over stream as next_skill,
        lead(suggested) over stream as next_suggested
    from placed
    window stream as (partition by session_id, stream_id order by place)
    qualify next_skill is distinct from skill_id
),
failures as (
    select
        session_id,
        list(distinct skill_id order by skill_id) as failed,
        list(distinct {'failed': skill_id, 'next': next_skill} order by {'failed': skill_id, 'next': next_skill})
            filter (not next_suggested) as turned_to
    from tries
    where outcome in ('error', 'abandoned')
    group by session_id
),
nested as (
    select
        session_id,
        list(distinct {'caller': extra ->> 'caller', 'callee': skill_id} order by {'caller': extra ->> 'caller', 'callee': skill_id})
            as nested
    from counted
    where trigger = 'nested'
        and (extra ->> 'caller') is not null
        and not suggested
    group by session_id
),
unsaid as (
    select
        session_id,
        count(*) filter (unsaid) as shown_calls
    from shown
    group by session_id
)
select
    session_id,
    coalesce(shown_calls, 0) as shown_calls,
    coalesce(ended, 0) as ended,
    coalesce(failed, []) as failed,
    coalesce(turned_to, []) as turned_to,
    coalesce(nested, []) as nested
from ended
full join failures using (session_id)
full join nested using (session_id)
full join unsaid using (session_id);
