-- Decisions in one order with a hash chain.

create function decide(
    p_space uuid, p_project uuid, p_payload text, p_subjects text[], p_seen bigint, p_known text[], p_texts json,
    p_records json
) returns json
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    me ralphdeck.access := ralphdeck._require(p_space, 'reader', 'a decision');
    project integer;
    payload json;
    decision_id text;
    is_extraction boolean;
    moment timestamptz;
    earlier ralphdeck.decisions;
    space ralphdeck.spaces;
    conflicts json[];
    link bytea;
begin
    if octet_length(p_payload) > 1 << 20 then
        raise exception using errcode = 'RD004', message = format(
            'the decision has %s bytes; a decision has at most 1 MiB', octet_length(p_payload));
    end if;
    if octet_length(array_to_string(p_subjects, ',')) > 1 << 20 then
        raise exception using errcode = 'RD004', message = 'a decision is about too many subjects';
    end if;
    perform ralphdeck._check_size(p_records);
    payload := p_payload::json;
    decision_id := payload ->> 'id';
    if json_typeof(payload) is distinct from 'object' or json_typeof(payload -> 'id') is distinct from 'string'
        or json_typeof(payload -> 'by') is distinct from 'string' or decision_id !~ '^[!-~]+$'
        or exists (select from json_object_keys(payload) k group by k having count(*) > 1) then
        raise exception using errcode = 'RD004', message = 'a decision needs one ID and one author, and each key once';
    end if;
    is_extraction := coalesce(payload ->> 'verb' = 'extract', false);
    if me.level < 'contributor' then
        perform ralphdeck._require(p_space, case when is_extraction then 'contributor' else 'reviewer' end::ralphdeck.level,
            coalesce(payload ->> 'verb', 'a decision'));
    end if;
    project := ralphdeck._project(me, p_project);
    select * into space from ralphdeck.spaces s where s.space_id = me.space_id for no key update;
    select * into earlier from ralphdeck.decisions d where d.space_id = me.space_id and d.id = decision_id;
    if found then
        return json_build_object('seq', earlier.seq, 'is_new', false, 'recorded_at', earlier.recorded_at,
            'conflicts', json_build_array());
    end if;
    if not is_extraction then
        perform ralphdeck._require(p_space, 'reviewer', coalesce(payload ->> 'verb', 'a decision'));
    end if;
    perform ralphdeck._check_author(me, payload ->> 'by');

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

    perform ralphdeck._check_record(r) from json_populate_recordset(null::ralphdeck.pattern_text, p_records) r;
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
    if payload ->> 'verb' in ('revoke', 'confirm') then
        perform ralphdeck._judge_uses(me.space_id, payload);
    elsif payload ->> 'verb' in ('undo', 'redo') then
        perform ralphdeck._turn_verdict(me.space_id, payload ->> 'subject', payload ->> 'verb' = 'undo');
    end if;
    perform ralphdeck._spend(me, 'patterns', json_array_length(p_records));
    perform ralphdeck._spend(me, 'bytes of patterns', octet_length(p_records::text));
    perform ralphdeck._spend(me, 'decisions', 1);
    perform ralphdeck._spend(me, 'bytes of decisions', octet_length(p_payload));
    perform ralphdeck._notify(p_space, 'decisions');
    return json_build_object('seq', space.head_seq + 1, 'is_new', true, 'recorded_at', moment,
        'conflicts', json_build_array());
end $$;
comment on function decide is
    'Records a decision, or returns what conflicts: decisions on its subjects after the sequence number p_seen that '
    'the project does not know (p_known), and texts that differ from the hashes in p_texts. p_records are texts that '
    'the decision adds, changes or (record null) removes. The same ID sent again is answered with its sequence number';

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

create function _judge_uses(p_space_id integer, p_payload json) returns void
    language sql set search_path = pg_catalog, pg_temp
as $$
    select ralphdeck._judge_events(p_space_id, p_payload);
    select ralphdeck._withdraw_trials(p_space_id, p_payload, p_payload ->> 'verb' = 'revoke');
$$;

create function _turn_verdict(p_space_id integer, p_decision text, p_is_undo boolean) returns void
    language sql set search_path = pg_catalog, pg_temp
as $$
    select ralphdeck._turn_events(p_space_id, p_decision, p_is_undo);
    select ralphdeck._withdraw_trials(p_space_id, d.payload::json, (d.payload::json ->> 'verb' = 'revoke') <> p_is_undo)
        from ralphdeck.decisions d where d.space_id = p_space_id and d.id = p_decision;
$$;

-- Every variable part has a fixed length or its length before it, so that no two decisions have the same bytes.
create function link_hash(p_previous bytea, p_seq bigint, p_recorded_at timestamptz, p_member text, p_payload text)
    returns bytea language sql immutable set search_path = pg_catalog, pg_temp
as $$
    select sha256(p_previous || int8send(p_seq)
        || convert_to(to_char(p_recorded_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'UTF8')
        || int4send(octet_length(p_member)) || convert_to(p_member, 'UTF8') || convert_to(p_payload, 'UTF8'))
$$;
