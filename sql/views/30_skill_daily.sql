-- skill_calls, session_clocks -> skill_daily: use of each skill by UTC day
-- An agent's clock that is known to be off is put right here, where only the day counts, and never where order does.
create or replace view skill_daily as
with dated as (
    select
        c.skill_id, c.session_id, c.actor, c.trigger, c.outcome, c.duration_ms,
        cast(
            case when c.clock = 'ok' then c.called_at + to_seconds(coalesce(k.skew_s, 0)) else c.stored_at end as date
        ) as day
    from skill_calls as c
    left join session_clocks as k on k.session_id = c.session_id
)
select
    day,
    skill_id,
    count(*) as calls,
    count(distinct session_id) as sessions,
    count(distinct actor) as actors,
    count(*) filter (where trigger = 'user') as calls_by_users,
    count(*) filter (where outcome = 'ok') as ok_calls,
    count(*) filter (where outcome in ('error', 'denied')) as failed_calls,
    median(duration_ms) as median_duration_ms
from dated
group by day, skill_id;
