"""What connecting or disconnecting agents would change, file by file; writes nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from msgspec import Struct

from core.agents.agent_table import AGENTS
from core.agents.connection_table import CONNECTIONS, Connection, FilePaths, fill
from core.agents.entries import HookEntries, McpEntry, TomlTable, open_json, parse_toml
from core.base.errors import BadInput
from core.files.file_reader import decode_json
from core.files.managed_text import (
    SHARED_INSTRUCTIONS,
    Block,
    OwnFile,
    find_linked_file,
    imports_shared,
    read_part,
)

if TYPE_CHECKING:
    from core.agents.restore_points import RestorePoint

_HOOK_BY_HAND: Final = b"--hook claude-code"  # docs/agents.md#hooks-by-hand
_TEXTS: Final = Path(__file__).parent
_PURPOSES: Final = {
    "hooks": "records sessions, gives lessons",
    "mcp": "lets the agent ask for lessons",
    "instructions": "reminds the agent to ask",
    "skill": "explains the commands to it",
}
"""What each kind of part is for."""

Contents = dict[Path, bytes | None]


class Editor(Protocol):
    """Adds one thing to a file of an agent and removes it; both return equal bytes if there is nothing to do."""

    def merge(self, data: bytes | None) -> bytes: ...

    def strip(self, data: bytes, original: bytes | None = None) -> bytes: ...


class Part(NamedTuple):
    """One thing in one file; a part that is not wanted is removed if it is there."""

    kind: str  # hooks, mcp, instructions or skill
    path: Path
    root: Path  # folder that the path must not leave by a link
    shown: str
    editor: Editor
    is_wanted: bool = True


class FileChange(NamedTuple):
    """A file that changes; None means that it does not exist."""

    path: Path
    shown: str
    before: bytes | None
    after: bytes | None
    original: bytes | None  # the file without anything of ralphdeck
    kinds: tuple[str, ...]  # kinds of the parts in the file

    @property
    def purpose(self) -> str:
        """What ralphdeck's part of the file is for."""
        return ", ".join(_PURPOSES[kind] for kind in dict.fromkeys(self.kinds))


class AgentPlan(NamedTuple):
    """The changes for one agent; none if there is a problem."""

    agent: str
    changes: tuple[FileChange, ...] = ()
    problem: str = ""
    is_connected: bool = False  # whether the agent's files have hooks or the MCP server of ralphdeck
    notes: tuple[str, ...] = ()
    left: tuple[str, ...] = ()  # what is left for the user


class Target(Struct, frozen=True):
    """Where and what to connect."""

    project: Path
    program: str = "ralphdeck"  # as an agent's shell finds it
    is_global: bool = False
    has_mcp: bool = True  # without it, MCP entries are left as they are


def detect(project: Path) -> Iterator[str]:
    """Yield the agents that are installed or used in the project; starts no process."""
    for agent, connection in CONNECTIONS.items():
        has_program = any(shutil.which(name) for name in connection.programs)
        if (
            has_program
            or any(os.path.lexists(project / mark) for mark in connection.marks)
            or connection.home_folder().is_dir()
        ):
            yield agent


def parts_of(agent: str, target: Target) -> list[Part]:
    """List everything that connects an agent, in the order in which it is written."""
    connection = CONNECTIONS[agent]
    parts = []
    if connection.hooks is not None:
        file = connection.hooks
        entries = {event: file.entries.get(event, file.entry) for event in AGENTS[agent].events}
        hooks = HookEntries(entries, file.document, target.program, f"hook --agent {agent}")
        parts.append(_part("hooks", file, connection, target, hooks))
    mcp = connection.mcp
    editor: Editor = McpEntry(mcp.key, mcp.entry, mcp.document, target.program)
    if mcp.project.endswith(".toml"):
        editor = TomlTable(mcp.key, mcp.entry, target.program)
    parts.append(_part("mcp", mcp, connection, target, editor))
    if not target.is_global:
        parts += _instructions(connection, target)
    if connection.skill is not None:
        text = (_TEXTS / "skill.md").read_text("utf-8")
        parts.append(_part("skill", connection.skill, connection, target, OwnFile(text)))
    return [part for part in parts if part is not None]


