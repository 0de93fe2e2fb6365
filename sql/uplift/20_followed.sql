-- usage.events, lists -> followed: the skills of each list that were among the next $within calls of its session
create or replace temp table followed as
with calls as (
    select
        session_id,
        skill_id,
        event_id,
        suggested_by,
        coalesce(called_at, stored_at) as happened_at,
        seq
    from usage.events
    where kind = 'activated'
        and outcome <> 'denied'
        and session_id in (
            select session_id
            from lists
        )
),
later as (
    select
        list,
        skill_id,
        suggested_by = list as said,
        list_contains(skills, skill_id) as offered,
        row_number() over (partition by list order by happened_at, seq, event_id) as nth
    from lists
    join calls using (session_id)
    where happened_at > shown_at
)
select
    list,
    skill_id,
    coalesce(bool_or(said), false) as said
from later
where offered
    and (said or nth <= $within)
group by list, skill_id;
