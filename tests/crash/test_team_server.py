"""The server of a team is killed, runs out of space, or is replaced by its standby while members write.

In each case, what was acknowledged is there, once, and clients that send again what was not acknowledged add nothing
twice.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from core.records.team import TeamUse
from core.team.connection import Limits, Offline, ServerFull
from core.team.decisions import first_head, verify
from core.team.server import Space
from tests.core.team.working_copy import AT, make_decision, make_use
from tests.team_server import KEEPER, Cluster, Team

CLIENTS = 6
BATCH = 20
SECONDS = 90.0
LIMITS = Limits(connect=2, statement=10, lost=2)
TABLESPACE_MIB = 20


class Client(threading.Thread):
    """A member that sends uses and decisions until it is stopped, and sends again what was not acknowledged."""

    def __init__(self, number: int, conninfo: str) -> None:
        super().__init__(daemon=True)
        self._number, self._conninfo = number, conninfo
        self._project = uuid4()
        self._stopped = threading.Event()
        self.uses: list[TeamUse] = []
        self.decisions: dict[str, int] = {}
        self.acknowledged = self.failures = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stopped.is_set():
                self._work()
        except BaseException as error:
            self.error = error

    def _work(self) -> None:
        """Send batches until one is acknowledged after the stop, or the server is lost."""
        try:
            with closing(Space.connect(self._conninfo, "acme", LIMITS)) as space:
                space.join_project(self._project, f"project {self._number}")
                while (self.acknowledged == len(self.uses) and not self._stopped.is_set()) or self._has_unsent():
                    self._send(space)
        except Offline:
            self.failures += 1
            self._stopped.wait(0.02)

    def _has_unsent(self) -> bool:
        return self.acknowledged < len(self.uses)

    def _send(self, space: Space) -> None:
        if not self._has_unsent():
            first = self._number * 1_000_000 + len(self.uses)
            self.uses += [make_use(first + i, pattern_id=f"p{i % 5}", at=AT) for i in range(BATCH)]
        batch = self.uses[self.acknowledged :]
        space.add_events(self._project, batch)
        number = self._number * 1_000_000 + len(self.uses)
        payload = make_decision(number, by=space.info.member)
        receipt = space.decide(self._project, payload, [f"pattern {number}"], seen=0)
        assert receipt.seq is not None
        self.decisions[f"d{number}"] = receipt.seq
        self.acknowledged = len(self.uses)

    def stop(self) -> None:
        self._stopped.set()


def wait_until(is_reached: Callable[[], bool], clients: list[Client]) -> None:
    """Wait until something is so; fails if a client does."""
    pause = threading.Event()
    for _ in range(int(SECONDS / 0.02)):
        if is_reached():
            return
        assert all(client.error is None for client in clients), [client.error for client in clients]
        pause.wait(0.02)
    pytest.fail("the clients did not get that far in time")


def start_clients(conninfo: Callable[[str], str]) -> list[Client]:
    clients = [Client(number, conninfo("rita" if number % 2 else "ada")) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    return clients


def wait_for_more(clients: list[Client]) -> None:
    """Wait until each client got another two acknowledgements."""
    goals = [client.acknowledged + 2 * BATCH for client in clients]
    wait_until(lambda: all(one.acknowledged >= goal for one, goal in zip(clients, goals, strict=True)), clients)


def stop_clients(clients: list[Client]) -> None:
    for client in clients:
        client.stop()
    for client in clients:
        client.join(SECONDS)
        assert client.error is None
        assert not client.is_alive()


def check_space(space: Space, clients: list[Client]) -> None:
    """Check that everything acknowledged is there once: uses, sums, decisions, chain."""
    sums = space.sums().sums
    sent = [use for client in clients for use in client.uses[: client.acknowledged]]
    stored = space._rows("select id, count(*) from ralphdeck.events group by id", ())
    assert {id for id, _ in stored} >= {use.id for use in sent}
    assert all(count == 1 for _, count in stored)
    assert sum(one.uses for one in sums.values()) == len(stored)
    assert sum(project.uses for project in space.projects()) == len(stored)
    found = space.decisions(0, 1_000_000)
    assert verify(first_head(space.info.id), found) == space.head()
    numbers = {decision.id: decision.seq for decision in found}
    acknowledged = {id: seq for client in clients for id, seq in client.decisions.items()}
    assert {id: numbers.get(id) for id in acknowledged} == acknowledged


@pytest.fixture(scope="module")
def server() -> Iterator[Cluster]:
    """A server of its own, which tests may stop if they start it again."""
    with closing(Cluster.create()) as server:
        server.prepare()
        yield server


def test_killed_or_stopped_server_loses_and_doubles_nothing(server: Cluster) -> None:
    team = Team(server, server.create_database("template_team", KEEPER))
    clients = start_clients(team.url)
    for end in (server.kill, server.stop, server.kill):
        wait_for_more(clients)
        end()
        server.start()
    wait_for_more(clients)
    stop_clients(clients)
    assert all(client.failures for client in clients)
    check_space(team.space("rolf"), clients)
    team.close()


def test_standby_that_replaces_the_primary_has_everything_acknowledged() -> None:
    """The primary is killed for good; the clients find the new one by their connection string."""
    with closing(Cluster.create()) as server, closing(server.standby()) as standby:
        server.prepare()
        database = server.create_database("template_team", KEEPER)
        with closing(server.connect("postgres", "postgres")) as connection:
            connection.execute("alter system set synchronous_standby_names = '*'")
        server.reload()

        def conninfo(user: str) -> str:
            hosts = f"host={server.folder},{standby.folder} port={server.port},{standby.port}"
            return f"{hosts} user={user} dbname={database} target_session_attrs=read-write"

        clients = start_clients(conninfo)
        wait_for_more(clients)
        with closing(Space.connect(conninfo("rolf"))) as space:
            before = space.server
        with closing(standby.connect("rolf", database)) as connection, pytest.raises(ServerFull, match="a standby"):
            Space.open(connection)
        server.kill()
        standby.promote()
        wait_for_more(clients)
        stop_clients(clients)
        assert all(client.failures for client in clients)
        with closing(Space.connect(conninfo("rolf"))) as space:
            assert space.server != before  # so that cursors start again
            check_space(space, clients)


def test_write_that_the_standby_did_not_confirm_is_not_acknowledged(server: Cluster) -> None:
    """An administrator cancels the wait for a standby that is gone: the commit exists on the primary alone."""
    team = Team(server, server.create_database("template_team", KEEPER))
    carl = team.space("carl")
    project = uuid4()
    carl.join_project(project, "web")
    with closing(server.connect("postgres", "postgres")) as administrator:
        administrator.execute("alter system set synchronous_standby_names = 'missing'")
        administrator.execute("select pg_reload_conf()")
        waiting = "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'"
        for _ in range(2):
            errors: list[Exception] = []

            def send(errors: list[Exception] = errors) -> None:
                try:
                    carl.add_events(project, [make_use()])
                except Exception as error:
                    errors.append(error)

            thread = threading.Thread(target=send, daemon=True)
            thread.start()
            wait_until(lambda: bool(administrator.execute(waiting.encode()).fetchall()), [])
            thread.join(SECONDS)
            assert isinstance(errors[0], Offline) and "did not confirm" in str(errors[0])
        administrator.execute("alter system reset synchronous_standby_names")
        administrator.execute("select pg_reload_conf()")
    assert carl.add_events(project, [make_use()]).new == frozenset()
    assert carl.sums().sums["pat-error-timeout-001"].uses == 1
    team.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few MiB in memory, which only root can mount."""
    folder = Path("/tmp") / f"small-{uuid4().hex[:8]}"
    folder.mkdir()
    mounted = os.geteuid() == 0 and (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={TABLESPACE_MIB}m,mode=777", "tmpfs", str(folder)],
            capture_output=True,
        ).returncode
        == 0
    )
    try:
        if not mounted:
            pytest.skip("a small file system can be mounted only by root outside of a restricted container")
        yield folder
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


