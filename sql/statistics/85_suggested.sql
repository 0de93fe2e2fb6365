-- moved_* -> kept.suggested: co-uses kept out of the evidence because one of the two followed our advice
insert into kept.suggested
with uses as (
    select
        sequence,
        skill,
        bool_and(suggested) as only_suggested
    from moved_steps
    where sequence in (
        select sequence
        from moved_steps
        where suggested
    )
    group by sequence, skill
)
select
    $segment,
    a.skill as a,
    b.skill as b,
    sum(sign)
from uses as a
join uses as b using (sequence)
join moved_sequences using (sequence)
where a.skill < b.skill
    and (a.only_suggested or b.only_suggested)
group by all
having sum(sign) <> 0;
