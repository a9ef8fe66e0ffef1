"""What writing or removing approved lessons would change in files of agents; writes nothing (docs/instructions.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from core.agents.plan import FileChange, check_writable
from core.base.errors import BadInput
from core.files.file_access import remove_drafts
from core.files.managed_text import Block, decode_text, read_part
from core.index.compiled import TARGETS, CompiledFile, is_edited, read_present, render_target

if TYPE_CHECKING:
    from core.index.compiled import FileStatus

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
    """Plan to bring the files of a target up to date; an edited file is only changed by `force` or an answer."""
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
    """Plan to remove the lessons from the files of a target; an edited file is only changed by `force`.

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
    """Return a file without lessons; None if there is none, or if there was none before the lessons."""
    if data is None:
        return None
    editor = file.editor(replaces_edits=True)
    stripped = editor.strip(data)
    block = editor.find(decode_text(data)) if isinstance(editor, Block) else None
    was_there = block is not None and block.added.isdigit()
    return stripped if stripped.strip() or stripped == data or was_there else None
