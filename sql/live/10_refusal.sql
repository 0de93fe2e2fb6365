-- text of a query -> refusal: why it may not run beside the writer, null where it may; DuckDB's own parser reads it
-- `bare`: whether a table may be named without its database, because that is where the query runs. Elsewhere a bare
-- name is only one that WITH gives, and WITH may give none that also is a table there: which is meant cannot be told.
-- Only SELECT can be serialized; a table function that is not listed could read files or stop the server. Quack's own
-- questions to us (cowpath_quack_...) run queries themselves, a row at a time, and no timer would end that. Where the
-- query is run elsewhere a second time, a function must answer the same then.
create or replace macro analysts.main.refusal(sql, bare) as (
    with parsed as (
        select json_serialize_sql(cast(sql as text)) as tree
    ),
    parts as (
        select
            tree ->> '$.error_message' as problem,
            json_array_length(tree, '$.statements') as statements,
            json_extract_string(tree, '$..table_name') as tables,
            json_extract_string(tree, '$..schema_name') as schemas,
            json_extract_string(tree, '$..catalog_name') as catalogs,
            json_extract_string(tree, '$..function.function_name') as functions,
            json_extract_string(tree, '$..function_name') as called,
            (select list(name) from analysts.base.unsteady) as unsteady,
            json_extract_string(tree, '$..cte_map.map[*].key') as given,
            (select list(name) from analysts.base.taken) as taken,
            json_extract_string(tree, '$..type') as types
        from parsed
    ),
    told as (
        select
            *,
            list_filter(given, lambda n: bare or not list_contains(taken, lower(n))) as named,
            list_filter(
                called,
                lambda f: starts_with(lower(f), 'cowpath_') or (not bare and list_contains(unsteady, lower(f)))
            ) as closed
        from parts
    ),
    judged as (
        select
            problem,
            statements,
            closed,
            list_filter(
                functions,
                lambda f: lower(f) not in (
                    'range', 'generate_series', 'unnest', 'json_each', 'json_tree', 'duckdb_tables', 'duckdb_columns',
                    'duckdb_views', 'duckdb_functions'
                )
            ) as foreign_functions,
            list_filter(
                list_zip(catalogs, schemas, tables),
                lambda t: not (
                    (bare and t[1] = '' and lower(t[2]) in ('', 'main', 'analysts', 'information_schema'))
                    or (lower(t[1]) = 'analysts' and lower(t[2]) in ('', 'main'))
                    or (t[1] = '' and lower(t[2]) = 'analysts')
                    or (t[1] = '' and t[2] = '' and list_contains(named, t[3]))
                    or (t[1] = '' and t[2] = '' and t[3] = '')
                )
            ) as foreign_tables,
            len(list_filter(types, lambda t: t = 'TABLE_FUNCTION')) as function_nodes,
            len(list_filter(types, lambda t: t in ('BASE_TABLE', 'SHOW_REF'))) as table_nodes,
            len(functions) as functions_found,
            len(tables) as tables_found
        from told
    )
    select
        case
            when problem is not null then problem
            when statements is distinct from 1 then 'exactly one statement is taken'
            when len(closed) > 0 then 'the function ' || closed[1] || ' is not open to queries'
            when len(foreign_functions) > 0 then 'the table function ' || foreign_functions[1] || ' is not open to queries'
            when len(foreign_tables) > 0
                then 'the table ' || concat_ws(
                    '.', nullif(foreign_tables[1][1], ''), nullif(foreign_tables[1][2], ''), foreign_tables[1][3]
                ) || ' is not open to queries'
            when function_nodes <> functions_found or table_nodes > tables_found then 'its parts cannot be told'
        end
    from judged
);
