-- skills, skill_calls -> skills of the catalogue that nobody called in the last days of the log
-- $days = 36500: only calls of the last so many days count as use
with used as (
    select distinct skill_id
    from skill_calls
    where happened_at >= (select max(happened_at) from skill_calls) - to_days(cast($days as integer))
)
select skill_id, description
from skills
anti join used using (skill_id)
order by skill_id;
