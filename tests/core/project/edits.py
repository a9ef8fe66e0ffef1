"""Edits of a project as agents, people and other programs make them: a seeded generator for property tests."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st
from msgspec import Struct

from core.base.errors import RalphdeckError
from core.base.paths import PATTERN_FILES, ProjectPaths
from core.base.settings import Settings
from core.cli.demo.sample import SAMPLE, confirm_decisions, sample_anchor
from core.decisions import commands
from core.project.project import Project
from core.records.events import Event
from core.sources.configuration import Configuration
from core.sources.events import append_events
from core.sources.team_evidence import TeamEvidenceWriter
from tests.core.project.views import Clock
from tests.core.sources.adapters.fixtures import DATA
from tests.factories import make_team_sums

NOW: Final = sample_anchor()
TREES: Final = Path(__file__).parents[2] / "trees"
PRESENT: Final = (
    *("ralph/shared", "ralph/registry.json", "ralph/memory", "ralph/archive/ralph-fix-user", "ralph/heartbeats"),
    *("ralph/loops/ralph-add", "ralph/loops/ralph-rewrite", "ralph/loops/ralph-speed", "ralph/loops/ralph-type"),
    *("ralph/tasks/task-001", "ralph/tasks/task-003", "ralph/debug-memory", "ralph-external/loops"),
)
"""Beginnings of the names of files in a new project, below `.aiwg` of the sample project."""
ABSENT: Final = (
    *("ralph/loops/ralph-fix", "ralph/loops/ralph-stab", "ralph/archive/ralph-set-up", "ralph/tasks/task-002"),
    *("ralph/current-loop.json", "ralph/reflections", "ralph-external", "ralph/iterations", "ralph/index"),
)
"""Beginnings of the names of files that only edits add."""
LOOP_HOMES: Final = ("ralph/loops", "ralph/archive", "ralph-external/archive")
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 7, 10**30, 1e308, "", "x", "2026-11-20T10:00:00Z", "failed", "running"),
    *([], [1], {}),
)
"""What a value in a JSON file is replaced by."""
SETTINGS: Final = (
    "",
    "ralph:\n  cross_loop_learning:\n    maturity:\n      half_life_days: 30\n",
    "ralph:\n  cross_loop_learning:\n    injection:\n      top_k: 3\n    maturity:\n      min_uses_proven: 2\n",
    "ralph: [\n",
)
AGENT_FILES: Final = {
    "guardrails/iannuttall": ".ralph/guardrails.md",
    "ralph-loop/active": ".claude/ralph-loop.local.md",
    "snarktank/open": "scripts/ralph/prd.json",
    "frankbria/running": ".ralph/status.json",
}
"""Files of other runners, by the case that has them, in the project."""


class Workspace:
    """A project that edits change. Files are as old as the clock says, and each change makes them a little younger.

    `torn` are the files that are incomplete, with what they will contain.
    """

    def __init__(self, folder: Path) -> None:
        self.paths = ProjectPaths(folder)
        self.clock = Clock(NOW)
        self.torn: dict[str, bytes] = {}
        self._changes = 0
        self._folders: dict[Path, int] = {}
        for name, data in pool()[0].items():
            self.write(name, data)
        confirm_decisions(folder)
        self.date_folders()

    def path(self, name: str) -> Path:
        return self.paths.project / name

    def read(self, name: str) -> bytes:
        """Return the content of a file, b"" if there is none."""
        try:
            return self.path(name).read_bytes()
        except OSError:
            return b""

    def write(self, name: str, data: bytes, *, in_place: bool = False) -> None:
        """Write a file: by renaming another one over it, or in place."""
        path = self.path(name)
        with suppress(OSError):  # a file may be in the place of a folder
            path.parent.mkdir(parents=True, exist_ok=True)
            written = path if in_place else path.with_name(f"{path.name}.new~")
            written.write_bytes(data)
            self.date(written)
            if not in_place:
                written.replace(path)
        self.torn.pop(name, None)

    def date(self, path: Path) -> None:
        """Set the time of a file to that of the clock; no two changes have the same."""
        self._changes += 1
        at = int(self.clock.now.timestamp()) * 10**9 + self._changes * 1000
        os.utime(path, ns=(at, at))

    def date_folders(self) -> None:
        """Set the times of folders that changed, which are those of the machine, to that of the clock."""
        for folder, _, _ in os.walk(self.paths.project):
            path = Path(folder)
            if self._folders.get(path) != path.stat().st_mtime_ns:
                self.date(path)
                self._folders[path] = path.stat().st_mtime_ns

    def files(self) -> dict[Path, tuple[int, int, int]]:
        """All files with what a change of them changes."""
        found = {}
        for folder, _, names in os.walk(self.paths.project):
            for name in names:
                path = Path(folder, name)
                status = path.lstat()
                found[path] = (status.st_ino, status.st_mtime_ns, status.st_size)
        return found

    def names(self, *beginnings: str) -> list[str]:
        """Names of the present files below `.aiwg` that begin with one of some beginnings, sorted."""
        below = tuple(f".aiwg/{one}" for one in beginnings or ("",))
        names = (path.relative_to(self.paths.project).as_posix() for path in self.files())
        return sorted(name for name in names if name.startswith(below) and not name.endswith((".lock", "~")))

    def loops(self) -> list[Path]:
        """Folders of loops, sorted."""
        homes = [self.paths.aiwg / home for home in LOOP_HOMES]
        return sorted(one for home in homes if home.is_dir() for one in home.iterdir() if one.is_dir())

    def open(self) -> Project:
        """Open the project as another process, without a cache."""
        settings = Configuration.read(self.paths).settings
        project = Project(self.paths, settings, by="ana", clock=self.clock, cache=False)
        project.load()
        return project

    def complete_torn_files(self) -> None:
        """Let the programs that were writing end."""
        for name, data in list(self.torn.items()):
            self.write(name, data, in_place=True)


@cache
def pool() -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the files of a new project and those that edits can add, by name."""
    present: dict[str, bytes] = {}
    absent: dict[str, bytes] = {}
    for tree in (SAMPLE, TREES / "upstream", TREES / "spec-examples"):
        for file in sorted(one for one in (tree / ".aiwg").rglob("*") if one.is_file()):
            name = file.relative_to(tree / ".aiwg").as_posix()
            if tree == SAMPLE and name.startswith(PRESENT):
                present[f".aiwg/{name}"] = file.read_bytes()
            elif tree == SAMPLE and not name.startswith(ABSENT):
                continue
            elif f".aiwg/{name}" not in present and "/curation/" not in name:
                absent.setdefault(f".aiwg/{name}", file.read_bytes())
    return present, absent


