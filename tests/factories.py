"""Records, projects and workers that many tests need."""

from __future__ import annotations

import json
import multiprocessing
import os
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any, Final
from unittest import mock

import pytest
from msgspec.structs import replace

import core.files.atomic_write
from core.base.paths import ProjectPaths
from core.base.settings import InjectionSettings, Settings, WatchSettings
from core.base.steps import group_pairs, run_all
from core.decisions.case import Decided
from core.decisions.commands import Command, PatternCommand, bulk
from core.decisions.curator import Curator, Target
from core.decisions.export import Entry, Exported, export
from core.decisions.import_plan import Action, ImportPlan, LocalRegistry, plan_import, read_import
from core.decisions.merge import as_read
from core.files.file_reader import Stamp, decode
from core.index.database import list_tables
from core.index.join import Joiner
from core.index.parse import FileParts, parts_of
from core.index.records import Decoder, Kind, Reader, RecordMap
from core.index.refresh import Index
from core.index.review_items import ReviewItem
from core.index.texts import Texts
from core.index.verdicts import VerdictsInMemory
from core.learning import evidence
from core.learning.inversion import Inversion
from core.learning.maturity import RULE, Assessment
from core.learning.scoreboard import Scoreboard
from core.project.forecast import Forecast, Forecaster
from core.project.project import Project
from core.questions.answer import Answer
from core.questions.extraction.engine import KnownPatterns
from core.questions.extraction.learnings import Cluster, cluster_in_steps
from core.questions.extraction.material import parse_pattern
from core.records.debug_sessions import Analysis, DebugSession, Execution, Failure, Fix, Lesson, Results
from core.records.decisions import CurationState, Decision, Pin, Verb
from core.records.episodes import Task
from core.records.events import Event, Observation
from core.records.extractions import Material
from core.records.findings import Finding
from core.records.loops import InjectedUse, Iteration, Loop, LoopStatus, Outcome
from core.records.patterns import Maturity, Pattern, PatternType, RecordedCounts, SourceLoop
from core.records.reflections import Reflection
from core.records.snapshot import Snapshot
from core.records.team import TeamSums
from core.retrieval.embeddings import Floats
from core.retrieval.injection import Ranking
from core.retrieval.past_tasks import FitInputs, PastTasks, WordWeights
from core.retrieval.relevance import PatternIndex, measure_relevance
from core.retrieval.task import TaskProfile
from core.show.metrics.sections import Figure, Row
from core.show.metrics.sections import Kind as FigureKind
from core.sources.adapters.contract import AdapterRecords
from core.sources.debug_sessions import join_sessions, read_sessions
from core.sources.ledger import DecisionLog
from core.sources.liveness import Moment, Processes
from core.sources.loop_join import LoopFact
from core.sources.loops import read_loops
from core.sources.parsed_file import ParsedFile
from core.sources.patterns import read_patterns
from core.tasks.debug_index import DebugIndex
from core.tasks.protocol import Episodes

# Learning: patterns, uses, pins and scoreboards
NOW: Final = datetime(2026, 2, 3, tzinfo=UTC)
SETTINGS: Final = Settings()

NULL_CHECK_001: Final = "pat-error-null-check-001"
NULL_CHECK_015: Final = "pat-error-null-check-015"
TYPE_MISMATCH: Final = "pat-error-type-mismatch-003"
OPTIMIZING: Final = "pat-anti-premature-optimization-001"
TEST_GENERATION: Final = "pat-success-test-generation-001"

_EXAMPLES: Final = Path(__file__).parent / "trees/spec-examples/.aiwg/ralph/shared/patterns"


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def time_at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def example_patterns() -> dict[str, Pattern]:
    """The patterns of the example tree."""
    files = sorted(_EXAMPLES.glob("*.json"))
    return {found.id: found for file in files for found in read_patterns(file.name, file.read_bytes()).patterns}


def example_loops() -> dict[str, Loop]:
    """The loops of the example tree that record their patterns."""
    end = time_at("2026-02-02T21:05:30")
    return {
        loop.id: loop
        for loop in (
            Loop(
                id="ralph-fix-validation-b2c3d4e5",
                last_activity=end,
                injected=(make_use(NULL_CHECK_015, True, iteration=2), make_use(TYPE_MISMATCH, True, iteration=4)),
            ),
            Loop(
                id="ralph-fix-api-d4e5f6a7", last_activity=end, injected=(make_use(NULL_CHECK_015, False, iteration=3),)
            ),
        )
    }


def make_pattern(id: str = "pat-error-sample-001", type: PatternType = PatternType.ERROR, **fields: Any) -> Pattern:
    return Pattern(**{"id": id, "type": type, "title": "Sample", "content_hash": "seen", **fields})


