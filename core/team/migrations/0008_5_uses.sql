-- Uses of patterns: each arrives once however often it is sent, and is added to the sums in the same transaction.
-- Results of contributors count only within limits, or after a reviewer has confirmed them.

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

create type use_change as (
    sign integer,
    pattern_id text,
    project_id integer,
    kind text,
    at timestamptz,
    received_at timestamptz,
    success boolean,
    weight double precision,
    count bigint
);

create type use_verdict as (at timestamptz, id uuid, before use_status, after use_status);

-- Plans are made for each call, so that they contain only the months of the batch.
create function add_events(p_space uuid, p_project uuid, p_events json) returns json
    language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_custom_plan
as $$
declare
    me ralphdeck.access := ralphdeck._require(p_space, 'contributor', 'sending uses');
    project integer := ralphdeck._project(me, p_project);
    sent ralphdeck.use[];
    fresh ralphdeck.use[];
    fresh_ids uuid[];
    late uuid[];
    held uuid[] := '{}';
    arrived json;
    changes ralphdeck.use_change[];
    withdrawn text[];
    month timestamp;
    first timestamptz;
    last timestamptz;
begin
    perform ralphdeck._check_size(p_events);
    select array_agg(row(u.id, u.pattern_id, u.kind, coalesce(u.at, '-infinity'), u.success,
                         coalesce(u.weight, 1), coalesce(u.count, 1), u.withdraws)::ralphdeck.use)
        into sent from json_populate_recordset(null::ralphdeck.use, p_events) u;
    select min(u.at), max(u.at) into first, last from unnest(sent) u;
    perform ralphdeck._check_uses(sent);
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

    -- A contributor withdraws only own uses.
    if me.level < 'reviewer' and exists (select from unnest(sent) u where u.withdraws is not null) then
        select array_agg(u) into sent from unnest(sent) u
            where u.withdraws is null or exists (
                select from ralphdeck.events e
                where e.space_id = me.space_id and e.at = u.at and e.at between first and last and e.id = u.withdraws
                    and e.member_id = me.member_id);
    end if;
    with added as (
        insert into ralphdeck.events
            (space_id, at, id, pattern_id, project_id, member_id, count, weight, success, kind, withdraws)
            select me.space_id, u.at, u.id, u.pattern_id, project, me.member_id, u.count, u.weight, u.success, u.kind,
                   u.withdraws
            from unnest(sent) u
            on conflict do nothing
            returning id, pattern_id, kind, at, success, weight, count, withdraws)
    select array_agg(row(a.*)::ralphdeck.use) into fresh from added a;
    late := ralphdeck._spend_uses(me, fresh);
    if cardinality(late) > 0 then
        delete from ralphdeck.events e
            where e.space_id = me.space_id and e.at between first and last and e.id = any (late);
        select array_agg(f) into fresh from unnest(fresh) f where f.id <> all (late);
    end if;
    if me.level < 'reviewer' then
        held := ralphdeck._find_suspicious(me, fresh);
        if cardinality(held) > 0 then
            update ralphdeck.events e set status = 'held'
                where e.space_id = me.space_id and e.at between first and last and e.id = any (held);
        end if;
    end if;
    fresh_ids := array(select f.id from unnest(fresh) f);
    select coalesce(json_object_agg(e.id, e.received_at), '{}') into arrived
        from unnest(sent) u join ralphdeck.events e
            on e.space_id = me.space_id and e.at = u.at and e.at between first and last and e.id = u.id
                and e.received_at < e.at
        where u.withdraws is null and (u.at > now() or u.id <> all (fresh_ids));

    -- A use counts unless it is withdrawn or held; a withdrawal subtracts what its use added, unless both are in this
    -- batch.
    select array_agg(row(c.*)::ralphdeck.use_change) into changes from (
        select 1, f.pattern_id, project, f.kind, f.at, now(), f.success, f.weight, f.count
            from unnest(fresh) f
            where f.withdraws is null and f.id <> all (held) and not exists (
                select from ralphdeck.events w
                where w.space_id = me.space_id and w.at = f.at and w.at between first and last
                    and w.withdraws = f.id and w.pattern_id = f.pattern_id)
        union all
        select -1, e.pattern_id, e.project_id, e.kind, e.at, e.received_at, e.success, e.weight, e.count
            from unnest(fresh) f join ralphdeck.events e
                on e.space_id = me.space_id and e.at = f.at and e.at between first and last
                and e.id = f.withdraws and e.pattern_id = f.pattern_id
            where e.withdraws is null and e.status = 'counted' and e.id <> all (fresh_ids)) c;
    if changes is not null then
        perform ralphdeck._add_sums(me.space_id, changes);
    end if;
    withdrawn := array(select distinct f.pattern_id from unnest(fresh) f where f.withdraws is not null
        or f.id = any (held));
    if cardinality(withdrawn) > 0 then
        perform ralphdeck._count_held(me.space_id, withdrawn);
    end if;
    return json_build_object('new', fresh_ids, 'arrived', arrived, 'later', late);
