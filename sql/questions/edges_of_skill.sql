-- edge_evidence -> the edges of a skill, and what speaks for each
-- $skill: the skill
-- $status = confirmed: confirmed or candidate; empty means both
select
    source, relation, target, status, provenance, sessions, expected, lift, q, witnesses, forward, backward,
    share, lower, upper, last_seen
from edge_evidence
where $skill in (source, target)
    and ($status = '' or status = $status)
order by relation, sessions desc nulls last, source, target;
