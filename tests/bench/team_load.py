"""Load on the registry of a team: a server of its own on this machine, with the settings of a real one."""

from __future__ import annotations

import atexit
import json
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Final
from uuid import UUID, uuid4

import msgspec
import numpy as np

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.project_state import ProjectState
from core.project.project import Project
from core.project.watch_loop import Daemon
from core.records.decisions import Decision, Verb
from core.records.events import event_id
from core.records.snapshot import Delta
from core.records.team import TeamUse
from core.team.connection import Joined, save_joined
from core.team.local_state import LocalState
from core.team.migrations import migrate
from core.team.server import Space, create_space
from core.team.sync import Synchronizer
from tests.bench.measured import Measured, milliseconds, resident_mb, spread
from tests.bench.place import Place, open_and_load
from tests.bench.trees import NOW
from tests.team_server import KEEPER, PASSWORD, SPACE, Cluster

CLIENTS: Final = 50
BATCH: Final = 20
"""Uses in one transaction, about what a loop sends after a session."""
PATTERNS: Final = 100_000
SECONDS: Final = 10.0
_SETTINGS: Final = {
    "fsync": "on",
    "full_page_writes": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "max_connections": "250",
    "autovacuum_naptime": "1min",
}
_PLAIN: Final = """
    create table plain (space_id integer, at timestamptz, id uuid, pattern_id text, kind text, success boolean,
        weight double precision, count integer, primary key (space_id, at, id))
"""
_INSERT: Final = """
    insert into plain select 1, u.at, u.id, u.pattern_id, u.kind, true, 1, 1
    from json_populate_recordset(null::plain, %s) u on conflict do nothing
"""
_FILL: Final = """
    with made as (
        insert into ralphdeck.events
            (space_id, at, id, pattern_id, project_id, member_id, count, weight, success, kind)
        select %(space)s, %(now)s::timestamptz - make_interval(secs => n * 3), gen_random_uuid(),
            i.pattern_id, %(project)s, 1, 1, 1, n %% 6 <> 0, 'applied'
        from generate_series(%(first)s::bigint, %(last)s::bigint) n join filled i on i.number = n %% %(patterns)s
        returning pattern_id, success, at)
    insert into ralphdeck.sums as s (space_id, pattern_id, successes, failures, uses, helpful, harmful, injections,
        undecayed, last_used)
    select %(space)s, m.pattern_id, count(*) filter (where success), count(*) filter (where not success), count(*),
        sum(f) filter (where success), coalesce(sum(f) filter (where not success), 0), sum(f), count(*), max(at)
    from made m, lateral (select power(2, extract(epoch from m.at - %(epoch)s) / (90 * 86400)) f) p group by 2
    on conflict (space_id, pattern_id) do update set successes = s.successes + excluded.successes,
        failures = s.failures + excluded.failures, uses = s.uses + excluded.uses,
        helpful = s.helpful + excluded.helpful, harmful = s.harmful + excluded.harmful,
        injections = s.injections + excluded.injections, undecayed = s.undecayed + excluded.undecayed,
        last_used = greatest(s.last_used, excluded.last_used), xid = pg_current_xact_id()
"""


@cache
def _server() -> tuple[Cluster, str]:
    """Start a server with one space; returns it and the name of the database. It is removed at the end."""
    cluster = Cluster.create(**_SETTINGS)
    atexit.register(cluster.close)
    with closing(cluster.connect("postgres", "postgres")) as connection:
        connection.execute(f"create role {KEEPER} login createrole password '{PASSWORD}'".encode())
        connection.execute(f"create database team owner {KEEPER}".encode())
    with closing(cluster.connect(KEEPER, "team")) as connection:
        migrate(connection)
        create_space(connection, SPACE, 90.0, "Keeper")
    return cluster, "team"


def _open_space() -> Space:
    cluster, database = _server()
    return Space.connect(cluster.url(KEEPER, database), SPACE)


