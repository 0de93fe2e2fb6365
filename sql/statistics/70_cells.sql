-- moved_* -> kept.cells, kept.cell_skills: sequences of like kind, and in how many of them a skill occurs
insert into kept.cells
select $segment, actor, length_bucket, weeks, witness, sum(sign)
from moved_sequences
where length_bucket is not null
group by all
having sum(sign) <> 0;

insert into kept.cell_skills
select $segment, actor, length_bucket, weeks, moved_firsts.witness, skill, sum(moved_firsts.sign)
from moved_firsts
join moved_sequences using (sequence)
group by all
having sum(moved_firsts.sign) <> 0;
