"""The folder of a task and those of its attempts: where their files lie, who may write them, how they come to be."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from core.base.errors import BadInput, Refused, UnknownRecord, Unwritable
from core.base.text import visible_line
from core.base.validation import check_count, check_text
from core.config.paths import ProjectPaths, safe_component
from core.sources.episodes import (
    ACTIONS,
    ATTEMPT,
    ATTEMPTS,
    MAX_ATTEMPTS,
    METADATA,
    OUTCOME,
    PLAN,
    REFLECTIONS,
    RESULTS,
    SUMMARY,
    TRAJECTORY,
    select_attempt_folders,
)
from core.storage.append_log import append_bytes, sync_folder
from core.storage.locks import draft_of, file_lock, is_alive, lease, open_regular, remove_drafts

_DRAFTS: Final = ".drafts"
"""Below `index/`: folders that are being made; no reader looks there."""
_DRAFT: Final = re.compile(r".+\.([0-9]{1,10})-[0-9a-f]{8}")
_CLAIM_SECONDS: Final = 60
"""Time a process has to lock a folder that it creates; an unlocked folder older than this has no owner."""
_MADE_ALREADY: Final = frozenset({errno.EEXIST, errno.ENOTEMPTY})


@dataclass(frozen=True, slots=True)
class AttemptFolder:
    """`attempts/<number>/`; of a thousand of them few are looked into."""

    attempts: Path
    name: str
    number: int

    @property
    def path(self) -> Path:
        """The folder."""
        return self.attempts / self.name

    @property
    def attempt(self) -> Path:
        """What was planned, how it went, how it came out."""
        return self.path / ATTEMPT

    @property
    def plan(self) -> Path:
        """The plan, Markdown."""
        return self.path / PLAN

    @property
    def actions(self) -> Path:
        """What was done, append-only."""
        return self.path / ACTIONS

    @property
    def outcome(self) -> Path:
        """How it came out; the attempt is over once this file is there."""
        return self.path / OUTCOME

    def results(self, iteration: int) -> Path:
        """What an iteration brought."""
        return self.path / RESULTS / f"iter-{iteration:03}"


@dataclass(frozen=True, slots=True)
class TaskFolder:
    """`tasks/<id>/` of a project, which exists and lies inside `.aiwg`.

    Attributes:
        warnings: What went wrong with files that only follow from those of tasks, and stops nobody.
    """

    project: ProjectPaths
    id: str
    warnings: list[str] = field(default_factory=list, compare=False)

    @classmethod
    def of(cls, project: ProjectPaths, task_id: str) -> TaskFolder:
        """The folder of a task.

        Raises:
            BadInput: The id cannot be part of a path, or the folder leads out of the project.
            UnknownRecord: There is no such task.
        """
        check_text(task_id, "task_id")
        folder = cls(project, safe_component(task_id))
        inside(project, folder.path)
        if not folder.path.is_dir():
            raise UnknownRecord(f"no task {visible_line(task_id, 80)}; see: ralphdeck task list")
        return folder

    @property
    def path(self) -> Path:
        """The folder."""
        return self.project.tasks / self.id

    @property
    def metadata(self) -> Path:
        """What the task is, and how it stands."""
        return self.path / METADATA

    @property
    def trajectory(self) -> Path:
        """All attempts that ended."""
        return self.path / TRAJECTORY

    @property
    def reflections(self) -> Path:
        """What was learned, append-only."""
        return self.path / REFLECTIONS

    @property
    def summary(self) -> Path:
        """All attempts in a few numbers."""
        return self.path / SUMMARY

    def relative(self, path: Path) -> str:
        """A path as records name it, below the project."""
        return self.project.relative(path)

    def attempts(self) -> dict[int, AttemptFolder]:
        """The folders of attempts by number, in their order.

        Raises:
            BadInput: `attempts/` leads out of the project.
        """
        top = self.path / ATTEMPTS
        inside(self.project, top)
        try:
            with os.scandir(top) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return {}
        return {number: AttemptFolder(top, name, number) for number, name in select_attempt_folders(names).items()}

    def new_attempt(self, number: int) -> AttemptFolder:
        """Where the folder of a further attempt will be."""
        return AttemptFolder(self.path / ATTEMPTS, f"{number:03}", number)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep all other writers of this task out.

        Raises:
            Conflict: Another program holds the lease of the task all the time.
            Unwritable: The lock cannot be made.
        """
        with lease(self.path / ".task.lock", self.path / ".lease.lock"):
            remove_abandoned(self.project)
            yield


