"""Plan and write what connecting agents or compiling lessons changes in files.

Plans write nothing (docs/agents.md#connect, docs/instructions.md). Applying one writes all files of an agent or none.
What the files were before is in restore points in the user's state folder, which are readable by the user alone,
because settings may contain secrets.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from core.agents.agent_table import AGENTS
from core.agents.entries import (
    CONNECTIONS,
    Connection,
    FilePaths,
    HookEntries,
    McpEntry,
    TomlTable,
    fill,
    open_json,
    parse_toml,
)
from core.base.errors import BadInput, Conflict, RalphdeckError, Unwritable
from core.files.append_log import sync_folder
from core.files.atomic_write import put, rewrite, take_theirs
from core.files.file_access import file_lock, remove_drafts
from core.files.file_reader import RawFile, decode_json, read_file
from core.files.managed_text import (
    SHARED_INSTRUCTIONS,
    Block,
    OwnFile,
    decode_text,
    find_linked_file,
    imports_shared,
    read_part,
)
from core.index.compiled import TARGETS, CompiledFile, is_edited, read_present, render_target

if TYPE_CHECKING:
    from core.index.compiled import FileStatus

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
    """Adds or removes one thing in an agent's file; equal bytes if nothing to do."""

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
    """Plan to remove ralphdeck from agents' files, but not what other agents use."""
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
    """Return whether an agent's file has its hooks or server; False if unreadable.

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
    """Return titles of agents connected to a project, by its or the user's files."""
    targets = [Target(project, is_global=is_global) for is_global in (False, True)]
    return tuple(AGENTS[agent].title for agent in AGENTS if any(is_connected(agent, target) for target in targets))


def read_parsed(agent: str, file: str, target: Target) -> dict[str, Any]:
    """Read a JSON or TOML file, named as in the table; {} if missing or damaged."""
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
    """Return whether the agent gets no hooks because it runs those of another one."""
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
    """Plan to merge parts or remove them from an agent's files; update `contents`."""
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


# Applying a plan


def apply_plan(plan: AgentPlan, points_file: Path) -> None:
    """Write the files of one agent; on an error, restores those that were written.

    The restore points are saved before the files, so that a killed process leaves no file without one.
    Raises Conflict if a file is not what the plan was made from, Unwritable if it cannot be written.
    """
    with file_lock(points_file.with_suffix(".lock")):
        points = load_points(points_file)
        before = dict(points)
        done: list[tuple[FileChange, list[Path]]] = []
        emptied: list[Path] = []
        try:
            folders = [_missing_folders(change.path.parent) for change in plan.changes]
            for change, missing in zip(plan.changes, folders, strict=True):
                emptied += _note(points, change, missing)
            save_points(points_file, {**before, **points})
            for change, missing in zip(plan.changes, folders, strict=True):
                done.append((change, missing))
                change.path.parent.mkdir(parents=True, exist_ok=True)
                _write(change)
            save_points(points_file, {path: point for path, point in points.items() if os.path.lexists(path)})
        except (OSError, RalphdeckError) as error:
            for change, missing in reversed(done):
                with suppress(OSError, RalphdeckError):
                    _write(change._replace(before=change.after, after=change.before))
                _remove_folders(missing)
            if isinstance(error, RalphdeckError):
                raise
            raise Unwritable(f"cannot write {error.filename or points_file}: {error.strerror}") from None
        _remove_folders(emptied)


def remove_old_drafts(project: Path) -> None:
    """Remove drafts of agents' files and `.gitignore` left by killed processes."""
    parts = [part for agent in AGENTS for part in parts_of(agent, Target(project))]
    for path in {project / ".gitignore", *(part.path for part in parts if part.path.is_relative_to(project))}:
        remove_drafts(path.parent, path.name)


def _write(change: FileChange) -> None:
    """Replace, create or delete one file, unless its content is not the expected one."""

    def replace(present: bytes | None) -> bytes | None:
        if present not in (change.before, change.after):
            raise Conflict(f"{change.shown} was changed by another program meanwhile; run the command again")
        return change.after

    if change.after is not None:
        rewrite(change.path, replace, merge=take_theirs, retry_seconds=())
    elif change.path.is_file() and replace(change.path.read_bytes()) is None:
        change.path.unlink()
        sync_folder(change.path.parent)


def _note(points: RestorePoints, change: FileChange, folders: list[Path]) -> list[Path]:
    """Record what the file was; return folders not needed if the file is deleted."""
    present = points.pop(str(change.path), None)
    made = [*(present.folders if present else []), *map(str, folders)]
    if change.after is None:
        own = [change.path.parent] if change.path.parent.name.startswith("ralphdeck") else []
        return [*map(Path, made), *own]
    if change.after != change.original:
        points[str(change.path)] = RestorePoint(sha256(change.after).hexdigest(), change.original, made)
    return []


def _missing_folders(folder: Path) -> list[Path]:
    """Return the folder and its parents that do not exist, outermost first."""
    return [place for place in (folder, *folder.parents) if not place.exists()][::-1]


