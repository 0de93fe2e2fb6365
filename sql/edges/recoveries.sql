-- kept.* -> after one skill failed, to which was turned: beside how often that one follows the first anyway
with turns as (
    select distinct session_id, unnest(turned_to) as turn
    from kept.circumstances
),
vouched as (
    select session_id, min(witness) as witness
    from kept.sequences
    group by session_id
),
turned as (
    select
        turn.failed as failed,
        turn.next as next,
        count(*) as sessions,
        count(distinct witness) as witnesses
    from turns
    left join vouched using (session_id)
    group by all
),
failed as (
    select unnest(failed) as failed
    from kept.circumstances
),
failures as (
    select failed, count(*) as failures
    from failed
    group by failed
),
uses as (
    select skill_id as failed, count(distinct session_id) as uses
    from kept.steps
    join kept.skills using (skill)
    join kept.sequences using (sequence)
    group by skill_id
),
followed as (
    select
        one.skill_id as failed,
        other.skill_id as next,
        sum(n)::bigint as followed
    from (
        select a as source, b as target, forward as n from kept.adjacent
        union all
        select b, a, backward from kept.adjacent
    )
    join kept.skills as one on one.skill = source
    join kept.skills as other on other.skill = target
    group by all
)
select failed, next, sessions, witnesses, failures, uses, coalesce(followed, 0) as followed
from turned
join failures using (failed)
join uses using (failed)
left join followed using (failed, next)
order by failed, next;
