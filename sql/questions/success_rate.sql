-- skill_calls -> the share of calls with a known outcome that went well, with its 95 % Wilson interval
-- $calls = 1: only skills with at least so many known outcomes
with known as (
    select
        skill_id,
        count(*) filter (where outcome = 'ok') as ok,
        count(*) filter (where outcome in ('ok', 'error', 'denied', 'abandoned')) as known,
        count(*) as calls
    from skill_calls
    group by skill_id
)
select
    skill_id, calls, known, ok,
    round(ok / known, 4) as rate,
    round(wilson_lower(ok, known, 1.96), 4) as lower,
    round(wilson_upper(ok, known, 1.96), 4) as upper
from known
where known >= greatest(1, cast($calls as integer))
order by rate, known desc, skill_id;
