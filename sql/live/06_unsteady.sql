-- DuckDB's functions -> unsteady: those that answer otherwise the second time
create table analysts.base.unsteady as
select distinct lower(function_name) as name
from duckdb_functions()
where stability = 'VOLATILE';
