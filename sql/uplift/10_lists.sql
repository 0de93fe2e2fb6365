-- usage.events -> lists: each list that was shown to a session, or would have been, with its skills
create or replace temp table lists as
with parts as (
    select
        coalesce(extra ->> 'list', event_id) as list,
        session_id,
        coalesce(called_at, stored_at) as shown_at,
        coalesce(extra ->> 'policy', 'served') as policy,
        extra ->> 'after' as asked_after,
        coalesce(from_json(extra -> 'shown', '["varchar"]'), [skill_id]) as skills
    from usage.events
    where kind = 'impression'
)
select
    list,
    session_id,
    min(shown_at) as shown_at,
    min(policy) as policy,
    min(asked_after) as asked_after,
    list_distinct(flatten(array_agg(skills))) as skills,
    row_number() over (partition by session_id order by min(shown_at), list) = 1 as first_of_session
from parts
group by list, session_id;
