-- counted -> skill_counts: use of each skill by agents that only count it; popularity, beside skill_calls and never in it
create or replace view skill_counts as
with counters as (
    select
        skill_id, agent, source, trigger, outcome, actor, series,
        case when cumulative then max(n) else sum(n) end as n,
        min(coalesce(began_at, counted_at, stored_at)) as first_at,
        max(coalesce(counted_at, stored_at)) as last_at
    from counted
    group by skill_id, agent, source, trigger, outcome, actor, series, cumulative, case when cumulative then began_at end
)
select
    skill_id,
    agent,
    source,
    cast(sum(n) as bigint) as uses,
    cast(sum(n) filter (where trigger = 'user') as bigint) as uses_by_users,
    cast(sum(n) filter (where outcome in ('error', 'denied')) as bigint) as failed_uses,
    count(distinct actor) as actors,
    min(first_at) as first_at,
    max(last_at) as last_at
from counters
group by skill_id, agent, source;