def make_source(loop_id: str, when: datetime | None = None) -> SourceLoop:
    return SourceLoop(loop_id=loop_id, at=when)


def make_recorded_counts(successes: int, failures: int) -> RecordedCounts:
    return RecordedCounts(successes=successes, failures=failures, uses=successes + failures)


def make_use(pattern_id: str, successful: bool | None, applied: bool = True, **fields: Any) -> InjectedUse:
    return InjectedUse(pattern_id=pattern_id, applied=applied, successful=successful, **fields)


def make_event(number: int, kind: str, when: datetime, **fields: Any) -> Event:
    return Event(id=f"e{number:06d}", at=when, kind=kind, **{"pattern_id": "pat-error-sample-001", **fields})


def make_pin(state: Maturity, when: datetime, **fields: Any) -> Pin:
    return Pin(
        **{"state": state, "at": when, "by": "ada", "reason": "", "content_hash": "seen", "decision_id": "d1", **fields}
    )


def make_board(
    *patterns: Pattern,
    loops: dict[str, Loop] | None = None,
    events: tuple[Event, ...] = (),
    curation: CurationState | None = None,
    now: datetime = NOW,
    settings: Settings = SETTINGS,
) -> Scoreboard:
    found = {pattern.id: pattern for pattern in patterns}
    return Scoreboard.build(
        Snapshot(patterns=found, loops=loops or {}, events=events, curation=curation or CurationState()), now, settings
    )


class LoopAliases:
    """Work items that know only the aliases of some loops."""

    def __init__(self, loops: Iterable[Loop]) -> None:
        self._ids: dict[str, str] = {alias: loop.id for loop in loops for alias in loop.aliases}

    def owner_id(self, work_id: str) -> str:
        return self._ids.get(work_id, work_id)

    def voter_id(self, owner_id: str) -> str:
        return owner_id

    def outcome_success(self, _work_id: str) -> bool | None:
        return None

    def is_open(self, _work_id: str) -> bool:
        return False

    def ignores(self, _event: Event) -> bool:
        return False


def collect_observations(
    pattern: Pattern,
    uses: Sequence[tuple[Loop, InjectedUse]] = (),
    events: Sequence[Event] = (),
    discoverer: Loop | None = None,
) -> tuple[Observation, ...]:
    known = LoopAliases(loop for loop, _ in uses)
    return evidence.collect_observations(pattern, uses, events, discoverer, known)


# Curation: assessments, curators and decisions
CURATION_NOW = datetime(2026, 5, 3, 12, 0, tzinfo=UTC)
PATTERN_FILE = ".aiwg/ralph/shared/patterns/error-patterns.json"
NO_RETRY_SETTINGS = Settings(watch=WatchSettings(retry_seconds=(0.001, 0.001)))
"""Default settings that do not wait for half-written files."""


def make_error_pattern(pattern_id: str = "pat-error-a-001", **changes: Any) -> Pattern:
    """An error pattern in the error file, with text `v1`."""
    values: dict[str, Any] = {
        "id": pattern_id,
        "type": PatternType.ERROR,
        "title": "TypeError: x is not a function",
        "content_hash": "v1",
        "file": PATTERN_FILE,
        "tags": ("auth",),
    }
    return Pattern(**(values | changes))


def make_assessment(
    successes: int = 5, failures: int = 0, computed: Maturity = Maturity.ESTABLISHED, **changes: Any
) -> Assessment:
    """What the scoreboard would say of a pattern without a pin."""
    values: dict[str, Any] = {
        "pattern_id": "pat-error-a-001",
        "successes": successes,
        "failures": failures,
        "uses": successes + failures,
        "injected_only": 0,
        "helpful": float(successes),
        "harmful": float(failures),
        "rate": None,
        "known_interval": (0.0, 1.0),
        "computed": computed,
        "state": computed,
        "faded": False,
        "decided_by": RULE,
        "pin": None,
        "pin_stale": False,
        "contradicted": False,
        "multiplier": 1.0,
        "score": 1.0,
        "inversion_due": False,
        "injectable": True,
        "quarantined": False,
        "last_used": None,
    }
    return Assessment(**(values | changes))


def make_inversion(pattern_id: str = "pat-error-a-001", **changes: Any) -> Inversion:
    """An inversion of a pattern that failed 5 of 7 times."""
    values: dict[str, Any] = {
        "pattern_id": pattern_id,
        "text": "AVOID: Split by file type. Failed 5/7 times (71% failure rate)",
        "reason": "Failed 5/7 times (71% failure rate)",
        "failures": 5,
        "total": 7,
        "failure_mode": "scope_creep",
        "why_it_fails": "Files of one type depend on each other.",
        "better_alternative": "Split by feature",
        "better_pattern_id": "pat-success-split-001",
        "source_loops": ("ralph-one-00000001", "ralph-two-00000002"),
        "lint": (),
        "slug": "split-by-type",
    }
    return Inversion(**(values | changes))


