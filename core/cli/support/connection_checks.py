"""Checks of `ralphdeck doctor` on connected agents, the terminal, and the team."""

from __future__ import annotations

import os
import re
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import timedelta
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from core.agents.agent_table import AGENTS
from core.base.errors import BadInput, RalphdeckError, install_hint
from core.base.formatting import format_duration
from core.base.paths import find_project
from core.base.text import plural, visible_line
from core.cli.support.project import now
from core.files.file_access import open_regular
from core.records.times import minute_of

if TYPE_CHECKING:
    from datetime import datetime

    from core.agents.plan import Target
    from core.base.paths import ProjectPaths
    from core.project.project import Project
    from core.team.connection import Joined


OK: Final = "ok"
NOTE: Final = "note"
WARNING: Final = "warning"
ERROR: Final = "error"
_MAX_REASONS: Final = 3  # why hooks gave up
_RECENT: Final = timedelta(days=7)
_MAX_FOLDERS: Final = 200
_MAX_READ: Final = 1 << 16  # beginning of a transcript that is searched for its folder, in bytes
_CWD: Final = re.compile(rb'"cwd": ?"([^"\\\x00-\x1f\x7f-\xff]{1,4000})"')

Found = tuple[str, str, str]  # name, status and text of a check


def check_connections(paths: ProjectPaths) -> Iterator[Found]:
    """Check the hooks and MCP servers in the files of the project and of the user."""
    from core.agents.checks import find_program, installed_server
    from core.agents.hooks.deadline import count_give_ups
    from core.agents.hooks.sessions import last_event
    from core.agents.plan import Target, is_connected
    from core.agents.setup import is_ignoring

    targets = [Target(paths.project.resolve(), is_global=is_global) for is_global in (False, True)]
    connected = [(agent, target) for agent in AGENTS for target in targets if is_connected(agent, target)]
    if not is_ignoring(paths.project):
        yield "private files", WARNING, ".gitignore does not name all private files of .aiwg; run: ralphdeck init"
    if not connected:
        yield "connected", NOTE, "no agent; to connect one: ralphdeck connect claude"
        return
    try:
        program = find_program()
    except BadInput as error:
        yield "program", ERROR, str(error)
        return
    servers = set()
    for agent, target in connected:
        server = installed_server(agent, target)
        servers.add(server)
        yield from _check_agent(agent, Target(target.project, program, target.is_global, bool(server)))
    for server in sorted(servers - {""}):
        yield _check_server(server, program, paths)
    if newest := last_event(paths):
        agent, at = newest
        yield "last event", OK, f"{AGENTS[agent].title if agent in AGENTS else agent}, {minute_of(at)} UTC"
    else:
        yield "last event", WARNING, "none yet; start a connected agent in this project"
    if count := _count_unrecorded(paths):
        yield (
            AGENTS["claude"].title,
            WARNING,
            f"{plural(count, 'session')} in subfolders of the project ran no hooks in the last 7 days; "
            "start claude in the project's folder, or run: ralphdeck connect claude --global",
        )
    for reason, count in islice(count_give_ups(paths, now()).items(), _MAX_REASONS):
        yield "late hooks", WARNING, f"{plural(count, 'hook')} in the last 7 days: {visible_line(reason, 200)}"


def _count_unrecorded(paths: ProjectPaths) -> int:
    """Count new sessions of Claude Code in subfolders that sent no event."""
    from core.agents.entries import CONNECTIONS
    from core.agents.hooks.sessions import Sessions
    from core.sources.adapters.agent_files import project_slug

    with suppress(RalphdeckError, OSError):
        root = paths.project.resolve()
        recorded = {session.id for session in Sessions(paths).all()}
        folders = (CONNECTIONS["claude"].home_folder() / "projects").glob(f"{project_slug(root)}-*")
        files = (file for folder in islice(folders, _MAX_FOLDERS) for file in folder.glob("*.jsonl"))
        oldest = (now() - _RECENT).timestamp()
        new = [one for one in files if one.stem not in recorded and one.stat().st_mtime > oldest]
        return sum(_works_below(file, root) for file in new[:_MAX_FOLDERS])
    return 0


