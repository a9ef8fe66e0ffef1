"""Files of tasks: paths, locks, lookup, atomic folders, byte-preserving edits."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from core.base.errors import BadInput, Conflict, Refused, UnknownRecord, Unwritable
from core.base.paths import SAFE_ID, ProjectPaths, safe_component
from core.base.regexes import lazy_regex
from core.base.text import visible_line
from core.base.validation import (
    RETRY_SECONDS,
    ambiguous_id_error,
    check_count,
    check_text,
    find_matching_ids,
    name_ids,
    suggest_id,
)
from core.files.append_log import append_bytes, sync_folder
from core.files.atomic_write import rewrite
from core.files.file_access import file_lock, is_alive, make_draft_path, make_folder, open_regular, remove_drafts
from core.files.file_reader import MAX_BYTES, Line, Problem, RawFile, decode_json, decode_jsonl, open_file, read_file
from core.files.json_editor import BadJson, JsonText
from core.files.json_editor import Path as Pointer
from core.sources import episodes as sources
from core.sources.record_kinds import is_text

_DRAFTS: Final = ".drafts"  # folder below `index/` where new folders are created; readers ignore it
_DRAFT: Final = lazy_regex(r".+\.([0-9]{1,10})-[0-9a-f]{8}")
_CLAIM_SECONDS: Final = 60  # time within which a process locks a folder that it creates; after it, no lock = no owner
Edit = Callable[[JsonText], None]  # changes a document; applying it to its own result must change nothing
Shapes = Mapping[Pointer, type[dict[str, Any]] | type[list[Any]]]  # expected types of existing values, outer ones first
TRAJECTORY_SHAPES: Final[Shapes] = {("attempts",): list}  # expected types in `trajectory.json`
ROOM: Final = 1 << 16  # bytes that a step may add to each file besides the texts of the caller
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

    def check_editable(self, *places: AttemptFolder, room: int = ROOM) -> None:
        """Raise `Conflict` if files of the task or attempts `places` cannot be written."""
        root = self.project.aiwg
        check_editable(self.trajectory, root, TRAJECTORY_SHAPES, room=room)
        of_attempts = (path for place in places for path in (place.attempt, place.outcome))
        for path in (self.metadata, self.summary, *of_attempts):
            check_editable(path, root, room=room)
        if self.reflections.is_symlink() or not (self.reflections.is_file() or not self.reflections.exists()):
            raise Conflict(f"{self.reflections} is not a regular file; nothing was changed. Move it away")

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


# Lookup by ID

_ATTEMPT_ID: Final = lazy_regex(r"(?P<task>.+)\.(?P<number>[0-9]{1,9})")


def task_ids(paths: ProjectPaths) -> list[str]:
    """Return the IDs of all tasks, sorted; links to folders are ignored."""
    return sorted(entry.name for entry in list_entries(paths.tasks) if entry.is_dir(follow_symlinks=False))


def find_task(paths: ProjectPaths, name: str) -> str:
    """Return the ID of the task that an ID or unambiguous part of it selects.

    Raises UnknownRecord if it matches no task, or several.
    """
    if is_task(paths, name):
        return name
    known = task_ids(paths)
    found = find_matching_ids(name, known, fragments=True)
    if len(found) == 1:
        return found[0]
    if found:
        raise ambiguous_id_error(name, found)
    asked = repr(visible_line(name, 80))
    if known:
        verb = "is" if len(known) == 1 else "are"
        raise UnknownRecord(f"no task {asked}; there {verb} {name_ids(known)}{suggest_id(name, known)}")
    raise UnknownRecord(f"no task {asked}: there are no tasks in {paths.tasks} yet")


def find_attempt(paths: ProjectPaths, name: str, number: int | None = None) -> tuple[str, int | None]:
    """Return task ID and attempt number that `name`, such as `task-001.2`, selects.

    `number` is the attempt if it is passed separately. Raises BadInput if it differs from the one in `name`, and
    UnknownRecord if the task does not exist.
    """
    parts = _ATTEMPT_ID.fullmatch(name)
    if parts is None or is_task(paths, name):
        return find_task(paths, name), number
    task_id, named = find_task(paths, parts["task"]), int(parts["number"])
    if number not in (None, named):
        raise BadInput(f"{visible_line(name, 80)} is attempt {named}, but --attempt is {number}; use only one of them")
    return task_id, named


def is_task(paths: ProjectPaths, name: str) -> bool:
    """Whether `name` is the complete ID of a task; does not list all tasks."""
    with suppress(OSError):
        return SAFE_ID.fullmatch(name) is not None and (paths.tasks / name).is_dir()
    return False


def list_entries(folder: Path, errors: list[OSError] | None = None) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a folder; none if it does not exist or is a link.

    Any other error ends the list, and is added to `errors`.
    """
    try:
        if not folder.is_symlink():
            with os.scandir(folder) as entries:
                yield from (entry for entry in entries if is_text(entry.name))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        if errors is not None:
            errors.append(error)


# JSON files

_LAST_BYTES: Final = MAX_BYTES  # number of bytes at the end of a JSON lines file that are read
_HINT: Final = "Fix the file or move it away"