def make_failing_assessment() -> Assessment:
    """2 successes, 5 failures: due for inversion."""
    return make_assessment(2, 5, Maturity.DEPRECATED)


def cluster_reflections(reflections: Iterable[Reflection], loop_of_task: Mapping[str, str]) -> tuple[Cluster, ...]:
    """Find the recurring learnings of a project with these reflections, and tasks with the IDs of their loops."""
    snapshot = Snapshot(
        reflections={str(number): one for number, one in enumerate(reflections)},
        loops={id: Loop(id=id, task="") for id in loop_of_task.values()},
        tasks={id: Task(id=id, loop_id=loop_id) for id, loop_id in loop_of_task.items()},
    )
    return run_all(cluster_in_steps(snapshot, VerdictsInMemory()))


def record_calls(patch: pytest.MonkeyPatch, owner: object, name: str) -> list[tuple[Any, ...]]:
    """The positional arguments of each call of a function from now on, in a list that grows."""
    function = getattr(owner, name)
    calls: list[tuple[Any, ...]] = []

    def recorder(*args: Any, **options: Any) -> Any:
        calls.append(args)
        return function(*args, **options)

    patch.setattr(owner, name, recorder)
    return calls


def make_project(folder: Path, *ids: str) -> ProjectPaths:
    """A project whose error file holds a plain record for each id."""
    paths = ProjectPaths(folder)
    paths.patterns.mkdir(parents=True)
    records = [{"pattern_id": key, "success_rate": 1.0, "usage_count": 3} for key in ids]
    content = {"version": "1.0.0", "pattern_registry": {"error_patterns": records}}
    paths.pattern_file("error").write_text(json.dumps(content, indent=2) + "\n")
    return paths


def make_curator(paths: ProjectPaths, by: str = "alice") -> Curator:
    """A curator with settings that do not wait."""
    return Curator(paths, NO_RETRY_SETTINGS, by=by)


def read_overrides(paths: ProjectPaths, pattern_type: str = "error") -> dict[str, dict[str, Any]]:
    """The overrides in a pattern file with a registry level, by pattern ID."""
    (records,) = json.loads(paths.pattern_file(pattern_type).read_bytes())["pattern_registry"].values()
    return {record["pattern_id"]: record["override"] for record in records if "override" in record}


def decide(
    curator: Curator,
    kind: type[PatternCommand],
    pattern: Pattern | None = None,
    assessment: Assessment | None = None,
    *,
    now: datetime = CURATION_NOW,
    proposal: Inversion | None = None,
    **fields: Any,
) -> Decided:
    """Make a decision about one pattern; without one, about that of `make_error_pattern`."""
    find = (lambda: proposal) if proposal is not None else None
    target = Target(pattern or make_error_pattern(), assessment or make_assessment(), find)
    known = curator.settled_count()
    return curator.decide(kind(target.pattern.id, **fields), lambda _id: target, now=now, known=known)


def decide_many(
    curator: Curator,
    verb: Verb,
    targets: Sequence[Target],
    *,
    now: datetime = CURATION_NOW,
    known: int | None = None,
    reason: str = "",
    **fields: Any,
) -> Decided:
    """Make the same decision about many patterns; `known` is the number of decisions that the author has seen."""
    by_id = {target.pattern.id: target for target in targets}
    seen = curator.settled_count() if known is None else known
    return curator.decide(bulk(verb, by_id, reason, **fields), by_id.__getitem__, now=now, known=seen)


def decide_question(curator: Curator, command: Command, *, now: datetime) -> Decided:
    """Make a decision that is not about a single pattern."""
    return curator.decide(command, lambda id: make_target(id), now=now, known=curator.settled_count())


def make_target(pattern_id: str) -> Target:
    """A pattern with the default text and evidence."""
    return Target(make_error_pattern(pattern_id), make_assessment())


# Exchange: projects that import from each other
EXCHANGE_NOW = datetime(2026, 2, 3, tzinfo=UTC)
EXCHANGE_KIND = PatternType.ERROR


def make_error_record(
    number: int, uses: int = 4, rate: float = 1.0, fix: str = "Check for null first", **more: Any
) -> dict[str, Any]:
    """The record of an error pattern; its text depends on its number."""
    return {
        "pattern_id": f"pat-error-made-{number:03}",
        "error_signature": {"error_type": "TypeError", "error_pattern": f"value {number} of .* is null"},
        "fix_approach": {"description": f"{fix} ({number})", "fix_category": "add_null_check"},
        "success_rate": rate,
        "usage_count": uses,
        **more,
    }