def plan_connect(agents: Iterable[str], target: Target, points: Mapping[str, RestorePoint]) -> list[AgentPlan]:
    """Plan to connect agents, in the order of the table."""
    named, pending, plans = set(agents), Contents(), []
    for agent in CONNECTIONS:
        if agent not in named:
            continue
        notes: list[str] = []
        local = Contents(pending)
        try:
            parts = [*_wanted_parts(agent, target, local, notes)]
            changes = _plan_files(parts, local, points)
            if any(part.kind == "hooks" and _HOOK_BY_HAND in (local[part.path] or b"") for part in parts):
                notes.append("There are also hooks with --hook claude-code; remove them, or contexts are given twice")
        except BadInput as error:
            plans.append(AgentPlan(agent, problem=str(error)))
            continue
        pending = local
        left = CONNECTIONS[agent].list_left(is_global=target.is_global, has_mcp=target.has_mcp)
        if _runs_hooks_of_other(agent, target, local) and (to_do := CONNECTIONS[agent].runs_them_if):
            left = (*left, to_do)
        plans.append(AgentPlan(agent, changes, "", is_connected(agent, target), tuple(notes), left))
    return plans


def plan_remove(agents: Iterable[str], target: Target, points: Mapping[str, RestorePoint]) -> list[AgentPlan]:
    """Plan to remove everything of ralphdeck from the files of agents, but not what a remaining agent uses."""
    named, pending, plans = [agent for agent in CONNECTIONS if agent in set(agents)], Contents(), []
    used = {
        part.path
        for agent in CONNECTIONS
        if agent not in named and is_connected(agent, target)
        for part in parts_of(agent, target)
        if part.is_wanted
    }
    for agent in named:
        local = Contents(pending)
        try:
            parts = [part for part in parts_of(agent, target) if part.path not in used]
            changes = _plan_files(parts, local, points, CONNECTIONS[agent])
        except BadInput as error:
            plans.append(AgentPlan(agent, problem=str(error)))
            continue
        pending = local
        plans.append(AgentPlan(agent, changes, "", bool(changes), _orphaned(agent, named, target)))
    return plans


def is_connected(
    agent: str,
    target: Target,
    kinds: Collection[str] = ("hooks", "mcp"),
    contents: Mapping[Path, bytes | None] = MappingProxyType({}),
) -> bool:
    """Return whether a file of the agent has its hooks or MCP server; False if the file cannot be read.

    `contents` are files as planned.
    """
    for part in parts_of(agent, target):
        if part.kind in kinds:
            with suppress(BadInput):
                data = contents[part.path] if part.path in contents else read_part(part.path, part.root)
                if data is not None and part.editor.strip(data) != data:
                    return True
    return False


def find_connected(project: Path) -> tuple[str, ...]:
    """Return the titles of the agents that are connected to a project, in its files or in those of the user."""
    targets = [Target(project, is_global=is_global) for is_global in (False, True)]
    return tuple(AGENTS[agent].title for agent in AGENTS if any(is_connected(agent, target) for target in targets))


def read_parsed(agent: str, file: str, target: Target) -> dict[str, Any]:
    """Read a JSON or TOML file of the agent, named as in the table; {} if it is missing or damaged."""
    path, root = CONNECTIONS[agent].resolve(file, target.project)
    try:
        data = read_part(path, root)
        if data is None:
            return {}
        value = parse_toml(data) if path.suffix == ".toml" else decode_json(data).value
    except BadInput:
        return {}
    return value if isinstance(value, dict) else {}


def _part(kind: str, file: FilePaths, connection: Connection, target: Target, editor: Editor) -> Part | None:
    path = file.user if target.is_global else file.project
    if not path:
        return None
    absolute, root = connection.resolve(path, target.project)
    return Part(kind, absolute, root, _shown(absolute, target), editor)


def _shown(path: Path, target: Target) -> str:
    if not target.is_global and path.is_relative_to(target.project):
        return path.relative_to(target.project).as_posix()
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)


def _instructions(connection: Connection, target: Target) -> Iterator[Part]:
    """Yield the section in the agent's file, or in AGENTS.md if that file imports it."""
    editor = Block((_TEXTS / "section.md").read_text("utf-8"))
    names = {SHARED_INSTRUCTIONS, *(connection.instructions for connection in CONNECTIONS.values())}
    own = find_linked_file(target.project / connection.instructions, target.project, names)
    shared = find_linked_file(target.project / SHARED_INSTRUCTIONS, target.project, names)
    if own != shared and imports_shared(own, target.project):
        yield Part("instructions", own, target.project, _shown(own, target), editor, is_wanted=False)
        own = shared
    yield Part("instructions", own, target.project, _shown(own, target), editor)


