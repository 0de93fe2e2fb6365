-- firsts -> witnessed_pairs: for each pair and witness, in how many sequences which came first
create or replace table witnessed_pairs as
select
    a.skill_id as a,
    b.skill_id as b,
    witness,
    count(*) filter (a.turn < b.turn) as forward,
    count(*) filter (a.turn > b.turn) as backward,
    count(*) filter (a.turn = b.turn) as parallel,
    count(*) filter (a.turn < b.turn and recent) as recent_forward,
    count(*) filter (a.turn > b.turn and recent) as recent_backward,
    min(began_at) as first_seen,
    max(began_at) as last_seen
from firsts as a
join firsts as b using (sequence_id)
join sequences using (sequence_id)
where a.skill_id < b.skill_id
group by a.skill_id, b.skill_id, witness;