class NextIds:
    """Free ids from 500 up."""

    def __init__(self) -> None:
        self.last = 499

    def next(self, prefix: str, slug: str) -> str:
        self.last += 1
        return f"{prefix}-{slug}-{self.last:03}"


class ExchangeProject:
    """A registry of error patterns that can be exported and imported into."""

    def __init__(self, origin: str, *records: dict[str, Any]) -> None:
        self.origin = origin * 16
        self.records = {record["pattern_id"]: record for record in records}
        self.imported: dict[str, dict[str, Any]] = {}
        self.archived: frozenset[str] = frozenset()
        self._ids = NextIds()

    def export(self, *, team_shared: bool = False) -> Exported:
        """All of it."""
        entries = [Entry(EXCHANGE_KIND, record) for record in self.records.values()]
        return export(entries, self.origin, team_shared=team_shared)

    def plan(self, data: bytes, file: str = "team.json") -> ImportPlan:
        """What an import would do."""
        patterns = {id: as_read(record, EXCHANGE_KIND) for id, record in self.records.items()}
        known = LocalRegistry(
            patterns=patterns,
            records=self.records,
            imported=self.imported,
            archived=self.archived,
            index=Texts(Snapshot(patterns=patterns)).similarity,
            threshold=0.8,
            origin=self.origin,
        )
        return plan_import(read_import(file, data), known, self._ids.next, EXCHANGE_NOW)

    def take(self, data: bytes) -> list[Action]:
        """Import; what became of each record."""
        plan = self.plan(data)
        for row in plan.changes:
            if row.record is not None:
                self.records[row.target] = row.record
            else:
                kept = {**self.records[row.target], **row.set}
                self.records[row.target] = {key: value for key, value in kept.items() if key not in row.unset}
            self.imported[row.target] = row.theirs
        return [row.action for row in plan.rows]

    def use(self, pattern_id: str, times: int) -> None:
        """Count further successes."""
        record = self.records[pattern_id]
        successes = round(record["success_rate"] * record["usage_count"]) + times
        uses = record["usage_count"] + times
        self.records[pattern_id] = {**record, "usage_count": uses, "success_rate": successes / uses}

    def uses(self, pattern_id: str) -> int:
        """How many uses its record counts."""
        return int(self.records[pattern_id]["usage_count"])


def make_pattern_file(*records: Any) -> bytes:
    """A pattern file that another program wrote."""
    return json.dumps({"version": "1.0.0", "pattern_registry": {"error_patterns": records}}).encode()


# Debug memory: sessions and runs
DEBUG_NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
EXAMPLE_SESSION_FILE = (
    Path(__file__).parent / "trees/spec-examples/.aiwg/ralph/debug-memory/sessions/dm-001-example.json"
)
"""The example session."""
SESSION_FILE = ".aiwg/ralph/debug-memory/sessions/{}.json"


def read_example_session() -> DebugSession:
    """The example session, parsed."""
    sessions, _ = read_sessions(
        SESSION_FILE.format("dm-001-example"), decode("x.json", EXAMPLE_SESSION_FILE.read_bytes()).value
    )
    return join_sessions(sessions)["dm-001-example"]


def make_run(
    error: str = "TypeError", file: str = "src/a.ts", *, fixed: bool | None = None, category: str = "", **more: Any
) -> Execution:
    """A run with one failed test; analysed if it has a category, with a fix unless `fixed` is None."""
    failure = Failure(error_type=error, message=more.pop("message", f"{error} here"), file=file, test_name="t")
    values: dict[str, Any] = {
        "results": Results(total=2, passed=1, failed=1),
        "failures": (failure,),
        "analysis": Analysis(root_cause="the cause of it", category=category) if category else None,
        "fix": Fix(description="Guard the access", verified=fixed) if fixed is not None else None,
    }
    return Execution(**(values | more))


def make_session(id: str, *runs: Execution, days: float = 0.0, status: str = "failed", **changes: Any) -> DebugSession:
    """A session that was updated `days` days before `NOW`."""
    values: dict[str, Any] = {
        "file_path": "src/a.ts",
        "status": status,
        "updated_at": DEBUG_NOW - timedelta(days=days),
        "executions": runs or (make_run(),),
        "file": SESSION_FILE.format(id),
    }
    return DebugSession(id=id, **(values | changes))


def make_lesson(
    pattern: str = "p", category: str = "null_undefined_access", effectiveness: float | None = 1.0
) -> Lesson:
    """A recorded lesson."""
    return Lesson(pattern=pattern, category=category, frequency=1, fix_template="Guard it", effectiveness=effectiveness)


def sessions_by_id(*sessions: DebugSession) -> dict[str, DebugSession]:
    """Sessions by ID, as in a snapshot."""
    return {session.id: session for session in sessions}


