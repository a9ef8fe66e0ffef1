-- Texts of patterns, and decisions in one order with a hash chain.

create type pattern_text as (
    pattern_id text,
    type text,
    record text,
    content_hash text,
    expected text
);

create function put_patterns(p_space uuid, p_patterns json) returns json
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    me ralphdeck.access := ralphdeck._require(p_space, 'contributor', 'sending patterns');
    sent ralphdeck.pattern_text;
    held ralphdeck.patterns;
    conflicts json[] := '{}';
    changes integer := 0;
begin
    for sent in select t.* from json_populate_recordset(null::ralphdeck.pattern_text, p_patterns) t
                order by t.pattern_id loop
        sent.content_hash := coalesce(sent.content_hash, '');
        insert into ralphdeck.patterns (space_id, pattern_id, type, record, content_hash, changed_by)
            values (me.space_id, sent.pattern_id, sent.type, sent.record, sent.content_hash, me.display_name)
            on conflict do nothing;
        if found then
            changes := changes + 1;
            continue;
        end if;
        select * into held from ralphdeck.patterns p
            where p.space_id = me.space_id and p.pattern_id = sent.pattern_id for no key update;
        if held.content_hash = sent.content_hash then
            continue;
        end if;
        if me.level >= 'reviewer' and sent.expected = held.content_hash then
            update ralphdeck.patterns p set type = sent.type, record = sent.record, content_hash = sent.content_hash,
                    changed_by = me.display_name, changed_at = now(), xid = pg_current_xact_id()
                where p.space_id = me.space_id and p.pattern_id = sent.pattern_id;
            changes := changes + 1;
        else
            conflicts := conflicts || ralphdeck._text_conflict(held);
        end if;
    end loop;
    if changes > 0 then
        perform ralphdeck._notify(p_space, 'patterns');
    end if;
    return array_to_json(conflicts);
end $$;
comment on function put_patterns is
    'Adds new patterns; a reviewer also changes texts, if the text is still the expected one. Returns conflicts';

create function _text_conflict(p_held ralphdeck.patterns) returns json
    language sql stable set search_path = pg_catalog, pg_temp
as $$
    select json_build_object('kind', 'text', 'subject', p_held.pattern_id, 'by', p_held.changed_by,
        'at', p_held.changed_at, 'content_hash', p_held.content_hash, 'record', p_held.record)
$$;

create function _notify(p_space uuid, p_what text) returns void
    language sql set search_path = pg_catalog, pg_temp
as $$
    select pg_notify('ralphdeck_' || replace(p_space::text, '-', ''), p_what)
$$;

-- What a contributor may decide: add new candidates, and nothing that a later undo would turn into more.
create function _check_candidates(p_space_id integer, p_payload json, p_subjects text[], p_records json) returns void
    language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
    effect json;
    added text[] := '{}';
begin
    for effect in select json_array_elements(coalesce(p_payload -> 'effects', '[]')) loop
        if json_typeof(effect -> 'insert') is distinct from 'object' or exists (
                select from json_object_keys(effect) k
                where k not in ('file', 'type', 'pattern_id', 'insert', 'keep_id', 'beside'))
            or exists (select from ralphdeck.patterns p
                       where p.space_id = p_space_id and p.pattern_id = effect ->> 'pattern_id') then
            raise exception using errcode = 'RD001',
                message = 'a contributor can add new candidates only; changes of patterns need reviewer';
        end if;
        added := added || (effect ->> 'pattern_id');
    end loop;
    if exists (
            select from json_array_elements(coalesce(p_payload -> 'inverse', '[]')) i
            where i ->> 'pattern_id' is null or i ->> 'pattern_id' <> all (added)
                or i -> 'set' is not null or i -> 'insert' is not null or i -> 'unset' is not null)
        or exists (
            select from json_populate_recordset(null::ralphdeck.pattern_text, p_records) r
            where r.record is null or r.pattern_id <> all (added))
        or exists (
            select from json_object_keys(coalesce(p_payload -> 'after' -> 'hashes', '{}')) k where k <> all (added))
        or exists (
            select from json_array_elements_text(coalesce(p_payload -> 'after' -> 'patterns', '[]')) n
            where n <> all (added))
        or exists (
            select from ralphdeck.patterns p where p.space_id = p_space_id and p.pattern_id = any (p_subjects)) then
        raise exception using errcode = 'RD001',
            message = 'a contributor can add new candidates only; changes of patterns need reviewer';
    end if;
end $$;

create function decide(
    p_space uuid, p_project uuid, p_payload text, p_subjects text[], p_seen bigint, p_known text[], p_texts json,
    p_records json
) returns json
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    me ralphdeck.access := ralphdeck._require(p_space, 'reader', 'a decision');
    project integer;
    payload json := p_payload::json;
    decision_id text := payload ->> 'id';
    is_unattended boolean := coalesce(payload ->> 'verb' = 'extract' and (
        json_typeof(payload -> 'after' -> 'hashes') = 'object' or payload -> 'after' ->> 'proposed' = 'true'), false);
    moment timestamptz;
    earlier ralphdeck.decisions;
    space ralphdeck.spaces;
    conflicts json[];
    link bytea;
