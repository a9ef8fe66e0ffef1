"""How often fixes held, per root cause and per known fix; the only place that counts it (docs/scoring.md#known-fixes).

Counted are all sessions: also those that failed, and those that recorded no pattern for the root cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from msgspec import Struct

from core.base.formatting import percent_text
from core.learning.statistics import jeffreys_interval
from core.records.debug_sessions import DebugSession, Lesson

_Key = TypeVar("_Key", bound=Hashable)


class FixCounts(Struct, frozen=True, kw_only=True):
    """Fixes with a known result: how many held, how many did not."""

    passed: int = 0
    failed: int = 0

    @property
    def known(self) -> int:
        """Fixes with a known result."""
        return self.passed + self.failed

    @property
    def rate(self) -> float | None:
        """Share of fixes that held, 0..1; None without any known result."""
        return self.passed / self.known if self.known else None

    @property
    def text(self) -> str:
        """Such as "held in 1 of 4 (25 %)", "" without any known result."""
        rate = self.rate
        return f"held in {self.passed:,} of {self.known:,} ({percent_text(rate)})" if rate is not None else ""

    def interval(self, level: float) -> tuple[float, float]:
        """The Jeffreys interval of the rate, 0..1, for a probability mass 0..1."""
        return jeffreys_interval(self.passed, self.failed, level)

    def __add__(self, other: FixCounts) -> FixCounts:
        return FixCounts(passed=self.passed + other.passed, failed=self.failed + other.failed)


_NONE = FixCounts()


class FixResults:
    """Results of all fixes, counted once over all sessions: about 10 us a session.

    A session that recorded a pattern for a root cause counts for that pattern. One that recorded none counts for the
    pattern that most sessions recorded for it.
    """

    def __init__(self, sessions: Iterable[DebugSession]) -> None:
        self._causes: dict[str, FixCounts] = {}
        self._named: dict[tuple[str, str], FixCounts] = {}
        self._unnamed: dict[str, FixCounts] = {}
        names: dict[str, Counter[str]] = {}
        for session in sessions:
            by_category = _verdicts(session)
            patterns: dict[str, set[str]] = {}
            for lesson in session.lessons:
                patterns.setdefault(lesson.category, set()).add(lesson.pattern)
                names.setdefault(lesson.category, Counter())[lesson.pattern] += 1
            analysed = {run.analysis.category for run in session.executions if run.analysis is not None}
            for category in analysed | patterns.keys():
                held = _sum(by_category, category)
                if category in analysed:
                    _add(self._causes, category, held)
                for pattern in patterns.get(category, ()):
                    _add(self._named, (category, pattern), held)
                if category not in patterns:
                    _add(self._unnamed, category, held)
        self._usual = {
            category: min(counts, key=lambda name: (-counts[name], name)) for category, counts in names.items()
        }

    def of_cause(self, category: str) -> FixCounts:
        """Fixes of all sessions that analysed such a root cause."""
        return self._causes.get(category, _NONE)

    def of_pattern(self, category: str, pattern: str) -> FixCounts:
        """Fixes of a known pattern; of a pattern that no session recorded, those of its root cause."""
        usual = self.usual_pattern(category)
        held = self._named.get((category, pattern), _NONE)
        return held + self._unnamed.get(category, _NONE) if usual in ("", pattern) else held

    def effectiveness(self, lesson: Lesson) -> float | None:
        """Share of fixes that held, 0..1; where no result is known, what the session claims."""
        rate = self.of_pattern(lesson.category, lesson.pattern).rate
        return lesson.effectiveness if rate is None else rate

    def usual_pattern(self, category: str) -> str:
        """The pattern that most sessions recorded for a root cause, "" if none did."""
        return self._usual.get(category, "")


def _verdicts(session: DebugSession) -> Mapping[str, FixCounts]:
    """Results by the category of the run's analysis, "" for none."""
    found: dict[str, FixCounts] = {}
    for run, held in zip(session.executions, session.verdicts, strict=True):
        if held is not None:
            category = run.analysis.category if run.analysis is not None else ""
            _add(found, category, FixCounts(passed=1) if held else FixCounts(failed=1))
    return found


def _sum(found: Mapping[str, FixCounts], category: str) -> FixCounts:
    """Results for a category, and for runs without one, which are most likely about the same."""
    held = found.get(category, _NONE)
    return held + found.get("", _NONE) if category else held


def _add(table: dict[_Key, FixCounts], key: _Key, held: FixCounts) -> None:
    table[key] = table.get(key, _NONE) + held