def events_a_second(place: Place) -> Measured:
    """Uses that 50 clients add per second, beside plain inserts of the same rows on the same server."""
    cluster, database = _server()
    with closing(cluster.connect(KEEPER, database)) as connection:
        connection.execute(b"drop table if exists plain")
        connection.execute(_PLAIN.encode())
    plain = _rate(_plain_client)
    added = _rate(_space_client)
    return Measured(added, "/s", note=f"plain inserts {plain:,.0f} /s, ratio {added / plain:.2f}")


def _space_client() -> Callable[[list[TeamUse]], object]:
    space, project = _open_space(), uuid4()
    space.join_project(project, f"project {project.hex[:8]}")
    return lambda uses: space.add_events(project, uses)


def _plain_client() -> Callable[[list[TeamUse]], object]:
    cluster, database = _server()
    connection = cluster.connect(KEEPER, database)

    def send(uses: list[TeamUse]) -> None:
        rows = [{"at": str(one.at), "id": str(one.id), "pattern_id": one.pattern_id, "kind": "applied"} for one in uses]
        connection.execute(_INSERT.encode(), (json.dumps(rows),))

    return send


def _rate(make_client: Callable[[], Callable[[list[TeamUse]], object]]) -> float:
    """Let all clients send batches for some seconds; returns the rows per second."""
    counts, go, clients = [0] * CLIENTS, threading.Event(), [make_client() for _ in range(CLIENTS)]
    for number, client in enumerate(clients):
        client(list(_uses(np.random.default_rng(CLIENTS + number))))
    _analyze()

    def work(number: int) -> None:
        source = np.random.default_rng(number)
        go.wait()
        while time.perf_counter() < deadline:
            clients[number](list(_uses(source)))
            counts[number] += BATCH

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    begin = time.perf_counter()
    deadline = begin + SECONDS
    go.set()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begin)


def _analyze() -> None:
    """Collect the statistics that the planner needs, as a server does by itself every minute."""
    cluster, database = _server()
    with closing(cluster.connect("postgres", database)) as connection:
        connection.execute(b"analyze")


def _uses(source: np.random.Generator) -> Iterator[TeamUse]:
    now = datetime.now(NOW.tzinfo)
    for number in source.integers(0, PATTERNS, BATCH).tolist():
        at = now - timedelta(seconds=int(source.integers(0, 86_400)))
        id = UUID(bytes=source.bytes(16), version=4)
        yield TeamUse(id=id, pattern_id=f"pat-error-{number:05d}-001", kind="applied", at=at, success=number % 6 > 0)


def join_with_many_patterns(place: Place) -> Measured:
    """A project with many patterns joins an empty space: all texts and uses are sent."""
    return _in_process(_copy(place, "team-first", place.many))


def open_first(place: Place) -> Measured:
    """An empty project joins the space: all texts and sums are received and written to its files."""
    _fill(place, place.sizes.team_events)
    return _in_process(_copy(place, "team-empty", None))


def open_again(place: Place) -> Measured:
    """A project whose sync state was lost reads all texts and sums of the space again; its files have them."""
    return _in_process(place.folder / "team-empty", lost=True)


