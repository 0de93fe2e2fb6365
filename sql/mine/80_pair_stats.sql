-- witnessed_pairs, expected_pairs, recent_pairs, outside_lift, kept.* -> pair_stats: one row a pair, all its evidence, by name
create or replace table pair_stats as
with skill_counts as (
    select
        skill,
        sum(n)::bigint as n
    from stratum_skills
    group by skill
),
capped as (
    -- one busy witness cannot outvote the others: its ordered co-uses count as at most $cap
    select
        *,
        forward + backward + parallel as o,
        least(1, $cap / nullif(forward + backward, 0)) * (1 << 30) as weight -- whole numbers, as for the expected ones
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
        coalesce(sum((forward * weight)::bigint), 0)::double / (1 << 30) as capped_forward,
        coalesce(sum((backward * weight)::bigint), 0)::double / (1 << 30) as capped_backward,
        count(*) as witnesses,
        count(*) filter (forward > 0) as forward_witnesses,
        count(*) filter (backward > 0) as backward_witnesses,
        (sum(o) - max(o))::bigint as outside_busiest
    from capped
    group by a, b
),
adjacent as (
    select a, b, sum(forward)::bigint as forward, sum(backward)::bigint as backward
    from kept.adjacent
    group by a, b
),
suggested as (
    select a, b, sum(n)::bigint as n
    from kept.suggested
    group by a, b
),
gathered as (
    select
        summed.*,
        na.n as n_a,
        nb.n as n_b,
        expected,
        strata,
        outside_lift.lift as outside_lift,
        outside_lift.z as outside_z,
        coalesce(recent.forward, 0) as recent_forward,
        coalesce(recent.backward, 0) as recent_backward,
        coalesce(adjacent.forward, 0) as adjacent_forward,
        coalesce(adjacent.backward, 0) as adjacent_backward,
        coalesce(suggested.n, 0) as suggested
    from summed
    join expected_pairs using (a, b)
    join outside_lift using (a, b)
    join skill_counts as na on na.skill = a
    join skill_counts as nb on nb.skill = b
    left join recent_pairs as recent using (a, b)
    left join adjacent using (a, b)
    left join suggested using (a, b)
),
named as (
    -- skills have their numbers in the order in which they came; a pair has its smaller name first
    select
        case when one.skill_id < other.skill_id then one.skill_id else other.skill_id end as a,
        case when one.skill_id < other.skill_id then other.skill_id else one.skill_id end as b,
        one.skill_id > other.skill_id as turned,
        gathered.* exclude (a, b)
    from gathered
    join kept.skills as one on one.skill = a
    join kept.skills as other on other.skill = b
),
ordered as (
    select
        a,
        b,
        case when turned then n_b else n_a end as n_a,
        case when turned then n_a else n_b end as n_b,
        o,
        expected,
        strata,
        case when turned then backward else forward end as forward,
        case when turned then forward else backward end as backward,
        parallel,
        case when turned then capped_backward else capped_forward end as capped_forward,
        case when turned then capped_forward else capped_backward end as capped_backward,
        witnesses,
        case when turned then backward_witnesses else forward_witnesses end as forward_witnesses,
        case when turned then forward_witnesses else backward_witnesses end as backward_witnesses,
        outside_busiest,
        outside_lift,
        outside_z,
        case when turned then recent_backward else recent_forward end as recent_forward,
        case when turned then recent_forward else recent_backward end as recent_backward,
        case when turned then adjacent_backward else adjacent_forward end as adjacent_forward,
        case when turned then adjacent_forward else adjacent_backward end as adjacent_backward,
        suggested
    from named
),
missed as (
    -- ordered co-uses that were due in the latest sequences, going by all pairs together, and did not come; capped alike
    select
        *,
        greatest(0, (forward + backward) * coalesce(latest.share, 0) - recent_forward - recent_backward)
            * coalesce((capped_forward + capped_backward) / nullif(forward + backward, 0), 0) as missed
    from ordered
    cross join (
        select sum(recent_forward + recent_backward)::double / nullif(sum(forward + backward), 0)::double as share
        from ordered
    ) as latest
)
select
    a,
    b,
    n_a,
    n_b,
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
    -- whoever did not come of late might have gone either way
    wilson_lower(capped_forward + missed / 2, capped_forward + capped_backward + missed, $z) as steady_lower,
    wilson_upper(capped_forward + missed / 2, capped_forward + capped_backward + missed, $z) as steady_upper,
    wilson_lower(recent_forward, recent_forward + recent_backward, $z) as recent_lower,
    wilson_upper(recent_forward, recent_forward + recent_backward, $z) as recent_upper,
    witnesses,
    forward_witnesses,
    backward_witnesses,
    outside_busiest,
    outside_lift,
    outside_z,
    recent_forward,
    recent_backward,
    adjacent_forward,
    adjacent_backward,
    suggested
from missed
order by a, b;
