-- kept.* -> one row a session whose end is known: who worked in it, with which skills, and whether a call failed for good
select
    session_id,
    min(actor) as actor,
    list(distinct skill_id order by skill_id) as skills,
    any_value(len(failed) > 0) as failed
from kept.circumstances
join kept.sequences using (session_id)
join kept.steps using (sequence)
join kept.skills using (skill)
where ended > 0
group by session_id
order by session_id;
