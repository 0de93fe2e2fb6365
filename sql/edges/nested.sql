-- kept.circumstances -> nested calls: in how many sessions, and of how many witnesses, one skill called the other
with calls as (
    select distinct session_id, unnest(nested) as call
    from kept.circumstances
),
vouched as (
    select session_id, min(witness) as witness
    from kept.sequences
    group by session_id
)
select
    call.caller as caller,
    call.callee as callee,
    witness,
    count(*) as sessions
from calls
left join vouched using (session_id)
group by all
order by all;
