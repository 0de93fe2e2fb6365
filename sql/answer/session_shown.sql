-- events -> the skills that one session was shown; $session
select distinct unnest(from_json(extra -> 'shown', '["varchar"]')) as skill_id
from events
where session_id = $session
    and kind = 'impression'
    and (extra ->> 'policy') = 'served';
