"""Summarize debug sessions: root causes, recurring failures, fix templates."""

from __future__ import annotations

from collections import Counter
from typing import Final

from msgspec import Struct

from core.records.debug_sessions import ESCALATED, FAILED, PASSED, DebugSession, Lesson
from core.tasks.debug_index import CAUSE, MIN_EFFECTIVENESS, TEST, DebugIndex, FixCounts, fix_key, newest_first

MIN_RUNS: Final = 2  # minimum number of failing runs that make a failure recurring


class CauseReport(Struct, frozen=True, kw_only=True):
    """Counts of one root cause category."""

    category: str  # "" for analyses without a category
    sessions: int
    passing: int  # number of sessions that passed
    failing: int  # number of sessions that failed or were escalated
    fixes: FixCounts
    root_cause: str = ""  # cause in the words of the newest session


class RecurringFailure(Struct, frozen=True, kw_only=True):
    """A test that failed repeatedly."""

    test: str
    runs: int  # number of failing runs in all sessions
    sessions: tuple[str, ...]  # IDs, newest first
    recorded: int  # sum of the occurrences that sessions record in `recurring_failures`
    resolution: str  # newest resolution that a session records, or ""


class FixTemplate(Struct, frozen=True, kw_only=True):
    """Template of a fix, for a pattern that sessions identified."""

    pattern: str
    category: str
    fix_template: str
    recorded: tuple[float, ...]  # effectiveness (0..1) that the sessions record, newest first
    fixes: FixCounts  # results of fixes in all sessions with the problem
    sessions: tuple[str, ...]  # IDs of the sessions that identified the pattern, newest first

    @property
    def effectiveness(self) -> float:
        """Share of fixes that worked, 0..1; if unknown, the newest recorded value."""
        rate = self.fixes.rate
        return self.recorded[0] if rate is None else rate

    @property
    def is_doubtful(self) -> bool:
        """Whether the fixes worked too rarely to recommend the template."""
        rate = self.fixes.rate
        return rate is not None and rate <= MIN_EFFECTIVENESS


def report_causes(index: DebugIndex) -> tuple[CauseReport, ...]:
    """Return counts for each root cause category, most frequent first."""
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
                fixes=index.fix_results.of_cause(category),
                root_cause=next(filter(None, (_cause_in(session, category) for session in sessions)), ""),
            )
        )
    return tuple(sorted(found, key=lambda cause: (-cause.sessions, cause.category)))


def _cause_in(session: DebugSession, category: str) -> str:
    analyses = [run.analysis for run in session.executions if run.analysis is not None]
    return next((one.root_cause for one in analyses if one.category == category and one.root_cause), "")


def report_recurring_failures(index: DebugIndex, min_runs: int = MIN_RUNS) -> tuple[RecurringFailure, ...]:
    """Return tests with at least `min_runs` failing runs or recorded occurrences."""
    recorded: dict[str, Counter[str]] = {}
    resolutions: dict[str, str] = {}
    for session in sorted(filter(lambda one: one.recurring, index.sessions.values()), key=newest_first):
        for entry in session.recurring:
            recorded.setdefault(entry.test, Counter())[session.id] += entry.occurrences or 0
            if entry.resolution:
                resolutions.setdefault(entry.test, entry.resolution)
    found = []
    for test in (index.keys[TEST].keys() | recorded.keys()) - {""}:
        failed_in = index.find(TEST, test)
        runs = sum(
            any(f.test_name == test for f in run.failures) for session in failed_in for run in session.executions
        )
        counts = recorded.get(test, Counter())
        if max(runs, counts.total()) >= min_runs:
            found.append(
                RecurringFailure(
                    test=test,
                    runs=runs,
                    sessions=tuple(dict.fromkeys([*(session.id for session in failed_in), *counts])),
                    recorded=counts.total(),
                    resolution=resolutions.get(test, ""),
                )
            )
    return tuple(sorted(found, key=lambda one: (one.runs < min_runs, -one.runs, -one.recorded, one.test)))


def report_fix_templates(
    index: DebugIndex, category: str, min_effectiveness: float = MIN_EFFECTIVENESS
) -> tuple[FixTemplate, ...]:
    """Return the fix templates of a root cause, most effective first, doubtful last."""
    grouped: dict[tuple[str, str], list[tuple[DebugSession, Lesson]]] = {}
    for session, lesson in index.find_lessons(category, min_effectiveness):
        fix = "" if lesson.is_named else fix_key(lesson.fix_template)
        grouped.setdefault((lesson.pattern, fix), []).append((session, lesson))
    found = [
        FixTemplate(
            pattern=pattern,
            category=category,
            fix_template=next((lesson.fix_template for _, lesson in pairs if lesson.fix_template), ""),
            recorded=tuple(lesson.effectiveness for _, lesson in pairs if lesson.effectiveness is not None),
            fixes=index.fix_results.of_lesson(
                next((lesson for _, lesson in pairs if lesson.fix_template), pairs[0][1])
            ),
            sessions=tuple(dict.fromkeys(session.id for session, _ in pairs)),
        )
        for (pattern, _), pairs in grouped.items()
    ]
    return tuple(sorted(found, key=lambda one: (one.is_doubtful, -one.effectiveness, -len(one.sessions), one.pattern)))
