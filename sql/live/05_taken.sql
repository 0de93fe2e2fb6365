-- the live store -> taken: names that mean a table there, where a query names no database
create table analysts.base.taken as
select lower(table_name) as name
from information_schema.tables
where table_catalog <> 'analysts';
