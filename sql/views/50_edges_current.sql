-- edges -> edges_current: what is served by default
create or replace view edges_current as
select source, relation, target, provenance, evidence
from edges
where status = 'confirmed';
