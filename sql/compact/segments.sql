-- kept.* -> kept.*: all segments as one
create or replace table kept.cells as
select 0 as segment, actor, length_bucket, weeks, witness, sum(n)::bigint as n
from kept.cells
group by all
having sum(n) <> 0;

create or replace table kept.cell_skills as
select 0 as segment, actor, length_bucket, weeks, witness, skill, sum(n)::bigint as n
from kept.cell_skills
group by all
having sum(n) <> 0;

create or replace table kept.pairs as
select
    0 as segment, a, b, witness,
    sum(forward)::bigint as forward, sum(backward)::bigint as backward, sum(parallel)::bigint as parallel
from kept.pairs
group by all
having sum(forward) <> 0 or sum(backward) <> 0 or sum(parallel) <> 0;

create or replace table kept.adjacent as
select 0 as segment, a, b, sum(forward)::bigint as forward, sum(backward)::bigint as backward
from kept.adjacent
group by all
having sum(forward) <> 0 or sum(backward) <> 0;

create or replace table kept.suggested as
select 0 as segment, a, b, sum(n)::bigint as n
from kept.suggested
group by all
having sum(n) <> 0;