end $$;
comment on function add_events is
    'Adds uses and withdrawals of uses (with the time and pattern of the use). Returns the IDs that were new, those that '
    'the limits of the day leave for tomorrow, and when uses with a later time of their own arrived: they count as of then';

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

-- What a value of a use must be, whoever sends it.
create function _check_uses(p_uses use[]) returns void
    language plpgsql immutable set search_path = pg_catalog, pg_temp set plan_cache_mode = auto
as $$
declare
    problem text := (select min(case
            when u.at > '-infinity' and u.at < '0001-01-01 00:00:00+00'
                then 'a use has a time before the year 1'  -- no client reads it
            when u.withdraws is null and u.at > '-infinity'
                and not (u.at >= '2000-01-01 00:00:00+00' and u.at < '2100-01-01 00:00:00+00')
                then 'a use has a time that is not in the years 2000 to 2099'
            when u.count not between 0 and 100 then 'the count of a use is not between 0 and 100'
            when u.weight not between 0 and 1 then 'the weight of a use is not between 0 and 1'
            when u.kind is null or u.kind not in ('applied', 'injected')
                then 'the kind of a use is not applied or injected'
        end) from unnest(p_uses) u);
begin
    if problem is not null then
        raise exception using errcode = 'RD004', message = problem;
    end if;
end $$;

-- Returns the IDs of new uses for which the limits of the day leave no room, and counts the others as sent today.
create function _spend_uses(p_me access, p_fresh use[]) returns uuid[]
    language plpgsql set search_path = pg_catalog, pg_temp set plan_cache_mode = auto
as $$
declare
    today date := (now() at time zone 'UTC')::date;
    most bigint := ralphdeck._limit(p_me.level, 'uses');
    most_of_one bigint := ralphdeck._limit(p_me.level, 'uses of a pattern');
    sent bigint := 0;
    largest bigint;
    late uuid[] := '{}';
