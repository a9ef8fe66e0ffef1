"""JSON objects of the debug memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import astuple

from core.tasks.escalations import find_escalation

if TYPE_CHECKING:
    from core.records.debug_sessions import DebugSession, Execution
    from core.records.snapshot import Snapshot
    from core.tasks.debug_index import FixCounts, FixResults
    from core.tasks.debug_index import FixTemplate as Template


from typing import Annotated, Any

from core.cli.json.decisions import Decided, DecidedTogether, Extraction
from core.cli.json.loops import Failure, RecordUpdate
from core.cli.json.wire import Finding, Time, Wire


class EscalationCall(Wire, frozen=True):
    """The newest call for a person; `context` is the file with the saved session."""

    at: Time
    by: str | None
    reason: str
    context: Annotated[str, "file"]


class SessionRow(Wire, frozen=True):
    """A debug session; `failing` is the number of failed tests in its last run."""

    id: str
    status: str | None
    escalated: bool
    escalated_at: Time
    call: EscalationCall | None
    file_path: str
    runs: int
    failing: int | None
    error_types: list[str]
    causes: list[str]
    changed_at: Time
    loop_id: str | None
    task_id: str | None
    agent: str | None
    file: str
    pointer: str


class SessionList(Wire, frozen=True):
    """`debug list`, `debug list --error-type`, `debug list --escalated`."""

    sessions: list[SessionRow]
    findings: list[Finding]


class TestResults(Wire, frozen=True):
    """The results of one run."""

    total: int | None
    passed: int | None
    failed: int | None
    errors: int | None
    skipped: int | None
    duration_ms: float | None
    coverage: float | None


class Analysis(Wire, frozen=True):
    """The analysis of a failure; `similar` are sessions with file and resolution."""

    root_cause: str
    category: str | None
    strategy: str
    confidence: float | None
    related: list[str]
    similar: list[Any]


class Fix(Wire, frozen=True):
    """A fix; `verified` is what the session reports, `held` what later runs show."""

    description: str
    diff: str
    diff_summary: str
    files: list[str]
    verified: bool | None
    held: bool | None


class Run(Wire, frozen=True):
    """One run of the tests, and what was done about its failures."""

    attempt: int | None
    at: Time
    code_hash: str
    code: str
    environment: list[Any]
    results: TestResults | None
    failures: list[Failure]
    analysis: Analysis | None
    fix: Fix | None


class FixRate(Wire, frozen=True):
    """How often fixes held, with the interval of the rate."""

    held: Annotated[int, "passed"]
    failed: int
    rate: float | None
    interval: list[float]


class Lesson(Wire, frozen=True):
    """A lesson of a session; `effectiveness` is what the session reports."""

    pattern: str
    category: str | None
    frequency: int | None
    fix_template: str
    effectiveness: float | None


class LessonDetails(Lesson, frozen=True):
    """A lesson of a session, with the results of its fixes over all sessions."""

    fixes: FixRate


class RepeatedFailure(Wire, frozen=True):
    """A test that failed repeatedly in a session."""

    test: str
    occurrences: int | None
    resolution: str | None
    notes: str


class QualityIssue(Wire, frozen=True):
    """A code quality issue."""

    issue: str
    location: str
    severity: str | None
    addressed: bool | None


class SessionDetails(SessionRow, frozen=True):
    """One debug session with all its content."""

    created_at: Time
    iteration: int | None
    executions: list[Run]
    patterns_identified: Annotated[list[LessonDetails], "lessons"]
    recurring_failures: Annotated[list[RepeatedFailure], "recurring"]
    code_quality_issues: Annotated[list[QualityIssue], "issues"]
    recommendations: list[str]


class SessionDocument(Wire, frozen=True):
    """`debug show`."""

    session: SessionDetails
    findings: list[Finding]


class RootCause(Wire, frozen=True):
    """One root cause: sessions, how many passed or failed, and how often fixes held."""

    category: str | None
    root_cause: str | None
    sessions: int
    passing: int
    failing: int
    fixes: FixRate


class RecurringTest(Wire, frozen=True):
    """A test that fails repeatedly; `claimed` is the count that sessions report."""

    test: str
    runs: int
    session_ids: Annotated[list[str], "sessions"]
    claimed: Annotated[int, "recorded"]
    resolution: str | None


class CauseList(Wire, frozen=True):
    """`debug list --causes`."""

    causes: list[RootCause]
    recurring: list[RecurringTest]
    findings: list[Finding]


class FixTemplate(Wire, frozen=True):
    """A fix template: rates that sessions report (`claimed`), results of its fixes."""

    pattern: str
    category: str
    fix_template: str
    effectiveness: float | None
    claimed: Annotated[list[float], "recorded"]
    fixes: FixRate
    session_ids: Annotated[list[str], "sessions"]


class FixTemplateList(Wire, frozen=True):
    """`debug list --templates`."""

    templates: list[FixTemplate]
    findings: list[Finding]


class RetentionPeriod(Wire, frozen=True):
    """How long a session is kept; `until` is null for one in progress."""

    id: Annotated[str, "session_id"]
    status: str | None
    rule: str
    days: int | None
    until: Time


class RetentionFile(Wire, frozen=True):
    """A session file, and whether it is due."""

    file: str
    due: bool
    terms: Annotated[list[RetentionPeriod], "periods"]


class RetentionDocument(Wire, frozen=True):
    """`debug archive --dry-run`."""

    plan: list[RetentionFile]


class FileMove(Wire, frozen=True, rename={"from_": "from"}):
    """A file that was moved."""

    from_: Annotated[str, "source"]
    to: Annotated[str, "target"]
    session_ids: Annotated[list[str], "sessions"]


class ArchiveResult(Wire, frozen=True):
    """`debug archive`."""

    moved: list[FileMove]
    warnings: list[str]


class RestoreResult(Wire, frozen=True):
    """`debug archive --restore`; `others` are more archived files with the session."""

    moved: list[FileMove]
    others: list[str]


class ArchivedSession(Wire, frozen=True):
    """An archived session."""

    id: Annotated[str, "session.id"]
    status: Annotated[str | None, "session.status"]
    file_path: Annotated[str, "session.file_path"]
    changed_at: Annotated[Time, "session.changed_at"]
    file: str
    at: Time
    by: str | None


class ArchivedSessionList(Wire, frozen=True):
    """`debug list --archived`."""

    archived: list[ArchivedSession]
    findings: list[Finding]


class KnownFix(Wire, frozen=True):
    """A fix of earlier sessions; `times`: how many, `alike`: similarity of messages."""

    session: Annotated[str, "session.id"]
    source: Annotated[str | None, "failure.file"]
    message: Annotated[str, "failure.message"]
    cause: str
    category: str | None
    strategy: str
    fix: str
    held: Annotated[bool | None, "worked"]
    results: FixRate
    failed: list[str]
    alike: Annotated[float, "is_similar"]
    same_file: Annotated[bool, "is_same_file"]
    times: int


class OfferedPattern(Wire, frozen=True):
    """An error pattern whose signature matches the message."""

    id: str
    title: str
    error_pattern: str
    description: str
    state: str
    success_rate: Annotated[float | None, "rate"]
    usage_count: Annotated[int, "uses"]


class FailureDocument(Wire, frozen=True):
    """`debug failure`; `error` is the first of the errors."""

    error: Failure | None
    errors: list[Failure]
    fixes: list[KnownFix]
    templates: list[FixTemplate]
    patterns: list[OfferedPattern]
    text: str
    did_not_help: list[KnownFix]
    findings: list[Finding]


class SuccessDocument(Wire, frozen=True):
    """`debug record --success`; `bead` is the loop or attempt that gets the outcome."""

    session_id: str
    file: str
    bead: Annotated[str, "work_id"]
    applied: list[str]
    lessons: Annotated[list[Lesson], "learned.lessons"]
    lessons_written: Annotated[bool, "learned.written"]
    file_changed: bool
    problem: Annotated[str | None, "learned.problem"]
    records: Annotated[list[RecordUpdate], "counted"]
    extraction: Extraction | None
    decided: Decided | DecidedTogether | None
    warnings: list[str]


class EscalationDocument(Wire, frozen=True):
    """`debug record --escalate`."""

    session_id: str
    file: str


class SessionStarted(Wire, frozen=True):
    """`debug record --start`."""

    session_id: str


class RunRecorded(Wire, frozen=True):
    """`debug run`; `exit_code` is null if nothing was run."""

    session_id: str
    run: int
    exit_code: int | None
    results: TestResults | None
    failures: list[Failure]


class SessionPartRecorded(Wire, frozen=True):
    """`debug record --cause` and `debug record --fix`; `run` is the run concerned."""

    session_id: str
    run: int


class SessionEnded(Wire, frozen=True):
    """`debug record --end`; `file` has the preserved context of an escalated session."""

    session_id: str
    status: str
    changed: bool
    lessons: int
    file: str | None


def _row_values(session: DebugSession, snapshot: Snapshot) -> dict[str, object]:
    found = find_escalation(session, snapshot)
    return {
        "escalated": found is not None,
        "escalated_at": found.at if found is not None else None,
        "call": snapshot.escalations.get(session.id),
        "runs": len(session.executions),
        "failing": failing_tests(session),
        "error_types": list(dict.fromkeys(f.error_type for run in session.executions for f in run.failures)),
        "causes": causes_of(session),
    }


def failing_tests(session: DebugSession) -> int | None:
    """Count the tests that failed or stopped in the last run; None if unknown."""
    if not session.executions:
        return None
    last = session.executions[-1]
    counted = last.results.failing if last.results is not None else None
    return counted if counted is not None else len(last.failures) or None


def causes_of(session: DebugSession) -> list[str]:
    """List the root causes in the analyses of a session, without duplicates."""
    runs = (run.analysis.category for run in session.executions if run.analysis is not None)
    return list(dict.fromkeys(category for category in runs if category))


def session_rows(sessions: Sequence[DebugSession], snapshot: Snapshot) -> Iterator[Wire]:
    for session in sessions:
        yield SessionRow.of(session, **_row_values(session, snapshot))


def session_details(session: DebugSession, snapshot: Snapshot, results: FixResults, level: float) -> Wire:
    return SessionDetails.of(
        session,
        **_row_values(session, snapshot),
        executions=[_run(run, held) for run, held in zip(session.executions, session.verdicts, strict=True)],
        patterns_identified=[
            LessonDetails.of(lesson, fixes=fix_rate(results.of_lesson(lesson), level)) for lesson in session.lessons
        ],
    )


def _run(run: Execution, held: bool | None) -> Wire:
    analysis, fix = run.analysis, run.fix
    similar = [astuple(one) for one in analysis.similar] if analysis is not None else []
    return Run.of(
        run,
        analysis=Analysis.of(analysis, similar=similar) if analysis is not None else None,
        fix=Fix.of(fix, held=held) if fix is not None else None,
    )


def fix_rate(counts: FixCounts, level: float) -> Wire:
    return FixRate.of(counts, interval=counts.interval(level))


def fix_template(template: Template, level: float) -> Wire:
    return FixTemplate.of(template, fixes=fix_rate(template.fixes, level))