def _wanted_parts(agent: str, target: Target, contents: Contents, notes: list[str]) -> Iterator[Part]:
    connection = CONNECTIONS[agent]
    other, is_shared = connection.runs_hooks_of, _runs_hooks_of_other(agent, target, contents)
    if has_plugin := _has_plugin(agent, target):
        notes.append(f"{AGENTS[agent].title} has the ralphdeck plugin, which brings hooks, MCP server and skill")
    for part in parts_of(agent, target):
        if part.kind == "mcp" and not target.has_mcp:
            continue
        if part.kind != "instructions" and has_plugin:
            part = part._replace(is_wanted=False)
        if part.kind == "hooks" and is_shared:
            notes.append(
                f"{AGENTS[agent].title} also runs the hooks of {AGENTS[other].title}, so it gets none of its own"
            )
            part = part._replace(is_wanted=False)
        yield part
    if target.is_global and target.has_mcp and connection.mcp.by_hand:
        notes.append(f"For the MCP server in all projects: {fill(connection.mcp.by_hand, program=target.program)}")


def _runs_hooks_of_other(agent: str, target: Target, contents: Contents) -> bool:
    """Return whether the agent gets no hooks of its own, because it runs those of another one."""
    other = CONNECTIONS[agent].runs_hooks_of
    return bool(other) and not target.is_global and is_connected(other, target, ("hooks",), contents)


def _has_plugin(agent: str, target: Target) -> bool:
    listed = CONNECTIONS[agent].plugin
    for file in listed.files if listed is not None else ():
        plugins = read_parsed(agent, file, target).get(listed.key) if listed is not None else None
        for name, value in plugins.items() if isinstance(plugins, dict) else ():
            is_on = value is True or (isinstance(value, dict) and value.get("enabled") is True)
            if is_on and name.startswith("ralphdeck@"):
                return True
    return False


def _orphaned(agent: str, removed: Iterable[str], target: Target) -> tuple[str, ...]:
    """Name the agents that ran the hooks of a removed one."""
    return tuple(
        f"{AGENTS[other].title} ran these hooks too; to give it its own: ralphdeck connect {other}"
        for other, connection in CONNECTIONS.items()
        if connection.runs_hooks_of == agent
        and other not in removed
        and not target.is_global
        and is_connected(other, target)
    )


def _plan_files(
    parts: Sequence[Part],
    contents: Contents,
    points: Mapping[str, RestorePoint],
    removed_from: Connection | None = None,
) -> tuple[FileChange, ...]:
    """Plan to merge all parts, or to remove them from the files of an agent; `contents` are brought up to date."""
    changes = []
    for path in dict.fromkeys(part.path for part in parts):
        own = [part for part in parts if part.path == path]
        with _named(own[0]):
            old = contents[path] if path in contents else read_part(path, own[0].root)
            point = points.get(str(path))
            known = point if point is not None and point.matches(old) else None
            if removed_from is None:
                new = old
                for part in own:
                    new = part.editor.merge(new) if part.is_wanted else _strip([part], new)
                original = known.original if known is not None else _strip(own, old)
            else:
                new = _strip(own, old, point.original if point is not None else None)
                if new != old and known is not None:
                    new = known.original
                elif new != old and (point is None or point.original is None) and _is_empty(new, removed_from):
                    new = None
                original = new
            contents[path] = new
            if new != old:
                check_writable(path, own[0].root)
                kinds = tuple(part.kind for part in own)
                changes.append(FileChange(path, own[0].shown, old, new, original, kinds))
    return tuple(changes)


def _strip(parts: Iterable[Part], data: bytes | None, original: bytes | None = None) -> bytes | None:
    for part in parts:
        data = None if data is None else part.editor.strip(data, original)
    return data


def _is_empty(data: bytes | None, connection: Connection) -> bool:
    """Return whether only what a new file has is left."""
    if data is None or not data.strip():
        return True
    documents = [{}, connection.mcp.document, *([connection.hooks.document] if connection.hooks else [])]
    try:
        return open_json(data).value in documents
    except BadInput:
        return False


def check_writable(path: Path, root: Path) -> None:
    """Raise BadInput if a file or its folder is read-only."""
    try:
        if path.exists() and (not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK)):
            raise BadInput("is read-only")
        folder = next(place for place in path.parents if place.exists())
    except OSError as error:
        raise BadInput(f"cannot be written: {error.strerror}") from None
    if not folder.stat().st_mode & 0o222 or not os.access(folder, os.W_OK | os.X_OK):
        raise BadInput(f"the folder {folder.name if folder != root else folder} is read-only")


@contextmanager
def _named(part: Part) -> Iterator[None]:
    """Put the name of the file before the message of a BadInput."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{part.shown}: {error}") from None
