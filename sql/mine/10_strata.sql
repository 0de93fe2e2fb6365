-- kept.cells -> strata: the finest group of like sequences that still holds enough of them
create or replace table strata as
with cells as (
    select actor, length_bucket, weeks, sum(n) as n
    from kept.cells
    group by all
    having sum(n) > 0
),
finest as (
    select
        *,
        n >= $pool_min as fits
    from cells
),
by_actor_and_length as (
    select
        *,
        not fits and sum(n) over (partition by fits, actor, length_bucket) >= $pool_min as fits_actor_length
    from finest
),
by_length as (
    select
        *,
        not fits
            and not fits_actor_length
            and sum(n) over (partition by fits, fits_actor_length, length_bucket) >= $pool_min as fits_length
    from by_actor_and_length
),
named as (
    select
        actor,
        length_bucket,
        weeks,
        n,
        case
            when fits then concat_ws('|', 'actor,length,weeks', actor, length_bucket, weeks)
            when fits_actor_length then concat_ws('|', 'actor,length', actor, length_bucket)
            when fits_length then concat_ws('|', 'length', length_bucket)
            else 'rest'
        end as stratum
    from by_length
)
select
    actor,
    length_bucket,
    weeks,
    stratum,
    dense_rank() over (order by stratum) as number,
    (sum(n) over (partition by stratum))::bigint as size
from named;
