-- rejected -> unnamed_calls: calls whose agent hid the skill's name; they happened, but nobody can say of what
create or replace view unnamed_calls as
with letters as (
    select event_id, source, stored_at, try_cast(body as json) as letter
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
    min(stored_at) as stored_at
from letters
group by all;
