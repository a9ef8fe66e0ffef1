"""The checks of `ralphdeck doctor` on the team that the project has joined."""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from core.base.errors import RalphdeckError
from core.base.formatting import format_duration
from core.base.text import plural, visible_line
from core.cli.support.connection_checks import ERROR, NOTE, OK, WARNING, Found
from core.records.times import minute_of

if TYPE_CHECKING:
    from datetime import datetime

    from core.project.project import Project
    from core.team.connection import Joined

SECONDS: Final = 8.0  # for connecting and all answers of the server
MAX_SKEW_SECONDS: Final = 60.0
_TEXT: Final = 300


class Answer(NamedTuple):
    """What the server said, and the seconds that this took."""

    member: str
    level: str
    schema: int
    clock: datetime
    has_tls: bool
    is_local: bool
    seconds: float


def check_team(project: Project) -> Iterator[Found]:
    """Check how a project reaches its team; nothing if it has not joined one."""
    from core.team.connection import consent_file, find_joined

    try:
        joined = find_joined(project.project.project)
    except RalphdeckError as error:
        yield "joined projects", ERROR, visible_line(str(error), _TEXT)
        return
    if joined is None:
        return
    yield (
        "space",
        NOTE,
        f"{visible_line(joined.space, 80)}; members see this project as {visible_line(joined.name, 80)}",
    )
    yield _check_private(consent_file())
    yield from _check_server(project, joined)
    yield from _check_state(project, joined)


def _check_private(file: Path) -> Found:
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
    except OSError as error:
        return "joined projects", ERROR, f"{file}: {error.strerror}"
    if mode & 0o077:
        return "joined projects", WARNING, f"{file} can be read by others; run: chmod 600 {file}"
    return "joined projects", OK, f"{file}, readable by you alone"


def _check_server(project: Project, joined: Joined) -> Iterator[Found]:
    from core.team.connection import Offline, describe_server, require_psycopg

    try:
        require_psycopg()
        import psycopg

        yield "extra", OK, f"psycopg {psycopg.__version__}, libpq {psycopg.pq.version_pretty(psycopg.pq.version())}"
        source, _, where = joined.source.partition("=")
        server = describe_server(joined.conninfo)
        from_where = {"env": "from RALPHDECK_TEAM_URL", "url": "given when the project joined"}.get(source)
        yield "address", OK, f"{server}, {from_where or f'from the {source} {visible_line(where, 120)}'}"
        answer = _bounded(lambda: _ask(joined))
    except Offline as error:
        yield "server", WARNING, visible_line(str(error), _TEXT)
        return
    except RalphdeckError as error:
        yield "server", ERROR, visible_line(str(error), _TEXT)
        return
    member = visible_line(answer.member, 80)
    yield "server", OK, f"answered in {answer.seconds * 1000:.0f} ms; you are {member}, {answer.level}"
    yield "schema", OK, f"version {answer.schema}, which this program writes"
    if answer.has_tls:
        yield "TLS", OK, "in use"
    elif answer.is_local:
        yield "TLS", NOTE, "not in use; the server is on this machine"
    else:
        yield (
            "TLS",
            WARNING,
            "not in use: others in the network can read the data; add sslmode=verify-full to the address",
        )
    skew = (project.now() - answer.clock).total_seconds()
    text = f"differs by {format_duration(abs(skew))} from that of the server"
    yield "clock", OK if abs(skew) <= MAX_SKEW_SECONDS else WARNING, text


def _check_state(project: Project, joined: Joined) -> Iterator[Found]:
    """Report what has not been sent, and when the project was synchronized."""
    from core.records.times import parse_time
    from core.team.follow import JoinedCopy, stored_status
    from core.team.local_state import LAST_SYNC

    try:
        with closing(JoinedCopy(project, joined)) as copy:
            to_send, conflicts = copy.collect(), len(copy.state.conflicts())
            last, status = parse_time(copy.state.fact(LAST_SYNC)), stored_status(copy.state)
    except RalphdeckError as error:
        yield "state", ERROR, visible_line(str(error), _TEXT)
        return
    since = status.offline_since if status is not None else None
    offline = f"; offline since {minute_of(since)} UTC" if since is not None else ""
    synchronized = f"{minute_of(last)} UTC" if last is not None else "never; run: ralphdeck team sync"
    yield "last sync", NOTE if last is not None else WARNING, f"{synchronized}{offline}"
    yield "to send", NOTE if to_send else OK, plural(to_send, "change") if to_send else "nothing"
    if conflicts:
        text = f"{plural(conflicts, 'pattern')} with another text in the space; see: ralphdeck team status"
        yield "conflicts", WARNING, text


def _ask(joined: Joined) -> Answer:
    from core.team.connection import Limits
    from core.team.migrations import schema_version
    from core.team.server import Space

    start = monotonic()
    limits = Limits(connect=3.0, statement=3.0, lost=3.0)
    with closing(Space.connect(joined.conninfo, joined.space, limits)) as space:
        info, protocol = space.info, space.connection.pgconn
        clock, schema = space.now(), schema_version(space.connection)
        address = protocol.hostaddr.decode(errors="replace")
        is_local = address in ("", "::1") or address.startswith(("127.", "/"))
        seconds = monotonic() - start
        return Answer(info.member, info.level.value, schema, clock, protocol.ssl_in_use, is_local, seconds)


def _bounded(ask: Callable[[], Answer]) -> Answer:
    """Return the answer, or raise Offline after `SECONDS`: a name server may be slow, too."""
    from core.team.connection import Offline

    answers: list[Answer] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            answers.append(ask())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="ralphdeck-doctor", daemon=True)
    thread.start()
    thread.join(SECONDS)
    if errors:
        raise errors[0]
    if not answers:
        raise Offline(f"the server did not answer within {SECONDS:g} s")
    return answers[0]
