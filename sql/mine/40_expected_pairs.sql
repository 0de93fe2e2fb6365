-- witnessed_pairs, stratum_skills -> expected_pairs: co-uses expected were skills independent in each stratum
-- One product over all pairs of a stratum, as of a matrix with itself, is faster than looking up each seen pair.
-- Summed as whole numbers of 2^-30: a sum of fractions would differ in its last bits with the order of its terms.
create or replace table expected_pairs as
with chance as (
    select
        one.skill as a,
        other.skill as b,
        sum((one.n * other.n / one.size::double * (1 << 30))::bigint)::double / (1 << 30) as expected,
        count(*) as strata
    from stratum_skills as one
    join stratum_skills as other on other.number = one.number and other.skill > one.skill
    group by one.skill, other.skill
)
from chance
semi join witnessed_pairs using (a, b);
