"""Rights of members are enforced by the database: shown with plain psql, without our client."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from core.records.team import Level
from core.team.connection import InvalidCall, LevelTooLow
from tests.core.team.working_copy import (
    PATTERN,
    Psql,
    call,
    decide,
    join,
    make_candidate,
    make_decision,
    make_text,
    make_trial,
    make_use,
)
from tests.team_server import Team

TABLES = (
    *("spaces", "members", "projects", "patterns", "decisions"),
    *("events", "sums", "project_sums", "presence", "leases", "trials"),
)
VERBS = ("promote", "deprecate", "release", "archive", "edit", "merge", "import", "undo", "unknown")
DENIED = "permission denied"


@pytest.fixture
def filled(team: Team) -> UUID:
    """A project of the space acme, which has rows in every table; returns the ID of the space."""
    rita = team.space("rita")
    project = join(rita)
    rita.add_events(project, [make_use()])
    rita.put_patterns([make_text()])
    rita.decide(project, make_decision(), [PATTERN], seen=0)
    rita.heartbeat(project, project, "dashboard", "question")
    rita.add_trials(project, [make_trial()])
    return rita.info.id


def test_contributor_cannot_decide(team: Team, psql: Psql) -> None:
    space = team.space("carl")
    project = join(space)
    for verb in VERBS:
        refusal = psql("carl", decide(space.info.id, project, make_decision(by="Carl", verb=verb)))
        assert f"your role in the space acme is contributor; {verb} needs reviewer" in refusal
    assert space.head().seq == 0


def test_candidate_of_a_contributor_changes_no_other_pattern(team: Team, filled: UUID) -> None:
    space = team.space("carl")
    project = join(space)
    place = {"file": "f", "type": "error"}
    known, new = {**place, "pattern_id": PATTERN}, {**place, "pattern_id": "new"}
    rows: list[dict[str, object]] = [
        {"effects": [{**known, "insert": {"id": PATTERN}}]},
        {"effects": [{**new, "set": {"state": "proven"}}]},
        {"effects": [{**new, "remove": True}]},
        {"effects": [{**new, "insert": {}, "set": {"a": 1}}]},
        {"inverse": [{**known, "remove": True}]},
        {"inverse": [{**new, "set": {"state": "proven"}}]},
        {"after": {"hashes": {PATTERN: "hash"}}},
        {"after": {"hashes": {}, "patterns": [PATTERN]}},
    ]
    only = "a contributor can add new candidates only"
    for changes in rows:
        with pytest.raises(LevelTooLow, match=only):
            space.decide(project, make_candidate(2, "new", **changes), ["loop-1"], seen=9)
    with pytest.raises(LevelTooLow, match=only):
        space.decide(project, make_candidate(2, "new"), ["new", PATTERN], seen=9)


def test_candidate_of_a_contributor_carries_no_other_text(team: Team, filled: UUID) -> None:
    space = team.space("carl")
    project = join(space)
    for text in (make_text(content_hash="b"), make_text("new", record=None)):
        with pytest.raises(LevelTooLow):
            space.decide(project, make_candidate(2, "new"), ["loop-1"], seen=9, records=[text])


def test_contributor_cannot_sign_as_another_member(team: Team) -> None:
    space = team.space("carl")
    project = join(space)
    for by in ("Rita", "RITA", "Rita\u200b", "Rita (script)", "Carl (unattended)", "agent:claude"):
        with pytest.raises(InvalidCall, match="but your name in the space acme is Carl"):
            space.decide(project, json.dumps({**json.loads(make_candidate()), "by": by}), ["loop-1"], seen=0)


def test_no_member_writes_to_tables(psql: Psql, filled: UUID) -> None:
    changes = (
        "insert into ralphdeck.{} default values",
        "update ralphdeck.{} set space_id = default",
        "delete from ralphdeck.{}",
        "truncate ralphdeck.{}",
        "drop table ralphdeck.{}",
        "alter table ralphdeck.{} disable row level security",
        "do $$ begin lock table ralphdeck.{} in exclusive mode; end $$",
    )
    statements = [change.format(table) for table in TABLES for change in changes]
    for role in ("rolf", "carl", "rita", "ada"):
        answers = psql(role, *statements).splitlines()
        refused = [line for line in answers if DENIED in line or "must be owner" in line]
        assert len(refused) == len(statements) == len(answers), answers


def test_another_space_is_not_readable(psql: Psql, filled: UUID) -> None:
    own = "select space_id from ralphdeck.members where role_name = session_user"
    others = [f"select count(*) from ralphdeck.{table} where space_id not in ({own})" for table in TABLES]
    assert psql("otto", *others).split() == ["0"] * len(TABLES)
    assert psql("mallory", *others).count(DENIED) == len(TABLES)
    everything = psql("rolf", *(f"select count(*) from ralphdeck.{table}" for table in TABLES)).split()
    assert all(int(count) > 0 for count in everything)


def test_functions_of_another_space_are_refused(psql: Psql, team: Team, filled: UUID) -> None:
    some = UUID(int=1)
    calls = (
        decide(filled, some, make_decision(by="Otto")),
        call(filled, "add_events", some, "[]"),
        call(filled, "put_patterns", "[]"),
        call(filled, "join_project", some, "x"),
        call(filled, "set_member", "otto", "Otto", "admin"),
        call(filled, "heartbeat", some, None, "", "", 10),
        call(filled, "go_offline", some),
    )
    for role, reason in (("otto", "the role otto is not a member of this space"), ("mallory", DENIED)):
        answers = psql(role, *calls).splitlines()
        assert len([line for line in answers if reason in line]) == len(calls), answers


def test_reader_only_reads(psql: Psql, team: Team, filled: UUID) -> None:
    some = UUID(int=1)
    answers = psql(
        "rolf",
        decide(filled, some, make_candidate()),
        call(filled, "add_events", some, "[]"),
        call(filled, "put_patterns", "[]"),
        call(filled, "join_project", some, "x"),
        call(filled, "set_member", "rolf", "Rolf", "admin"),
    ).splitlines()
    assert len([line for line in answers if "your role in the space acme is reader" in line]) == len(answers) == 5
    promote = psql("rolf", decide(filled, some, make_decision(by="Rolf")))
    assert "your role in the space acme is reader; promote needs reviewer" in promote
    assert team.space("rolf").decisions(0)
    assert team.space("rolf").sums().sums


def test_reader_does_not_take_a_question(team: Team, filled: UUID) -> None:
    assert team.space("rolf").heartbeat(UUID(int=1), question="free").leases[0].question == "question"


def test_member_does_not_end_the_lease_of_another(team: Team, filled: UUID) -> None:
    rita, ada = team.space("rita"), team.space("ada")
    client = UUID(int=5)
    rita.heartbeat(client, question="mine")
    ada.go_offline(client)
    seen = ada.heartbeat(client, question="")
    assert ("mine", "Rita") in [(lease.question, lease.member) for lease in seen.leases]


def test_only_an_admin_manages_members(psql: Psql, filled: UUID) -> None:
    for role in ("rita", "carl", "rolf"):
        for level in ("admin", None):
            answer = psql(role, call(filled, "set_member", role, "Name", level))
            assert "the management of members needs admin" in answer


def test_set_role_does_not_change_who_the_member_is(psql: Psql, filled: UUID) -> None:
    answers = psql(
        "carl",
        "set role ralphdeck_owner",
        "set role ada",
        "set session authorization ada",
        "set role ralphdeck_member",
        call(filled, "set_member", "carl", "Carl", "admin"),
        "select count(*) from ralphdeck.members",
    )
    assert answers.count(DENIED) == 3
    assert "the management of members needs admin" in answers
    assert answers.strip().endswith("5")


def test_functions_ignore_the_search_path_and_temporary_objects(psql: Psql, team: Team, filled: UUID) -> None:
    with team.cluster.connect("postgres", team.database) as connection:
        connection.execute(f"grant temporary, create on database {team.database} to carl".encode())
    attack = (
        "create schema trap",
        "create function trap.now() returns timestamptz language sql as $$ select 'infinity'::timestamptz $$",
        "create function trap.sha256(bytea) returns bytea language sql as $$ select ''::bytea $$",
        "create function trap.eq(text, name) returns boolean language sql as $$ select true $$",
        "create operator trap.= (leftarg = text, rightarg = name, function = trap.eq)",
        "create temporary table members as select 1 as space_id, 'admin' as level, session_user as role_name",
        "create temporary table pg_roles as select 'x' as rolname",
        "create temporary table spaces as select 1",
        "set search_path = pg_temp, trap, pg_catalog, ralphdeck",
        call(filled, "set_member", "carl", "Carl", "admin"),
        decide(filled, UUID(int=1), make_decision(by="Carl")),
    )
    answers = psql("carl", *attack)
    assert "the management of members needs admin" in answers
    assert "you have not joined the project" in answers
    assert team.space("carl").info.level is Level.CONTRIBUTOR


def test_row_security_is_not_fooled_by_leaky_functions(psql: Psql, team: Team, filled: UUID) -> None:
    with team.cluster.connect("postgres", team.database) as connection:
        connection.execute(f"grant temporary on database {team.database} to otto".encode())
    leak = "create function pg_temp.leak(text) returns boolean language plpgsql cost 0.0001 as "
    body = "$$ begin raise warning 'leaked %', $1; return true; end $$"
    answers = psql(
        "otto",
        "set client_min_messages = warning",
        leak + body,
        "select pattern_id from ralphdeck.patterns where pg_temp.leak(record)",
        "select payload from ralphdeck.decisions where pg_temp.leak(payload)",
    )
    assert answers.strip() == ""


def test_internal_functions_are_not_callable(psql: Psql, team: Team) -> None:
    with team.cluster.connect("postgres", team.database) as connection:
        rows = connection.execute(
            "select p.proname, has_function_privilege('public', p.oid, 'execute'),"
            " has_function_privilege('ada', p.oid, 'execute'), p.prosecdef, p.proconfig"
            " from pg_proc p where p.pronamespace = 'ralphdeck'::regnamespace"
        ).fetchall()
        tables = connection.execute(
            "select c.relname from pg_class c"
            " where c.relnamespace = 'ralphdeck'::regnamespace and c.relkind in ('r', 'p')"
            " and (has_table_privilege('public', c.oid, 'select, insert, update, delete, truncate, trigger')"
            " or has_table_privilege('ada', c.oid, 'insert, update, delete, truncate, references, trigger'))"
        ).fetchall()
    assert rows
    assert not tables
    for name, for_public, for_member, _, configuration in rows:
        assert not for_public
        assert for_member == (not name.startswith("_")), name
        assert "search_path=pg_catalog, pg_temp" in configuration, name


def test_partitions_are_not_readable_by_themselves(psql: Psql, team: Team, filled: UUID) -> None:
    answers = psql("ada", "select count(*) from ralphdeck.events_2025_03", "select count(*) from ralphdeck.events")
    assert DENIED in answers
    assert answers.endswith("1\n")


def test_last_admin_stays(team: Team) -> None:
    keeper, ada = team.space("keeper", "acme"), team.space("ada")
    ada.set_member("keeper", "Keeper", None)
    with pytest.raises(InvalidCall, match="ada is the only admin of the space acme; add another admin first"):
        ada.set_member("ada", "Ada", Level.REVIEWER)
    assert keeper.members()


def test_name_of_a_removed_member_is_not_reused(team: Team) -> None:
    ada = team.space("ada")
    ada.set_member("rita", "Rita", None)
    for name in ("RITA", "Ralphdeck"):
        with pytest.raises(InvalidCall, match="name"):
            ada.set_member("mallory", name, Level.REVIEWER)


def test_admin_adds_a_login_that_exists_without_rights_on_roles(team: Team) -> None:
    ada = team.space("ada")
    with pytest.raises(InvalidCall, match="the role eve does not exist in the database; create it with --create-login"):
        ada.set_member("eve", "Eve", Level.READER)
    ada.set_member("nora", "Nora", Level.CONTRIBUTOR)
    assert team.space("nora").info.level is Level.CONTRIBUTOR
