"""Debug sessions: test runs, failures, their analysis and fixes."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

IN_PROGRESS: Final = "in_progress"
PASSED: Final = "passed"
FAILED: Final = "failed"
ESCALATED: Final = "escalated"
OTHER: Final = "Other"
ERROR_TYPES: Final = (
    *("AssertionError", "TypeError", "ReferenceError", "SyntaxError", "RuntimeError", "TimeoutError", "NetworkError"),
    *("ValidationError", OTHER),
)  # error types of the file format; another type is "Other" in a file, with its name as `exception_type`
RESOLVED: Final = "resolved"
ABANDONED: Final = "abandoned"
ENDS: Final = {RESOLVED: PASSED, ESCALATED: ESCALATED, ABANDONED: FAILED}  # status by how a session ends
ROOT_CAUSES: Final = (
    *("null_undefined_access", "type_mismatch", "missing_validation", "logic_error", "off_by_one", "race_condition"),
    *("resource_leak", "missing_error_handling", "api_misuse", "configuration_error", "dependency_issue", "other"),
)  # root cause categories of the file format
STATUSES: Final = (IN_PROGRESS, PASSED, FAILED, ESCALATED)  # Valid values of the `status` of a session.


class Failure(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One failed test, or one error of an iteration; every text is untrusted."""

    error_type: str = ""
    message: str = ""
    file: str = ""
    line: int | None = None
    function: str = ""
    test_name: str = ""
    test_file: str = ""
    test_line: int | None = None
    stack_trace: str = ""
    expected: str = ""
    actual: str = ""

    @property
    def summary(self) -> str:
        """Such as "TimeoutError: no answer within 30 s"; untrusted."""
        kind = "" if self.error_type == OTHER and self.message else self.error_type
        return ": ".join(filter(None, (kind, self.message))) or "failure without a message"


