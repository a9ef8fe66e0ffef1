-- Uses of patterns: each arrives once however often it is sent, and is added to the sums in the same transaction.

create type use as (
    id uuid,
    pattern_id text,
    kind text,
    at timestamptz,
    success boolean,
    weight double precision,
    count bigint,
    withdraws uuid
);

-- The new table is attached, with a lock that only other attachments wait for; `create table ... partition of` would
-- block readers and writers.
create function _make_partition(p_month timestamp) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    partition text := 'events_' || to_char(p_month, 'YYYY_MM');
begin
    if to_regclass('ralphdeck.' || partition) is not null then
        return;
    end if;
    lock table ralphdeck.events in share update exclusive mode;
    if to_regclass('ralphdeck.' || partition) is not null then
        return;
    end if;
    execute format('create table ralphdeck.%I (like ralphdeck.events including all)', partition);
    execute format('alter table ralphdeck.events attach partition ralphdeck.%I for values from (%L) to (%L)',
        partition, p_month at time zone 'UTC', (p_month + interval '1 month') at time zone 'UTC');
end $$;

-- Plans are made for each call, so that they contain only the months of the batch.
create function add_events(p_space uuid, p_project uuid, p_events json) returns json
    language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_custom_plan
as $$
declare
    me ralphdeck.access := ralphdeck._require(p_space, 'contributor', 'sending uses');
    project integer := ralphdeck._project(me.space_id, p_project);
    sent ralphdeck.use[];
    fresh ralphdeck.use[];
    fresh_ids uuid[];
    arrived json;
    epoch double precision;
    half_life double precision;
    month timestamp;
    first timestamptz;
    last timestamptz;
