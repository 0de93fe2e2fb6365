-- firsts, sequences -> witness_skills: in how many sequences of each witness a skill occurs
create or replace table witness_skills as
with sizes as (
    select
        witness,
        count(*) as size
    from sequences
    group by witness
)
select
    witness,
    size,
    skill_id,
    count(*) as n
from firsts
join sequences using (sequence_id)
join sizes using (witness)
group by witness, size, skill_id;
