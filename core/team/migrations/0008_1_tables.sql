-- Tables of the registry of a team. Only functions of this schema write to them; members read them by row-level security.

create table schema_version (
    version integer primary key,
    name text not null,
    applied_at timestamptz not null default now()
);

create type level as enum ('reader', 'contributor', 'reviewer', 'admin');

create table spaces (
    space_id integer generated always as identity primary key,
    id uuid not null unique default gen_random_uuid(),
    name text not null unique check (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    epoch timestamptz not null default date_trunc('day', now()),
    half_life_days double precision not null check (half_life_days between 1 and 36500),
    head_seq bigint not null default 0,
    head_hash bytea not null,
    created_at timestamptz not null default now(),
    channel uuid not null default gen_random_uuid()
);
comment on column spaces.epoch is 'Reference time of the decayed sums';
comment on column spaces.channel is 'Name of the channel of NOTIFY; changes when a member is removed';

create table members (
    member_id integer generated always as identity primary key,
    space_id integer not null references spaces,
    role_name name not null,
    display_name text not null check (display_name <> '' and length(display_name) <= 100),
    level level,
    changed_by text not null,
    changed_at timestamptz not null default now(),
    unique (space_id, role_name)
);
create unique index members_display_name on members (space_id, lower(display_name));
comment on column members.level is 'Null: the role is not a member any more; its decisions keep their name';

create table projects (
    project_id integer generated always as identity primary key,
    space_id integer not null references spaces,
    id uuid not null,
    name text not null check (name <> '' and length(name) <= 200),
    joined_by integer not null references members,
    joined_at timestamptz not null default now(),
    unique (space_id, id)
);

create table project_members (
    space_id integer not null references spaces,
    project_id integer not null references projects,
    member_id integer not null references members,
    joined_at timestamptz not null default now(),
    primary key (project_id, member_id)
);

create table patterns (
    space_id integer not null references spaces,
    pattern_id text not null check (pattern_id <> '' and length(pattern_id) <= 300),
    type text not null,
    record text check (octet_length(record) <= 1048576),
    content_hash text not null,
    changed_by text not null,
    changed_at timestamptz not null default now(),
    xid xid8 not null default pg_current_xact_id(),
    primary key (space_id, pattern_id)
);
create index patterns_xid on patterns (xid);
comment on column patterns.record is 'JSON text; null if the pattern was removed from the registry';
comment on column patterns.xid is 'Transaction of the last change; readers continue from it';

create table decisions (
    space_id integer not null references spaces,
    seq bigint not null,
    id text not null check (id <> '' and length(id) <= 200),
    payload text not null check (octet_length(payload) <= 16777216),
    subjects text[] not null,
    member_id integer not null references members,
    member text not null,
    project_id integer not null references projects,
    recorded_at timestamptz not null,
    hash bytea not null,
    primary key (space_id, seq),
    unique (space_id, id)
);
create index decisions_subjects on decisions using gin (subjects);

create type use_status as enum ('counted', 'held', 'revoked');

create table events (
    space_id integer not null,
    at timestamptz not null,
    id uuid not null,
    received_at timestamptz not null default now(),
    pattern_id text not null check (pattern_id <> '' and length(pattern_id) <= 300),
    project_id integer not null,
    member_id integer not null,
    count bigint not null check (count between 0 and 2147483647),
    weight double precision not null check (weight between 0 and 1),
    success boolean,
    kind text not null check (length(kind) <= 40),
    withdraws uuid,
    status use_status not null default 'counted',
    primary key (space_id, at, id)
) partition by range (at);
create unique index events_withdraws on events (space_id, at, withdraws) where withdraws is not null;
create index events_held on events (space_id, member_id, pattern_id) where status = 'held';
create index events_not_counted on events (space_id, project_id) where status <> 'counted';
comment on table events is 'Uses of patterns. Append-only; a month is a partition; -infinity is the time of undated uses';
comment on column events.status is 'Held uses count when a reviewer confirms them; revoked ones never do';

create table events_earlier partition of events for values from (minvalue) to ('2020-01-01 00:00:00+00');
create table events_later partition of events for values from ('2100-01-01 00:00:00+00') to (maxvalue);

create table sums (
    space_id integer not null,
    pattern_id text not null,
    successes bigint not null default 0,
    failures bigint not null default 0,
    uses bigint not null default 0,
    injected_only bigint not null default 0,
    helpful double precision not null default 0,
    harmful double precision not null default 0,
    injections double precision not null default 0,
    fixed_helpful double precision not null default 0,
    fixed_harmful double precision not null default 0,
    fixed_injections double precision not null default 0,
    undecayed double precision not null default 0,
    last_used timestamptz,
    xid xid8 not null default pg_current_xact_id(),
    primary key (space_id, pattern_id)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index sums_xid on sums (xid);
comment on table sums is 'Evidence per pattern; decayed sums are for the epoch of the space, fixed ones do not decay';

create table project_sums (
    space_id integer not null,
    project_id integer not null,
    day date not null,
    successes bigint not null default 0,
    failures bigint not null default 0,
    uses bigint not null default 0,
    primary key (space_id, project_id, day)
);

create table contributed (
    space_id integer not null,
    member_id integer not null,
    pattern_id text not null,
    results bigint not null default 0,
    failed_at timestamptz,
    held_successes bigint not null default 0,
    held_failures bigint not null default 0,
    held_first timestamptz,
    held_last timestamptz,
    primary key (space_id, pattern_id, member_id)
);
create index contributed_held on contributed (space_id) where held_successes + held_failures > 0;
comment on table contributed is
    'Results of contributors: those that count although no reviewer has confirmed them, and sums of the held ones';

create table judged_uses (
    space_id integer not null,
    decision_id text not null,
    at timestamptz not null,
    id uuid not null,
    before use_status not null,
    after use_status not null,
    primary key (space_id, decision_id, at, id)
);
comment on table judged_uses is 'What a decision about the uses of a member has changed, for undo and redo';

create table trials (
    space_id integer not null references spaces,
    id uuid not null,
    pattern_id text not null check (length(pattern_id) <= 200),
    project_id integer not null references projects,
    member_id integer not null references members,
    kind text not null check (kind in ('returned', 'succeeded')),
    share double precision not null check (share between 0.1 and 0.9),
    rate smallint not null check (rate between 1 and 19),
    is_held_out boolean not null,
    outcome boolean not null,
    is_reviewed boolean not null,
    is_withdrawn boolean not null default false,
    received_at timestamptz not null default now(),
    primary key (space_id, id)
);
create index trials_of_pattern on trials (space_id, kind, pattern_id);
create index trials_of_member on trials (member_id);
comment on table trials is
    'One task with or without a lesson, as a coin decided; is_reviewed: a reviewer sent it. Nothing here predicts a coin';

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

create unlogged table presence (
    space_id integer not null,
    client_id uuid not null,
    member_id integer not null,
    project_id integer,
    place text not null,
    seen_at timestamptz not null,
    primary key (space_id, client_id)
);

create unlogged table leases (
    space_id integer not null,
    question_id text not null,
    client_id uuid not null,
    member_id integer not null,
    since timestamptz not null,
    expires_at timestamptz not null,
    primary key (space_id, question_id)
);
create index leases_client on leases (space_id, client_id);