def index_sessions(*sessions: DebugSession) -> DebugIndex:
    """The index of these sessions."""
    return Texts(Snapshot(debug_sessions=sessions_by_id(*sessions))).debug


def make_full_session() -> dict[str, Any]:
    """A session as in a file, with every field; each text starts with a recognizable prefix."""
    failure = {
        "test_name": "told-test",
        "test_file": "told-test-file",
        "test_line": 41,
        "error_type": "told-error-type",
        "error_message": "told-message",
        "stack_trace": "told-trace-1\n  told-trace-2",
        "expected": "told-expected",
        "actual": {"is": "told-actual"},
        "source_location": {"file": "told-source", "line": 42, "function": "told-function"},
    }
    analysis = {
        "root_cause": "told-root-cause",
        "root_cause_category": "race_condition",
        "fix_strategy": "told-strategy",
        "confidence": 0.89,
        "related_failures": ["told-related"],
        "similar_past_issues": [{"session_id": "told-past", "file": "told-past-file", "resolution": "told-resolution"}],
    }
    fix = {
        "description": "told-fix",
        "diff_summary": "told-summary",
        "files_changed": ["told-changed-1", "told-changed-2"],
        "diff": "@@ told-hunk\n+told-added\n-told-removed",
        "verification": "passed",
    }
    results = {"total": 19, "passed": 11, "failed": 3, "errors": 4, "skipped": 1, "duration_ms": 1300}
    environment = {
        "runtime": "told-runtime",
        "runtime_version": "told-version",
        "test_framework": "told-framework",
        "os": "told-os",
        "additional": {"told-name": ["told-value"]},
    }
    execution = {
        "attempt": 7,
        "timestamp": "2026-11-21T10:00:00Z",
        "code_hash": "told-hash",
        "code_snapshot": "told-code-1\ntold-code-2",
        "environment": environment,
        "test_results": {**results, "coverage_percent": 62},
        "failures": [failure],
        "analysis": analysis,
        "fix_applied": fix,
    }
    learnings = {
        "patterns_identified": [
            {
                "pattern": "told-pattern",
                "category": "told_category",
                "frequency": 5,
                "fix_template": "told-template",
                "effectiveness": 0.81,
            }
        ],
        "recurring_failures": [
            {"test": "told-again", "occurrences": 6, "resolution": "wont_fix", "notes": "told-notes"}
        ],
        "code_quality_issues": [
            {"issue": "told-issue", "location": "told-location", "severity": "major", "addressed": False}
        ],
        "recommendations": ["told-recommendation"],
    }
    return {
        "session_id": "told-id",
        "file_path": "told-file",
        "created_at": "2026-11-21T09:00:00Z",
        "updated_at": "2026-11-21T11:00:00Z",
        "status": "failed",
        "executions": [execution],
        "learnings": learnings,
        "metadata": {"agent": "told-agent", "task_id": "told-task", "ralph_iteration": 9},
    }


# Task memory: tasks, actions and kills
TASKS = ".aiwg/ralph/tasks"
EPISODES_START = datetime(2026, 2, 1, 9, tzinfo=UTC)
NO_RETRIES = mock.patch.multiple("core.files.atomic_write", _CHECK_SECONDS=(), _COLLISION_CHECK_SECONDS=())
"""Skip the pauses in which a slower foreign writer is detected."""
NO_FSYNC = mock.patch("os.fsync")
"""Skip fsync, which matters only after a power failure."""
CHANGING_CALLS = ("write", "link", "unlink", "rename", "replace", "ftruncate", "mkdir", "rmdir")
"""Calls that change the disk for other processes."""


class Clock:
    """Advances by a minute at each call."""

    def __init__(self) -> None:
        self.now = EPISODES_START

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


def make_episodes(project: Path, clock: Callable[[], datetime] | None = None, **options: Any) -> Episodes:
    """The task memory of a project, which is created if needed."""
    (project / ".aiwg/ralph").mkdir(parents=True, exist_ok=True)
    return Episodes(ProjectPaths(project), clock=clock or Clock(), by="implementer", **options)


def start_first_attempt(memory: Episodes, **fields: Any) -> str:
    """Create task-001, start its first attempt and return the task ID."""
    task_id = memory.init_task("Add OAuth")
    memory.start_attempt(task_id, **fields)
    return task_id


def load_snapshot(project: Path) -> Snapshot:
    """The snapshot of a project."""
    found = Index(ProjectPaths(project), Settings(), clock=lambda: datetime(2026, 3, 1, tzinfo=UTC), is_kept=False)
    return found.load()


