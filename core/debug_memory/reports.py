"""What the sessions of the debug memory amount to: why things failed, what fails again, which fixes hold."""

from __future__ import annotations

from collections import Counter
from typing import Final

from msgspec import Struct

from core.debug_memory.effectiveness import FixCounts
from core.debug_memory.index import CAUSE, MIN_EFFECTIVENESS, TEST, DebugIndex
from core.records.debug_sessions import ESCALATED, FAILED, PASSED, DebugSession, Lesson

MIN_RUNS: Final = 2
"""A test that failed in fewer runs does not recur."""


class CauseReport(Struct, frozen=True, kw_only=True):
    """One `root_cause_category` of (4).

    Attributes:
        category: "" for analyses that name none.
        sessions: How many sessions name it, of which so many ended `passing`, or `failing` (or escalated).
        held: How often a fix against it held.
    """

    category: str
    sessions: int
    passing: int
    failing: int
    held: FixCounts


class RecurringFailure(Struct, frozen=True, kw_only=True):
    """A test that fails again and again.

    Attributes:
        runs: In how many runs of all sessions it failed.
        sessions: Ids of these sessions, newest first.
        claimed: How often the sessions say it occurred (4) recurring_failures; 0 where none does.
        resolution: What the newest session that says it says came of it, "" if none does.
    """

    test: str
    runs: int
    sessions: tuple[str, ...]
    claimed: int
    resolution: str


class FixTemplate(Struct, frozen=True, kw_only=True):
    """A pattern that sessions identified, with the template for fixing it.

    Attributes:
        claimed: The effectiveness that each session says it has, newest first, 0..1.
        held: How often the fix held in all sessions that had the problem.
        sessions: Ids of these sessions, newest first.
    """

    pattern: str
    category: str
    fix_template: str
    claimed: tuple[float, ...]
    held: FixCounts
    sessions: tuple[str, ...]

    @property
    def effectiveness(self) -> float:
        """Share of fixes that held, 0..1; where no result is known, what the newest session claims."""
        rate = self.held.rate
        return self.claimed[0] if rate is None else rate

    @property
    def doubtful(self) -> bool:
        """Whether the fixes held less often than a template must work to be offered, whatever is claimed."""
        rate = self.held.rate
        return rate is not None and rate <= MIN_EFFECTIVENESS


def causes(index: DebugIndex) -> tuple[CauseReport, ...]:
    """The root causes, most frequent first."""
    found = []
    for category, ids in index.keys[CAUSE].items():
        sessions = [index.sessions[id] for id in ids]
        statuses = Counter(session.status for session in sessions)
        found.append(
            CauseReport(
                category=category,
                sessions=len(sessions),
                passing=statuses[PASSED],
                failing=statuses[FAILED] + statuses[ESCALATED],
                held=index.fix_results.of_cause(category),
            )
        )
    return tuple(sorted(found, key=lambda cause: (-cause.sessions, cause.category)))


def report_recurring_failures(index: DebugIndex, least: int = MIN_RUNS) -> tuple[RecurringFailure, ...]:
    """The tests that failed in at least so many runs of all sessions, or that sessions say failed so often, which
    no run need prove: those that the runs prove first, most runs first.
    """
    claims: dict[str, Counter[str]] = {}
    told: dict[str, tuple[DebugSession, str]] = {}
    for session in index.sessions.values():
        for entry in session.recurring:
            claims.setdefault(entry.test, Counter())[session.id] += entry.occurrences or 0
            known = told.get(entry.test)
            if entry.resolution and (known is None or _is_newer(session, known[0])):
                told[entry.test] = session, entry.resolution
    found = []
    for test in (index.keys[TEST].keys() | claims.keys()) - {""}:
        failed_in = index.find(TEST, test)
        runs = sum(
            any(f.test_name == test for f in run.failures) for session in failed_in for run in session.executions
        )
        claimed = claims.get(test, Counter())
        if max(runs, claimed.total()) >= least:
            ids = dict.fromkeys([*(session.id for session in failed_in), *claimed])
            found.append(
                RecurringFailure(
                    test=test,
                    runs=runs,
                    sessions=tuple(ids),
                    claimed=claimed.total(),
                    resolution=told[test][1] if test in told else "",
                )
            )
    return tuple(sorted(found, key=lambda one: (one.runs < least, -one.runs, -one.claimed, one.test)))


def _is_newer(one: DebugSession, other: DebugSession) -> bool:
    if one.changed_at is None or other.changed_at is None:
        return other.changed_at is None
    return one.changed_at > other.changed_at


def report_fix_templates(
    index: DebugIndex, category: str, min_effectiveness: float = MIN_EFFECTIVENESS
) -> tuple[FixTemplate, ...]:
    """(4) get_fix_templates, each pattern once, with what is known of it beside what is claimed; best first."""
    grouped: dict[str, list[tuple[DebugSession, Lesson]]] = {}
    for session, lesson in index.templates(category, min_effectiveness):
        grouped.setdefault(lesson.pattern, []).append((session, lesson))
    found = [
        FixTemplate(
            pattern=pattern,
            category=category,
            fix_template=next((lesson.fix_template for _, lesson in told if lesson.fix_template), ""),
            claimed=tuple(lesson.effectiveness for _, lesson in told if lesson.effectiveness is not None),
            held=index.fix_results.of_pattern(category, pattern),
            sessions=tuple(dict.fromkeys(session.id for session, _ in told)),
        )
        for pattern, told in grouped.items()
    ]
    return tuple(sorted(found, key=lambda one: (one.doubtful, -one.effectiveness, -len(one.sessions), one.pattern)))
