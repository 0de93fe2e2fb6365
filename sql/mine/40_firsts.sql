-- steps -> firsts: the first turn of each skill in each sequence
create or replace table firsts as
select
    sequence_id,
    skill_id,
    min(turn) as turn
from steps
where not suggested
group by sequence_id, skill_id;
