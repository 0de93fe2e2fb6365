-- edge files -> usage.edges: every layer of edges as it is at rest
create table usage.edges as
select source, relation, target, status, provenance, evidence
from edge_rows
order by source, relation, target, provenance;