def bash_action(command: str, success: bool, **more: Any) -> dict[str, Any]:
    """A bash action."""
    return {"type": "bash", "tool": "Bash", "params": {"command": command}, "success": success, **more}


def edit_action(file: str) -> dict[str, Any]:
    """An edit action."""
    return {"type": "edit", "tool": "Edit", "params": {"file_path": file}, "success": True}


def read_project_json(project: Path, file: str) -> Any:
    """The JSON value of a file of task-001."""
    return json.loads((project / ".aiwg/ralph/tasks/task-001" / file).read_bytes())


def read_tree(project: Path) -> dict[str, bytes]:
    """Contents of all files by name, without hidden files and locks."""
    return {
        str(file.relative_to(project)): file.read_bytes()
        for file in (project / ".aiwg/ralph").rglob("*")
        if file.is_file()
        and not file.name.endswith(".lock")
        and not any(part.startswith(".") for part in file.relative_to(project / ".aiwg").parts)
    }


class Killed(BaseException):
    """Simulates the kill of a process."""


@contextmanager
def kill_before_call(call: int) -> Iterator[None]:
    """Stop all writes from this call on, as after a kill; the lock of the dead process remains."""
    left = call

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left <= 0:
                raise Killed
            return function(*args, **options)

        return called

    with pytest.MonkeyPatch.context() as patch:
        for name in CHANGING_CALLS:
            patch.setattr(os, name, wrap(getattr(os, name)))
        patch.setattr(core.files.atomic_write, "_exchange", wrap(core.files.atomic_write._exchange))
        yield


def exit_at_call(number: int, names: Set[str], work: Callable[[], object]) -> int | None:
    """Work in a process that ends with 9 at the call with this number of one of these functions; its exit code."""

    def trace(frame: FrameType, event: str, _: object) -> None:
        nonlocal number
        if event == "call" and frame.f_code.co_name in names:
            number -= 1
            if not number:
                os._exit(9)

    def run() -> None:
        sys.setprofile(trace)
        work()

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join(60)
    return process.exitcode


# Extraction: iterations and material
LOOP_START = datetime(2026, 2, 2, 14, 30, tzinfo=UTC)
LOOP_ID = "ralph-fix-auth-a1b2c3d4"


def make_step(number: int, action: str = "", result: str = "", **fields: Any) -> Iteration:
    """One iteration; it failed unless `outcome` is given."""
    at = LOOP_START + timedelta(minutes=10 * number)
    return Iteration(**{"number": number, "at": at, "action": action, "result": result, **fields})


def failed_step(number: int, action: str = "", result: str = "", **fields: Any) -> Iteration:
    return make_step(number, action, result, outcome=Outcome.FAILURE, **fields)


def passed_step(number: int, action: str = "", result: str = "31 passing", **fields: Any) -> Iteration:
    return make_step(number, action, result, outcome=Outcome.SUCCESS, **fields)


def make_material(*iterations: Iteration, task: str = "Fix the login", **fields: Any) -> Material:
    """The material of a loop that completed, unless `status` is given."""
    loop = {
        "id": LOOP_ID,
        "task": task,
        "status": fields.pop("status", LoopStatus.COMPLETED),
        "criteria": fields.pop("criteria", ()),
        "owner": fields.pop("owner", "software-implementer"),
    }
    return Material(source_id=LOOP_ID, loop=Loop(**loop), iterations=iterations, **fields)


def make_known_patterns(
    *patterns: Pattern, messages: tuple[str, ...] = (), tasks: tuple[str, ...] = ()
) -> KnownPatterns:
    """What a project knows: these patterns and texts."""
    by_id = {pattern.id: pattern for pattern in patterns}
    snapshot = Snapshot(patterns=by_id)
    known = KnownPatterns(snapshot, Texts(snapshot).similarity)
    known.messages, known.tasks = tuple(sorted({*messages})), tuple(sorted({*tasks}))
    return known


def parse_pattern_record(kind: PatternType, slug: str, record: dict[str, Any]) -> Pattern:
    """A pattern of the registry, `…-000`."""
    return replace(parse_pattern(kind, slug, record), id=f"pat-{kind}-{slug}-000")


# Metrics: figures
HOSTILE_LABEL = "=cmd()|'\x1b]0;x\x07<script>alert(1)</script>\n## [link](x) & \u202e|"
"""What an error may be called by who wishes ill."""


def make_bars(*labels: str) -> Figure:
    """Bars of one part, each shorter than the one before."""
    rows = tuple(
        Row(label=label, values=(float(len(labels) - n),), count=len(labels) - n) for n, label in enumerate(labels)
    )
    return Figure(
        id="causes", title="Causes", takeaway=f"Most often: {labels[0]}", kind=FigureKind.BARS, about="cause",
        parts=("times",), rows=rows, note="How to read it.",
    )  # fmt: skip


