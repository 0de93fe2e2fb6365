-- events, unnamed_calls -> coverage_by_source: what each source contributes, and how much of it has a name and a time
-- A call that several sources saw is a call of the first; the others saw it too, and only one saw what is its alone.
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
looks as (
    select unnest(string_split(sources, ', ')) as source, sources
    from events
    where kind = 'activated'
),
seen as (
    select source, count(*) as calls_seen, count(*) filter (where sources = source) as calls_only_here
    from looks
    group by source
),
unnamed as (
    select source, count(*) as unnamed_calls
    from unnamed_calls
    group by source
)
select
    coalesce(named.source, seen.source, unnamed.source) as source,
    coalesce(named.calls, 0) as calls,
    coalesce(seen.calls_seen, 0) as calls_seen,
    coalesce(seen.calls_only_here, 0) as calls_only_here,
    coalesce(unnamed.unnamed_calls, 0) as unnamed_calls,
    coalesce(named.other_events, 0) as other_events,
    coalesce(named.sessions, 0) as sessions,
    coalesce(named.actors, 0) as actors,
    named.share_timed,
    named.share_numbered,
    named.last_stored_at
from named
full join seen on seen.source = named.source
full join unnamed on unnamed.source = coalesce(named.source, seen.source);
