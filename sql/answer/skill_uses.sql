-- events -> how often each skill was called; what an agent's own listing goes by
select skill_id, count(*) as uses
from events
where kind = 'activated'
    and outcome <> 'denied'
group by skill_id
order by skill_id;
