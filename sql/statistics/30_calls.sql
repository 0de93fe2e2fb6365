-- events, changed -> calls, kept.skills: the calls of the changed sessions that count, skills by small numbers
insert into kept.skills
select row_number() over (order by skill_id) + (select coalesce(max(skill), 0) from kept.skills), skill_id
from (
    select distinct skill_id
    from events
    semi join changed using (session_id)
    where kind = 'activated'
)
anti join kept.skills using (skill_id);

create or replace temp table calls as
select
    session_id,
    stream_id,
    event_id,
    skills.skill,
    seq,
    coalesce(called_at, stored_at) as happened_at,
    case when clock = 'ok' then called_at end as called_at, -- a broken clock names no day
    case when seq is null and called_at is null then arrival end as arrival, -- the only order there is
    batch_id,
    actor,
    coalesce(extra ->> 'group', session_id) as session_group,
    suggested_by is not null as suggested
from events
semi join changed using (session_id)
join kept.skills using (skill_id)
where kind = 'activated'
    and outcome <> 'denied'
    and confidence >= $min_confidence;
