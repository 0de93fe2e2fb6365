-- nothing -> drained: a new store has drained nothing
insert into drained
select 0, 0
where not exists (select 1 from drained);
