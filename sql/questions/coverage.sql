-- coverage_by_source -> what each source contributes, and how much of it has a name and a time
select
    source, calls, calls_seen, calls_only_here, unnamed_calls, other_events, sessions, actors,
    round(share_timed, 4) as share_timed,
    round(share_numbered, 4) as share_numbered,
    last_stored_at
from coverage_by_source
order by calls desc, source;