class Edit(Struct, frozen=True, tag=True):
    """One change of a project; numbers choose among what is there, counted from the start again."""

    def make(self, workspace: Workspace) -> None:
        raise NotImplementedError


class AddFile(Edit, frozen=True, tag=True):
    """Write a file that the project may lack, as a whole."""

    number: int

    def make(self, workspace: Workspace) -> None:
        names = sorted(pool()[1])
        name = names[self.number % len(names)]
        workspace.write(name, pool()[1][name])


class ChangeValue(Edit, frozen=True, tag=True):
    """Replace a value in a JSON document, or in a line of JSON lines."""

    number: int
    place: int
    value: int
    in_place: bool

    def make(self, workspace: Workspace) -> None:
        names = [name for name in workspace.names() if name.endswith((".json", ".jsonl")) and "/curation/" not in name]
        if names:
            name = names[self.number % len(names)]
            new = VALUES[self.value % len(VALUES)]
            workspace.write(name, replace_value(workspace.read(name), self.place, new), in_place=self.in_place)


class Reformat(Edit, frozen=True, tag=True):
    """Write the same JSON with other spaces, in place."""

    number: int

    def make(self, workspace: Workspace) -> None:
        names = [name for name in workspace.names() if name.endswith(".json")]
        name = names[self.number % len(names)] if names else ""
        with suppress(ValueError):
            workspace.write(name, json.dumps(json.loads(workspace.read(name)), indent=3).encode(), in_place=True)


