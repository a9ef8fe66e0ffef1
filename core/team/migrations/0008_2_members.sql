-- Access of members, their management, and their projects. A member is the role of the session, whatever `set role` says.

create type access as (
    space_id integer,
    space_name text,
    member_id integer,
    display_name text,
    level level
);

-- Raised: RD001 level too low, RD002 not a member, RD003 client too old, RD004 invalid value.
create function _require(p_space uuid, p_level level, p_action text) returns access
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    me ralphdeck.access;
    version integer;
begin
    select max(v.version) into version from ralphdeck.schema_version v;
    if nullif(current_setting('ralphdeck.client_schema', true), '')::integer < version then
        raise exception using errcode = 'RD003', message = format(
            'the team''s database has schema %s, but this ralphdeck writes schema %s; upgrade ralphdeck',
            version, current_setting('ralphdeck.client_schema'));
    end if;
    select s.space_id, s.name, m.member_id, m.display_name, m.level into me
        from ralphdeck.spaces s join ralphdeck.members m using (space_id)
        where s.id = p_space and m.role_name = session_user and m.level is not null;
    if not found then
        raise exception using errcode = 'RD002', message = format(
            'the role %s is not a member of this space; an admin of the space can add it', session_user);
    end if;
    if me.level < p_level then
        raise exception using errcode = 'RD001', message = format(
            'your role in the space %s is %s; %s needs %s', me.space_name, me.level, p_action, p_level);
    end if;
    return me;
end $$;

create function visible_spaces() returns setof integer
    language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select m.space_id from ralphdeck.members m where m.role_name = session_user and m.level is not null
$$;
comment on function visible_spaces is 'Internal numbers of the spaces whose rows the role of the session may read';

create function server_identity() returns text
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    system text := '';
    base oid := (select d.oid from pg_database d where d.datname = current_database());
begin
    if pg_is_in_recovery() then
        return '';
    end if;
    begin
        select c.system_identifier::text into system from pg_control_system() c;
    exception when insufficient_privilege then
        null;
    end;
    return format('%s-%s-%s', system, base, left(pg_walfile_name(pg_current_wal_lsn()), 8));
end $$;
comment on function server_identity is
    'Cluster, database and timeline. Cursors are valid for one identity. Empty on a standby, which is read-only';

create function my_spaces() returns json
    language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    select coalesce(json_agg(json_build_object(
            'id', s.id, 'name', s.name, 'epoch', s.epoch, 'half_life_days', s.half_life_days,
            'member', m.display_name, 'level', m.level) order by s.name), '[]')
        from ralphdeck.members m join ralphdeck.spaces s using (space_id)
        where m.role_name = session_user and m.level is not null
$$;

create function _set_member(p_space_id integer, p_role name, p_display_name text, p_level level, p_by text)
    returns void language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if p_level is not null then
        if not exists (select from pg_roles r where r.rolname = p_role) then
            raise exception using errcode = 'RD004', message = format(
                'the role %s does not exist in the database; create it with --create-login, or: create role %I login',
                p_role, p_role);
        end if;
        if lower(p_display_name) ~ '^(ralphdeck|agent:|mcp:)' or p_display_name ~ '\((script|unattended)\)\s*$' then
            raise exception using errcode = 'RD004', message = format(
                'the name %s is reserved for programs; choose another name', p_display_name);
        end if;
        if exists (select from ralphdeck.members m where m.space_id = p_space_id and m.role_name <> p_role
                   and lower(m.display_name) = lower(p_display_name)) then
            raise exception using errcode = 'RD004', message = format(
                'another member of the space has or had the name %s; choose another name', p_display_name);
        end if;
    end if;
    insert into ralphdeck.members as m (space_id, role_name, display_name, level, changed_by)
        select p_space_id, p_role, p_display_name, p_level, p_by where p_level is not null
        on conflict (space_id, role_name) do update
            set display_name = excluded.display_name, level = excluded.level, changed_by = p_by, changed_at = now();
    if p_level is null then
        update ralphdeck.members m set level = null, changed_by = p_by, changed_at = now()
            where m.space_id = p_space_id and m.role_name = p_role;
        -- LISTEN needs no right. Who was removed still listens on the old channel, which says nothing any more.
        perform ralphdeck._notify(s.id, 'channel') from ralphdeck.spaces s where s.space_id = p_space_id;
        update ralphdeck.spaces s set channel = gen_random_uuid() where s.space_id = p_space_id;
    elsif not exists (select from pg_auth_members a join pg_roles g on g.oid = a.roleid
                      join pg_roles r on r.oid = a.member
                      where g.rolname = 'ralphdeck_member' and r.rolname = p_role) then
        execute format('grant ralphdeck_member to %I', p_role);
    end if;