begin
    if most is not null then
        sent := coalesce((select s.amount from ralphdeck.spent s where s.space_id = p_me.space_id
            and s.member_id = p_me.member_id and s.day = today and s.what = 'uses' and s.pattern_id = ''), 0);
    end if;
    with counted as (
        insert into ralphdeck.spent as s (space_id, member_id, day, what, pattern_id, amount)
            select p_me.space_id, p_me.member_id, today, 'uses of a pattern', f.pattern_id, sum(f.count)
                from unnest(p_fresh) f where f.withdraws is null group by f.pattern_id order by f.pattern_id
            on conflict (space_id, member_id, day, what, pattern_id) do update set amount = s.amount + excluded.amount
            returning s.amount)
    select max(c.amount) into largest from counted c;
    if largest > most_of_one or sent + cardinality(p_fresh) > most then
        with wanted as (
            select f.id, f.pattern_id, f.count, row_number() over (order by f.at, f.id) as number,
                   sum(f.count) over (partition by f.pattern_id order by f.at, f.id) as total,
                   sum(f.count) over (partition by f.pattern_id) as added
                from unnest(p_fresh) f where f.withdraws is null
        ), refused as (
            select w.id, w.pattern_id, w.count from wanted w
                join ralphdeck.spent s on s.space_id = p_me.space_id and s.member_id = p_me.member_id
                    and s.day = today and s.what = 'uses of a pattern' and s.pattern_id = w.pattern_id
                where sent + w.number > most or s.amount - w.added + w.total > most_of_one
        ), corrected as (
            update ralphdeck.spent s set amount = s.amount - r.count
                from (select f.pattern_id, sum(f.count) as count from refused f group by f.pattern_id) r
                where s.space_id = p_me.space_id and s.member_id = p_me.member_id and s.day = today
                    and s.what = 'uses of a pattern' and s.pattern_id = r.pattern_id)
        select coalesce(array_agg(f.id), '{}') into late from refused f;
    end if;
    if most is not null then
        perform ralphdeck._spend(p_me, 'uses',
            (select count(*) from unnest(p_fresh) f where f.withdraws is null and f.id <> all (late)));
    end if;
    return late;
end $$;

-- Returns the IDs of new results of a contributor that wait for a reviewer: all of a pattern if the unconfirmed ones
-- would be more than 2 and more than a quarter of the confirmed ones, decayed to now; and failures on more than 5
-- patterns within an hour. The other results count, but as unconfirmed ones.
create function _find_suspicious(p_me access, p_fresh use[]) returns uuid[]
    language plpgsql set search_path = pg_catalog, pg_temp set plan_cache_mode = auto
as $$
declare
    decay double precision := (select power(2.0::double precision, greatest(-900.0, least(900.0,
        (date_part('epoch', s.epoch) - date_part('epoch', now())) / (s.half_life_days * 86400)))) from ralphdeck.spaces s
        where s.space_id = p_me.space_id);
    many text[];
    failing text[];
    found uuid[];
begin
    with new as (
        select f.pattern_id, sum(f.count) as results from unnest(p_fresh) f
            where f.withdraws is null and f.kind = 'applied' and f.success is not null group by f.pattern_id)
    select coalesce(array_agg(n.pattern_id), '{}') into many
        from new n join ralphdeck.sums s on s.space_id = p_me.space_id and s.pattern_id = n.pattern_id
        cross join lateral (select coalesce(sum(c.results), 0) as results from ralphdeck.contributed c
            where c.space_id = p_me.space_id and c.pattern_id = n.pattern_id) u
        where u.results + n.results > greatest(2,
            ((s.helpful + s.harmful) * decay + s.fixed_helpful + s.fixed_harmful - u.results) / 4);
    select array_agg(distinct f.pattern_id) into failing from unnest(p_fresh) f
        where f.withdraws is null and f.kind = 'applied' and f.success is false;
    if cardinality(failing) > 0 and cardinality(failing) + (select count(*) from ralphdeck.contributed c
            where c.space_id = p_me.space_id and c.member_id = p_me.member_id and c.pattern_id <> all (failing)
            and c.failed_at > now() - interval '1 hour') <= 5 then
        failing := '{}';
    end if;
    select coalesce(array_agg(f.id), '{}') into found from unnest(p_fresh) f
        where f.withdraws is null and f.kind = 'applied' and f.success is not null
            and (f.pattern_id = any (many) or (f.success is false and f.pattern_id = any (failing)));
    insert into ralphdeck.contributed as c (space_id, member_id, pattern_id, results, failed_at)
        select p_me.space_id, p_me.member_id, f.pattern_id, coalesce(sum(f.count) filter (where f.id <> all (found)), 0),
               max(now()) filter (where f.success is false)
            from unnest(p_fresh) f where f.withdraws is null and f.kind = 'applied' and f.success is not null
            group by f.pattern_id order by f.pattern_id
        on conflict (space_id, pattern_id, member_id) do update
            set results = c.results + excluded.results, failed_at = greatest(c.failed_at, excluded.failed_at);
    return found;
