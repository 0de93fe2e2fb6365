-- chosen_pairs, kept.* -> how sessions ended that used both skills of a pair, and those that used only one of them
with known as (
    select session_id, len(failed) = 0 as ok
    from kept.circumstances
    where ended > 0
),
uses as (
    select distinct session_id, skill_id, ok
    from known
    join kept.sequences using (session_id)
    join kept.steps using (sequence)
    join kept.skills using (skill)
),
totals as (
    select
        skill_id,
        count(*) as known,
        count(*) filter (ok) as ok
    from uses
    group by skill_id
),
together as (
    select
        a,
        b,
        count(*) as known,
        count(*) filter (one.ok) as ok
    from chosen_pairs
    join uses as one on one.skill_id = a
    join uses as other on other.skill_id = b and other.session_id = one.session_id
    group by a, b
)
select
    together.a as a,
    together.b as b,
    together.known as ended_with,
    together.ok / together.known as success_with,
    one.known + other.known - 2 * together.known as ended_without,
    (one.ok + other.ok - 2 * together.ok) / nullif(one.known + other.known - 2 * together.known, 0) as success_without
from together
join totals as one on one.skill_id = a
join totals as other on other.skill_id = b
order by together.a, together.b;
