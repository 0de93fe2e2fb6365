-- moved_firsts -> kept.pairs: for each pair and witness, in how many sequences which came first
insert into kept.pairs
select
    $segment,
    a.skill,
    b.skill,
    a.witness,
    coalesce(sum(a.sign) filter (a.turn < b.turn), 0) as forward,
    coalesce(sum(a.sign) filter (a.turn > b.turn), 0) as backward,
    coalesce(sum(a.sign) filter (a.turn = b.turn), 0) as parallel
from moved_firsts as a
join moved_firsts as b using (sequence)
where a.skill < b.skill
group by all
having forward <> 0 or backward <> 0 or parallel <> 0;
