-- events -> seen_again, unnumbered_streams: what telemetry of Claude Code tells twice, and where its numbers order nothing
-- A record without a call id is an event marked `seen_as`. Each call of its session and skill stands for one of them:
-- first among those of the call's own prompt, then, where a prompt is not known, among all; always the nearest.
-- Derived from everything that is stored, so that it does not matter what arrived first.
create or replace view seen_again as
with seen as (
    select
        event_id, session_id, skill, seq,
        coalesce(called_at, stored_at) as at,
        extra ->> 'prompt_id' as prompt_id
    from events
    where source = 'claude-otel'
        and kind = 'activated'
        and (extra ->> 'seen_as') is not null
),
others as materialized ( -- so that only what may be the same call is looked into
    select session_id, skill, seq, called_at, stored_at, source, extra
    from events
    semi join seen using (session_id, skill)
    where kind = 'activated'
        and trigger <> 'user'
),
calls as (
    select
        session_id, skill,
        case when source = 'claude-otel' then seq end as seq,
        coalesce(called_at, stored_at) as at,
        extra ->> 'prompt_id' as prompt_id
    from others
    where (extra ->> 'seen_as') is null
),
same_prompt as (
    select
        s.event_id, s.session_id, s.skill, s.prompt_id, s.seq,
        count(*) as calls,
        min(abs(c.seq - s.seq)) as steps,
        min(abs(epoch_us(c.at) - epoch_us(s.at))) as apart
    from seen as s
    join calls as c using (session_id, skill, prompt_id)
    group by s.event_id, s.session_id, s.skill, s.prompt_id, s.seq
),
told as (
    select event_id
    from same_prompt
    qualify row_number() over (
        partition by session_id, skill, prompt_id
        order by steps nulls last, apart, seq, event_id
    ) <= calls
),
any_prompt as (
    select
        s.event_id, s.session_id, s.skill, s.seq,
        count(*) as calls,
        min(abs(epoch_us(c.at) - epoch_us(s.at))) as apart
    from seen as s
    anti join told using (event_id)
    join calls as c using (session_id, skill)
    where c.prompt_id is null or s.prompt_id is null
    group by s.event_id, s.session_id, s.skill, s.seq
)
select event_id
from told
union all
select event_id
from (
    select event_id
    from any_prompt
    qualify row_number() over (partition by session_id, skill order by apart, seq, event_id) <= calls
);

-- event.sequence orders a stream where all of it is numbered so and the clock agrees. It begins again in every process,
-- which a resumed session outlives, and says nothing beside a transcript's positions: there the time decides.
create or replace view unnumbered_streams as
with sessions as (
    select distinct session_id
    from events
    where source = 'claude-otel'
),
numbered as (
    select
        session_id, stream_id, source, seq, called_at,
        max(called_at) over (partition by session_id, stream_id order by seq nulls last) as latest_at
    from events
    semi join sessions using (session_id)
    where kind = 'activated'
)
select session_id, stream_id
from numbered
group by session_id, stream_id
having count(seq) < count(*)
    or count(distinct source) > 1
    or (min(source) = 'claude-otel' and (count(distinct seq) < count(*) or bool_or(called_at < latest_at)));
