-- Trials of experiments that hold lessons out by chance, of all projects; docs/team.md#experiments.

create type trial as (
    id uuid,
    pattern_id text,
    kind text,
    share double precision,
    rate smallint,
    is_held_out boolean,
    outcome boolean
);

create function add_trials(p_space uuid, p_project uuid, p_trials json) returns json
    language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    me ralphdeck.access := ralphdeck._require(p_space, 'contributor', 'sending trials');
    project integer := ralphdeck._project(me, p_project);
    today date := (now() at time zone 'UTC')::date;
    most bigint := ralphdeck._limit(me.level, 'trials of a pattern');
    sent ralphdeck.trial[];
    late uuid[];
    added integer;
begin
    perform ralphdeck._check_size(p_trials);
    -- Trials that the space has already are neither counted nor changed.
    select array_agg(row(t.*)::ralphdeck.trial) into sent
        from (select distinct on (o.id) o.* from json_populate_recordset(null::ralphdeck.trial, p_trials) o) t
        where not exists (select from ralphdeck.trials k where k.space_id = me.space_id and k.id = t.id);
    insert into ralphdeck.spent (space_id, member_id, day, what, pattern_id, amount)
        select distinct me.space_id, me.member_id, today, 'trials of a pattern', t.pattern_id, 0 from unnest(sent) t
            order by t.pattern_id
        on conflict do nothing;
    perform from ralphdeck.spent s
        where s.space_id = me.space_id and s.member_id = me.member_id and s.day = today
            and s.what = 'trials of a pattern' and s.pattern_id in (select t.pattern_id from unnest(sent) t)
        order by s.pattern_id for no key update;
    late := array(
        select n.id from (
            select t.id, t.pattern_id, row_number() over (partition by t.pattern_id order by t.id) as number
                from unnest(sent) t) n
            join ralphdeck.spent s on s.space_id = me.space_id and s.member_id = me.member_id and s.day = today
                and s.what = 'trials of a pattern' and s.pattern_id = n.pattern_id
            where s.amount + n.number > most);
    with new as (
        insert into ralphdeck.trials
                (space_id, id, pattern_id, project_id, member_id, kind, share, rate, is_held_out, outcome, is_reviewed)
            select me.space_id, t.id, t.pattern_id, project, me.member_id, t.kind, t.share, t.rate, t.is_held_out,
                   t.outcome, me.level >= 'reviewer'
                from unnest(sent) t where t.id <> all (late) order by t.id
            on conflict do nothing
            returning pattern_id
    ), spent as (
        update ralphdeck.spent s set amount = s.amount + n.trials
            from (select pattern_id, count(*) as trials from new group by pattern_id) n
            where s.space_id = me.space_id and s.member_id = me.member_id and s.day = today
                and s.what = 'trials of a pattern' and s.pattern_id = n.pattern_id)
    select count(*) into added from new;
    perform ralphdeck._spend(me, 'trials', added);
    return json_build_object('new', added, 'later', late);
end $$;
comment on function add_trials is
    'Adds trials, each once. Returns how many were new, and the IDs of those that the limits of the day leave for tomorrow';

-- Trials of contributors count up to a quarter of those of reviewers, in the order of arrival: a selection that does
-- not depend on outcomes.
create function pooled_trials(p_space uuid, p_patterns integer) returns json
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
    me ralphdeck.access := ralphdeck._require(p_space, 'reader', 'reading trials');
begin
    return (
        with numbered as (
            select t.*, row_number() over (partition by t.pattern_id, t.kind, t.is_reviewed
                                           order by t.received_at, t.id) as number,
                   count(*) filter (where t.is_reviewed) over (partition by t.pattern_id, t.kind) as reviewed
                from ralphdeck.trials t where t.space_id = me.space_id and not t.is_withdrawn
        ), counted as (
            select n.* from numbered n where n.is_reviewed or n.number <= greatest(2, n.reviewed / 4)
        ), largest as (
            select c.pattern_id, c.kind, count(*) as trials, count(distinct c.project_id) as projects,
                   count(distinct c.member_id) as members
                from counted c group by c.pattern_id, c.kind order by count(*) desc, c.pattern_id limit p_patterns)
        select coalesce(json_agg(json_build_object('pattern_id', l.pattern_id, 'kind', l.kind, 'projects', l.projects,
                'members', l.members, 'cells', (
                    select json_agg(json_build_array(g.share, g.rate, g.is_held_out, g.outcome, g.trials))
                        from (select c.share, c.rate, c.is_held_out, c.outcome, count(*) as trials from counted c
                            where c.pattern_id = l.pattern_id and c.kind = l.kind group by 1, 2, 3, 4
                            order by 1, 2, 3, 4) g))
                order by l.trials desc, l.pattern_id, l.kind), '[]')
            from largest l);
end $$;
comment on function pooled_trials is
    'The numbers of trials of all projects by pattern, share, running rate, arm and outcome, of the patterns with most';

-- Trials that the decision to withdraw what a member sent is about: those until `last`.
create function _withdraw_trials(p_space_id integer, p_payload json, p_is_withdrawn boolean) returns void
    language sql set search_path = pg_catalog, pg_temp
as $$
    update ralphdeck.trials t set is_withdrawn = p_is_withdrawn
        from ralphdeck.members m
        where p_payload ->> 'verb' in ('revoke', 'confirm') and p_payload -> 'after' ->> 'sent' = 'all'
            and m.space_id = p_space_id and m.display_name = substring(p_payload ->> 'subject' from '^member (.*)$')
            and t.space_id = p_space_id and t.member_id = m.member_id and t.is_withdrawn <> p_is_withdrawn
            and t.received_at <= (p_payload -> 'after' ->> 'last')::timestamptz
$$;