end $$;

-- The caller has locked the sums of the patterns.
create function _add_sums(p_space_id integer, p_changes use_change[]) returns void
    language plpgsql set search_path = pg_catalog, pg_temp set plan_cache_mode = auto
as $$
declare
    epoch double precision;
    half_life double precision;
begin
    select date_part('epoch', s.epoch), s.half_life_days * 86400 into epoch, half_life
        from ralphdeck.spaces s where s.space_id = p_space_id;
    with valued as (
        select c.pattern_id, c.project_id, c.sign, c.sign * c.count as count, c.kind = 'injected' as is_injection,
               c.kind <> 'injected' and c.success is true as is_success,
               c.kind <> 'injected' and c.success is false as is_failure,
               c.sign * c.count * c.weight as value, c.at = '-infinity' as is_fixed, least(c.at, c.received_at) as at,
               case when c.at = '-infinity' then 0.0::double precision
                    else power(2.0::double precision, greatest(-900.0, least(900.0,
                        (date_part('epoch', least(c.at, c.received_at)) - epoch) / half_life))) end as factor,
               case when c.at = '-infinity' then c.received_at else least(c.at, c.received_at) end as used_at
            from unnest(p_changes) c
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
            from by_pattern b where s.space_id = p_space_id and s.pattern_id = b.pattern_id
    )
    insert into ralphdeck.project_sums as p (space_id, project_id, day, successes, failures, uses)
        select p_space_id, v.project_id, (v.used_at at time zone 'UTC')::date,
               coalesce(sum(v.count) filter (where v.is_success), 0),
               coalesce(sum(v.count) filter (where v.is_failure), 0),
               sum(v.count)
            from valued v where not v.is_injection group by 1, 2, 3 order by 1, 2, 3
        on conflict (space_id, project_id, day) do update set
            successes = p.successes + excluded.successes,
            failures = p.failures + excluded.failures,
            uses = p.uses + excluded.uses;
end $$;

-- Sums of what is held of these patterns, of all members. The caller has locked the sums of the patterns.
create function _count_held(p_space_id integer, p_patterns text[]) returns void
    language sql set search_path = pg_catalog, pg_temp
as $$
    update ralphdeck.contributed c set held_successes = h.successes, held_failures = h.failures,
            held_first = h.first, held_last = h.last
        from (select k.member_id, k.pattern_id, f.* from ralphdeck.contributed k cross join lateral (
                select coalesce(sum(e.count) filter (where e.success), 0) as successes,
                       coalesce(sum(e.count) filter (where not e.success), 0) as failures,
                       min(e.received_at) as first, max(e.received_at) as last
                from ralphdeck.events e
                where e.space_id = p_space_id and e.member_id = k.member_id and e.pattern_id = k.pattern_id
                    and e.status = 'held' and not exists (
                        select from ralphdeck.events w
                        where w.space_id = e.space_id and w.at = e.at and w.withdraws = e.id)) f
            where k.space_id = p_space_id and k.pattern_id = any (p_patterns)) h
        where c.space_id = p_space_id and c.member_id = h.member_id and c.pattern_id = h.pattern_id
$$;

create function _set_statuses(p_space_id integer, p_verdicts use_verdict[]) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    patterns text[] := array(select distinct e.pattern_id from unnest(p_verdicts) v join ralphdeck.events e
        on e.space_id = p_space_id and e.at = v.at and e.id = v.id);
    changes ralphdeck.use_change[];
