-- witnessed_pairs, stratum_skills -> expected_pairs: co-uses expected were skills independent in each stratum
create or replace table expected_pairs as
with pairs as (
    select distinct a, b
    from witnessed_pairs
),
terms as (
    select
        pairs.a,
        pairs.b,
        na.n * nb.n / na.size::double as term
    from pairs
    join stratum_skills as na on na.skill_id = pairs.a
    join stratum_skills as nb on nb.skill_id = pairs.b and nb.stratum = na.stratum
)
select
    a,
    b,
    -- summed in the order of the terms: a parallel sum would differ in its last bits from run to run
    sum(term order by term) as expected,
    count(*) as strata
from terms
group by a, b;