class Tear(Edit, frozen=True, tag=True):
    """Write only the beginning of a file; `Workspace.complete_torn_files` writes the rest."""

    number: int
    share: int

    def make(self, workspace: Workspace) -> None:
        names = [name for name in workspace.names("ralph", "ralph-external") if name not in workspace.torn]
        if names:
            name = names[self.number % len(names)]
            data = workspace.read(name)
            workspace.write(name, data[: len(data) * (self.share % 100) // 100], in_place=True)
            workspace.torn[name] = data


class Delete(Edit, frozen=True, tag=True):
    """Delete a file, or the folder that it is in."""

    number: int
    is_folder: bool

    def make(self, workspace: Workspace) -> None:
        if not (names := workspace.names()):
            return
        name = names[self.number % len(names)]
        path = workspace.path(name)
        if self.is_folder and len(path.relative_to(workspace.paths.aiwg).parts) > 2:
            shutil.rmtree(path.parent)
        else:
            path.unlink()
        for torn in [one for one in workspace.torn if not workspace.path(one).exists()]:
            del workspace.torn[torn]


class MoveLoop(Edit, frozen=True, tag=True):
    """Rename the folder of a loop, or move it into or out of the archive."""

    number: int
    home: int
    new_name: bool

    def make(self, workspace: Workspace) -> None:
        if not (loops := workspace.loops()):
            return
        folder = loops[self.number % len(loops)]
        home = workspace.paths.aiwg / LOOP_HOMES[self.home % len(LOOP_HOMES)]
        target = home / (f"ralph-renamed-{self.number % 4:08x}" if self.new_name else folder.name)
        if target.exists():
            return
        home.mkdir(parents=True, exist_ok=True)
        before = [name for name in workspace.torn if workspace.path(name).is_relative_to(folder)]
        folder.rename(target)
        for name in before:
            moved = target / workspace.path(name).relative_to(folder)
            workspace.torn[moved.relative_to(workspace.paths.project).as_posix()] = workspace.torn.pop(name)


class ArrangePatterns(Edit, frozen=True, tag=True):
    """Reorder, remove and repeat the records of a pattern file, with other counts."""

    kind: int
    order: tuple[int, ...]
    uses: int

    def make(self, workspace: Workspace) -> None:
        kind = sorted(PATTERN_FILES)[self.kind % len(PATTERN_FILES)]
        name = workspace.paths.relative(workspace.paths.pattern_file(kind))
        records = _pattern_records(pool()[0][name])
        chosen = [dict(records[number % len(records)]) for number in self.order]
        for record in chosen[::2]:
            record["usage_count"] = self.uses
        workspace.write(name, json.dumps({"version": "1.0.0", "patterns": chosen}, indent=1).encode())


class CopyPattern(Edit, frozen=True, tag=True):
    """Write a copy of a record, with another text or the same, into the folder of a memory."""

    number: int
    differs: bool

    def make(self, workspace: Workspace) -> None:
        file = workspace.paths.relative(workspace.paths.pattern_file("error"))
        records = _pattern_records(pool()[0][file])
        record = dict(records[self.number % len(records)])
        if self.differs:
            record["fix_approach"] = {"description": "Another text of this pattern, which is longer"}
        workspace.write(".aiwg/ralph/memory/patterns/error-patterns.json", json.dumps([record]).encode())


class AddEvent(Edit, frozen=True, tag=True):
    """Append one event or several to the event log."""

    kind: int
    pattern: int
    work: int
    success: bool | None
    hours: int
    count: int

    def make(self, workspace: Workspace) -> None:
        names = workspace.names("ralph/loops", "ralph/archive")
        works = sorted({name.split("/")[3] for name in names}) or ["ralph-gone-00000001"]
        kinds = ("applied", "injected", "feedback", "outcome")
        for number in range(self.count % 4 + 1):
            event = Event(
                id=f"e-{workspace.clock.now.timestamp():.0f}-{self.pattern}-{self.work}-{self.kind}-{number}",
                at=workspace.clock.now - timedelta(hours=self.hours),
                kind=kinds[self.kind % len(kinds)],
                pattern_id=_pattern_id(workspace, self.pattern + number),
                loop_id=(*works, "task-001.1", "bd-1")[self.work % (len(works) + 2)],
                success=self.success,
                by="ana",
            )
            with suppress(RalphdeckError):
                append_events(workspace.paths, event)


class Decide(Edit, frozen=True, tag=True):
    """Let another process decide; what it refuses changes nothing."""

    verb: int
    pattern: int
    other: int

    def make(self, workspace: Workspace) -> None:
        try:
            project = workspace.open()
            project.decide(self._command(workspace, project))
        except RalphdeckError:
            return

    def _command(self, workspace: Workspace, project: Project) -> commands.Command:
        id, other = _pattern_id(workspace, self.pattern), _pattern_id(workspace, self.other)
        until = workspace.clock.now + timedelta(days=self.other % 60)
        loops = sorted(project.view.snapshot.loops) or ["none"]
        questions = [item.question_key for item in project.view.queue] or ["none"]
        possible: tuple[commands.Command, ...] = (
            commands.Promote(id, reason="holds"),
            commands.Deprecate(id, reason="old"),
            commands.Reset(id),
            commands.Quarantine(id, reason="unclear"),
            commands.Release(id, reason="read"),
            commands.Note(id, text="remark"),
            commands.Snooze(id, until=until),
            commands.Archive(id, reason="old"),
            commands.Restore(id),
            commands.Merge(id, other),
            commands.AcceptInversion(id),
            commands.RejectInversion(id),
            commands.Undo(any_author=True),
            commands.Redo(),
            commands.SnoozeQuestion(key=questions[self.other % len(questions)], until=until),
            commands.Extract(loops[self.other % len(loops)]),
        )
        return possible[self.verb % len(possible)]


class ClaimDecision(Edit, frozen=True, tag=True):
    """Append a decision to the log that was made elsewhere, as a merge of branches does."""

    pattern: int
    promotes: bool

    def make(self, workspace: Workspace) -> None:
        name = workspace.paths.relative(workspace.paths.ledger)
        at = workspace.clock.now.isoformat()
        line = {
            "kind": "decision",
            "id": f"elsewhere-{len(workspace.read(name))}",
            "at": at,
            "by": "eve",
            "reason": "x",
        }
        line |= {"verb": "promote" if self.promotes else "deprecate", "subject": _pattern_id(workspace, self.pattern)}
        workspace.write(name, workspace.read(name) + json.dumps(line).encode() + b"\n", in_place=True)


class CutLog(Edit, frozen=True, tag=True):
    """Remove the last lines of a log, as the checkout of an older commit does."""

    is_ledger: bool
    lines: int

    def make(self, workspace: Workspace) -> None:
        name = workspace.paths.relative(workspace.paths.ledger if self.is_ledger else workspace.paths.events)
        lines = workspace.read(name).splitlines(keepends=True)
        if lines and name not in workspace.torn:
            workspace.write(name, b"".join(lines[: -1 - self.lines % len(lines)]))


class ReplaceTeamFile(Edit, frozen=True, tag=True):
    """Write the sums of a team anew, change some, or delete them."""

    numbers: tuple[int, ...]
    is_new: bool

    def make(self, workspace: Workspace) -> None:
        if self.is_new:
            workspace.paths.team_evidence.unlink(missing_ok=True)
        sums, epoch, half_life = [], NOW - timedelta(days=99), Settings().maturity.half_life_days
        for number in self.numbers:
            successes, failures, at = 1 + number % 9, number % 4, NOW - timedelta(days=number % 50)
            sums.append(make_team_sums(_pattern_id(workspace, number), successes, failures, at, epoch))
        if sums:
            TeamEvidenceWriter(workspace.paths).update("web", epoch, half_life, sums)


class ChangeSettings(Edit, frozen=True, tag=True):
    """Write the settings of the project."""

    number: int

    def make(self, workspace: Workspace) -> None:
        workspace.write("aiwg.yml", SETTINGS[self.number % len(SETTINGS)].encode())


class ChangeRegistry(Edit, frozen=True, tag=True):
    """List other loops as active, with another status."""

    count: int
    status: str
    is_external: bool

    def make(self, workspace: Workspace) -> None:
        entries = [
            {"loop_id": folder.name, "status": self.status, "started_at": NOW.isoformat(), "iteration": 1}
            for folder in workspace.loops()[: self.count]
        ]
        name = f".aiwg/{'ralph-external' if self.is_external else 'ralph'}/registry.json"
        workspace.write(name, json.dumps({"version": "2.0.0", "active_loops": entries}).encode())


class WriteAgentFile(Edit, frozen=True, tag=True):
    """Write the file of another runner up to a line, as it grows."""

    number: int
    lines: int

    def make(self, workspace: Workspace) -> None:
        case, name = sorted(AGENT_FILES.items())[self.number % len(AGENT_FILES)]
        lines = (DATA / case / "project" / name).read_bytes().splitlines(keepends=True)
        workspace.write(name, b"".join(lines[: 1 + self.lines % len(lines)]))


class StepClock(Edit, frozen=True, tag=True):
    """Let time pass, or set the clock back."""

    minutes: int

    def make(self, workspace: Workspace) -> None:
        workspace.clock.now += timedelta(minutes=self.minutes)


class Notice(StrEnum):
    """How a reader learns of edits."""

    PATHS = "paths"
    FOLDERS = "folders"
    SWEEP = "sweep"
    REOPEN = "reopen"


class Step(Struct, frozen=True):
    """Edits that are made before the reader looks, and how it learns of them."""

    edits: tuple[Edit, ...]
    notice: Notice

    def make(self, workspace: Workspace) -> frozenset[Path]:
        """Make the edits; return the files that were written, created or removed."""
        before = workspace.files()
        for edit in self.edits:
            edit.make(workspace)
        workspace.date_folders()
        after = workspace.files()
        return frozenset(path for path, _ in before.items() ^ after.items())


def _numbers(most: int = 400) -> st.SearchStrategy[int]:
    return st.integers(0, most)


MINUTES: Final = (1, 2, 15, 60, 24 * 60, 7 * 24 * 60, 45 * 24 * 60, 200 * 24 * 60, -3, -24 * 60, -40 * 24 * 60)
EDITS: Final = st.one_of(
    st.builds(AddFile, _numbers()),
    st.builds(ChangeValue, _numbers(), _numbers(), _numbers(20), st.booleans()),
    st.builds(Reformat, _numbers()),
    st.builds(Tear, _numbers(), _numbers(99)),
    st.builds(Delete, _numbers(), st.booleans()),
    st.builds(MoveLoop, _numbers(20), _numbers(2), st.booleans()),
    st.builds(ArrangePatterns, _numbers(3), st.lists(_numbers(20), max_size=8).map(tuple), _numbers(30)),
    st.builds(CopyPattern, _numbers(20), st.booleans()),
    st.builds(
        AddEvent, _numbers(3), _numbers(40), _numbers(20), st.none() | st.booleans(), _numbers(2000), _numbers(3)
    ),
    st.builds(Decide, _numbers(15), _numbers(40), _numbers(40)),
    st.builds(ClaimDecision, _numbers(40), st.booleans()),
    st.builds(CutLog, st.booleans(), _numbers(8)),
    st.builds(ReplaceTeamFile, st.lists(_numbers(60), max_size=6).map(tuple), st.booleans()),
    st.builds(ChangeSettings, _numbers(3)),
    st.builds(ChangeRegistry, _numbers(6), st.sampled_from(("running", "paused", "failed", "odd")), st.booleans()),
    st.builds(WriteAgentFile, _numbers(3), _numbers(30)),
    st.builds(StepClock, st.sampled_from(MINUTES)),
)
"""Any edit."""
STEPS: Final = st.lists(
    st.builds(Step, st.lists(EDITS, min_size=1, max_size=4).map(tuple), st.sampled_from(Notice)),
    min_size=1,
    max_size=6,
)
"""Any sequence of edits."""


def replace_value(data: bytes, place: int, new: Any) -> bytes:
    """Replace one value of a JSON document, or of one line; a document that is not JSON stays as it is."""
    lines = data.splitlines(keepends=True)
    try:
        document = json.loads(data)
    except ValueError:
        if not lines:
            return data
        number = place % len(lines)
        with suppress(ValueError):
            lines[number] = json.dumps(_replaced(json.loads(lines[number]), place, new)).encode() + b"\n"
        return b"".join(lines)
    return json.dumps(_replaced(document, place, new), indent=1).encode()


def _replaced(document: Any, place: int, new: Any) -> Any:
    """The document with a new value in the place with this number."""
    places = list(_places(document))
    if not places:
        return new
    holder, key = places[place * 7919 % len(places)]
    holder[key] = new
    return document


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each value inside of another one, as (holder, key)."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from _places(inner)


def _pattern_records(data: bytes) -> list[dict[str, Any]]:
    document = json.loads(data)
    registry = document.get("pattern_registry", document)
    return next(value for value in registry.values() if isinstance(value, list))


def _pattern_id(workspace: Workspace, number: int) -> str:
    """The ID of a pattern of the sample project, in this project or not."""
    ids = []
    for kind in sorted(PATTERN_FILES):
        for record in _pattern_records(pool()[0][workspace.paths.relative(workspace.paths.pattern_file(kind))]):
            ids.append(record.get("pattern_id") or record["template_id"])
    return str(ids[number % len(ids)])
