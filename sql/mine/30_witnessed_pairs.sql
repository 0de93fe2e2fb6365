-- kept.pairs -> witnessed_pairs: for each pair and witness, in how many sequences which came first
create or replace table witnessed_pairs as
select
    a,
    b,
    witness,
    sum(forward)::bigint as forward,
    sum(backward)::bigint as backward,
    sum(parallel)::bigint as parallel
from kept.pairs
group by a, b, witness
having sum(forward + backward + parallel) > 0;
