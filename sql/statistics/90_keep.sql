-- moved_*, fresh_sessions -> kept.sessions, kept.sequences, kept.steps: the changed sessions as they are now
delete from kept.steps
where sequence in (
    select sequence
    from moved_sequences
    where sign = -1
);
insert into kept.steps
select sequence, turn, position, skill, called_at, suggested
from fresh_steps;

delete from kept.sequences
where session_id in (from changed);
insert into kept.sequences
select sequence, session_id, stream_id, session_group, actor, witness, began_at, length_bucket, weeks
from moved_sequences
where sign = 1;

delete from kept.sessions
where session_id in (from changed);
insert into kept.sessions by name
from fresh_sessions;
