-- Who is online, and which question is open on whose screen. Both are unlogged: a crash of the server ends all leases.

create function heartbeat(
    p_space uuid, p_client uuid, p_project uuid, p_place text, p_question text, p_seconds integer
) returns json
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    me ralphdeck.access := ralphdeck._require(p_space, 'reader', 'presence');
    moment timestamptz := clock_timestamp();
    ending timestamptz := moment + make_interval(secs => greatest(1, least(p_seconds, 3600)));
    held boolean := exists (select from ralphdeck.leases l where l.space_id = me.space_id and l.client_id = p_client
        and l.question_id = p_question and l.expires_at > moment);
    is_new boolean := not exists (select from ralphdeck.presence p where p.space_id = me.space_id
        and p.client_id = p_client and p.seen_at > moment - interval '1 minute');
    released integer;
begin
    if length(p_question) > 200 or (is_new and (select count(*) from ralphdeck.presence p
            where p.space_id = me.space_id and p.member_id = me.member_id
            and p.seen_at > moment - interval '1 minute') >= 500) then
        raise exception using errcode = 'RD004', message = 'a question has at most 200 characters, a member 500 clients';
    end if;
    insert into ralphdeck.presence as p (space_id, client_id, member_id, project_id, place, seen_at)
        select me.space_id, p_client, me.member_id,
            (select j.project_id from ralphdeck.projects j where j.space_id = me.space_id and j.id = p_project),
            left(p_place, 200), moment
        on conflict (space_id, client_id) do update set member_id = excluded.member_id,
            project_id = excluded.project_id, place = excluded.place, seen_at = excluded.seen_at
            where p.member_id = me.member_id;
    delete from ralphdeck.leases l
        where l.space_id = me.space_id and l.client_id = p_client and l.member_id = me.member_id
            and l.question_id <> p_question;
    get diagnostics released = row_count;
    if p_question <> '' and me.level >= 'reviewer' then
        insert into ralphdeck.leases as l (space_id, question_id, client_id, member_id, since, expires_at)
            values (me.space_id, p_question, p_client, me.member_id, moment, ending)
            on conflict (space_id, question_id) do update
                set client_id = p_client, member_id = me.member_id, expires_at = excluded.expires_at,
                    since = case when l.client_id = p_client and l.expires_at > moment then l.since else moment end
                where (l.client_id = p_client and l.member_id = me.member_id) or l.expires_at <= moment;
    end if;
    -- Rows that another client changes at this moment are skipped, so that no two clients wait for each other.
    delete from ralphdeck.leases l where (l.space_id, l.question_id) in (
        select o.space_id, o.question_id from ralphdeck.leases o
        where o.space_id = me.space_id and o.expires_at <= moment for update skip locked);
    delete from ralphdeck.presence p where (p.space_id, p.client_id) in (
        select o.space_id, o.client_id from ralphdeck.presence o
        where o.space_id = me.space_id and o.seen_at < moment - interval '1 hour' for update skip locked);
    if is_new or released > 0 or held is distinct from exists (
            select from ralphdeck.leases l where l.space_id = me.space_id and l.client_id = p_client
            and l.question_id = p_question) then
        perform ralphdeck._notify(p_space, 'leases');
    end if;
    return ralphdeck._who_is_online(me.space_id, moment);
end $$;
comment on function heartbeat is
    'Records that a client is online and which question it has open (empty: none); returns all clients and leases';

create function go_offline(p_space uuid, p_client uuid) returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    me ralphdeck.access := ralphdeck._require(p_space, 'reader', 'presence');
begin
    delete from ralphdeck.presence p
        where p.space_id = me.space_id and p.client_id = p_client and p.member_id = me.member_id;
    delete from ralphdeck.leases l
        where l.space_id = me.space_id and l.client_id = p_client and l.member_id = me.member_id;
    perform ralphdeck._notify(p_space, 'leases');
end $$;

create function _who_is_online(p_space_id integer, p_moment timestamptz) returns json
    language sql stable set search_path = pg_catalog, pg_temp
as $$
    select json_build_object(
        'at', p_moment,
        'present', (select coalesce(json_agg(json_build_object(
                'client_id', p.client_id, 'member', m.display_name, 'project', coalesce(j.name, ''),
                'place', p.place) order by m.display_name, p.client_id), '[]')
            from ralphdeck.presence p join ralphdeck.members m using (member_id)
            left join ralphdeck.projects j on j.project_id = p.project_id
            where p.space_id = p_space_id and p.seen_at > p_moment - interval '1 minute'),
        'leases', (select coalesce(json_agg(json_build_object(
                'question', l.question_id, 'client_id', l.client_id, 'member', m.display_name,
                'since', l.since) order by l.question_id), '[]')
            from ralphdeck.leases l join ralphdeck.members m using (member_id)
            where l.space_id = p_space_id and l.expires_at > p_moment))
$$;