def find_attempt_folder(folder: TaskFolder, number: int | None) -> AttemptFolder:
    """The folder of an attempt, or of the newest one.

    Raises:
        BadInput: It leads out of the project, or `number` is none.
        Refused: The task has no attempt at all.
        UnknownRecord: It has none of this number.
    """
    if number is not None:
        check_count(number, "attempt", MAX_ATTEMPTS)
    places = folder.attempts()
    if not places:
        raise Refused(f"{folder.id} has no attempt yet; begin with: ralphdeck task start {folder.id}")
    place = places.get(max(places) if number is None else number)
    if place is None:
        raise UnknownRecord(f"{folder.id} has no attempt {number}")
    inside(folder.project, place.path)
    return place


def inside(project: ProjectPaths, path: Path) -> None:
    """Refuse a path that leads out of the project, or through a link: it may be that of a loop or of the registry.

    Raises:
        BadInput: It does.
    """
    project.unlinked(project.relative(path))


@contextmanager
def lock_index(project: ProjectPaths) -> Iterator[None]:
    """Keep all others from giving out ids of tasks and from writing the index.

    Raises:
        Unwritable: Another process keeps it too long, or it cannot be made.
    """
    inside(project, project.task_index)
    with file_lock(project.task_index / ".lock"):
        remove_abandoned(project)
        yield


def publish(project: ProjectPaths, folder: Path, files: Mapping[str, bytes]) -> bool:
    """Make a folder with files in it appear at once and durably; False if there is something of this name already.

    The caller keeps other writers out, who could else make an empty folder of this name.

    Raises:
        Unwritable: The disk or a permission forbids it; no such folder appears.
    """
    inside(project, folder)
    inside(project, project.task_index / _DRAFTS)
    drafts = project.task_index / _DRAFTS
    draft = drafts / f"{folder.name}.{os.getpid()}-{os.urandom(4).hex()}"
    try:
        _make_folder(folder.parent)
        _make_folder(drafts)
        draft.mkdir()
        owned = os.open(draft, os.O_RDONLY)
        try:
            fcntl.flock(owned, fcntl.LOCK_EX)
            for name, data in files.items():
                handle = open_regular(draft / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                try:
                    append_bytes(handle, data)
                finally:
                    os.close(handle)
            sync_folder(draft)
            if os.path.lexists(folder):
                return False
            draft.rename(folder)
        except OSError as error:
            if error.errno in _MADE_ALREADY:
                return False
            raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            os.close(owned)
        sync_folder(folder.parent)
    except OSError as error:
        raise Unwritable(f"cannot make {folder}: {error.strerror}") from None
    return True


def store_file(project: ProjectPaths, path: Path, data: bytes, *, drafts: Path) -> None:
    """Put a file under a name that is free; nothing happens if it holds `data` already.

    Args:
        drafts: A folder on the same disk in which nobody takes for a result what a killed writer left of it.

    Raises:
        BadInput: Something else has this name, or the path leads out of the project.
        Unwritable: The disk or a permission forbids it.
    """
    inside(project, path)
    try:
        _make_folder(path.parent)
        remove_drafts(drafts)
        draft = draft_of(drafts / path.name)
        handle = open_regular(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            append_bytes(handle, data)
            os.link(draft, path)
        except FileExistsError:
            same = path.is_file() and not path.is_symlink() and path.stat().st_size == len(data)
            if not same or path.read_bytes() != data:
                raise BadInput(f"{project.relative(path)} holds something else already; give another name") from None
        finally:
            os.close(handle)
            draft.unlink()
        sync_folder(path.parent)
    except OSError as error:
        raise Unwritable(f"cannot write {path}: {error.strerror}") from None


def _make_folder(folder: Path) -> None:
    """A folder with all those above it, durably."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def remove_abandoned(project: ProjectPaths) -> None:
    """Remove half-written folders of killed writers from `index/.drafts/`; those of running writers stay."""
    drafts = project.task_index / _DRAFTS
    if drafts.is_symlink() or not drafts.is_dir():
        return
    with suppress(OSError):  # another writer removes the same, or only reading is allowed: no reader looks there
        for draft in drafts.iterdir():
            name = _DRAFT.fullmatch(draft.name)
            if name is not None and not draft.is_symlink() and not _is_owned(draft, int(name[1])):
                shutil.rmtree(draft, ignore_errors=True)


def _is_owned(draft: Path, pid: int) -> bool:
    """Whether a running process still writes a folder; a process that only got the same number owns nothing."""
    if not is_alive(pid):
        return False
    if time.time() - draft.stat().st_mtime < _CLAIM_SECONDS:
        return True
    handle = os.open(draft, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