begin
    if json_typeof(payload) is distinct from 'object' or json_typeof(payload -> 'id') is distinct from 'string'
        or json_typeof(payload -> 'by') is distinct from 'string' or decision_id !~ '^[!-~]+$'
        or exists (select from json_object_keys(payload) k group by k having count(*) > 1) then
        raise exception using errcode = 'RD004', message = 'a decision needs one ID and one author, and each key once';
    end if;
    if me.level < 'contributor' then
        perform ralphdeck._require(p_space, case when is_unattended then 'contributor' else 'reviewer' end::ralphdeck.level,
            coalesce(payload ->> 'verb', 'a decision'));
    end if;
    project := ralphdeck._project(me.space_id, p_project);
    select * into space from ralphdeck.spaces s where s.space_id = me.space_id for no key update;
    select * into earlier from ralphdeck.decisions d where d.space_id = me.space_id and d.id = decision_id;
    if found then
        return json_build_object('seq', earlier.seq, 'is_new', false, 'recorded_at', earlier.recorded_at,
            'conflicts', json_build_array());
    end if;
    if not is_unattended then
        perform ralphdeck._require(p_space, 'reviewer', coalesce(payload ->> 'verb', 'a decision'));
        if payload ->> 'by' is distinct from me.display_name then
            raise exception using errcode = 'RD004', message = format(
                'the decision is signed by %s, but your name in the space %s is %s',
                payload ->> 'by', me.space_name, me.display_name);
        end if;
    elsif exists (select from ralphdeck.members m
                  where m.space_id = me.space_id and m.member_id <> me.member_id
                  and lower(m.display_name) = lower(payload ->> 'by')) then
        raise exception using errcode = 'RD004', message = format(
            'the decision is signed by %s, which is the name of another member', payload ->> 'by');
    end if;

    perform from ralphdeck.patterns p
        where p.space_id = me.space_id and (p.pattern_id in (select json_object_keys(p_texts))
            or p.pattern_id in (select r.pattern_id from json_populate_recordset(null::ralphdeck.pattern_text, p_records) r))
        order by p.pattern_id for no key update;
    if me.level < 'reviewer' then
        perform ralphdeck._check_candidates(me.space_id, payload, p_subjects, p_records);
    end if;
    conflicts := array(
        select json_build_object('kind', 'decision', 'subject', array_to_string(array(
                select unnest(d.subjects) intersect select unnest(p_subjects)), ', '),
                'by', d.member, 'at', d.recorded_at, 'seq', d.seq, 'payload', d.payload)
            from ralphdeck.decisions d
            where d.space_id = me.space_id and d.seq > p_seen and d.subjects && p_subjects and d.id <> all (p_known)
            order by d.seq)
        || array(
        select ralphdeck._text_conflict(p)
            from json_each_text(p_texts) t join ralphdeck.patterns p
                on p.space_id = me.space_id and p.pattern_id = t.key and p.content_hash <> t.value
            order by p.pattern_id);
    if cardinality(conflicts) > 0 then
        return json_build_object('seq', null, 'is_new', false, 'recorded_at', null, 'conflicts', conflicts);
    end if;

    insert into ralphdeck.patterns as p (space_id, pattern_id, type, record, content_hash, changed_by)
        select me.space_id, r.pattern_id, r.type, r.record, coalesce(r.content_hash, ''), me.display_name
            from json_populate_recordset(null::ralphdeck.pattern_text, p_records) r order by r.pattern_id
        on conflict (space_id, pattern_id) do update set type = excluded.type, record = excluded.record,
            content_hash = excluded.content_hash, changed_by = excluded.changed_by, changed_at = now(),
            xid = pg_current_xact_id();
    moment := clock_timestamp();
    link := ralphdeck.link_hash(space.head_hash, space.head_seq + 1, moment, me.display_name, p_payload);
    insert into ralphdeck.decisions
            (space_id, seq, id, payload, subjects, member_id, member, project_id, recorded_at, hash)
        values (me.space_id, space.head_seq + 1, decision_id, p_payload, p_subjects, me.member_id, me.display_name,
            project, moment, link);
    update ralphdeck.spaces s set head_seq = space.head_seq + 1, head_hash = link where s.space_id = me.space_id;
    perform ralphdeck._notify(p_space, 'decisions');
    return json_build_object('seq', space.head_seq + 1, 'is_new', true, 'recorded_at', moment,
        'conflicts', json_build_array());
end $$;
comment on function decide is
    'Records a decision, or returns what conflicts: decisions on its subjects after the sequence number p_seen that '
    'the project does not know (p_known), and texts that differ from the hashes in p_texts. p_records are texts that '
    'the decision adds, changes or (record null) removes. The same ID sent again is answered with its sequence number';

-- Every variable part has a fixed length or its length before it, so that no two decisions have the same bytes.
create function link_hash(p_previous bytea, p_seq bigint, p_recorded_at timestamptz, p_member text, p_payload text)
    returns bytea language sql immutable set search_path = pg_catalog, pg_temp
as $$
    select sha256(p_previous || int8send(p_seq)
        || convert_to(to_char(p_recorded_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'UTF8')
        || int4send(octet_length(p_member)) || convert_to(p_member, 'UTF8') || convert_to(p_payload, 'UTF8'))
$$;
