-- Texts of patterns.

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
comment on function put_patterns is
    'Adds new patterns; a reviewer also changes texts, if the text is still the expected one. Returns conflicts';

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

create function _text_conflict(p_held ralphdeck.patterns) returns json
    language sql stable set search_path = pg_catalog, pg_temp
as $$
    select json_build_object('kind', 'text', 'subject', p_held.pattern_id, 'by', p_held.changed_by,
        'at', p_held.changed_at, 'content_hash', p_held.content_hash, 'record', p_held.record)
$$;
