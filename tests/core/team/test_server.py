from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
from psycopg.sql import SQL, Identifier

from core.base.errors import BadInput
from core.records.team import Level
from core.team.connection import (
    URL_VARIABLE,
    AccessDenied,
    LevelTooLow,
    Limits,
    NotMember,
    Offline,
    SchemaMismatch,
    ServerFull,
    check_argument,
    connect,
    describe_server,
    read_conninfo,
)
from core.team.migrations import (
    OWNER,
    Migration,
    check_version,
    latest_version,
    migrate,
    read_migrations,
    schema_version,
)
from core.team.server import Space, create_login, create_space, list_spaces
from tests.core.team.working_copy import PATTERN, join, make_candidate, make_decision, make_text, make_use
from tests.proxy import Proxy
from tests.team_server import KEEPER, PASSWORD, Cluster, Team, free_port

SHORT = Limits(connect=1, statement=0.5, lost=1)
SECRET = "hunter2"
BOUND_SECONDS = 10.0


@pytest.fixture
def proxy(team: Team) -> Iterator[Proxy]:
    with closing(Proxy(team.cluster.port)) as proxy:
        yield proxy


def test_url_with_a_password_is_refused_on_the_command_line() -> None:
    for url in (
        f"postgresql://ada:{SECRET}@host/base",
        f"host=host password={SECRET}",
        f"postgresql:///?sslpassword={SECRET}",
    ):
        with pytest.raises(BadInput, match="a password on the command line is visible") as refusal:
            check_argument(url)
        assert SECRET not in str(refusal.value)
    assert check_argument("postgresql://ada@host/base") == "postgresql://ada@host/base"


def test_invalid_url_is_not_repeated_in_the_error() -> None:
    with pytest.raises(BadInput, match="the URL is invalid; use one such as postgresql://") as refusal:
        check_argument(f"postgresql//ada:{SECRET}@host/base")
    assert SECRET not in str(refusal.value)


def test_url_comes_from_the_environment_a_service_or_a_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    with pytest.raises(BadInput, match=f"the variable {URL_VARIABLE} is not set"):
        read_conninfo("env")
    monkeypatch.setenv(URL_VARIABLE, " postgresql://ada@host/base\n")
    assert read_conninfo("env") == "postgresql://ada@host/base"
    assert read_conninfo("service=team") == "service=team"
    with pytest.raises(BadInput, match="unknown source"):
        read_conninfo("postgresql://host/base")
    file = tmp_path / "url"
    file.write_text(f"postgresql://ada:{SECRET}@host/base\n")
    file.chmod(0o640)
    with pytest.raises(BadInput, match="run: chmod 600"):
        read_conninfo(f"file={file}")
    file.chmod(0o600)
    assert read_conninfo(f"file={file}") == f"postgresql://ada:{SECRET}@host/base"
    for content in (b"x" * 5000, b"\xff\xfe", b"not a url"):
        file.write_bytes(content)
        with pytest.raises(BadInput):
            read_conninfo(f"file={file}")
    with pytest.raises(BadInput, match="is not a file"):
        read_conninfo(f"file={tmp_path}")
    with pytest.raises(BadInput, match="cannot read"):
        read_conninfo(f"file={tmp_path / 'missing'}")


def test_description_of_a_server_has_no_password() -> None:
    assert describe_server(f"postgresql://ada:{SECRET}@one,two/base") == "base on one,two"
    assert describe_server("service=team") == "the service team"