def encode_object(value: Mapping[str, Any]) -> bytes:
    """Encode a new JSON file."""
    return (json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()


def _read_retried(path: Path, root: Path) -> Iterator[RawFile | None]:
    """Yield a file, repeatedly after pauses: another process may be writing it."""
    for pause in (*RETRY_SECONDS, None):
        raw = read_file(path, root)
        if isinstance(raw, Problem):
            raise Conflict(f"{path} {raw.message}; nothing was changed. {_HINT}")
        yield raw
        if pause is not None:
            time.sleep(pause)


def read_object(path: Path, root: Path) -> dict[str, Any] | None:
    """Read a JSON object (None without a file); raise `Conflict` for other content."""
    for raw in _read_retried(path, root):
        value = decode_json(raw.data).value if raw is not None else None
        if raw is None or isinstance(value, dict):
            return value
    raise Conflict(f"{path} does not contain a JSON object; nothing was changed. {_HINT}")


def read_last_lines(path: Path, root: Path) -> list[Line]:
    """Read the last lines of a JSON lines file; raise `Conflict` if it is unreadable."""
    handle = open_file(path, root)
    if handle is None:
        return []
    if isinstance(handle, Problem):
        raise Conflict(f"{path} {handle.message}; nothing was changed")
    with os.fdopen(handle, "rb") as file:
        start = max(os.fstat(handle).st_size - _LAST_BYTES, 0)
        file.seek(start)
        data = file.read(_LAST_BYTES)
    return decode_jsonl(data[data.find(b"\n") + 1 :] if start else data)[0]


def check_editable(path: Path, root: Path, shapes: Shapes | None = None, *, room: int = 0) -> None:
    """Check that `edit_object` can change a file, before other files are written.

    `shapes` are the types that the edit expects, and `room` is the number of bytes that it may add. Raises Conflict if
    the file does not contain such an object, even after retries, is a link, or is too long.
    """
    if path.is_symlink():
        raise Conflict(f"{path} is a link, which is not followed; nothing was changed")
    defect = ""
    for raw in _read_retried(path, root):
        if raw is None:
            return
        if len(raw.data) + room > MAX_BYTES:
            raise Conflict(
                f"{path} has {len(raw.data):,} bytes and no room for the change (at most {MAX_BYTES:,}); "
                "nothing was changed. Shorten the file or move it away"
            )
        try:
            check_shapes(_document(raw.data).value, shapes or {})
            return
        except BadJson as error:
            defect = str(error)
    raise Conflict(f"{path}: {defect}; nothing was changed. {_HINT}")


def check_shapes(value: Any, shapes: Shapes) -> None:
    """Raise `BadJson` if a value does not have its expected type."""
    for at, shape in shapes.items():
        inner = value
        for step in at[:-1]:
            inner = inner.get(step, {})
        inner = inner.get(at[-1], shape())
        if not isinstance(inner, shape):
            where = "/".join(map(str, at))
            raise BadJson(f"expected {'a list' if shape is list else 'an object'} under '{where}'")


def _document(data: bytes) -> JsonText:
    document = JsonText(data)
    if document.is_lines or not isinstance(document.value, dict):
        raise BadJson("it does not contain a JSON object")
    return document


def edit_object(path: Path, edit: Edit, initial: Mapping[str, Any], *, is_repeated: bool = False) -> None:
    """Change a JSON file in place and durably; create it from `initial` if needed.

    `is_repeated` is whether a later edit repeats this one: then it does not wait 10 ms to check that no slower writer
    undid it. Raises Conflict, without a change, if the file does not contain an object, other processes keep changing
    it, or it would become longer than readers accept.
    """

    def change(present: bytes | None) -> bytes:
        document = _document(encode_object(initial) if present is None else present)
        edit(document)
        changed = document.encode() if present is not None else encode_object(document.value)
        if len(changed) > MAX_BYTES and changed != present:
            limit = f"would have {len(changed):,} bytes; at most {MAX_BYTES:,} are read"
            raise Conflict(f"{path} {limit}; it was not changed. Shorten the file or move it away")
        return changed

    rewrite(path, change, merge=_merge, retry_seconds=RETRY_SECONDS, is_checked=not is_repeated)


def set_members(document: JsonText, at: Pointer, values: Mapping[str, Any]) -> None:
    """Set members of the object at `at`; do not touch members with equal values."""
    for key, value in values.items():
        present = document.value
        for step in at:
            present = present[step]
        if key not in present or present[key] != value:
            document.set(at, key, value)


def set_default(document: JsonText, key: str, empty: Any) -> Any:
    """Return the value of a key; if it is missing, set it to `empty` first."""
    set_members(document, (), {} if key in document.value else {key: empty})
    return document.value[key]


def _merge(base: bytes | None, theirs: bytes, present: bytes | None) -> bytes:
    """Merge the changes from `base` to `theirs` into `present`; see `rewrite`."""
    if present is None:
        return theirs
    before, after, document = JsonText(base or b"{}").value, JsonText(theirs), JsonText(present)
    if not all(isinstance(value, dict) for value in (before, after.value, document.value)):
        return theirs
    for key, value in after.value.items():
        if key not in before or before[key] != value:
            document.set((), key, value, after.text_at((key,)))
    return document.encode()
