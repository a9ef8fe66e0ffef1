"""Count how often fixes worked, per root cause and per fix pattern.

All sessions count, including failed ones and those that recorded no pattern for the root cause
(docs/scoring.md#known-fixes).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from msgspec import Struct

from core.base.formatting import format_percent
from core.learning.statistics import jeffreys_interval
from core.records.debug_sessions import DebugSession, Lesson


class FixCounts(Struct, frozen=True, kw_only=True):
    """The number of fixes that worked (`passed`) and did not work (`failed`)."""

    passed: int = 0
    failed: int = 0

    @property
    def known(self) -> int:
        return self.passed + self.failed

    @property
    def rate(self) -> float | None:
        """Share of fixes that worked, 0..1; None without any known result."""
        return self.passed / self.known if self.known else None

    @property
    def text(self) -> str:
        """Such as "worked in 1 of 4 (25 %)", "" without any known result."""
        rate = self.rate
        return f"worked in {self.passed:,} of {self.known:,} ({format_percent(rate)})" if rate is not None else ""

    def interval(self, level: float) -> tuple[float, float]:
        """The Jeffreys interval of the rate, 0..1, for a probability mass 0..1."""
        return jeffreys_interval(self.passed, self.failed, level)

    def __add__(self, other: FixCounts) -> FixCounts:
        return FixCounts(passed=self.passed + other.passed, failed=self.failed + other.failed)


class FixResults:
    """Results of all fixes, counted once over all sessions: about 10 us per session.

    All sessions count, including failed ones and those that recorded no pattern for the root cause
    (docs/scoring.md#known-fixes). A session that recorded a pattern for a root cause counts for that pattern. One that
    recorded none counts for the pattern that most sessions recorded for this root cause.
    """

    def __init__(self, sessions: Iterable[DebugSession]) -> None:
        self._by_cause: defaultdict[str, FixCounts] = defaultdict(FixCounts)
        self._by_pattern: defaultdict[tuple[str, str], FixCounts] = defaultdict(FixCounts)
        self._without_pattern: defaultdict[str, FixCounts] = defaultdict(FixCounts)
        names: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for session in sessions:
            by_category: defaultdict[str, FixCounts] = defaultdict(FixCounts)  # "" for runs without an analysis
            for run, worked in zip(session.executions, session.verdicts, strict=True):
                if worked is not None:
                    category = run.analysis.category if run.analysis is not None else ""
                    by_category[category] += FixCounts(passed=1) if worked else FixCounts(failed=1)
            patterns: defaultdict[str, set[str]] = defaultdict(set)
            for lesson in session.lessons:
                patterns[lesson.category].add(lesson.pattern)
                names[lesson.category][lesson.pattern] += 1
            analysed = {run.analysis.category for run in session.executions if run.analysis is not None}
            for category in analysed | patterns.keys():
                counts = by_category[category]
                if category:  # runs without a category are most likely about the same problem
                    counts += by_category[""]
                if category in analysed:
                    self._by_cause[category] += counts
                for pattern in patterns.get(category, ()):
                    self._by_pattern[category, pattern] += counts
                if category not in patterns:
                    self._without_pattern[category] += counts
        self._usual = {
            category: min(counts, key=lambda name: (-counts[name], name)) for category, counts in names.items()
        }

    def of_cause(self, category: str) -> FixCounts:
        return self._by_cause.get(category, FixCounts())

    def of_pattern(self, category: str, pattern: str) -> FixCounts:
        """Fixes with this pattern; of its root cause if no session recorded it."""
        usual = self.usual_pattern(category)
        counts = self._by_pattern.get((category, pattern), FixCounts())
        return counts + self._without_pattern.get(category, FixCounts()) if usual in ("", pattern) else counts

    def effectiveness(self, lesson: Lesson) -> float | None:
        """Share of fixes that worked, 0..1; the recorded rate if no result is known."""
        rate = self.of_pattern(lesson.category, lesson.pattern).rate
        return lesson.effectiveness if rate is None else rate

    def usual_pattern(self, category: str) -> str:
        """The pattern that most sessions recorded for a root cause, "" if none did."""
        return self._usual.get(category, "")
