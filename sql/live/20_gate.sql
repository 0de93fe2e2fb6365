-- connection and text of a query -> whether quack may run it: a SELECT over analysts.* and nothing else
create or replace macro analysts.main.gate(connection, sql) as analysts.main.refusal(sql, false) is null;
