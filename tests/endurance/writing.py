"""All commands that write, and invariants of a project after any of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.refresh import Index
from core.records.findings import Severity
from core.sources.ledger import verify_ledger
from core.sources.patterns import read_archives
from tests.e2e.terminal import ROOT, environment

LOOP = "ralph-fix-null-customer-crash-in-the-644aee36"
BURST = "ralph-rewrite-the-session-store-on-r-152dfe93"
SESSION = "80750770-4397-47c0-9ef8-505ce47f5f8c"
FAILING = "pat-success-split-by-type-002"
PATTERNS = ("pat-error-decimal-json-016", "pat-error-type-mismatch-003", "tmpl-async-error-handler-001")
DECIDING = (
    "pattern note {pattern} {mark}",
    "pattern promote {pattern}",
    "pattern deprecate {pattern} --reason {mark}",
    "pattern reset {pattern}",
    "pattern quarantine {pattern} --reason {mark}",
    "pattern release {pattern}",
    "pattern prune {pattern} --reason {mark}",
    "pattern prune --restore {pattern}",
    "pattern merge {pattern} {other}",
    "pattern prune",
    f"pattern invert {FAILING} --accept",
    f"pattern invert {FAILING} --reject",
    f"review {BURST} --suspicious --confirm",
    f"review {FAILING} --uses 3",
    "loop extract --all",
    "undo --any-author",
    "undo --redo",
)
"""Decisions; the author appears in the log."""
LOGGING = (
    "task init {mark}",
    "task log task-002 --type bash --tool Bash --param command=ls --success --reasoning {mark}",
    "task complete task-002 --failure --reason {mark}",
    "task complete task-002 --pause",
    "task reflect task-001 --learning {mark}",
    f"loop record {LOOP} --error {{mark}}",
    f"debug record {SESSION} --escalate --reason {{mark}}",
    f"loop record {LOOP} --criterion clarity --success --context {{mark}}",
    f"loop record {LOOP} --outcome --failure --failure-mode other --failure-details {{mark}}",
)
"""Commands of agents; each writes the mark that it was called with."""
QUIET = (
    f"loop record {LOOP} {{pattern}} --success",
    f"loop inject {LOOP}",
    f"debug record {SESSION} --success",
    "task start task-002 --resume",
    "task start task-004 --reopen --abandon",
    "debug archive",
    "debug archive --restore nothing",
    "doctor --embed",
    "pattern import --input {exported}",
    "pattern export --output {outside}",
    "metrics --export {outside}.md --force",
    "task show task-001 --export {outside}.json",
)
"""Commands that write no mark."""


class Answer(NamedTuple):
    """Result of a command.

    Attributes:
        code: Exit code; None if it was killed.
        output: What it printed.
        reached: Whether the fault was reached.
    """

    code: int | None
    output: str
    reached: bool


class Commands:
    """Runs commands on one project, each in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, arguments: list[str], *, kill_before: int = 0, full_from: int = 0) -> Answer:
        """Run a command; see `faulty_commands` for the faults."""
        assert self._process.stdin and self._process.stdout
        asked = {"arguments": arguments, "kill_before": kill_before, "full_from": full_from}
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return Answer(**json.loads(self._process.stdout.readline()))


@contextmanager
def commands(home: Path) -> Iterator[Commands]:
    """A process that runs commands without the user's own environment."""
    command = [sys.executable, "-m", "tests.endurance.faulty_commands"]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(home), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield Commands(process)
        assert process.stdin
        process.stdin.close()


def words(command: str, project: Path, mark: str, number: int = 0) -> list[str]:
    """Arguments of a command of the tables above."""
    outside = project.parent / "out" / "exported.json"
    outside.parent.mkdir(exist_ok=True)
    fields = {
        "mark": mark,
        "pattern": PATTERNS[number % len(PATTERNS)],
        "other": PATTERNS[(number + 1) % len(PATTERNS)],
        "exported": str(project.parent / "import.json"),
        "outside": str(outside),
    }
    arguments = [word.format(**fields) for word in command.split()]
    takes_author = command in DECIDING or arguments[:2] == ["loop", "record"]
    return [*arguments, "--project", str(project), *(["--by", mark] if takes_author else [])]


def has_mark(project: Path, mark: str) -> bool:
    """Whether any file of the project contains the mark."""
    wanted = mark.encode()
    return any(wanted in file.read_bytes() for file in (project / ".aiwg").rglob("*") if file.is_file())


def problems(project: Path) -> list[str]:
    """Problems: unreadable records, a broken log, incomplete files."""
    paths = ProjectPaths(project)
    snapshot = Index(paths, Settings(), clock=lambda: datetime.now(UTC), is_kept=False).load()
    found = [f"{one.file}: {one.message}" for one in snapshot.findings if one.severity is Severity.ERROR]
    return found + [str(problem) for problem in verify_ledger(paths).problems]


def record_ids(project: Path) -> set[str]:
    """IDs of all records that no command deletes: patterns with the archive and merged ones, loops, tasks, sessions."""
    paths = ProjectPaths(project)
    snapshot = Index(paths, Settings(), clock=lambda: datetime.now(UTC), is_kept=False).load()
    archived = {one.pattern.id for one in read_archives(paths)[0]}
    sessions = {file.stem for file in (project / ".aiwg").rglob("sessions/**/*.json")}
    return {*snapshot.patterns, *archived, *snapshot.loops, *snapshot.tasks, *sessions} - {*PATTERNS}
