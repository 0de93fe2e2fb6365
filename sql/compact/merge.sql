-- shard.* -> kept.*: the sums of another log, whose sessions are others; its numbers for names become ours
create or replace temp table here_skills as
select
    theirs.skill as there,
    coalesce(ours.skill, row_number() over (order by ours.skill nulls first, skill_id) + (select coalesce(max(skill), 0) from kept.skills)) as here,
    skill_id,
    ours.skill is null as new
from shard.skills as theirs
left join kept.skills as ours using (skill_id);

insert into kept.skills
select here, skill_id
from here_skills
where new;

create or replace temp table here_witnesses as
select
    theirs.witness as there,
    coalesce(ours.witness, row_number() over (order by ours.witness nulls first, name) + (select coalesce(max(witness), 0) from kept.witnesses)) as here,
    name,
    ours.witness is null as new
from shard.witnesses as theirs
left join kept.witnesses as ours using (name);

insert into kept.witnesses
select here, name
from here_witnesses
where new;

create or replace temp table offsets as
select
    (select coalesce(max(sequence), 0) from kept.sequences) as sequences,
    (select coalesce(max(segment), -1) + 1 from kept.cells) as segments;

insert into kept.sessions by name
from shard.sessions;

insert into kept.steps
select sequence + sequences, turn, position, here, called_at, suggested
from shard.steps
join here_skills on there = skill
cross join offsets;

insert into kept.cell_skills
select segment + segments, actor, length_bucket, weeks, w.here, s.here, n
from shard.cell_skills
join here_witnesses as w on w.there = witness
join here_skills as s on s.there = skill
cross join offsets;

insert into kept.pairs
select
    segment + segments,
    least(one.here, other.here),
    greatest(one.here, other.here),
    w.here,
    case when one.here < other.here then forward else backward end,
    case when one.here < other.here then backward else forward end,
    parallel
from shard.pairs
join here_witnesses as w on w.there = witness
join here_skills as one on one.there = a
join here_skills as other on other.there = b
cross join offsets;

insert into kept.adjacent
select
    segment + segments,
    least(one.here, other.here),
    greatest(one.here, other.here),
    case when one.here < other.here then forward else backward end,
    case when one.here < other.here then backward else forward end
from shard.adjacent
join here_skills as one on one.there = a
join here_skills as other on other.there = b
cross join offsets;

insert into kept.suggested
select segment + segments, least(one.here, other.here), greatest(one.here, other.here), n
from shard.suggested
join here_skills as one on one.there = a
join here_skills as other on other.there = b
cross join offsets;

insert into kept.cells
select segment + segments, actor, length_bucket, weeks, here, n
from shard.cells
join here_witnesses on there = witness
cross join offsets;

insert into kept.sequences
select sequence + sequences, session_id, stream_id, session_group, actor, here, began_at, length_bucket, weeks
from shard.sequences
left join here_witnesses on there = witness
cross join offsets;

insert into kept.circumstances by name
from shard.circumstances;
