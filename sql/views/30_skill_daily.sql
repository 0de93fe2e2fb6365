-- skill_calls -> skill_daily: use of each skill by UTC day
create or replace view skill_daily as
select
    cast(happened_at as date) as day,
    skill_id,
    count(*) as calls,
    count(distinct session_id) as sessions,
    count(distinct actor) as actors,
    count(*) filter (where trigger = 'user') as calls_by_users,
    count(*) filter (where outcome = 'ok') as ok_calls,
    count(*) filter (where outcome in ('error', 'denied')) as failed_calls,
    median(duration_ms) as median_duration_ms
from skill_calls
group by day, skill_id;
