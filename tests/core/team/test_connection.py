"""Where the address of the server comes from, limits of time, and errors that say what to do."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from core.base.errors import BadInput
from core.team.connection import URL_VARIABLE, Limits, check_argument, connect, describe_server, read_conninfo
from core.team.errors import AccessDenied, Offline, ServerFull
from core.team.server import Space
from tests.core.team.calls import join, make_use
from tests.proxy import Proxy
from tests.team_server import PASSWORD, Team, free_port

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


def test_url_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    with pytest.raises(BadInput, match=f"the variable {URL_VARIABLE} is not set"):
        read_conninfo("env")
    monkeypatch.setenv(URL_VARIABLE, " postgresql://ada@host/base\n")
    assert read_conninfo("env") == "postgresql://ada@host/base"


def test_url_comes_from_a_private_file(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(f"postgresql://ada:{SECRET}@host/base\n")
    file.chmod(0o640)
    with pytest.raises(BadInput, match="run: chmod 600"):
        read_conninfo(f"file={file}")
    file.chmod(0o600)
    assert read_conninfo(f"file={file}") == f"postgresql://ada:{SECRET}@host/base"


@pytest.mark.parametrize("content", [b"x" * 5000, b"\xff\xfe", b"not a url"])
def test_unusable_file_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "url"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(BadInput):
        read_conninfo(f"file={file}")
    with pytest.raises(BadInput, match="is not a file"):
        read_conninfo(f"file={tmp_path}")
    with pytest.raises(BadInput, match="cannot read"):
        read_conninfo(f"file={tmp_path / 'missing'}")


def test_service_is_left_to_libpq() -> None:
    assert read_conninfo("service=team") == "service=team"
    with pytest.raises(BadInput, match="unknown source"):
        read_conninfo("postgresql://host/base")


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("alter role nora password 'other'", "password authentication failed.*; check the password in ~/.pgpass"),
        ("alter role nora nologin", "not permitted to log in"),
        ("revoke connect on database {} from nora", "permission denied for database"),
    ],
)
def test_revoked_credentials_are_reported(team: Team, change: str, message: str) -> None:
    administrator = team.connect("postgres")
    administrator.execute(change.format(team.database).encode())
    try:
        with pytest.raises(AccessDenied, match=f"the team's server refuses access: .*{message}") as refusal:
            connect(team.url("nora", host="127.0.0.1"))
        assert "\n" not in str(refusal.value)
        assert PASSWORD not in str(refusal.value)
    finally:
        administrator.execute(f"alter role nora login password '{PASSWORD}'".encode())


def test_database_that_does_not_exist_is_reported(team: Team) -> None:
    with pytest.raises(AccessDenied, match='database "missing" does not exist'):
        connect(team.cluster.url("ada", "missing"))


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