def _works_below(transcript: Path, root: Path) -> bool:
    """Return whether a transcript is of a subfolder without a project of its own."""
    handle = open_regular(transcript, os.O_RDONLY)
    with os.fdopen(handle, "rb") as file:
        found = _CWD.search(file.read(_MAX_READ))
    folder = Path(found[1].decode()) if found is not None else root
    return folder != root and root in folder.parents and find_project(folder).project == root


def _check_agent(agent: str, target: Target) -> Iterator[Found]:
    from core.agents.checks import find_obstacles, installed_command, try_hook
    from core.agents.plan import is_connected, plan_connect

    title = AGENTS[agent].title + (" (user)" if target.is_global else "")
    command = f"ralphdeck connect {agent}{' --global' if target.is_global else ''}"
    (plan,) = plan_connect([agent], target, {})
    if plan.problem:
        yield title, ERROR, plan.problem
    elif plan.changes:
        yield title, WARNING, f"not up to date: {', '.join(one.shown for one in plan.changes)}; run: {command}"
    hook = installed_command(agent, target)
    if hook:
        answer = try_hook(agent, hook, target.project)
        if answer.problem:
            yield title, ERROR, f"the hook {answer.problem}; run: {command}"
        else:
            yield title, OK, f"the hook answers in {answer.seconds:.2f} s"
    elif is_connected(agent, target, ("hooks",)):
        yield title, WARNING, f"the hooks start another program, which was not run; to replace them: {command}"
    elif AGENTS[agent].events:
        notes = "; ".join(plan.notes)
        yield title, NOTE if notes else WARNING, notes or f"has no hooks; run: {command}"
    else:
        yield title, NOTE, "runs no hooks; it is connected by MCP"
    if not target.has_mcp:
        yield title, NOTE, "has no MCP server"
    for obstacle in find_obstacles(agent, target):
        yield title, WARNING, obstacle


def _check_server(server: str, program: str, paths: ProjectPaths) -> Found:
    from core.agents.checks import has_mcp_extra, try_mcp_server
    from core.agents.entries import is_same_program

    if not is_same_program(server, program):
        return "MCP server", WARNING, f"{server} is another program, which was not started"
    if not has_mcp_extra():
        return "MCP server", WARNING, f"the extra is not installed; {install_hint('mcp')}"
    answer = try_mcp_server(server, paths.project)
    if answer.problem:
        return "MCP server", ERROR, f"{server} mcp {answer.problem}"
    return "MCP server", OK, f"{server} mcp answers in {answer.seconds:.2f} s"


def check_terminal() -> Iterator[Found]:
    """Check what the terminal can show, and how texts are copied."""
    import shutil

    term = os.environ.get("TERM", "")
    yield "TERM", WARNING if term in {"", "dumb"} else OK, term or "not set"
    depth = os.environ.get("COLORTERM") or ("256" if "256" in term else "few")
    yield "colours", NOTE, "off (NO_COLOR)" if os.environ.get("NO_COLOR") else depth
    encoding = (sys.stdout.encoding or "unknown").lower()
    yield "encoding", OK if "utf" in encoding else WARNING, encoding
    size = shutil.get_terminal_size()
    yield "size", WARNING if size.columns < 80 or size.lines < 24 else OK, f"{size.columns} x {size.lines}"
    if os.environ.get("TMUX"):
        yield _tmux()


def _tmux() -> Found:
    import subprocess

    command = ["tmux", "show-options", "-sv", "set-clipboard"]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, timeout=2, check=False).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        return "tmux", NOTE, f"cannot be queried: {error}"
    if shown == "on":
        return "tmux", OK, "set-clipboard on: copying works"
    hint = "to copy from the dashboard: tmux set -s set-clipboard on"
    return "tmux", WARNING, f"set-clipboard {shown or 'unknown'}; {hint}"


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
    yield from _check_team_server(project, joined)
    yield from _check_state(project, joined)


def _check_private(file: Path) -> Found:
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
    except OSError as error:
        return "joined projects", ERROR, f"{file}: {error.strerror}"
    if mode & 0o077:
        return "joined projects", WARNING, f"{file} can be read by others; run: chmod 600 {file}"
    return "joined projects", OK, f"{file}, readable by you alone"


def _check_team_server(project: Project, joined: Joined) -> Iterator[Found]:
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
    """Return the answer, or raise Offline after `SECONDS`; name servers may be slow."""
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
