-- skill_calls -> of the sessions with one skill, how many went on to another, and how soon
-- $first: the skill a session begins with
-- $then: the skill it may go on to
with reached as (
    select session_id, min(happened_at) as at
    from skill_calls
    where skill_id = $first
    group by session_id
),
went_on as (
    select r.session_id, min(c.happened_at) - r.at as after
    from reached as r
    inner join skill_calls as c
        on c.session_id = r.session_id and c.skill_id = $then and c.happened_at > r.at
    group by r.session_id, r.at
)
select
    (select count(*) from reached) as sessions,
    (select count(*) from went_on) as went_on,
    round((select count(*) from went_on) / nullif((select count(*) from reached), 0), 4) as share,
    (select median(epoch(after)) from went_on) as median_s;