def test_full_disk_refuses_and_nothing_is_lost_or_doubled(server: Cluster, small_disk: Path) -> None:
    space_folder = small_disk / "tablespace"
    space_folder.mkdir()
    space_folder.chmod(0o777)
    if os.geteuid() == 0:
        status = server.data.stat()
        os.chown(space_folder, status.st_uid, status.st_gid)
    database = server.create_database("template_team", KEEPER)
    with closing(server.connect("postgres", "postgres")) as connection:
        connection.execute(f"create tablespace small location '{space_folder}'".encode())
        connection.execute(f"alter database {database} set tablespace small".encode())
    team = Team(server, database)
    rita = team.space("rita")
    project = uuid4()
    rita.join_project(project, "web")
    sent: list[TeamUse] = []

    def send_next() -> None:
        batch = [make_use(len(sent) + i, pattern_id=f"p{i}", success=None) for i in range(1, 2001)]
        sent.extend(batch)
        rita.add_events(project, batch)

    with pytest.raises(ServerFull, match=r"the team's server cannot write: .*No space left on device"):
        for _ in range(200):
            send_next()
    stored = sum(one.uses for one in rita.sums().sums.values())
    assert stored == len(sent) - 2000
    subprocess.run(["mount", "-o", "remount,size=200m", str(small_disk)], check=True)
    rita.add_events(project, sent[-4000:])
    assert sum(one.uses for one in rita.sums().sums.values()) == len(sent)
    team.close()
    with closing(server.connect("postgres", "postgres")) as connection:
        connection.execute("drop tablespace small")