begin
    select date_part('epoch', s.epoch), s.half_life_days * 86400 into epoch, half_life
        from ralphdeck.spaces s where s.space_id = me.space_id;
    select array_agg(row(u.id, u.pattern_id, u.kind, coalesce(u.at, '-infinity'), u.success,
                         coalesce(u.weight, 1), coalesce(u.count, 1), u.withdraws)::ralphdeck.use)
        into sent from json_populate_recordset(null::ralphdeck.use, p_events) u;
    select min(u.at), max(u.at) into first, last from unnest(sent) u;
    if exists (select from unnest(sent) u where u.at > '-infinity' and u.at < '0001-01-01 00:00:00+00') then
        raise exception using errcode = 'RD004', message = 'a use has a time before the year 1';  -- no client reads it
    end if;
    for month in select distinct date_trunc('month', u.at at time zone 'UTC') from unnest(sent) u
                 where u.at >= '2020-01-01 00:00:00+00' and u.at < '2100-01-01 00:00:00+00' order by 1 loop
        perform ralphdeck._make_partition(month);
    end loop;

    -- Lock the sums of all patterns first, in order: no deadlock, and no transaction changes their uses meanwhile.
    insert into ralphdeck.sums (space_id, pattern_id)
        select me.space_id, u.pattern_id from (select distinct s.pattern_id from unnest(sent) s) u order by u.pattern_id
        on conflict do nothing;
    perform from ralphdeck.sums s
        where s.space_id = me.space_id and s.pattern_id in (select u.pattern_id from unnest(sent) u)
        order by s.pattern_id for no key update;

    with added as (
        insert into ralphdeck.events
            (space_id, at, id, pattern_id, project_id, member_id, count, weight, success, kind, withdraws)
            select me.space_id, u.at, u.id, u.pattern_id, project, me.member_id, u.count, u.weight, u.success, u.kind,
                   u.withdraws
            from unnest(sent) u
            on conflict do nothing
            returning id, pattern_id, kind, at, success, weight, count, withdraws)
    select array_agg(row(a.*)::ralphdeck.use), array_agg(a.id) into fresh, fresh_ids from added a;
    fresh_ids := coalesce(fresh_ids, '{}');
    select coalesce(json_object_agg(e.id, e.received_at), '{}') into arrived
        from unnest(sent) u join ralphdeck.events e
            on e.space_id = me.space_id and e.at = u.at and e.at between first and last and e.id = u.id
                and e.received_at < e.at
        where u.withdraws is null and (u.at > now() or u.id <> all (fresh_ids));
    if fresh is null then
        return json_build_object('new', fresh_ids, 'arrived', arrived);
    end if;

    -- A use counts unless it is withdrawn; a withdrawal subtracts what its use added, unless both are in this batch.
    with changed as (
        select 1 as sign, f.pattern_id, project as project_id, f.kind, f.at, now() as received_at, f.success,
               f.weight, f.count
            from unnest(fresh) f
            where f.withdraws is null and not exists (
                select from ralphdeck.events w
                where w.space_id = me.space_id and w.at = f.at and w.at between first and last
                    and w.withdraws = f.id and w.pattern_id = f.pattern_id)
        union all
        select -1, e.pattern_id, e.project_id, e.kind, e.at, e.received_at, e.success, e.weight, e.count
            from unnest(fresh) f join ralphdeck.events e
                on e.space_id = me.space_id and e.at = f.at and e.at between first and last
                and e.id = f.withdraws and e.pattern_id = f.pattern_id
            where e.withdraws is null and e.id <> all (fresh_ids)
    ), valued as (
        select c.pattern_id, c.project_id, c.sign, c.sign * c.count as count, c.kind = 'injected' as is_injection,
               c.kind <> 'injected' and c.success is true as is_success,
               c.kind <> 'injected' and c.success is false as is_failure,
               c.sign * c.count * c.weight as value, c.at = '-infinity' as is_fixed, least(c.at, c.received_at) as at,
               case when c.at = '-infinity' then 0.0::double precision
                    else power(2.0::double precision, greatest(-900.0, least(900.0,
                        (date_part('epoch', least(c.at, c.received_at)) - epoch) / half_life))) end as factor,
               case when c.at = '-infinity' then c.received_at else least(c.at, c.received_at) end as used_at
            from changed c
    ), by_pattern as (
        select v.pattern_id,
               coalesce(sum(v.count) filter (where v.is_success), 0) as successes,
               coalesce(sum(v.count) filter (where v.is_failure), 0) as failures,
               coalesce(sum(v.count) filter (where not v.is_injection), 0) as uses,
               coalesce(sum(v.count) filter (where v.is_injection), 0) as injected_only,
               coalesce(sum(v.value * v.factor) filter (where v.is_success), 0) as helpful,
               coalesce(sum(v.value * v.factor) filter (where v.is_failure), 0) as harmful,
               sum(v.count * v.factor) as injections,
               coalesce(sum(v.value) filter (where v.is_success and v.is_fixed), 0) as fixed_helpful,
               coalesce(sum(v.value) filter (where v.is_failure and v.is_fixed), 0) as fixed_harmful,
               coalesce(sum(v.count) filter (where v.is_fixed), 0) as fixed_injections,
               coalesce(sum(v.value) filter (where v.is_success or v.is_failure), 0) as undecayed,
               max(v.at) filter (where v.sign > 0 and not v.is_injection and not v.is_fixed) as last_used
            from valued v group by v.pattern_id
    ), summed as (
        update ralphdeck.sums s set
            successes = s.successes + b.successes,
            failures = s.failures + b.failures,
            uses = s.uses + b.uses,
            injected_only = s.injected_only + b.injected_only,
            helpful = s.helpful + b.helpful,
            harmful = s.harmful + b.harmful,
            injections = s.injections + b.injections,
            fixed_helpful = s.fixed_helpful + b.fixed_helpful,
            fixed_harmful = s.fixed_harmful + b.fixed_harmful,
            fixed_injections = s.fixed_injections + b.fixed_injections,
            undecayed = s.undecayed + b.undecayed,
            last_used = case when s.uses + b.uses > 0 then greatest(s.last_used, b.last_used) end,
            xid = pg_current_xact_id()
            from by_pattern b where s.space_id = me.space_id and s.pattern_id = b.pattern_id
    )
    insert into ralphdeck.project_sums as p (space_id, project_id, day, successes, failures, uses)
        select me.space_id, v.project_id, (v.used_at at time zone 'UTC')::date,
               coalesce(sum(v.count) filter (where v.is_success), 0),
               coalesce(sum(v.count) filter (where v.is_failure), 0),
               sum(v.count)
            from valued v where not v.is_injection group by 1, 2, 3 order by 1, 2, 3
        on conflict (space_id, project_id, day) do update set
            successes = p.successes + excluded.successes,
            failures = p.failures + excluded.failures,
            uses = p.uses + excluded.uses;
    return json_build_object('new', fresh_ids, 'arrived', arrived);
end $$;
comment on function add_events is
    'Adds uses and withdrawals of uses (with the time and pattern of the use). Returns the IDs that were new, and when '
    'uses with a later time of their own arrived: they count as of then';
