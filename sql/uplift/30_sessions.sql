-- lists, followed -> first_lists: one row a session: its policy, and whether it followed its first list
create or replace temp table first_lists as
select
    session_id,
    policy,
    list in (
        select list
        from followed
    ) as took
from lists
where first_of_session;
