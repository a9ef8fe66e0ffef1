"""Outcome signals of finished loops and attempts; docs/scoring.md#outcomes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from core.base.grouping import group_pairs
from core.learning.outcomes import OutcomeSignals
from core.records.events import Event, Signals
from core.records.loops import Iteration, Loop, LoopStatus, Outcome

if TYPE_CHECKING:
    from core.records.debug_sessions import DebugSession, Failure
    from core.records.episodes import Attempt

_MAX_KEY: Final = 300  # maximum number of characters of a message that are compared
_TYPE: Final = re.compile(r"(?:uncaught )?(?:\w{1,40}\.){0,6}\w{0,60}(?:error|exception)(?: ?\[\w{1,40}\])?: ")
_PLACE: Final = re.compile(r" (?:at |\()[\w.@~+/\\-]{1,200}:\d[\d:]{0,20}\)?$")

_Value = TypeVar("_Value")
_BY_OUTCOME: Final = {Outcome.SUCCESS: True, Outcome.PARTIAL: False, Outcome.FAILURE: False, Outcome.TIMEOUT: False}


@dataclass(frozen=True, slots=True)
class WorkReport:
    """The events about one loop or attempt as a whole."""

    outcomes: tuple[Event, ...] = ()  # newest first; at equal times, the last written first
    errors: tuple[str, ...] = ()  # messages of the error log, including resolved errors

    @property
    def at(self) -> datetime | None:
        return self.outcomes[0].at if self.outcomes else None

    @property
    def success(self) -> bool | None:
        """Success flag of the newest outcome event that has one."""
        return _first(*(event.success for event in self.outcomes))

    def signal(self, name: str) -> Any:
        """Return a field of `Signals` from the newest outcome event that has it, or None."""
        signals = (event.signals for event in self.outcomes if event.signals is not None)
        return next((value for one in signals if (value := getattr(one, name)) not in (None, "", ())), None)


def is_report(event: Event) -> bool:
    """Return whether an event is about a loop or attempt as a whole."""
    about_work = event.error is not None if event.kind == "error" else event.kind == "outcome" and not event.pattern_id
    return bool(event.loop_id) and about_work


def collect_reports(events: Iterable[Event]) -> dict[str, WorkReport]:
    """Group the events about whole work items by the work ID in them."""
    grouped = group_pairs((event.loop_id, event) for event in events if is_report(event))
    return {work_id: make_report(found) for work_id, found in grouped.items()}


def make_report(events: Sequence[Event]) -> WorkReport:
    """Summarize the events about one work item, which are in order of time."""
    outcomes = (event for event in reversed(events) if event.kind != "error")
    errors = (event.error.message for event in events if event.kind == "error" and event.error is not None)
    return WorkReport(_newest_first(outcomes), tuple(errors))


def merge_reports(reports: Iterable[WorkReport]) -> WorkReport:
    """Merge the reports on one work item; at equal times, the first has priority."""
    found = list(reports)
    if len(found) == 1:
        return found[0]
    outcomes = _newest_first(one for report in found for one in report.outcomes)
    return WorkReport(outcomes, tuple(message for report in found for message in report.errors))


def _newest_first(outcomes: Iterable[Event]) -> tuple[Event, ...]:
    return tuple(sorted(outcomes, key=lambda event: event.at, reverse=True))


def loop_signals(loop: Loop, report: WorkReport, sessions: Sequence[DebugSession] = ()) -> OutcomeSignals | None:
    """Return the signals of a loop; None if it has not ended with a result.

    See docs/scoring.md#outcomes, #errors-of-a-loop and #retries-of-a-loop. Each field comes from outcome events if they
    have it. Only the time is the end of the loop, since an outcome is often reported later.
    """
    failed = [iteration.failed for iteration in loop.iterations]
    known = any(iteration.outcome is not Outcome.UNKNOWN or iteration.failures for iteration in loop.iterations)
    own = Signals(
        duration_ms=_measure_duration(loop.started_at, loop.ended_at, approximate=loop.ended_approximate),
        error_count=count_errors(report.errors, loop.iterations, sessions),
        retry_count=sum(failed[:-1]) if known else None,
        files_touched=tuple(dict.fromkeys(file for iteration in loop.iterations for file in iteration.files)),
    )
    return _make_signals(
        loop.id,
        report,
        own,
        success=loop.success,
        partial=loop.status is LoopStatus.PARTIAL,
        ended_at=loop.ended_at,
        fallback_time=loop.last_activity or loop.started_at,
    )


def attempt_signals(
    attempt: Attempt, report: WorkReport, sessions: Sequence[DebugSession] = ()
) -> OutcomeSignals | None:
    """Return the signals of an attempt; the retries are its number - 1.

    Errors are those of the error log and debug sessions; without an error log, at least the failed actions.
    """
    errors = count_errors(report.errors, (), sessions)
    if attempt.errors is not None and not report.errors:
        errors = max(attempt.errors, errors or 0)
    duration = _measure_duration(attempt.started_at, attempt.ended_at)
    return _make_signals(
        attempt.id,
        report,
        Signals(duration_ms=duration, error_count=errors, retry_count=max(attempt.number - 1, 0)),
        success=_BY_OUTCOME.get(attempt.outcome),
        partial=attempt.outcome is Outcome.PARTIAL,
        ended_at=attempt.ended_at,
        fallback_time=attempt.started_at,
    )


def attempt_success(attempt: Attempt, report: WorkReport) -> bool | None:
    """Return whether an attempt succeeded; None if unknown or partial."""
    own = None if attempt.outcome is Outcome.PARTIAL else _BY_OUTCOME.get(attempt.outcome)
    return _first(report.success, own)


def report_signals(work_id: str, report: WorkReport) -> OutcomeSignals | None:
    """Return the signals of a work item that only events mention."""
    return _make_signals(work_id, report, Signals(error_count=len(report.errors) or None))


def _make_signals(
    work_id: str,
    report: WorkReport,
    own: Signals,
    *,
    success: bool | None = None,
    partial: bool = False,
    ended_at: datetime | None = None,
    fallback_time: datetime | None = None,
) -> OutcomeSignals | None:
    partial = partial and report.success is None
    success = _first(report.success, success)
    at = ended_at or report.at or fallback_time
    if success is None or at is None:
        return None
    return OutcomeSignals(
        bead_id=work_id,
        success=success,
        partial=partial,
        timestamp=at,
        duration_ms=_first(report.signal("duration_ms"), own.duration_ms),
        error_count=_first(report.signal("error_count"), own.error_count),
        retry_count=_first(report.signal("retry_count"), own.retry_count),
        files_touched=report.signal("files_touched") or own.files_touched,
        strategy=report.signal("strategy") or "",
        failure_mode=report.signal("failure_mode") or "",
        failure_details=report.signal("failure_details") or "",
    )


def _first(*values: _Value | None) -> _Value | None:
    return next((value for value in values if value is not None), None)


def _measure_duration(start: datetime | None, end: datetime | None, *, approximate: bool = False) -> float | None:
    """Return the duration; None if a time is missing or the end copies the start."""
    if start is None or end is None or end < start or (approximate and end == start):
        return None
    return (end - start).total_seconds() * 1000


def count_errors(
    logged: Sequence[str], iterations: Sequence[Iteration], sessions: Sequence[DebugSession]
) -> int | None:
    """Count the errors in three sources, each error once; None if unknown.

    `logged` are messages of the error log. For an attempt, `iterations` is empty.
    """
    known = any(iteration.outcome is not Outcome.UNKNOWN or iteration.failures for iteration in iterations)
    silent = sum(iteration.failed and not iteration.failures for iteration in iterations)
    if not logged and not sessions and not any(iteration.failures for iteration in iterations):
        return silent if known else None  # the common case: nothing to compare
    distinct = ({(*_identify(one), one.file, one.line) for one in iteration.failures} for iteration in iterations)
    of_iterations = Counter(key for failures in distinct for key, *_ in failures)
    runs = [run for session in sessions for run in session.executions]
    # A test that fails again with the same message in a later run is the same failure.
    of_sessions = Counter(key for key, *_ in {_identify(failure) for run in runs for failure in run.failures})
    counts = [run.results.failing for run in runs if run.results is not None and run.results.failing is not None]
    if not (logged or known or of_sessions or counts):
        return None
    together = (Counter(map(_normalize, logged)) | of_iterations | of_sessions).total()
    return max(together, of_iterations.total() + (0 if logged else silent), *counts, 0)


def _identify(failure: Failure) -> tuple[str, str, str]:
    """Return the normalized message, the error type and the test of a failure."""
    return _normalize(failure.message or failure.error_type), failure.error_type, failure.test_name


def _normalize(message: str) -> str:
    """Return the first line of a message, without error type and source location."""
    first = message.strip()[: 2 * _MAX_KEY].partition("\n")[0]
    text = " ".join(first.casefold().split())[:_MAX_KEY]
    return _PLACE.sub("", text[found.end() :] if (found := _TYPE.match(text)) else text) or text
