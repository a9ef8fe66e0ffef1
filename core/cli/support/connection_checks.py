"""The checks of `ralphdeck doctor` on connected agents and the terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.agents.agent_table import AGENTS
from core.base.errors import BadInput, RalphdeckError, install_hint
from core.base.paths import find_project
from core.base.text import plural, visible_line
from core.cli.support.project import now
from core.files.file_access import open_regular
from core.records.times import minute_of

if TYPE_CHECKING:
    from core.agents.plan import Target
    from core.base.paths import ProjectPaths

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
    """Count the new sessions of Claude Code in subfolders of the project that sent no event."""
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
    """Return whether the session of a transcript worked in a subfolder that is not a project of its own."""
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
