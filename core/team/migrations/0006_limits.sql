-- Limits of what one member sends, membership in projects, and a channel that a removed member does not know.
-- docs/team.md#limits lists the limits.

alter table spaces add column channel uuid not null default gen_random_uuid();
comment on column spaces.channel is 'Name of the channel of NOTIFY; changes when a member is removed';

create table project_members (
    space_id integer not null references spaces,
    project_id integer not null references projects,
    member_id integer not null references members,
    joined_at timestamptz not null default now(),
    primary key (project_id, member_id)
);
insert into project_members (space_id, project_id, member_id)
    select p.space_id, p.project_id, p.joined_by from projects p
    union select d.space_id, d.project_id, d.member_id from decisions d
    union select e.space_id, e.project_id, e.member_id from events e
    on conflict do nothing;

create table spent (
    space_id integer not null,
    member_id integer not null,
    day date not null,
    what text not null,
    pattern_id text not null default '',
    amount bigint not null,
    primary key (space_id, member_id, day, what, pattern_id)
);
comment on table spent is 'What a member has sent today (UTC), compared with the limits';

-- Null: no limit.
create function _limit(p_level level, p_what text) returns bigint
    language sql immutable set search_path = pg_catalog, pg_temp
as $$
    select case when p_level < 'reviewer'
        then (case p_what when 'projects' then 1000 when 'patterns' then 2000 when 'bytes of patterns' then 8 << 20
            when 'decisions' then 1000 when 'bytes of decisions' then 8 << 20
            when 'uses' then 20000 when 'uses of a pattern' then 1000 end)
        else (case p_what when 'projects' then 1000 when 'decisions' then 20000 when 'bytes of decisions' then 64 << 20
            when 'uses of a pattern' then 100000 end)
        end
$$;

-- Raised: RD005 the limit of the day is reached; the same can be sent tomorrow.
create function _spend(p_me access, p_what text, p_amount bigint) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set plan_cache_mode = auto
as $$
declare
    most bigint := ralphdeck._limit(p_me.level, p_what);
    today date := (now() at time zone 'UTC')::date;
    total bigint;
begin
    if p_amount = 0 or most is null then
        return;
    end if;
    insert into ralphdeck.spent as s (space_id, member_id, day, what, amount)
        values (p_me.space_id, p_me.member_id, today, p_what, p_amount)
        on conflict (space_id, member_id, day, what, pattern_id) do update set amount = s.amount + excluded.amount
        returning s.amount into total;
    if total > most then
        raise exception using errcode = 'RD005', message = format(
            'the limit of the space %s is %s %s a day for a %s; the rest can be sent tomorrow (UTC)',
            p_me.space_name, most, p_what, p_me.level);
    end if;
    if total = p_amount then  -- the first of the day
        delete from ralphdeck.spent s where ctid in (
            select o.ctid from ralphdeck.spent o
            where o.space_id = p_me.space_id and o.member_id = p_me.member_id and o.day < today - 1
            for update skip locked);
    end if;
end $$;

-- A call is parsed as a whole, so its size bounds the memory that it takes.
create function _check_size(p_value json) returns void
    language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
    if octet_length(p_value::text) > 64 << 20 then
        raise exception using errcode = 'RD004', message = 'one call carries at most 64 MiB';
    end if;
end $$;

create or replace function _notify(p_space uuid, p_what text) returns void
    language sql set search_path = pg_catalog, pg_temp
as $$
    select pg_notify('ralphdeck_' || replace(s.channel::text, '-', ''), p_what)
        from ralphdeck.spaces s where s.id = p_space
$$;

create or replace function _set_member(p_space_id integer, p_role name, p_display_name text, p_level level, p_by text)
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

create or replace function join_project(p_space uuid, p_project uuid, p_name text) returns void
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

drop function _project(integer, uuid);
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

create or replace function put_patterns(p_space uuid, p_patterns json) returns json
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    me ralphdeck.access := ralphdeck._require(p_space, 'contributor', 'sending patterns');
    sent ralphdeck.pattern_text;
    held ralphdeck.patterns;
    conflicts json[] := '{}';
    changes integer := 0;
    bytes bigint := 0;
begin
    perform ralphdeck._check_size(p_patterns);
    for sent in select t.* from json_populate_recordset(null::ralphdeck.pattern_text, p_patterns) t
                order by t.pattern_id loop
        perform ralphdeck._check_record(sent);
        sent.content_hash := coalesce(sent.content_hash, '');
        insert into ralphdeck.patterns (space_id, pattern_id, type, record, content_hash, changed_by)
            values (me.space_id, sent.pattern_id, sent.type, sent.record, sent.content_hash, me.display_name)
            on conflict do nothing;
        if not found then
            select * into held from ralphdeck.patterns p
                where p.space_id = me.space_id and p.pattern_id = sent.pattern_id for no key update;
            if held.content_hash = sent.content_hash then
                continue;
            end if;
            if me.level < 'reviewer' or sent.expected is distinct from held.content_hash then
                conflicts := conflicts || ralphdeck._text_conflict(held);
                continue;
            end if;
            update ralphdeck.patterns p set type = sent.type, record = sent.record, content_hash = sent.content_hash,
                    changed_by = me.display_name, changed_at = now(), xid = pg_current_xact_id()
                where p.space_id = me.space_id and p.pattern_id = sent.pattern_id;
        end if;
        changes := changes + 1;
        bytes := bytes + coalesce(octet_length(sent.record), 0);
    end loop;
    if changes > 0 then
        perform ralphdeck._spend(me, 'patterns', changes);
        perform ralphdeck._spend(me, 'bytes of patterns', bytes);
        perform ralphdeck._notify(p_space, 'patterns');
    end if;
    return array_to_json(conflicts);
end $$;

create function _check_record(p_text pattern_text) returns void
    language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
    if octet_length(p_text.record) > 256 << 10 then
        raise exception using errcode = 'RD004', message = format(
            'the pattern %s has %s bytes; a pattern has at most 256 KiB', p_text.pattern_id,
            octet_length(p_text.record));
    end if;
    if length(p_text.type) > 40 or length(p_text.content_hash) > 200 then
        raise exception using errcode = 'RD004', message = 'the type or hash of a pattern is too long';
    end if;
end $$;

-- The author is the member, or a program or agent that works for the member.
create function _check_author(p_me access, p_by text) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
    if p_by not in (p_me.display_name, p_me.display_name || ' (script)') then
        raise exception using errcode = 'RD004', message = format(
            'the decision is signed by %s, but your name in the space %s is %s', p_by, p_me.space_name,
            p_me.display_name);
    end if;
end $$;
