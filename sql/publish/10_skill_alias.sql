-- catalogue -> usage.skills, usage.skill_alias: the known skills, and what other names resolve to them
create table usage.skills as
select skill_id, name, description, scope, plugin, tags, content_hash
from catalogue_rows
order by skill_id;

create table usage.skill_alias as
select name, skill_id
from alias_rows
order by name;