def decision_to_other(place: Place) -> Measured:
    """Time from a decision of one of 20 reviewers to the state of another member's dashboard, with 100 loops at work.

    The state is what the screen draws; drawing it takes as long as in the row of a written file. The dashboard is a
    process of its own, and all others are threads of this one.
    """
    project = _copy(place, "team-watching", None)
    cluster, database = _server()
    url_file = project / "url"
    url_file.write_text(cluster.url(KEEPER, database))
    url_file.chmod(0o600)
    save_joined(project, Joined(space=SPACE, source=f"file={url_file}", id=uuid4(), name="watching"))
    arguments = [sys.executable, "-m", "tests.bench.team_load", "watch", str(project)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it is online
        _analyze()
        made = _decide_and_log()
        time.sleep(10)
        seen: dict[str, float] = json.loads(process.communicate("end\n")[0])
    missing = len(made.keys() - seen.keys())
    found = spread([(seen[id] - at) * 1000 for id, at in made.items() if id in seen], 0.99)
    return Measured(found.value, note=f"{found.note}, {len(made)} decisions, {missing} did not arrive")


def _watch(folder: Path) -> None:
    """Follow a joined project until a line is read; prints when each decision was in its state."""
    seen: dict[str, float] = {}
    watching = _Watching(open_and_load(folder), seen)
    thread = threading.Thread(target=watching.run)
    thread.start()
    while watching.team is None or not watching.team.status.is_online:
        time.sleep(0.1)
    print("online", flush=True)
    sys.stdin.readline()
    watching.stop()
    thread.join()
    print(json.dumps(seen))


class _Watching(Daemon):
    """Notes when each decision is in the state of a project."""

    def __init__(self, project: Project, seen: dict[str, float]) -> None:
        super().__init__(project, lambda event: None)
        self._seen = seen

    def changed(self, before: ProjectState, after: ProjectState, delta: Delta) -> None:
        now = time.perf_counter()
        for decision in after.snapshot.decisions[len(before.snapshot.decisions) :]:
            self._seen.setdefault(decision.id, now)


def _decide_and_log(seconds: float = 30, reviewers: int = 20, loops: int = 100) -> dict[str, float]:
    """Let reviewers note something every 2 s, and loops add 10 uses a second each; returns when each decision began."""
    made: dict[str, float] = {}
    deadline = time.perf_counter() + seconds

    def review(number: int) -> None:
        space, own = _open_space(), uuid4()
        space.join_project(own, f"reviewer {number}")
        source = np.random.default_rng(number)
        while time.perf_counter() < deadline:
            time.sleep(float(source.uniform(1, 3)))
            at = datetime.now(NOW.tzinfo)
            subject = f"pat-error-{int(source.integers(0, 1000)):05d}-001"
            text = {"text": f"note {uuid4()}"}
            decision = Decision(id=event_id(at), at=at, by="Keeper", verb=Verb.NOTE, subject=subject, after=text)
            begin = time.perf_counter()
            space.decide(own, msgspec.json.encode(decision).decode(), [subject], seen=1 << 60)
            made[decision.id] = begin
        space.close()

    def run_loop(number: int) -> None:
        space, own = _open_space(), uuid4()
        space.join_project(own, f"loop {number}")
        source = np.random.default_rng(number)
        while time.perf_counter() < deadline:
            space.add_events(own, islice(_uses(source), 10))
            time.sleep(1)
        space.close()

    threads = [threading.Thread(target=review, args=(number,)) for number in range(reviewers)]
    threads += [threading.Thread(target=run_loop, args=(number,)) for number in range(loops)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return made


def growth(place: Place) -> Measured:
    """Cost of a batch of uses and of all sums, with a tenth of the events and with all: the exponent."""
    sizes = (place.sizes.team_events // 10, place.sizes.team_events)
    found: list[dict[str, float]] = []
    for size in sizes:
        _fill(place, size)
        space, own = _open_space(), uuid4()
        space.join_project(own, "growth")
        source = np.random.default_rng(1)
        batches = [list(_uses(source)) for _ in range(50)]
        with closing(space.connection):
            added = sorted(milliseconds(partial(space.add_events, own, batch))[0] for batch in batches)
            found.append({"batch": median(added), "all sums": min(milliseconds(space.sums, 3))})
    steps = np.log(sizes[1] / sizes[0])
    exponents = {what: float(np.log(found[1][what] / found[0][what]) / steps) for what in found[0]}
    shown = (f"{what} {one:.2f} ({found[0][what]:.0f}, {found[1][what]:.0f} ms)" for what, one in exponents.items())
    return Measured(max(exponents.values()), "", note="; ".join(shown))


def open_known(place: Place) -> Measured:
    """The same project opened again as usual: what changed since the last sync is read."""
    return _in_process(place.folder / "team-empty")


def _copy(place: Place, name: str, source: Path | None) -> Path:
    project = place.folder / name
    shutil.rmtree(project, ignore_errors=True)
    if source is None:
        (project / ".aiwg" / "ralph" / "shared" / "patterns").mkdir(parents=True)
    else:
        shutil.copytree(source / ".aiwg" / "ralph" / "shared", project / ".aiwg" / "ralph" / "shared")
    return project


def _fill(place: Place, count: int) -> None:
    """Add uses of all patterns of the space until it has `count`; written by SQL, which is faster than by clients."""
    cluster, database = _server()
    space = _open_space()
    with closing(cluster.connect("postgres", database)) as connection:
        connection.execute(b"set synchronous_commit = off")
        number, epoch = connection.execute(
            "select space_id, epoch from ralphdeck.spaces where id = %s", (space.info.id,)
        ).fetchone() or (0, NOW)
        patterns = connection.execute(
            "create temp table filled as select row_number() over () - 1 as number, pattern_id from ralphdeck.patterns"
        ).rowcount
        connection.execute(b"analyze filled")
        project = connection.execute("select min(project_id) from ralphdeck.projects").fetchone()
        known = connection.execute("select count(*) from ralphdeck.events").fetchone()
        months = connection.execute(
            "select ralphdeck._make_partition(m) from generate_series(%s::timestamp, %s::timestamp, '1 month') m",
            ((NOW - timedelta(days=400)).replace(day=1, tzinfo=None), NOW.replace(tzinfo=None)),
        )
        months.fetchall()
        assert project is not None
        assert known is not None
        step = 500_000
        for first in range(known[0], count, step):
            fields: dict[str, Any] = {
                "space": number,
                "now": NOW,
                "patterns": patterns,
                "project": project[0],
                "epoch": epoch,
                "first": first,
                "last": min(first + step, count) - 1,
            }
            connection.execute(_FILL.encode(), fields)
        connection.execute(b"vacuum analyze")


def _in_process(project: Path, *, lost: bool = False) -> Measured:
    """Sync a project once in a fresh process, with the memory of that process."""
    cluster, database = _server()
    url = cluster.url(KEEPER, database)
    arguments = [sys.executable, "-m", "tests.bench.team_load", "sync", str(project), url, str(lost)]
    done = subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    with closing(cluster.connect("postgres", database)) as connection:
        row = connection.execute("select pg_database_size(current_database()) / 1e6").fetchone()
    assert row is not None
    note = f"opening the project {found['load']:,.0f} ms, peak {found['peak']:.0f} MB, database {row[0]:,.0f} MB"
    return Measured(found["sync"], cpu=found["cpu"], note=f"{note}; {found['cycle']}")


def _sync_once(folder: Path, url: str, *, lost: bool) -> dict[str, Any]:
    state = LocalState(folder)
    if lost:
        state.clear()
    begin = time.perf_counter()
    project = Project(ProjectPaths(folder), Settings(), by="Keeper", clock=lambda: NOW)
    project.load()
    loaded = time.perf_counter()
    used = resource.getrusage(resource.RUSAGE_SELF)
    space = Space.connect(url, SPACE)
    identifier = state.fact("bench-project") or str(uuid4())
    cycle = Synchronizer(project, state, UUID(identifier)).run(space)
    state.set_facts(**{"bench-project": identifier})
    ended, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    return {
        "load": (loaded - begin) * 1000,
        "sync": (ended - loaded) * 1000,
        "cpu": (after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime) * 1000,
        "peak": max(after.ru_maxrss * 1024 / 1e6, resident_mb()),
        "cycle": str(cycle),
    }


if __name__ == "__main__":
    if sys.argv[1] == "watch":
        _watch(Path(sys.argv[2]))
    else:
        print(json.dumps(_sync_once(Path(sys.argv[2]), sys.argv[3], lost=sys.argv[4] == "True")))
