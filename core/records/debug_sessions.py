"""Debug memory: what an agent ran, what failed, why, and what it changed (4)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

IN_PROGRESS: Final = "in_progress"
PASSED: Final = "passed"
FAILED: Final = "failed"
ESCALATED: Final = "escalated"
STATUSES: Final = (IN_PROGRESS, PASSED, FAILED, ESCALATED)
"""(4) `status` of a session."""


class Failure(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One failing test, or one error of an iteration; untrusted text throughout.

    Attributes:
        error_type: As written: one of (4) `error_type`, or any other name.
        file, line, function: Where in the source it failed, as far as that is told.
        expected, actual: Of an assertion.
    """

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


class Fix(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was changed against a failure; `verified` is None while nobody has looked."""

    description: str = ""
    diff: str = ""
    diff_summary: str = ""
    files: tuple[str, ...] = ()
    verified: bool | None = None


class Results(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How the tests came out; None where it is not told.

    Attributes:
        errors: Of the runtime, not of assertions.
        coverage: 0..1.
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
        """How many tests failed or broke off; None where that is not told."""
        told = [count for count in (self.failed, self.errors) if count is not None]
        return sum(told) if told else None

    @property
    def green(self) -> bool | None:
        """Whether all tests pass; None where that is not told."""
        if self.failing:
            return False
        return True if self.failing == 0 and (self.passed or self.total) else None


class PastIssue(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A session that an analysis found to be about the same."""

    session_id: str = ""
    file: str = ""
    resolution: str = ""


class Analysis(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why it failed, and what to do about it; `confidence` 0..1."""

    root_cause: str = ""
    category: str = ""
    strategy: str = ""
    confidence: float | None = None
    related: tuple[str, ...] = ()
    similar: tuple[PastIssue, ...] = ()


class Execution(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of the tests, and what was done after it.

    Attributes:
        attempt: From 1 up, as a label.
        code: The code at this attempt, where it was kept.
        environment: Name and value, in the order of the file.
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
    """One entry of (4) `patterns_identified`; `effectiveness` 0..1."""

    pattern: str
    category: str = ""
    frequency: int | None = None
    fix_template: str = ""
    effectiveness: float | None = None


class Recurring(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One entry of (4) `recurring_failures`; `resolution` is resolved, pending, wont_fix, escalated or ""."""

    test: str
    occurrences: int | None = None
    resolution: str = ""
    notes: str = ""


class QualityIssue(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One entry of (4) `code_quality_issues`; `severity` is critical, major, minor or ""."""

    issue: str
    location: str = ""
    severity: str = ""
    addressed: bool | None = None


class DebugSession(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One debug session, wherever its file lies (formats C26).

    Attributes:
        id: `session_id`, as written; never used as a path.
        file_path: The source file that was worked on.
        status: One of `STATUSES`, or "".
        loop_id: The loop in whose folder the file lies, else the one that its metadata name; "" for none. It may
            be a task of the episodic memory as well.
        agent, task_id, iteration: Its metadata.
        file, pointer: Where it stands.
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
    iteration: int | None = None
    file: str = ""
    pointer: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it does not say how it came out."""
        return self.status in ("", IN_PROGRESS)

    @property
    def changed_at(self) -> datetime | None:
        """When it was updated last; where it does not say, its newest run, else when it was made."""
        if self.updated_at is not None and self.updated_at != self.created_at:
            return self.updated_at
        runs = (run.at for run in self.executions if run.at is not None)
        return max(filter(None, (*runs, self.updated_at, self.created_at)), default=None)

    @property
    def newest_failing(self) -> Execution | None:
        """The last run in which something failed; None if nothing ever did."""
        return next((run for run in reversed(self.executions) if run.failures), None)

    @property
    def verdicts(self) -> tuple[bool | None, ...]:
        """For each run: whether the change made after it fixed what failed; None if unknown or nothing was changed.

        The recorded verification counts first, then the next run, then how the session ended
        (docs/scoring.md#known-fixes).
        """
        ended = {PASSED: True, FAILED: False, ESCALATED: False}.get(self.status)
        pairs = zip(self.executions, (*self.executions[1:], None), strict=False)  # no pair without executions
        return tuple(_held(run, following, ended) for run, following in pairs)


class Escalation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of (4) on_escalation: an agent gave a session up, and what surrounded it was kept.

    Attributes:
        reason: In the words of whoever called, "" if none were given.
        file: Where the context is kept, project-relative.
        earlier: The calls for this session before this one, oldest first.
    """

    session_id: str
    at: datetime
    by: str = ""
    reason: str = ""
    file: str = ""
    earlier: tuple[Escalation, ...] = ()

    @property
    def id(self) -> str:
        """The session that it is about."""
        return self.session_id


def _held(run: Execution, following: Execution | None, ended: bool | None) -> bool | None:
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
    """What failed: the test, or the error where no test is named."""
    return {("", one.test_name) if one.test_name else (one.error_type, one.message) for one in run.failures}
