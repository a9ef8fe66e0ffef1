"""PostgreSQL servers of their own for tests, as an ordinary user, on a free port of the loopback interface.

The fixture `cluster` is one server for each test process; `team` is a fresh database in it, with two spaces:

    acme   ada (admin), rita (reviewer), carl (contributor), rolf (reader)
    other  otto (admin)

`mallory` and `nora` can log in to the database and are not members; tests add `nora` to spaces. `keeper`, who owns the
schema, is an ordinary login that can create roles. The password of all is `PASSWORD`.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from psycopg import Connection

    from core.team.server import Space

PASSWORD: Final = "for tests only"
ROLES: Final = ("ada", "rita", "carl", "rolf", "otto", "mallory", "nora")
KEEPER: Final = "keeper"
SPACE: Final = "acme"
OTHER_SPACE: Final = "other"
HALF_LIFE_DAYS: Final = 30.0
START_SECONDS: Final = 60.0
_FOLDERS: Final = "usr/lib/postgresql/[0-9]*/bin"
_SETTINGS: Final = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "150",
    "listen_addresses": "127.0.0.1",
    "log_min_messages": "warning",
    "autovacuum_naptime": "1h",
    "max_wal_senders": "4",
    "jit": "off",
    "dynamic_shared_memory_type": "mmap",  # files in its folder: a killed server leaves no segments
}

_TABLES: Final = """
    for name in select relname from pg_class where relnamespace = 'ralphdeck'::regnamespace
        and relkind in ('r', 'p') and not relispartition loop
"""
_SAVE: Final = f"""
    create schema baseline;
    do $$ declare name text; begin {_TABLES}
        execute format('create table baseline.%1$I as table ralphdeck.%1$I', name);
    end loop; end $$
"""
_RESTORE: Final = f"""
    set session_replication_role = replica;  -- no triggers and foreign keys
    do $$ declare name text; begin {_TABLES}
        execute format('delete from ralphdeck.%I', name);
        execute format('insert into ralphdeck.%1$I overriding system value select * from baseline.%1$I', name);
    end loop; end $$
"""
_FINGERPRINT: Final = """
    select md5(string_agg(one, ' ' order by one)) from (
        select concat(p.oid::regprocedure, md5(p.prosrc), p.proacl, p.proconfig, p.prosecdef) from pg_proc p
            where p.pronamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
        union all select concat(c.relnamespace, c.relname, c.relowner, c.relacl, c.relrowsecurity) from pg_class c
            where c.relkind in ('r', 'p', 'v') and not c.relispartition
        union all select concat(nspname, nspacl) from pg_namespace where nspname !~ '^pg_(toast_)?temp'
        union all select datacl::text from pg_database where datname = current_database()
    ) as parts (one)