begin
    if cardinality(patterns) = 0 then
        return;
    end if;
    perform from ralphdeck.sums s where s.space_id = p_space_id and s.pattern_id = any (patterns)
        order by s.pattern_id for no key update;
    select array_agg(row((v.after = 'counted')::integer - (e.status = 'counted')::integer, e.pattern_id, e.project_id,
            e.kind, e.at, e.received_at, e.success, e.weight, e.count)::ralphdeck.use_change) into changes
        from unnest(p_verdicts) v join ralphdeck.events e
            on e.space_id = p_space_id and e.at = v.at and e.id = v.id and e.status = v.before
        where (v.after = 'counted') <> (e.status = 'counted') and not exists (
            select from ralphdeck.events w
            where w.space_id = e.space_id and w.at = e.at and w.withdraws = e.id and w.pattern_id = e.pattern_id);
    update ralphdeck.events e set status = v.after from unnest(p_verdicts) v
        where e.space_id = p_space_id and e.at = v.at and e.id = v.id and e.status = v.before;
    if changes is not null then
        perform ralphdeck._add_sums(p_space_id, changes);
    end if;
    perform ralphdeck._count_held(p_space_id, patterns);
end $$;

-- The uses of a member that a decision is about: the held ones, or all (`"sent": "all"`), that arrived until `last`.
create function _judge_events(p_space_id integer, p_payload json) returns void
    language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    member text := substring(p_payload ->> 'subject' from '^member (.*)$');
    judged integer := (select m.member_id from ralphdeck.members m
        where m.space_id = p_space_id and m.display_name = member);
    until timestamptz := (p_payload -> 'after' ->> 'last')::timestamptz;
    is_all boolean := coalesce(p_payload -> 'after' ->> 'sent' = 'all', false);
    new ralphdeck.use_status := case p_payload ->> 'verb' when 'confirm' then 'counted' else 'revoked' end;
    verdicts ralphdeck.use_verdict[];
begin
    if member is null then
        return;
    end if;
    if judged is null or until is null then
        raise exception using errcode = 'RD004', message = format(
            '%s is not a member of the space, or the decision has no time', member);
    end if;
    if is_all then
        verdicts := array(select row(e.at, e.id, e.status, new)::ralphdeck.use_verdict from ralphdeck.events e
            where e.space_id = p_space_id and e.member_id = judged and e.withdraws is null and e.status <> new
                and e.received_at <= until);
    else
        verdicts := array(select row(e.at, e.id, e.status, new)::ralphdeck.use_verdict from ralphdeck.events e
            where e.space_id = p_space_id and e.member_id = judged and e.status = 'held' and e.received_at <= until);
    end if;
    insert into ralphdeck.judged_uses (space_id, decision_id, at, id, before, after)
        select p_space_id, p_payload ->> 'id', v.* from unnest(verdicts) v;
    perform ralphdeck._set_statuses(p_space_id, verdicts);
    if is_all then  -- what counts no more takes no room from the results of others
        update ralphdeck.contributed c set results = 0 where c.space_id = p_space_id and c.member_id = judged;
    elsif new = 'counted' then
        update ralphdeck.contributed c set results = 0
            where c.space_id = p_space_id and c.member_id = judged and c.pattern_id in (
                select e.pattern_id from unnest(verdicts) v join ralphdeck.events e
                    on e.space_id = p_space_id and e.at = v.at and e.id = v.id);
    end if;
end $$;

-- Undo and redo of a decision about the uses of a member.
create function _turn_events(p_space_id integer, p_decision text, p_is_undo boolean) returns void
    language sql set search_path = pg_catalog, pg_temp
as $$
    select ralphdeck._set_statuses(p_space_id, array(
        select case when p_is_undo then row(j.at, j.id, j.after, j.before)::ralphdeck.use_verdict
                    else row(j.at, j.id, j.before, j.after)::ralphdeck.use_verdict end
            from ralphdeck.judged_uses j where j.space_id = p_space_id and j.decision_id = p_decision))
$$;
