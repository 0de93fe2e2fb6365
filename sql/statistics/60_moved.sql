-- fresh_sequences, fresh_steps, kept.* -> moved_*: what this run adds (1) and what it takes back first (-1)
create or replace temp table moved_sequences as
select sequence, session_id, stream_id, session_group, actor, witness, began_at, length_bucket, weeks, 1 as sign
from fresh_sequences
left join kept.witnesses on name = witness_name
union all
select sequence, session_id, stream_id, session_group, actor, witness, began_at, length_bucket, weeks, -1
from kept.sequences
semi join changed using (session_id);

create or replace temp table moved_steps as
from fresh_steps
union all
select sequence, turn, position, skill, called_at, suggested
from kept.steps
where sequence in (
    select sequence
    from moved_sequences
    where sign = -1
);

create or replace temp table moved_firsts as
select
    sequence,
    skill,
    witness,
    sign::double as sign, -- whole numbers, and many times faster to sum
    min(turn) as turn
from moved_steps
join moved_sequences using (sequence)
where not suggested
group by sequence, skill, witness, sign;