end $$;

create function create_space(p_name text, p_half_life_days double precision, p_display_name text) returns uuid
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    made ralphdeck.spaces;
begin
    if not pg_has_role(session_user, 'ralphdeck_owner', 'member') then
        raise exception using errcode = 'RD001', message = format(
            'the role %s cannot create a space; it must be a member of the role ralphdeck_owner', session_user);
    end if;
    if exists (select from ralphdeck.spaces s where s.name = p_name) then
        raise exception using errcode = 'RD004', message = format('the space %s exists', p_name);
    end if;
    insert into ralphdeck.spaces (name, half_life_days, head_hash)
        values (p_name, p_half_life_days, '') returning * into made;
    update ralphdeck.spaces s set head_hash = sha256(convert_to(s.id::text, 'UTF8')) where s.space_id = made.space_id;
    perform ralphdeck._set_member(made.space_id, session_user, p_display_name, 'admin', p_display_name);
    return made.id;
end $$;

create function set_member(p_space uuid, p_role name, p_display_name text, p_level level) returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    me ralphdeck.access := ralphdeck._require(p_space, 'admin', 'the management of members');
begin
    perform from ralphdeck.spaces s where s.space_id = me.space_id for no key update;
    if p_level is distinct from 'admin' and not exists (
            select from ralphdeck.members m
            where m.space_id = me.space_id and m.level = 'admin' and m.role_name <> p_role) then
        raise exception using errcode = 'RD004', message = format(
            '%s is the only admin of the space %s; add another admin first', p_role, me.space_name);
    end if;
    if p_level is null and not exists (
            select from ralphdeck.members m
            where m.space_id = me.space_id and m.role_name = p_role and m.level is not null) then
        raise exception using errcode = 'RD004', message = format(
            '%s is not a member of the space %s', p_role, me.space_name);
    end if;
    perform ralphdeck._set_member(me.space_id, p_role, p_display_name, p_level, me.display_name);
end $$;
comment on function set_member is 'Adds or changes a member; the level null removes it';

create function join_project(p_space uuid, p_project uuid, p_name text) returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    me ralphdeck.access := ralphdeck._require(p_space, 'contributor', 'sending the uses of a project');
    owner text;
begin
    -- Members see the IDs of all projects, but the uses of a project are those of who joined it.
    if me.level < 'reviewer' and not exists (
            select from ralphdeck.projects p join ralphdeck.project_members j using (project_id)
            where p.space_id = me.space_id and p.id = p_project and j.member_id = me.member_id) then
        select m.display_name into owner from ralphdeck.projects p join ralphdeck.members m on m.member_id = p.joined_by
            where p.space_id = me.space_id and p.id = p_project;
        if found then
            raise exception using errcode = 'RD001', message = format(
                'the project was joined by %s; joining it, too, needs reviewer. Run: ralphdeck team join --leave, then '
                'ralphdeck team join', owner);
        end if;
    end if;
    insert into ralphdeck.projects as p (space_id, id, name, joined_by)
        values (me.space_id, p_project, p_name, me.member_id)
        on conflict (space_id, id) do update set name = excluded.name
            where p.name <> excluded.name and (p.joined_by = me.member_id or me.level >= 'reviewer');
    insert into ralphdeck.project_members (space_id, project_id, member_id)
        select p.space_id, p.project_id, me.member_id from ralphdeck.projects p
            where p.space_id = me.space_id and p.id = p_project
        on conflict do nothing;
    if found then
        perform ralphdeck._spend(me, 'projects', 1);
    end if;
end $$;

create function _project(p_me access, p_project uuid) returns integer
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    number integer := (select p.project_id
        from ralphdeck.projects p join ralphdeck.project_members j using (project_id)
        where p.space_id = p_me.space_id and p.id = p_project and j.member_id = p_me.member_id);
begin
    if number is null then
        raise exception using errcode = 'RD004', message = format(
            'you have not joined the project %s to the space; run: ralphdeck team join', p_project);
    end if;
    return number;
end $$;

create function _notify(p_space uuid, p_what text) returns void
    language sql set search_path = pg_catalog, pg_temp
as $$
    select pg_notify('ralphdeck_' || replace(s.channel::text, '-', ''), p_what)
        from ralphdeck.spaces s where s.id = p_space
$$;
