-- steps -> suggested_pairs: co-uses kept out of the evidence because one of the two followed our advice
create or replace table suggested_pairs as
with uses as (
    select
        sequence_id,
        skill_id,
        bool_and(suggested) as only_suggested
    from steps
    group by sequence_id, skill_id
)
select
    a.skill_id as a,
    b.skill_id as b,
    count(*) as suggested
from uses as a
join uses as b using (sequence_id)
where a.skill_id < b.skill_id
    and (a.only_suggested or b.only_suggested)
group by a.skill_id, b.skill_id;
