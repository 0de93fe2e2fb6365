-- rejected -> unnamed_calls: calls whose agent hid the skill's name; they happened, but nobody can say of what
create or replace view unnamed_calls as
with letters as (
    select event_id, coalesce(event_id, cast(arrival as text)) as call, source, stored_at, try_cast(body as json) as letter
    from rejected
    where code = 'unnamed_skill'
)
select
    event_id,
    letter ->> 'session_id' as session_id,
    letter ->> 'skill' as placeholder,
    letter ->> 'agent' as agent,
    letter ->> 'agent_version' as agent_version,
    source,
    stored_at
from letters
qualify row_number() over (partition by call order by stored_at) = 1;
