"""The schema is created and upgraded by an ordinary role, once, and never written by an older program."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from uuid import UUID

import pytest
from psycopg.sql import SQL, Identifier

from core.records.team import Level
from core.team.errors import AccessDenied, InvalidCall, LevelTooLow, SchemaMismatch
from core.team.migrations import OWNER, check_version, latest_version, migrate, read_migrations, schema_version
from core.team.server import Space, create_login, create_space, list_spaces
from tests.core.team.calls import PATTERN, join, make_use
from tests.team_server import KEEPER, PASSWORD, Cluster, Team


@pytest.fixture
def empty(cluster: Cluster) -> Iterator[Team]:
    """A database without the schema."""
    team = Team(cluster, cluster.create_database(owner=KEEPER))
    yield team
    team.close()


def test_migrations_are_numbered_without_gaps() -> None:
    assert [one.version for one in read_migrations()] == list(range(1, latest_version() + 1))


def test_schema_is_created_without_a_superuser(empty: Team) -> None:
    connection = empty.connect(KEEPER)
    assert schema_version(connection) == 0
    assert [one.version for one in migrate(connection)] == list(range(1, latest_version() + 1))
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
    assert sorted(len(one) for one in applied) == [0] * 7 + [latest_version()]


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
    with pytest.raises(SchemaMismatch, match="must run: ralphdeck team init"):
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


def test_a_space_of_an_older_schema_goes_on_after_the_upgrade(empty: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses count as before, members have joined the projects for which they sent, and limits hold from now on."""
    everything = read_migrations()
    monkeypatch.setattr("core.team.migrations.read_migrations", lambda: everything[:5])
    keeper = empty.connect(KEEPER)
    migrate(keeper)
    create_space(keeper, "acme", 30.0, "Keeper")
    space = Space.open(keeper)
    for role, level in (("carl", Level.CONTRIBUTOR), ("nora", Level.CONTRIBUTOR)):
        space.set_member(role, role.capitalize(), level)
    carl, nora = empty.space("carl"), empty.space("nora")
    project = join(carl)
    carl.add_events(project, [make_use(1, count=5000), make_use(2, success=False)])
    nora.add_events(project, [make_use(3)])
    nora.close()
    before = carl.sums().sums
    carl.close()
    monkeypatch.setattr("core.team.migrations.read_migrations", lambda: everything)
    assert [one.version for one in migrate(keeper)] == [one.version for one in everything[5:]]
    carl = empty.space("carl")
    assert carl.sums().sums == before
    assert carl.held_uses() == ()
    with pytest.raises(InvalidCall, match="between 0 and 100"):
        carl.add_events(project, [make_use(4, count=5000)])
    assert carl.add_events(project, [make_use(5, withdraws=UUID(int=1))]).new == {UUID(int=5)}
    assert empty.space("nora").add_events(project, [make_use(6)]).new == {UUID(int=6)}
    assert carl.sums().sums[PATTERN].successes == 2


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