def _remove_folders(folders: list[Path]) -> None:
    """Remove the folders that are empty, innermost first."""
    for folder in sorted(set(folders), key=lambda place: -len(place.parts)):
        with suppress(OSError):
            folder.rmdir()


# Restore points


_MAX_BYTES: Final = 64 << 20


class RestorePoint(Struct, frozen=True):
    """A file before it was changed."""

    written: str  # SHA-256 (hex) of what ralphdeck wrote
    original: bytes | None  # None if there was no file
    folders: list[str] = []  # that ralphdeck made for it, outermost first

    def matches(self, data: bytes | None) -> bool:
        """Return whether the file is still what ralphdeck wrote."""
        return data is not None and sha256(data).hexdigest() == self.written


RestorePoints = dict[str, RestorePoint]  # by the absolute path of the file


def load_points(file: Path) -> RestorePoints:
    """Read the restore points; a missing or damaged file has none."""
    read = read_file(file, file.parent, _MAX_BYTES)
    if not isinstance(read, RawFile):
        return {}
    try:
        return msgspec.json.decode(read.data, type=RestorePoints)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return {}


def save_points(file: Path, points: RestorePoints) -> None:
    """Write the restore points; an OSError leaves the file unchanged."""
    mask = os.umask(0o077)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        put(file, msgspec.json.encode(points))
    finally:
        os.umask(mask)


# Lessons in files of agents

EDITED: Final = "the lessons were edited; answer the question in Review, or replace the edit with --force"
LEFT: Final = "is left as it was edited, as answered in Review"


class FilePlan(NamedTuple):
    """What is planned for one file: a change, or why there is none."""

    path: str
    change: FileChange | None = None
    problem: str = ""
    note: str = ""


class CompilePlan(NamedTuple):
    """What is planned for the files of a target."""

    target: str
    files: tuple[FilePlan, ...]

    @property
    def changes(self) -> tuple[FileChange, ...]:
        return tuple(file.change for file in self.files if file.change is not None)

    def failed(self, problem: str) -> CompilePlan:
        """Return the plan after an attempt to write that changed no file."""
        files = (file._replace(change=None, problem=problem) if file.change else file for file in self.files)
        return self._replace(files=tuple(files))

    @property
    def has_problem(self) -> bool:
        return any(file.problem for file in self.files)


def find_targets(project: Path) -> list[str]:
    """Return the targets of which a file has lessons, or cannot be read."""
    return [target for target in TARGETS if plan_removal(target, project).files]


def plan_writing(target: str, files: Iterable[FileStatus], project: Path, *, force: bool = False) -> CompilePlan:
    """Plan to update a target's files; an edited one only by `force` or an answer."""
    return CompilePlan(target, tuple(_plan_file(file, project, force=force) for file in files if file.exists_or_should))


def _plan_file(status: FileStatus, project: Path, *, force: bool) -> FilePlan:
    if status.status == "broken":
        return FilePlan(status.path, problem=status.details[0])
    if status.status == "left" and not force:
        return FilePlan(status.path, note=LEFT)
    if status.status == "current" and not force:
        return FilePlan(status.path)
    if status.status == "edited" and not (force or status.may_replace):
        return FilePlan(status.path, problem=EDITED)
    return _plan_change(status.file, project)


def plan_removal(target: str, project: Path, answered: Collection[str] = (), *, force: bool = False) -> CompilePlan:
    """Plan to remove lessons from a target's files; an edited one only by `force`.

    `answered` are the questions that are dismissed; an edit that was taken over is not one any more.
    """
    files = []
    for file in render_target(target, (), project):
        try:
            present = read_present(file, project)
        except BadInput as error:
            files.append(FilePlan(file.path, problem=str(error).removeprefix(f"{file.path}: ")))
            continue
        if present is not None and not force and is_edited(file.path, present, answered):
            files.append(FilePlan(file.path, problem=EDITED))
        elif present is not None:
            files.append(_plan_change(file, project))
    return CompilePlan(target, tuple(files))


def _plan_change(file: CompiledFile, project: Path) -> FilePlan:
    """Plan to write the lessons of a file, or to remove them if it must have none."""
    path, editor = project / file.path, file.editor(replaces_edits=True)
    try:
        before = read_part(path, project)
        original = _remove_lessons(file, before)
        after = editor.merge(before) if file.text else original
        if after == before:
            return FilePlan(file.path)
        check_writable(path, project)
    except BadInput as error:
        return FilePlan(file.path, problem=str(error))
    return FilePlan(file.path, FileChange(path, file.path, before, after, original, ("lessons",)))


def remove_drafts_of(plan: CompilePlan, project: Path) -> None:
    """Remove the drafts of the planned files that killed processes have left."""
    for file in plan.files:
        path = project / file.path
        remove_drafts(path.parent, path.name)


def _remove_lessons(file: CompiledFile, data: bytes | None) -> bytes | None:
    """Return a file without lessons; None if there is, or was before them, none."""
    if data is None:
        return None
    editor = file.editor(replaces_edits=True)
    stripped = editor.strip(data)
    block = editor.find(decode_text(data)) if isinstance(editor, Block) else None
    was_there = block is not None and block.added.isdigit()
    return stripped if stripped.strip() or stripped == data or was_there else None
