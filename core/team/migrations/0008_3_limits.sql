-- Limits of what one member sends; docs/team.md#limits lists them.

create function _limit(p_level level, p_what text) returns bigint
    language sql immutable set search_path = pg_catalog, pg_temp
as $$
    select case when p_level < 'reviewer'
        then (case p_what when 'projects' then 1000 when 'patterns' then 2000 when 'bytes of patterns' then 8 << 20
            when 'decisions' then 1000 when 'bytes of decisions' then 8 << 20
            when 'uses' then 20000 when 'uses of a pattern' then 1000
            when 'trials' then 20000 when 'trials of a pattern' then 100 end)
        else (case p_what when 'projects' then 1000 when 'decisions' then 20000 when 'bytes of decisions' then 64 << 20
            when 'uses of a pattern' then 100000 when 'trials of a pattern' then 1000 end)
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
