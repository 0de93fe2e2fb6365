-- witnessed_pairs, witness_skills, expected_pairs, adjacent_pairs, suggested_pairs -> pair_stats: one row a pair, all its evidence
create or replace table pair_stats as
with skill_counts as (
    select
        skill_id,
        sum(n)::bigint as n
    from stratum_skills
    group by skill_id
),
everything as (
    select count(*) as size
    from sequences
),
outside as (
    -- Lift among the others, whoever of the witnesses is left out: chance for them is the whole's, scaled.
    select
        a,
        b,
        min(
            case when others > 0 then
                others / (expected * (na.n - wa.n) * (nb.n - wb.n) * everything.size
                    / (na.n * nb.n::double * (everything.size - wa.size)))
            else 0 end
        ) as outside_lift
    from (
        select
            a,
            b,
            witness,
            sum(forward + backward + parallel) over (partition by a, b) - (forward + backward + parallel) as others
        from witnessed_pairs
    )
    join expected_pairs using (a, b)
    join skill_counts as na on na.skill_id = a
    join skill_counts as nb on nb.skill_id = b
    join witness_skills as wa using (witness)
    join witness_skills as wb using (witness)
    cross join everything
    where wa.skill_id = a and wb.skill_id = b
    group by a, b
),
capped as (
    -- one busy witness cannot outvote the others: its ordered co-uses count as at most $cap
    select
        *,
        forward + backward + parallel as o,
        least(1, $cap / nullif(forward + backward, 0)) as weight
    from witnessed_pairs
),
summed as (
    select
        a,
        b,
        sum(o)::bigint as o,
        sum(forward)::bigint as forward,
        sum(backward)::bigint as backward,
        sum(parallel)::bigint as parallel,
        coalesce(sum(forward * weight order by forward * weight), 0) as capped_forward,
        coalesce(sum(backward * weight order by backward * weight), 0) as capped_backward,
        count(*) as witnesses,
        count(*) filter (forward > 0) as forward_witnesses,
        count(*) filter (backward > 0) as backward_witnesses,
        (sum(o) - max(o))::bigint as outside_busiest,
        sum(recent_forward)::bigint as recent_forward,
        sum(recent_backward)::bigint as recent_backward,
        min(first_seen) as first_seen,
        max(last_seen) as last_seen
    from capped
    group by a, b
)
select
    a,
    b,
    na.n as n_a,
    nb.n as n_b,
    o,
    expected,
    strata,
    forward,
    backward,
    parallel,
    capped_forward,
    capped_backward,
    wilson_lower(capped_forward, capped_forward + capped_backward, $z) as lower,
    wilson_upper(capped_forward, capped_forward + capped_backward, $z) as upper,
    wilson_lower(capped_forward, capped_forward + capped_backward, $candidate_z) as candidate_lower,
    wilson_upper(capped_forward, capped_forward + capped_backward, $candidate_z) as candidate_upper,
    wilson_lower(recent_forward, recent_forward + recent_backward, $z) as recent_lower,
    wilson_upper(recent_forward, recent_forward + recent_backward, $z) as recent_upper,
    witnesses,
    forward_witnesses,
    backward_witnesses,
    outside_busiest,
    outside_lift,
    recent_forward,
    recent_backward,
    coalesce(adjacent_forward, 0) as adjacent_forward,
    coalesce(adjacent_backward, 0) as adjacent_backward,
    coalesce(suggested, 0) as suggested,
    first_seen,
    last_seen
from summed
join expected_pairs using (a, b)
join outside using (a, b)
join skill_counts as na on na.skill_id = a
join skill_counts as nb on nb.skill_id = b
left join adjacent_pairs using (a, b)
left join suggested_pairs using (a, b)
order by a, b;
