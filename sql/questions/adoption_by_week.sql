-- skill_calls, session_clocks -> how many sessions and people used a skill in each week; all skills where none is named
-- $skill = : the skill; empty means any
with dated as (
    select
        c.skill_id, c.session_id, c.actor,
        case when c.clock = 'ok' then c.called_at + to_seconds(coalesce(k.skew_s, 0)) else c.stored_at end as dated_at
    from skill_calls as c
    left join session_clocks as k on k.session_id = c.session_id
)
select
    cast(date_trunc('week', dated_at) as date) as week,
    count(*) as calls,
    count(distinct session_id) as sessions,
    count(distinct actor) as actors,
    count(distinct skill_id) as skills
from dated
where $skill = '' or skill_id = $skill
group by week
order by week;
