-- lists, followed -> offers: for each skill asked after and skill shown, how many sessions, and in how many it was called
create or replace temp table offers as
with offered as (
    select
        session_id,
        list,
        policy,
        asked_after,
        unnest(skills) as skill_id
    from lists
    where asked_after is not null
),
by_session as (
    select
        asked_after,
        skill_id,
        session_id,
        min(policy) as policy,
        coalesce(bool_or(followed.list is not null), false) as took
    from offered
    left join followed using (list, skill_id)
    group by all
)
select
    asked_after,
    skill_id,
    count(*) filter (policy = 'served') as served,
    count(*) filter (policy = 'served' and took) as served_took,
    count(*) filter (policy = 'holdout') as holdout,
    count(*) filter (policy = 'holdout' and took) as holdout_took
from by_session
group by all;
