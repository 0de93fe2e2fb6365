-- calls -> fresh_sequences, kept.witnesses: one row a stream: who vouches for it, how long it is, when it began
create or replace temp table fresh_sequences as
with streams as (
    select
        session_id,
        stream_id,
        count(seq) = count(*) as has_seq,
        min(session_group) filter (not suggested) as session_group,
        coalesce(min(actor) filter (not suggested), '') as actor,
        min(called_at) filter (not suggested) as began_at,
        count(distinct skill) filter (not suggested) as length
    from calls
    group by session_id, stream_id
)
select
    row_number() over (order by session_id, stream_id) + (select coalesce(max(sequence), 0) from kept.sequences) as sequence,
    session_id,
    stream_id,
    has_seq,
    session_group,
    actor,
    case
        when length = 0 then null -- only advice was followed here
        when $witness = 'actor' then actor
        when $witness = 'day' then coalesce(strftime(began_at, '%Y-%m-%d'), session_group) -- undated: each for itself
        else session_group -- the streams of a session, and related sessions, are one witness
    end as witness_name,
    began_at,
    case
        when length = 0 then null
        when length <= 4 then '1-4'
        when length <= 10 then '5-10'
        when length <= 20 then '11-20'
        else '21+'
    end as length_bucket,
    coalesce(floor(epoch(began_at) / (7 * 86400 * $weeks_per_group))::bigint, 0) as weeks
from streams;

insert into kept.witnesses
select row_number() over (order by name) + (select coalesce(max(witness), 0) from kept.witnesses), name
from (
    select distinct witness_name as name
    from fresh_sequences
    where witness_name is not null
)
anti join kept.witnesses using (name);