def test_service_file_and_password_file_are_used(team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service, passwords = tmp_path / "service", tmp_path / "passwords"
    service.write_text(f"[team]\nhost=127.0.0.1\nport={team.cluster.port}\ndbname={team.database}\nuser=rita\n")
    passwords.write_text(f"127.0.0.1:{team.cluster.port}:*:rita:{PASSWORD}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGSERVICEFILE", str(service))
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    space = Space.connect(read_conninfo("service=team"))
    assert space.info.member == "Rita"
    space.close()


def test_server_that_is_not_there_is_offline() -> None:
    with pytest.raises(Offline, match=r"cannot reach base on 127\.0\.0\.1: "):
        connect(f"postgresql://ada@127.0.0.1:{free_port()}/base", SHORT)


def test_missing_service_and_database_are_named_with_what_to_do(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSERVICEFILE", os.devnull)
    with pytest.raises(Offline, match=r'cannot reach the service shop: .*"shop" not found; define it in ~/'):
        connect("service=shop", SHORT)
    with pytest.raises(AccessDenied, match='"nothing" does not exist; check the name of the database in the URL'):
        connect(team.url("nora").replace(team.database, "nothing"), SHORT)


def test_connection_that_gets_no_answer_ends_in_time() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        started = time.monotonic()
        with pytest.raises(Offline, match="timeout"):
            connect(f"postgresql://ada@127.0.0.1:{silent.getsockname()[1]}/base", SHORT)
        assert time.monotonic() - started < BOUND_SECONDS


def test_statement_that_takes_too_long_ends(team: Team) -> None:
    with closing(connect(team.url("ada"), SHORT)) as connection:
        space = Space.open(connection)
        with pytest.raises(Offline, match="statement timeout"):
            space._rows("select pg_sleep(20)", ())
        assert space.head().seq == 0


def test_call_does_not_wait_longer_for_a_lock(team: Team) -> None:
    holder = team.space("rita")
    project = join(holder, team.space("ada"))
    holder.add_events(project, [make_use(1)])
    holder.connection.autocommit = False
    holder.add_events(project, [make_use(2)])
    with closing(connect(team.url("ada"), SHORT)) as connection, pytest.raises(Offline, match="timeout"):
        Space.open(connection).add_events(project, [make_use(3)])


def test_revoked_credentials_are_reported(team: Team) -> None:
    rows = {
        "alter role nora password 'other'": "password authentication failed.*; check the password in ~/.pgpass",
        "alter role nora nologin": "not permitted to log in",
        f"revoke connect on database {team.database} from nora": "permission denied for database",
    }
    administrator = team.connect("postgres")
    for change, message in rows.items():
        administrator.execute(change.encode())
        try:
            with pytest.raises(AccessDenied, match=f"the team's server refuses access: .*{message}") as refusal:
                connect(team.url("nora", host="127.0.0.1"))
            assert "\n" not in str(refusal.value)
            assert PASSWORD not in str(refusal.value)
        finally:
            administrator.execute(f"alter role nora login password '{PASSWORD}'".encode())


def test_member_that_is_removed_while_connected_is_refused(team: Team) -> None:
    carl = team.space("carl")
    project = join(carl)
    team.space("ada").set_member("carl", "Carl", None)
    with pytest.raises(AccessDenied, match="the role carl is not a member of this space"):
        carl.add_events(project, [make_use()])
    assert carl.sums().sums == {}


def test_session_that_the_server_ends_is_offline(team: Team) -> None:
    space = team.space("rita")
    pid = space.connection.info.backend_pid
    team.connect("postgres").execute("select pg_terminate_backend(%s)", (pid,))
    with pytest.raises(Offline):
        for _ in range(100):
            space.head()
    with pytest.raises(Offline):
        space.head()


def test_read_only_server_is_reported(team: Team) -> None:
    space = team.space("carl")
    project = join(space)
    space.connection.execute("set default_transaction_read_only = on")
    with pytest.raises(ServerFull, match=r"the team's server cannot write: .*read-only transaction"):
        space.add_events(project, [make_use()])


def test_half_open_connection_ends_in_time(team: Team, proxy: Proxy) -> None:
    """The network is cut without notice: the call ends, and sending again adds nothing twice."""
    conninfo = team.cluster.url("carl", team.database, host="127.0.0.1", port=proxy.port)
    space = Space.connect(conninfo, limits=SHORT)
    project = join(space)
    space.add_events(project, [make_use(1)])
    proxy.cut()
    started = time.monotonic()
    with pytest.raises(Offline):
        space.add_events(project, [make_use(1), make_use(2)])
    assert time.monotonic() - started < BOUND_SECONDS
    other = team.space("carl")
    other.add_events(project, [make_use(1), make_use(2)])
    assert other.sums().sums["pat-error-timeout-001"].uses == 2


def test_client_that_vanishes_in_a_transaction_keeps_no_lock(team: Team, proxy: Proxy) -> None:
    conninfo = team.cluster.url("rita", team.database, host="127.0.0.1", port=proxy.port)
    lost = Space.connect(conninfo, limits=SHORT)
    project = join(lost, team.space("ada"))
    lost.add_events(project, [make_use(1)])
    lost.connection.autocommit = False
    lost.add_events(project, [make_use(2)])
    proxy.cut()
    assert team.space("ada").add_events(project, [make_use(3)]).new
    assert team.space("ada").sums().sums["pat-error-timeout-001"].uses == 2


def test_second_decision_on_a_subject_gets_a_conflict_with_who_when_and_what(team: Team) -> None:
    rita, ada = team.space("rita"), team.space("ada")
    project, other = join(rita), join(ada)
    payload = make_decision(1, reason="flaky")
    recorded = rita.decide(project, payload, ["other", PATTERN], seen=0)
    receipt = ada.decide(other, make_decision(2, by="Ada", verb="deprecate"), [PATTERN, "third"], seen=0)
    (conflict,) = receipt.conflicts
    assert (receipt.seq, conflict.by, conflict.seq, conflict.kind) == (None, "Rita", 1, "decision")
    assert (conflict.at, conflict.subject, conflict.payload) == (recorded.recorded_at, PATTERN, payload)
    assert ada.decide(other, make_decision(2, by="Ada"), [PATTERN], seen=1).seq == 2
    assert rita.decide(project, make_decision(3), [PATTERN], seen=1, known=["d2"]).seq == 3


def test_decision_on_another_text_gets_a_conflict(team: Team) -> None:
    rita = team.space("rita")
    project = join(rita)
    rita.put_patterns([make_text(content_hash="new")])
    receipt = rita.decide(project, make_decision(), [PATTERN], seen=0, texts={PATTERN: "old"})
    (conflict,) = receipt.conflicts
    assert (conflict.kind, conflict.subject, conflict.content_hash) == ("text", PATTERN, "new")


def test_contributor_adds_patterns_but_does_not_change_them(team: Team) -> None:
    space = team.space("carl")
    text = make_text()
    assert space.put_patterns([text]) == space.put_patterns([text]) == ()
    changed = make_text(content_hash="b", expected="a")
    (conflict,) = space.put_patterns([changed])
    assert (conflict.by, conflict.content_hash) == ("Carl", "a")
    assert team.space("rita").put_patterns([changed]) == ()
    (pattern,) = space.patterns([PATTERN])
    assert (pattern.content_hash, pattern.changed_by) == ("b", "Rita")


def test_contributor_adds_candidates(team: Team) -> None:
    space = team.space("carl")
    receipt = space.decide(join(space), make_candidate(), ["loop-1"], seen=0, records=[make_text()])
    assert receipt.is_new
    assert space.changed_patterns().ids == {PATTERN}


def test_question_that_someone_has_open_is_leased_to_one_client(team: Team) -> None:
    rita, ada = team.space("rita"), team.space("ada")
    one, two = uuid4(), uuid4()
    assert [lease.member for lease in rita.heartbeat(one, question="q").leases] == ["Rita"]
    seen = ada.heartbeat(two, place="Review", question="q")
    assert [lease.client_id for lease in seen.leases] == [str(one)]
    assert [client.member for client in seen.present] == ["Ada", "Rita"]
    rita.go_offline(one)
    assert [lease.member for lease in ada.heartbeat(two, question="q").leases] == ["Ada"]


def test_admin_adds_and_removes_a_member(team: Team) -> None:
    ada = team.space("ada")
    ada.set_member("nora", "Nora", Level.READER)
    assert team.space("nora").info.level is Level.READER
    ada.set_member("nora", "Nora", None)
    with pytest.raises(NotMember, match="the role nora is not a member of a space"):
        team.space("nora")
    assert {member.name: member.level for member in ada.members()}["Nora"] is None


@pytest.fixture
def empty(cluster: Cluster) -> Iterator[Team]:
    """A database without the schema."""
    team = Team(cluster, cluster.create_database(owner=KEEPER))
    yield team
    team.close()


def test_schema_is_created_without_a_superuser(empty: Team) -> None:
    connection = empty.connect(KEEPER)
    assert schema_version(connection) == 0
    assert [migration.version for migration in migrate(connection)] == [latest_version()]
    assert migrate(connection) == ()
    assert schema_version(connection) == latest_version()
    owner = empty.connect("postgres").execute(
        "select distinct rolname::text, rolsuper or rolcanlogin from pg_class join pg_roles r on r.oid = relowner"
        " where relnamespace = 'ralphdeck'::regnamespace"
    )
    assert owner.fetchall() == [(OWNER, False)]


def test_processes_that_create_the_schema_at_once_wait_for_each_other(empty: Team) -> None:
    connections = [empty.connect(KEEPER) for _ in range(8)]
    with ThreadPoolExecutor(len(connections)) as pool:
        applied = list(pool.map(migrate, connections))
    assert sorted(len(migrations) for migrations in applied) == [0] * 7 + [1]


def test_space_is_created_once(empty: Team) -> None:
    connections = [empty.connect(KEEPER) for _ in range(4)]
    migrate(connections[0])

    def create(number: int) -> bool:
        try:
            create_space(connections[number], "acme", 30.0, "Keeper")
        except Exception as error:
            assert "acme" in str(error) or "duplicate" in str(error)
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(create, range(4))) == 1
    assert [space.name for space in list_spaces(connections[0])] == ["acme"]


@pytest.mark.slow
def test_role_without_rights_gets_what_an_administrator_must_run() -> None:
    with closing(Cluster.create()) as fresh:
        with closing(fresh.connect("postgres", "postgres")) as connection:
            connection.execute("create role plain login")
            connection.execute("create database base owner plain")
        with (
            closing(fresh.connect("plain", "base")) as connection,
            pytest.raises(AccessDenied, match="the role plain cannot create roles; ask the administrator") as refusal,
        ):
            migrate(connection)
        statements = str(refusal.value).partition("to run: ")[2]
        with closing(fresh.connect("postgres", "postgres")) as connection:
            connection.execute(statements.encode())
        with closing(fresh.connect("plain", "base")) as connection:
            migrate(connection)
            create_space(connection, "acme", 30.0, "Plain")
            assert Space.open(connection).info.member == "Plain"


def test_only_owners_create_spaces(team: Team) -> None:
    with pytest.raises(LevelTooLow, match="the role ada cannot create a space; it must be a member of the role"):
        create_space(team.connect("ada"), "mine", 30.0, "Ada")


def test_older_program_refuses_a_newer_schema(team: Team) -> None:
    team.connect("postgres").execute("insert into ralphdeck.schema_version (version, name) values (99, 'later')")
    with pytest.raises(SchemaMismatch, match="the team's database has schema 99, but this ralphdeck knows only"):
        team.space("rita")
    with pytest.raises(SchemaMismatch, match="upgrade ralphdeck"):
        migrate(team.connect(KEEPER))


def test_upgrade_stops_writes_of_older_programs_that_are_connected(team: Team) -> None:
    space = team.space("carl")
    project = join(space)
    team.connect("postgres").execute("insert into ralphdeck.schema_version (version, name) values (99, 'later')")
    with pytest.raises(SchemaMismatch, match="has schema 99, but this ralphdeck writes schema"):
        space.add_events(project, [make_use()])
    assert space.sums().sums == {}


def test_newer_program_asks_for_an_upgrade(team: Team) -> None:
    with pytest.raises(SchemaMismatch, match="must run: ralphdeck team join --create"):
        check_version(latest_version() - 1)


def test_database_of_something_else_is_reported(empty: Team) -> None:
    with pytest.raises(SchemaMismatch, match="the database is not prepared for a team"):
        empty.space(KEEPER)


def test_upgrade_keeps_rights_and_data(team: Team) -> None:
    """Rights are set again after each upgrade."""
    space = team.space("carl")
    space.add_events(join(space), [make_use()])
    keeper = team.connect(KEEPER)
    keeper.execute("set role ralphdeck_owner")
    keeper.execute("grant delete on ralphdeck.sums to public")
    keeper.execute("reset role")
    migrate(keeper)
    rows = team.connect("postgres").execute("select has_table_privilege('carl', 'ralphdeck.sums', 'delete')")
    assert rows.fetchone() == (False,)
    assert len(space.sums().sums) == 1


def test_an_upgrade_applies_what_is_new_and_keeps_the_uses(empty: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    latest, change = latest_version(), "alter table ralphdeck.sums add column note text"
    migrations = (*read_migrations(), Migration(latest + 1, "note", change))
    keeper = empty.connect(KEEPER)
    migrate(keeper)
    create_space(keeper, "acme", 30.0, "Keeper")
    Space.open(keeper).set_member("carl", "Carl", Level.CONTRIBUTOR)
    carl = empty.space("carl")
    carl.add_events(join(carl), [make_use(1)])
    monkeypatch.setattr("core.team.migrations.read_migrations", lambda: migrations)
    with pytest.raises(SchemaMismatch, match=f"needs {latest + 1}"):
        check_version(latest)
    assert [migration.version for migration in migrate(keeper)] == [latest + 1]
    assert empty.space("carl").sums().sums[PATTERN].successes == 1


def test_a_schema_older_than_the_first_migration_is_refused(empty: Team) -> None:
    keeper = empty.connect(KEEPER)
    migrate(keeper)
    keeper.execute("set role ralphdeck_owner")
    keeper.execute("update ralphdeck.schema_version set version = 5")
    keeper.execute("reset role")
    with pytest.raises(SchemaMismatch, match="has schema 5"):
        migrate(keeper)


def test_login_is_created_without_sending_its_password(team: Team) -> None:
    name = 'strange "name" %'
    create_login(team.connect(KEEPER), name, PASSWORD)
    administrator = team.connect("postgres")
    try:
        stored = administrator.execute("select rolpassword from pg_authid where rolname = %s", (name,)).fetchone()
        assert stored is not None
        assert stored[0].startswith("SCRAM-SHA-256$")
        ada = team.space("ada")
        ada.set_member(name, "Strange", Level.READER)
        assert [member.role for member in ada.members() if member.name == "Strange"] == [name]
    finally:
        administrator.execute(SQL("drop role {}").format(Identifier(name)))
