"""Folders of tasks and attempts: file paths, locks and atomic creation."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from core.base.errors import BadInput, Conflict, Refused, UnknownRecord, Unwritable
from core.base.paths import ProjectPaths, safe_component
from core.base.regexes import lazy_regex
from core.base.text import visible_line
from core.base.validation import check_count, check_text
from core.files.append_log import append_bytes, sync_folder
from core.files.file_access import file_lock, is_alive, make_draft_path, make_folder, open_regular, remove_drafts
from core.sources import episodes as sources

_DRAFTS: Final = ".drafts"  # folder below `index/` where new folders are created; readers ignore it
_DRAFT: Final = lazy_regex(r".+\.([0-9]{1,10})-[0-9a-f]{8}")
_CLAIM_SECONDS: Final = 60  # time within which a process locks a folder that it creates; after it, no lock = no owner
_MADE_ALREADY: Final = frozenset({errno.EEXIST, errno.ENOTEMPTY})


class _File:
    """Attribute of a folder: the path of a file in it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: AttemptFolder | TaskFolder, owner: type) -> Path:
        return folder.path / self._name


class AttemptFolder(Struct, frozen=True):
    """Folder `attempts/<number>/`; paths are built on access, since few are needed."""

    attempts: Path
    name: str
    number: int

    attempt = _File(sources.ATTEMPT)
    plan = _File(sources.PLAN)
    actions = _File(sources.ACTIONS)
    outcome = _File(sources.OUTCOME)  # exists if the attempt has ended

    @property
    def path(self) -> Path:
        return self.attempts / self.name

    def results(self, iteration: int) -> Path:
        return self.path / sources.RESULTS / f"iter-{iteration:03}"


class TaskFolder(Struct, frozen=True, eq=False):
    """Existing folder `tasks/<id>/`; `warnings` are problems that do not stop a call."""

    project: ProjectPaths
    id: str
    warnings: list[str] = field(default_factory=list)

    metadata = _File(sources.METADATA)
    trajectory = _File(sources.TRAJECTORY)
    reflections = _File(sources.REFLECTIONS)
    summary = _File(sources.SUMMARY)

    @classmethod
    def of(cls, project: ProjectPaths, task_id: str) -> TaskFolder:
        """Return a task folder; raise `UnknownRecord`, or `BadInput` for an unsafe path."""
        check_text(task_id, "task_id")
        folder = cls(project, safe_component(task_id))
        check_inside(project, folder.path)
        if not folder.path.is_dir():
            raise UnknownRecord(f"no task {visible_line(task_id, 80)}; list the tasks: ralphdeck task list")
        return folder

    @property
    def path(self) -> Path:
        return self.project.tasks / self.id

    def attempts(self) -> dict[int, AttemptFolder]:
        """Return all attempt folders by number; raise `BadInput` if they are a link."""
        top = self.path / sources.ATTEMPTS
        check_inside(self.project, top)
        try:
            with os.scandir(top) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return {}
        found = sources.select_attempt_folders(names)
        return {number: AttemptFolder(top, name, number) for number, name in found.items()}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the task for writing; raise `Conflict` if another process keeps it locked."""
        with file_lock(self.path / ".task.lock", timeout=Conflict):
            remove_abandoned(self.project)
            yield


def find_attempt_folder(folder: TaskFolder, number: int | None) -> AttemptFolder:
    """Return the folder of an attempt, by default of the newest attempt.

    Raises BadInput if it is outside of the project or the number is invalid, Refused if the task has no attempt, and
    UnknownRecord if it has no attempt with this number.
    """
    if number is not None:
        check_count(number, "attempt", sources.MAX_ATTEMPTS)
    places = folder.attempts()
    if not places:
        raise Refused(f"{folder.id} has no attempt yet; start one: ralphdeck task start {folder.id}")
    place = places.get(max(places) if number is None else number)
    if place is None:
        raise UnknownRecord(f"{folder.id} has no attempt {number}")
    check_inside(folder.project, place.path)
    return place


def check_inside(project: ProjectPaths, path: Path) -> None:
    """Raise `BadInput` if a path is outside of the project or contains a link."""
    project.unlinked(project.relative(path))


@contextmanager
def lock_index(project: ProjectPaths) -> Iterator[None]:
    """Lock the index; needed to create a task and to write the index."""
    check_inside(project, project.task_index)
    with file_lock(project.task_index / ".lock"):
        remove_abandoned(project)
        yield


def create_folder(project: ProjectPaths, folder: Path, files: Mapping[str, bytes]) -> bool:
    """Create a folder with files atomically and durably; return False if it exists.

    The caller must hold the lock, since another writer could create an empty folder with this name. Raises Unwritable
    if the folder cannot be created.
    """
    drafts = project.task_index / _DRAFTS
    check_inside(project, folder)
    check_inside(project, drafts)
    draft = drafts / f"{folder.name}.{os.getpid()}-{os.urandom(4).hex()}"
    try:
        _make_folder(folder.parent)
        _make_folder(drafts)
        make_folder(draft)
        owned = os.open(draft, os.O_RDONLY)
        try:
            fcntl.flock(owned, fcntl.LOCK_EX)
            for name, data in files.items():
                _write_new(draft / name, data)
            sync_folder(draft)
            if os.path.lexists(folder):
                return False
            draft.rename(folder)
        except OSError as error:
            if error.errno in _MADE_ALREADY:
                return False
            raise
        finally:
            _remove_folder(draft)
            os.close(owned)
        sync_folder(folder.parent)
    except OSError as error:
        raise Unwritable(f"cannot create {folder}: {error.strerror}") from None
    return True


def store_file(project: ProjectPaths, path: Path, data: bytes, *, drafts: Path) -> None:
    """Write a new file; do nothing if it exists with the same content.

    `drafts` is the folder for the temporary file: on the same file system, and not read by readers of results. Raises
    BadInput if the file exists with other content or the path is outside of the project.
    """
    check_inside(project, path)
    try:
        _make_folder(path.parent)
        remove_drafts(drafts)
        draft = make_draft_path(drafts / path.name)
        try:
            _write_new(draft, data)
            os.link(draft, path)
        except FileExistsError:
            same = path.is_file() and not path.is_symlink() and path.stat().st_size == len(data)
            if not same or path.read_bytes() != data:
                raise BadInput(f"{project.relative(path)} exists with other content; use another name") from None
        finally:
            draft.unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        raise Unwritable(f"cannot write {path}: {error.strerror}") from None


def _write_new(path: Path, data: bytes) -> None:
    handle = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        append_bytes(handle, data)
    finally:
        os.close(handle)


def _make_folder(folder: Path) -> None:
    """Create a folder and its parents, and sync them to disk."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        make_folder(folder)
        sync_folder(folder.parent)


def remove_abandoned(project: ProjectPaths) -> None:
    """Remove unfinished folders of killed writers from `index/.drafts/`."""
    drafts = project.task_index / _DRAFTS
    if drafts.is_symlink() or not drafts.is_dir():
        return
    with suppress(OSError):  # another writer has removed it, or the disk is read-only; leftovers do no harm
        for draft in drafts.iterdir():
            name = _DRAFT.fullmatch(draft.name)
            if name is not None and not draft.is_symlink() and not _is_owned(draft, int(name[1])):
                _remove_folder(draft)


def _remove_folder(folder: Path) -> None:
    import shutil  # not needed to append actions

    shutil.rmtree(folder, ignore_errors=True)


def _is_owned(draft: Path, pid: int) -> bool:
    """Whether a running process is still writing a folder."""
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
