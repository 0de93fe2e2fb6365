-- events, unnamed_calls -> coverage_by_source: what each source contributes, and how much of it has a name and a time
create or replace view coverage_by_source as
with named as (
    select
        source,
        count(*) filter (where kind = 'activated') as calls,
        count(*) filter (where kind <> 'activated') as other_events,
        count(distinct session_id) as sessions,
        count(distinct actor) as actors,
        avg(cast(clock = 'ok' as integer)) as share_timed,
        avg(cast(seq is not null as integer)) as share_numbered,
        max(stored_at) as last_stored_at
    from events
    group by source
),
unnamed as (
    select source, count(*) as unnamed_calls
    from unnamed_calls
    group by source
)
select
    coalesce(named.source, unnamed.source) as source,
    coalesce(named.calls, 0) as calls,
    coalesce(unnamed.unnamed_calls, 0) as unnamed_calls,
    coalesce(named.other_events, 0) as other_events,
    coalesce(named.sessions, 0) as sessions,
    coalesce(named.actors, 0) as actors,
    named.share_timed,
    named.share_numbered,
    named.last_stored_at
from named
full join unnamed on unnamed.source = named.source;
