-- steps -> sequences: one row a stream: who vouches for it, how long it is, when it began
create or replace table sequences as
with spontaneous as (
    select
        sequence_id,
        coalesce(min(actor), '') as actor,
        min(session_group) as session_group,
        min(called_at) as began_at,
        count(distinct skill_id) as length
    from steps
    where not suggested
    group by sequence_id
),
cut as (
    select quantile_disc(began_at, 1 - $recent_share) as recent_from
    from spontaneous
)
select
    sequence_id,
    actor,
    session_group,
    case $witness
        when 'actor' then actor
        when 'day' then coalesce(strftime(began_at, '%Y-%m-%d'), session_group) -- undated: each for itself
        else session_group -- the streams of a session, and related sessions, are one witness
    end as witness,
    began_at,
    length,
    case
        when length <= 4 then '1-4'
        when length <= 10 then '5-10'
        when length <= 20 then '11-20'
        else '21+'
    end as length_bucket,
    coalesce(floor(epoch(began_at) / (7 * 86400 * $weeks_per_group))::bigint, 0) as weeks,
    coalesce(began_at > recent_from, false) as recent
from spontaneous
cross join cut;
