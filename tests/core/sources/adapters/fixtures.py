"""Cases of adapters: files of runners and agents, copied to a temporary project and home folder.

A case is a folder `tests/adapters_data/<adapter>/<case>/`. Each of its folders is copied beside the others: `project/`,
`home/`, and others such as `worktree/`, which are working trees of the project. In the names and texts of files,
`@PROJECT@` is the absolute path of `project/`, and `@PROJECT_SLUG@` the same with `-` for all but letters and digits,
as Claude Code names its folders; so for the others. `x.sqlite.sql` becomes the database `x.sqlite`, `x.db.sql` `x.db`.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from hypothesis import strategies as st
from msgspec.structs import replace

from core.records.findings import Finding
from core.records.loops import Loop, LoopDetails
from core.records.reflections import Lesson
from core.sources.adapters.contract import Adapter, Moment
from core.sources.adapters.folders import Folders
from core.sources.adapters.runner_files import RunnerFiles
from tests.factories import RunningProcesses

DATA: Final = Path(__file__).parents[3] / "adapters_data"
NOW: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)
MAX_LOOKS: Final = 1000  # a reader that is never done fails instead of hanging
MAX_SAME: Final = 3  # looks without a change


class Case:
    """A project with the files of a case; `now` and `processes` can be changed between looks.

    Files are as old as `modified_at` until a test changes them.
    """

    def __init__(self, adapter: Adapter, folder: Path, now: datetime = NOW) -> None:
        self.adapter = adapter
        self.root = folder.resolve()
        self.project = self._made("project")
        self.home = self._made("home")
        others = (one for one in sorted(self.root.iterdir()) if one.is_dir() and one not in (self.project, self.home))
        self.folders = Folders(project=self.project, worktrees=tuple(others), home=self.home)
        self.files = RunnerFiles(self.folders, adapter.name)
        self.now = now
        self.processes = RunningProcesses()

    @property
    def moment(self) -> Moment:
        return Moment(now=self.now, processes=self.processes)

    def set_folders(self, **changes: object) -> None:
        """Change fields of the folders, such as `home=None` or `environment={...}`, and look anew."""
        self.folders = replace(self.folders, **changes)
        self.forget()

    def forget(self) -> None:
        """Start with an empty cache, as after the start of the program."""
        self.files = RunnerFiles(self.folders, self.adapter.name)

    def anew(self) -> Case:
        """Return the same case as a program that has read nothing sees it."""
        case = Case(type(self.adapter)(), self.root, self.now)
        case.processes = self.processes
        return case

    def loops(self) -> dict[str, Loop]:
        """Look until all files are read, or looking changes nothing any more; the loops by ID."""
        before: list[Loop] | None = None
        same = 0
        for _ in range(MAX_LOOKS):
            self.files.start_look()
            found = list(self.adapter.loops(self.files, self.moment))
            same = same + 1 if found == before else 0
            if not self.files.is_behind or same == MAX_SAME:
                assert len({loop.id for loop in found}) == len(found), "two loops have one ID"
                return {loop.id: loop for loop in found}
            before = found
        raise AssertionError("the files are never read to their end")

    def loop(self) -> Loop:
        """Return the only loop."""
        (found,) = self.loops().values()
        return found

    def details(self, loop: Loop | None = None) -> LoopDetails:
        """Return the details of a loop, or of the only one."""
        return self.adapter.details(self.loop() if loop is None else loop, self.files)

    def lessons(self) -> list[Lesson]:
        """Return all lessons."""
        return list(self.adapter.lessons(self.files))

    def findings(self) -> list[Finding]:
        """Return the findings of one look at everything."""
        self.loops()
        self.lessons()
        return list(self.files.findings)

    def use(self) -> tuple[dict[str, Loop], list[Lesson]]:
        """Call all methods of the adapter, as the program does; damaged files must not raise in any of them."""
        self.adapter.fingerprint(self.folders)
        loops, lessons = self.loops(), self.lessons()
        for loop in loops.values():
            assert self.adapter.details(loop, self.files).loop_id == loop.id
            self.adapter.deliver(loop, "Use the fake clock.", self.files)
        return loops, lessons

    def _made(self, name: str) -> Path:
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        return folder


def open_case(adapter: Adapter, case: str, to: Path, *, now: datetime = NOW, modified_at: datetime = NOW) -> Case:
    """Copy a case such as `claude/goal-met` to a temporary folder, and open it."""
    to = to.resolve()
    source = DATA / case
    tokens: dict[str, str] = {}
    for name in {"project", "home", *(one.name for one in source.iterdir() if one.is_dir())}:
        tokens[f"@{name.upper()}@"] = str(to / name)
        tokens[f"@{name.upper()}_SLUG@"] = re.sub(r"[^A-Za-z0-9]", "-", str(to / name))

    def filled(text: str) -> str:
        for token, value in tokens.items():
            text = text.replace(token, value)
        return text

    for path in sorted(source.rglob("*")):
        if not path.is_file():
            continue
        target = to / filled(path.relative_to(source).as_posix())
        target.parent.mkdir(parents=True, exist_ok=True)
        data = filled(path.read_bytes().decode("utf-8", "surrogateescape"))
        if target.suffix == ".sql":
            target = target.with_suffix("")
            with closing(sqlite3.connect(target)) as database:
                database.executescript(data)
        else:
            target.write_bytes(data.encode("utf-8", "surrogateescape"))
        os.utime(target, (modified_at.timestamp(), modified_at.timestamp()))
    return Case(adapter, to, now)


def plain(value: Any) -> Any:
    """Return a record as JSON, without fields that have their default."""
    if isinstance(value, msgspec.Struct):
        fields = ((field, getattr(value, field.name)) for field in msgspec.structs.fields(value))
        return {field.name: plain(given) for field, given in fields if given != field.default}
    return [plain(one) for one in value] if isinstance(value, tuple | list) else msgspec.to_builtins(value)


DAMAGES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "empty": lambda data: b"",
    "torn": lambda data: data[: len(data) * 2 // 3],
    "torn after the last line": lambda data: data + b'{"type": "user", "mess',
    "garbage": lambda data: b"\x00\xff\xfe garbage }{\n" * 20,
    "every line damaged": lambda data: data.replace(b"\n", b"\x00}\n"),
    "binary": lambda data: bytes(range(256)) * 50,
    "wrong top level": lambda data: b"[1, 2, null]\n",
    "a number": lambda data: b"7\n",
    "null": lambda data: b"null\n",
    "deep": lambda data: b"[" * 100_000 + b"]" * 100_000 + b"\n" + data,
    "deep object": lambda data: b'{"type":' * 50_000 + b"1" + b"}" * 50_000 + b"\n" + data,
    "huge line": lambda data: b'{"type": "user", "text": "' + b"x" * (5 << 20) + b'"}\n' + data,
    "huge numbers": lambda data: re.sub(rb"(?<=[:\s])\d+(?=[,\s}])", b"1" + b"0" * 400, data),
    "infinite numbers": lambda data: re.sub(rb"(?<=[:\s])\d+(?=[,\s}])", b"-1e999", data),
    "negative numbers": lambda data: re.sub(rb"(?<=[:\s])\d+(?=[,\s}])", b"-7", data),
    "lone surrogates": lambda data: re.sub(rb'": ?"', rb'": "\\ud800', data),
    "not UTF-8": lambda data: data.replace(b"e", b"\xe9"),
    "all texts are numbers": lambda data: re.sub(rb':\s*"[^"\\\n]*"', b": 7", data),
    "all values are lists": lambda data: re.sub(rb':\s*("[^"\\\n]*"|\d+)', b": [1]", data),
    "all values are null": lambda data: re.sub(rb':\s*("[^"\\\n]*"|\d+)', b": null", data),
    "twice": lambda data: data + data,
    "lines in reverse": lambda data: b"\n".join(reversed(data.split(b"\n"))) + b"\n",
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
}  # damaged contents of a text file, by what is wrong
ANY_JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
REPLACEMENTS: Final = ("nothing", "folder", "fifo", "link outside", "link to itself", "dangling link", "unreadable")
MAX_LESSON: Final = 4_000  # characters


def check_damages(case: Case, *paths: Path, found: Collection[str] = ()) -> None:
    """Damage files in each way: no method of the adapter raises or writes.

    Args:
        found: IDs of loops that are found nevertheless.
    """
    good = {path: path.read_bytes() for path in paths}
    for damage, change in DAMAGES.items():
        damaged = {path: change(data) for path, data in good.items()}
        for path, data in damaged.items():
            path.write_bytes(data)
        with _named(damage):
            loops, lessons = case.anew().use()
            assert loops.keys() >= set(found)
            assert all(0 < len(lesson.text) <= MAX_LESSON for lesson in lessons)
            assert {path: path.read_bytes() for path in paths} == damaged


def check_replacements(case: Case, *paths: Path) -> None:
    """Replace files by what is not a file of the runner: no method raises, and nothing of it is read."""
    good = {path: path.read_bytes() for path in paths}
    found = {"good": _summary(case)}
    for by in REPLACEMENTS:
        for path in paths:
            replace_file(case, path, by)
        with _named(by):
            case.use()
            found[by] = _summary(case.anew())
            same = "good" if by == "unreadable" and os.geteuid() == 0 else "nothing"
            assert found[by] == found[same]
        for path, data in good.items():
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            path.unlink(missing_ok=True)
            path.write_bytes(data)
    assert found["good"] != ({}, []), "the case has nothing to read"


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Add a name to an error."""
    try:
        yield
    except Exception as error:
        error.add_note(name)
        raise


def _summary(case: Case) -> tuple[dict[str, tuple[object, ...]], list[str]]:
    loops, lessons = case.use()
    return {id: (loop.status, loop.task, loop.iteration) for id, loop in loops.items()}, [one.id for one in lessons]


def replace_file(case: Case, path: Path, by: str) -> None:
    """Replace a file by one of `REPLACEMENTS`, which is not a file of the runner."""
    data = path.read_bytes()
    path.unlink()
    match by:
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "link outside":
            outside = case.root.parent / f"outside-{case.root.name}-{path.name}"
            outside.write_bytes(data)
            path.symlink_to(outside)
        case "link to itself":
            path.symlink_to(path)
        case "dangling link":
            path.symlink_to(case.root / "missing")
        case "unreadable":
            path.write_bytes(data)
            path.chmod(0)
