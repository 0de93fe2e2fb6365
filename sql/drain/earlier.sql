-- completions -> what earlier copies of these events already completed; `completes` rises, so old rows are skipped
select completes, trigger, outcome, duration_ms, actor, agent, agent_version, suggested_by, batch_id, source
from completions
semi join original_batch using (completes)
where completes between $first and $last
order by arrival;