class Fix(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fix of a failure; `verified` is None if it was not checked."""

    description: str = ""
    diff: str = ""
    diff_summary: str = ""
    files: tuple[str, ...] = ()
    verified: bool | None = None
    error: str = ""  # the message of the failure that it removed; "" if it is that of the run


class Results(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Test results; unknown counts are None.

    `errors` are runtime errors, not failed assertions. `coverage` is 0..1.
    """

    total: int | None = None
    passed: int | None = None
    failed: int | None = None
    errors: int | None = None
    skipped: int | None = None
    duration_ms: float | None = None
    coverage: float | None = None

    @property
    def failing(self) -> int | None:
        """Number of tests that failed or had errors; None if unknown."""
        counts = [count for count in (self.failed, self.errors) if count is not None]
        return sum(counts) if counts else None

    @property
    def green(self) -> bool | None:
        """Whether all tests passed; None if unknown."""
        if self.failing:
            return False
        return True if self.failing == 0 and (self.passed or self.total) else None


class PastIssue(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Similar earlier session that an analysis refers to."""

    session_id: str = ""
    file: str = ""
    resolution: str = ""


class Analysis(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Analysis of a failure: its cause and the planned fix; `confidence` is 0..1."""

    root_cause: str = ""
    category: str = ""
    strategy: str = ""
    confidence: float | None = None
    related: tuple[str, ...] = ()
    similar: tuple[PastIssue, ...] = ()


class Execution(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of the tests with its analysis and fix.

    `attempt` is a label, which usually starts at 1. `code` is the tested code, if recorded. `environment` has pairs of
    name and value, in the order of the file.
    """

    attempt: int | None = None
    at: datetime | None = None
    code_hash: str = ""
    code: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    results: Results | None = None
    failures: tuple[Failure, ...] = ()
    analysis: Analysis | None = None
    fix: Fix | None = None


class Lesson(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One entry of `patterns_identified`; `effectiveness` is 0..1."""

    pattern: str
    category: str = ""
    frequency: int | None = None
    fix_template: str = ""
    effectiveness: float | None = None

    @property
    def is_named(self) -> bool:
        """Whether the pattern has its own name, not only its root cause category's."""
        return self.pattern != self.category


class Recurring(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One entry of `recurring_failures`."""

    test: str
    occurrences: int | None = None
    resolution: str = ""  # resolved, pending, wont_fix, escalated or ""
    notes: str = ""


class QualityIssue(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One entry of `code_quality_issues`; `severity` is critical, major, minor or ""."""

    issue: str
    location: str = ""
    severity: str = ""
    addressed: bool | None = None


class DebugSession(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One debug session (docs/file-formats.md#debug-sessions).

    `id` is the `session_id` from the file and is never used as a path. `file_path` is the debugged source file.
    `status` is one of `STATUSES` or "". `loop_id` is the loop (or task) that the session's folder belongs to; if there
    is none, the one in the metadata. `attempt` is the number of the attempt at the task whose log the session was made
    from, or None. `file` and `pointer` locate the record.
    """

    id: str
    file_path: str = ""
    status: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    executions: tuple[Execution, ...] = ()
    lessons: tuple[Lesson, ...] = ()
    recurring: tuple[Recurring, ...] = ()
    issues: tuple[QualityIssue, ...] = ()
    recommendations: tuple[str, ...] = ()
    loop_id: str = ""
    agent: str = ""
    task_id: str = ""
    attempt: int | None = None
    iteration: int | None = None
    file: str = ""
    pointer: str = ""

    @property
    def attempt_id(self) -> str:
        """ID of the attempt whose log was the source, such as `task-001.2`; else ""."""
        return f"{self.task_id}.{self.attempt}" if self.task_id and self.attempt is not None else ""

    @property
    def is_open(self) -> bool:
        """Whether the session is in progress or has no known status."""
        return self.status in ("", IN_PROGRESS)

    @property
    def changed_at(self) -> datetime | None:
        """Time of the last update; if unknown, of the newest run or the creation."""
        if self.updated_at is not None and self.updated_at != self.created_at:
            return self.updated_at
        runs = (run.at for run in self.executions if run.at is not None)
        return max(filter(None, (*runs, self.updated_at, self.created_at)), default=None)

    @property
    def newest_failing(self) -> Execution | None:
        """The last run with a failure, or None."""
        return next((run for run in reversed(self.executions) if run.failures), None)

    @property
    def verdicts(self) -> tuple[bool | None, ...]:
        """Whether the fix of each run worked; None if unknown or without a fix.

        Taken from the recorded verification if there is one, otherwise from the next run, or from the status of the
        session after the last run (docs/scoring.md#known-fixes).
        """
        ended = {PASSED: True, FAILED: False, ESCALATED: False}.get(self.status)
        pairs = zip(self.executions, (*self.executions[1:], None), strict=False)  # no pair without executions
        return tuple(_fix_worked(run, following, ended) for run, following in pairs)


class Escalation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Request for help with a debug session; `file` contains the saved context.

    `reason` is given by the agent or user, or "". `earlier` has the session's earlier escalations, oldest first.
    """

    session_id: str
    at: datetime
    by: str = ""
    reason: str = ""
    file: str = ""
    earlier: tuple[Escalation, ...] = ()

    @property
    def id(self) -> str:
        """The ID of the session; records of all kinds have an `id`."""
        return self.session_id


def _fix_worked(run: Execution, following: Execution | None, ended: bool | None) -> bool | None:
    if run.fix is None or run.fix.verified is not None:
        return run.fix.verified if run.fix is not None else None
    if following is None:
        return ended
    green = following.results.green if following.results is not None else None
    if green:
        return True
    if run.failures and following.failures:
        return False if _problems(run) & _problems(following) else None
    return False if green is False else None


def _problems(run: Execution) -> set[tuple[str, str]]:
    """Keys of the failures: the test name, or error type and message without a test."""
    return {("", one.test_name) if one.test_name else (one.error_type, one.message) for one in run.failures}
