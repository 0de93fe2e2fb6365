-- transitions -> what directly follows a skill, most frequent first
-- $skill: the skill
select
    next_skill_id, n, sessions, spontaneous_n,
    round(n / sum(n) over (), 4) as share
from transitions
where skill_id = $skill
order by n desc, next_skill_id;