def make_columns(*weeks: tuple[int, int]) -> Figure:
    """Weeks with what worked and what failed."""
    count = len(weeks)
    rows = tuple(
        Row(label=f"{n + 1} Nov", values=week, count=sum(week), week=count - n - 1) for n, week in enumerate(weeks)
    )
    return Figure(
        id="evidence", title="Evidence", takeaway="9 uses", kind=FigureKind.COLUMNS, about="week from",
        parts=("worked", "failed"), rows=rows, note="",
    )  # fmt: skip


def make_rates(*rates: float | None) -> Figure:
    """Weeks with a rate; a gap where it is None."""
    rows = tuple(
        Row(
            label=f"{n + 1} Nov",
            values=() if rate is None else (rate,),
            count=0 if rate is None else 5,
            week=len(rates) - n - 1,
        )
        for n, rate in enumerate(rates)
    )
    return Figure(
        id="judged", title="Success", takeaway="Success fell", kind=FigureKind.COLUMNS, about="week from",
        parts=("success",), rows=rows, percent=True,
    )  # fmt: skip


def make_spans(*spans: tuple[float, float, float]) -> Figure:
    """Lowest, average and highest."""
    rows = tuple(
        Row(label=f"task {n}", values=(value,), low=low, high=high, count=4)
        for n, (low, value, high) in enumerate(spans)
    )
    return Figure(
        id="iterations", title="Iterations", takeaway="-2.0 iterations", kind=FigureKind.SPANS, about="tasks",
        parts=("average",), rows=rows, reach="fewest – most",
    )  # fmt: skip


# Sources: loop facts
SOURCES_NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LOOP_UUID = "f314cacf-fe09-49ac-91ed-56d8d456ffcb"
INTERNAL_FOLDER = ".aiwg/ralph"
EXTERNAL_FOLDER = ".aiwg/ralph-external"


class RunningProcesses:
    """Processes with known starts, and pids by program and working folder; a test may take them away."""

    def __init__(self, starts: Mapping[int, datetime] | None = None) -> None:
        self.starts = dict(starts or {})
        self.programs: dict[tuple[str, Path], int] = {}

    def started_at(self, pid: int) -> datetime | None:
        return self.starts.get(pid)

    def find(self, program: str, folder: Path) -> int | None:
        return self.programs.get((program, folder))


def iso_ago(**span: float) -> str:
    """A time before `NOW`, as files write it."""
    return (SOURCES_NOW - timedelta(**span)).isoformat()


def read_facts(file: str, value: Any) -> tuple[LoopFact, ...]:
    """Facts of a decoded file."""
    return read_loops(file, value, SOURCES_NOW).facts


def internal_facts(loop_id: str, **state: Any) -> tuple[LoopFact, ...]:
    """An internal loop at work, started ten minutes ago, changed by `state`."""
    state = {"status": "running", "startTime": iso_ago(minutes=10), **state}
    return read_facts(f"{INTERNAL_FOLDER}/loops/{loop_id}/state.json", state)


def archived_facts(loop_id: str, **state: Any) -> tuple[LoopFact, ...]:
    """An archived internal loop, completed, started three hours ago, changed by `state`."""
    state = {"status": "completed", "startTime": iso_ago(hours=3), **state}
    return read_facts(f"{INTERNAL_FOLDER}/archive/{loop_id}/state.json", state)


def registry_facts(*entries: dict[str, Any], root: str = INTERNAL_FOLDER) -> tuple[LoopFact, ...]:
    """A registry with these entries."""
    return read_facts(f"{root}/registry.json", {"active_loops": list(entries)})


def external_facts(loop_id: str, home: str = "loops", **state: Any) -> tuple[LoopFact, ...]:
    """An external loop at work on "do it", started ten minutes ago, changed by `state`."""
    state = {"status": "running", "objective": "do it", "startTime": iso_ago(minutes=10), **state}
    return read_facts(f"{EXTERNAL_FOLDER}/{home}/{loop_id}/session-state.json", state)


def join_facts(*parsed: Iterable[LoopFact], processes: RunningProcesses | None = None) -> dict[str, Loop]:
    """The rows that these facts make at `NOW`."""
    files = group_pairs((fact.file, fact) for part in parsed for fact in part)
    joined = JoinedFiles(processes)
    joined.store({file: ParsedFile(loops=tuple(facts)) for file, facts in files.items()})
    return dict(joined.records(Kind.LOOP))