"""


@cache
def find_program(name: str) -> str | None:
    """Path of a program of the server: in PATH, or the newest one of the Debian packages."""
    newest = sorted(
        Path("/").glob(f"{_FOLDERS.lstrip('/')}/{name}"), key=lambda path: int(path.parts[-3]), reverse=True
    )
    return str(newest[0]) if newest else shutil.which(name)


def _program(name: str) -> str:
    """Path of a program; without it, the test is skipped, or fails in CI, which installs it."""
    found = find_program(name)
    if found is None:
        reason = f"{name} of PostgreSQL is not installed; on Debian: apt-get install postgresql"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@cache
def _ordinary_user() -> dict[str, Any]:
    """Arguments of `subprocess` that drop the rights of root; a server refuses to run with them."""
    if os.geteuid() != 0:
        return {}
    import pwd

    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    pytest.fail("there is no ordinary user as whom the server could run")


def free_port() -> int:
    """A port of the loopback interface that no process listens on."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Cluster:
    """One server with its own data, which can be stopped, killed, restarted and copied to a standby."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._names = count(1)
        self._spare = ""  # a database that equals the template, for the next test
        self._fingerprint: tuple[Any, ...] | None = None  # of the schema and the rights of an unused copy

    @classmethod
    def create(cls, **settings: str) -> Cluster:
        """Create and start a server; `settings` are those of postgresql.conf."""
        cluster = cls(_make_folder())
        cluster.run(
            "initdb", "-D", str(cluster.data), "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync", "-A", "trust"
        )
        cluster._configure(settings)
        cluster.start()
        return cluster

    def _configure(self, settings: dict[str, str]) -> None:
        values = {**_SETTINGS, **settings, "port": str(self.port), "unix_socket_directories": str(self.folder)}
        lines = [f"{name} = '{value}'\n" for name, value in values.items()]
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(lines)
        self.write_access()

    def write_access(self, first: str = "") -> None:
        """Write who may connect how; `first` is a line before all others. Takes effect at a start or `reload`."""
        (self.data / "pg_hba.conf").write_text(
            f"{first}\nlocal all all trust\nlocal replication all trust\n"
            "host all all 127.0.0.1/32 scram-sha-256\nhost replication all 127.0.0.1/32 scram-sha-256\n"
        )

    def run(self, program: str, *arguments: str) -> None:
        """Run a program of the server as the server's user."""
        done = subprocess.run(
            [_program(program), *arguments], cwd=self.folder, capture_output=True, text=True, **_ordinary_user()
        )
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        assert self._process is None
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [_program("postgres"), "-D", str(self.data)],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **_ordinary_user(),
            )
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        import psycopg

        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.url("postgres", "postgres"), connect_timeout=2).close()
            except psycopg.OperationalError:
                assert self._process is not None and self._process.poll() is None, self.log
                assert time.monotonic() < deadline, self.log
                time.sleep(0.02)
            else:
                return

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def stop(self) -> None:
        """Stop the server as an administrator does: transactions are rolled back, connections closed."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill all processes of the server at once, as a power failure does."""
        assert self._process is not None
        own = self._process.pid
        self._process.send_signal(signal.SIGSTOP)  # it starts no new processes
        children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        self._process.send_signal(signal.SIGKILL)
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        self._process.wait()
        self._process = None
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def restart(self) -> None:
        if self._process is not None:
            self.stop()
        self.start()

    def reload(self) -> None:
        """Read changed settings and access rules."""
        with closing(self.connect("postgres", "postgres")) as connection:
            connection.execute("select pg_reload_conf()")

    def _end(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(START_SECONDS)
        self._process = None

    def close(self) -> None:
        """Stop the server at once and delete its data."""
        if self._process is not None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def standby(self, **settings: str) -> Cluster:
        """Create and start a copy that follows this server."""
        copy = Cluster(_make_folder())
        source = f"host={self.folder} port={self.port} user=postgres application_name={copy.folder.name}"
        copy.run("pg_basebackup", "-D", str(copy.data), "-d", source, "-R", "-c", "fast", "--no-sync")
        copy._configure({"hot_standby": "on", **settings})
        copy.start()
        return copy

    def promote(self) -> None:
        """Make a standby the primary."""
        with closing(self.connect("postgres", "postgres")) as connection:
            connection.execute("select pg_promote(true, 60)")

    def url(self, user: str, database: str, *, host: str | None = None, port: int | None = None) -> str:
        """Connection string of a user: by the socket without password, or by a host with it."""
        address = str(self.folder) if host is None else host
        password = "" if host is None else f" password='{PASSWORD}'"
        return f"host={address} port={port or self.port} user={user} dbname={database}{password}"

    def connect(self, user: str, database: str) -> Connection[Any]:
        import psycopg

        return psycopg.connect(self.url(user, database), autocommit=True)

    def create_database(self, template: str = "template1", owner: str = "postgres") -> str:
        """Create a database with a new name."""
        name = f"team_{next(self._names)}"
        with closing(self.connect("postgres", "postgres")) as connection:
            copy = f'create database {name} template {template} strategy file_copy owner "{owner}"'
            connection.execute(copy.encode())
            connection.execute(f"revoke all on database {name} from public".encode())
            connection.execute(f"grant connect on database {name} to {', '.join(ROLES)}".encode())
        return name

    def take_database(self) -> str:
        """Return a database that equals the template: that of an earlier test, or a copy, which takes far longer."""
        if not self._spare:
            name = self.create_database("template_team", KEEPER)
            if self._fingerprint is None:
                with closing(self.connect("postgres", name)) as connection:
                    self._fingerprint = connection.execute(_FINGERPRINT.encode()).fetchone()
            return name
        spare, self._spare = self._spare, ""
        name = f"team_{next(self._names)}"
        with closing(self.connect("postgres", "postgres")) as connection:
            connection.execute(f"alter database {spare} rename to {name}".encode())
        return name

    def give_back(self, database: str) -> None:
        """Restore the rows of a database for the next test; drop it if the test changed its schema or rights."""
        with closing(self.connect("postgres", "postgres")) as connection:
            running = "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = %s"
            connection.execute(running, (database,))
            with closing(self.connect("postgres", database)) as opened:
                is_same = opened.execute(_FINGERPRINT.encode()).fetchone() == self._fingerprint
                if is_same:
                    opened.execute(_RESTORE.encode())
            if is_same and not self._spare:
                self._spare = database
            else:
                connection.execute(f"drop database {database} with (force)".encode())

    def prepare(self) -> None:
        """Create the roles, and the database that all tests copy."""
        from core.records.team import Level
        from core.team.migrations import migrate
        from core.team.server import Space, create_space

        with closing(self.connect("postgres", "postgres")) as connection:
            connection.execute(f"create role {KEEPER} login createrole password '{PASSWORD}'".encode())
            for role in ROLES:
                connection.execute(f"create role {role} login password '{PASSWORD}'".encode())
            connection.execute(f"create database template_team owner {KEEPER}".encode())
        levels = {"ada": Level.ADMIN, "rita": Level.REVIEWER, "carl": Level.CONTRIBUTOR, "rolf": Level.READER}
        with closing(self.connect(KEEPER, "template_team")) as connection:
            migrate(connection)
            for space, members in ((SPACE, levels), (OTHER_SPACE, {"otto": Level.ADMIN})):
                create_space(connection, space, HALF_LIFE_DAYS, "Keeper")
                opened = Space.open(connection, space)
                for role, level in members.items():
                    opened.set_member(role, role.capitalize(), level)
        with closing(self.connect("postgres", "template_team")) as connection:
            connection.execute(_SAVE.encode())


def _make_folder() -> Path:
    """Make a folder of the server's user, whose path is short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    if user := _ordinary_user():
        os.chown(folder, user["user"], user["group"])
    return folder


class Team:
    """A fresh database with two spaces."""

    def __init__(self, cluster: Cluster, database: str) -> None:
        self.cluster = cluster
        self.database = database
        self._open: list[Connection[Any]] = []

    def url(self, user: str, *, host: str | None = None) -> str:
        return self.cluster.url(user, self.database, host=host)

    def connect(self, user: str) -> Connection[Any]:
        """Open a plain connection, closed at the end of the test."""
        connection = self.cluster.connect(user, self.database)
        self._open.append(connection)
        return connection

    def space(self, user: str, name: str = "") -> Space:
        """Open a space as a member, closed at the end of the test."""
        from core.team.server import Space

        space = Space.connect(self.url(user), name)
        self._open.append(space.connection)
        return space

    def disconnect(self) -> None:
        for connection in self._open:
            connection.close()

    def close(self) -> None:
        self.disconnect()
        with closing(self.cluster.connect("postgres", "postgres")) as connection:
            connection.execute(f"drop database if exists {self.database} with (force)".encode())


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A server with the roles, and a template database; tests that stop it must start it again."""
    cluster = Cluster.create()
    try:
        cluster.prepare()
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def team(cluster: Cluster) -> Iterator[Team]:
    """A fresh database with the spaces."""
    team = Team(cluster, cluster.take_database())
    yield team
    team.disconnect()
    cluster.give_back(team.database)
