-- sequences -> strata: the finest group of like sequences that still holds enough of them
create or replace table strata as
with finest as (
    select
        *,
        count(*) over (partition by actor, length_bucket, weeks) >= $pool_min as fits
    from sequences
),
by_actor_and_length as (
    select
        *,
        not fits and count(*) over (partition by fits, actor, length_bucket) >= $pool_min as fits_actor_length
    from finest
),
by_length as (
    select
        *,
        not fits
            and not fits_actor_length
            and count(*) over (partition by fits, fits_actor_length, length_bucket) >= $pool_min as fits_length
    from by_actor_and_length
),
named as (
    select
        sequence_id,
        case
            when fits then concat_ws('|', 'actor,length,weeks', actor, length_bucket, weeks)
            when fits_actor_length then concat_ws('|', 'actor,length', actor, length_bucket)
            when fits_length then concat_ws('|', 'length', length_bucket)
            else 'rest'
        end as stratum
    from by_length
)
select
    sequence_id,
    stratum,
    count(*) over (partition by stratum) as size
from named;