class JoinedFiles:
    """Records that are joined from parsed files, as the index joins them, at `SOURCES_NOW` or `now`."""

    def __init__(self, processes: Processes | None = None, now: datetime | None = None) -> None:
        self.now = now or SOURCES_NOW
        self.changed: dict[str, set[str]] = {}
        self._processes = processes or RunningProcesses()
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        for table in list_tables():
            self._connection.execute(table)
        self._decoded: dict[int, Any] = {}

    def store(self, files: Mapping[str, ParsedFile], *, checks_open: bool = False) -> None:
        """Replace what some files say; an empty one is removed."""
        stale_after = timedelta(minutes=WatchSettings().stale_after_minutes)
        joiner = Joiner(
            self._connection, self._decoded, Moment(now=self.now, processes=self._processes, stale_after=stale_after)
        )
        for number, (path, parsed) in enumerate(files.items()):
            stamp = Stamp(number, 1, 1, 1)
            if parsed == ParsedFile():
                joiner.forget(path)
            else:
                joiner.store(FileParts(path, stamp, parts_of(parsed), parsed.findings), stamp)
        joiner.join(checks_open=checks_open)
        self.changed = joiner.changed

    def replace_adapted(self, loops: Iterable[Loop]) -> None:
        stale_after = timedelta(minutes=WatchSettings().stale_after_minutes)
        joiner = Joiner(
            self._connection, self._decoded, Moment(now=self.now, processes=self._processes, stale_after=stale_after)
        )
        joiner.replace_adapted(AdapterRecords(loops=tuple(loops)))
        joiner.join(checks_open=True)
        self.changed = joiner.changed

    def records(self, kind: Kind) -> RecordMap[Any]:
        return RecordMap(Reader(self._connection, self._decoded), kind)

    @property
    def findings(self) -> tuple[Finding, ...]:
        rows = self._connection.execute("SELECT data FROM finding ORDER BY about, number")
        return tuple(Decoder(Finding)(data) for (data,) in rows)


def launcher_facts(pid: int, started: str) -> tuple[LoopFact, ...]:
    """The launcher's registry with one loop, `launched`, at work on "do it"."""
    entry = {
        "pid": pid,
        "objective": "do it",
        "status": "running",
        "startedAt": started,
        "lastUpdate": started,
    }
    return read_facts(f"{EXTERNAL_FOLDER}/launcher-registry.json", {"loops": {"launched": entry}})


def session_facts(started: str, **state: Any) -> tuple[LoopFact, ...]:
    """The session state at the top of the external tree: loop `UUID` at work on "do it"."""
    state = {"loopId": LOOP_UUID, "objective": "do it", "status": "running", "startTime": started, **state}
    return read_facts(f"{EXTERNAL_FOLDER}/session-state.json", state)


def read_decisions(data: bytes) -> tuple[tuple[Decision, ...], tuple[Finding, ...]]:
    """Decisions in a decision log, oldest first, and the findings of its lines.

    An incomplete last line is skipped, and so are lines of unknown kinds.
    """
    log = DecisionLog()
    log.read(data)
    return log.decisions, log.findings


def forecast(project: Project, item: ReviewItem, answer: Answer, typed: str = "") -> Forecast:
    """Forecast one answer."""
    found = Forecaster(project).forecast(project.view, item, answer, typed)
    assert found is not None  # without `stop` it always finishes
    return found


def leave_draft(path: Path) -> Path:
    """Write what a process that was killed an hour ago has left beside `path`; returns its path."""
    draft = path.with_name(f".{path.name}.tmp-{2**22 + 1}-{os.urandom(4).hex()}")  # no process has this number
    draft.write_bytes(b"half")
    os.utime(draft, (draft.stat().st_mtime - 3600,) * 2)
    return draft


def make_team_sums(id: str, successes: int, failures: int, at: datetime, epoch: datetime) -> TeamSums:
    """The sums of uses that were all at one time."""
    factor = 2.0 ** ((at - epoch) / timedelta(days=SETTINGS.maturity.half_life_days))
    return TeamSums(
        pattern_id=id,
        successes=successes,
        failures=failures,
        uses=successes + failures,
        helpful=successes * factor,
        harmful=failures * factor,
        undecayed=successes + failures,
        last_used=at,
    )


def learn_weights(past: PastTasks, patterns: Mapping[str, Pattern]) -> WordWeights:
    """The weights that are fitted to past tasks."""
    inputs = FitInputs.of(past, patterns)
    return inputs.fit() if inputs is not None else WordWeights()


def rank(
    profile: TaskProfile,
    patterns: Mapping[str, Pattern],
    board: Scoreboard,
    limits: InjectionSettings | None = None,
    past: Floats | None = None,
    *,
    defers_regexes: bool = False,
) -> Ranking:
    """Patterns ranked for a task."""
    index = PatternIndex.build(patterns)
    found = measure_relevance(profile, index, patterns, None, past, defers_regexes=defers_regexes)
    return Ranking(found, index, patterns, board, limits or InjectionSettings())
