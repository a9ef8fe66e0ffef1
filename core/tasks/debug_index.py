"""Index of debug sessions, and sums of fix results (docs/task-memory.md)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from core.base.errors import BadInput
from core.base.formatting import format_percent
from core.base.text import MAX_PATTERN, from_bytes, one_line, replace_surrogates, to_bytes, visible_line
from core.learning.statistics import jeffreys_interval
from core.records.debug_sessions import ESCALATED, FAILED, PASSED, DebugSession, Lesson

if TYPE_CHECKING:
    import sqlite3


FILE_PATH: Final = "file_path"
STATUS: Final = "status"
ERROR_TYPE: Final = "executions.failures.error_type"
CAUSE: Final = "executions.analysis.root_cause_category"
PATTERN: Final = "learnings.patterns_identified.pattern"
CATEGORY: Final = "learnings.patterns_identified.category"
TEST: Final = "executions.failures.test_name"
KEYS: Final = (FILE_PATH, STATUS, ERROR_TYPE, CAUSE, PATTERN, CATEGORY, TEST)  # indexed fields of a session file
ANY_FILE: Final = "%"
MAX_SIMILAR: Final = 10  # default number of similar sessions
MIN_EFFECTIVENESS: Final = 0.7  # share of cases (0..1) that a fix template must exceed to be offered
_SOURCE: Final = len(KEYS)  # number of the key whose values are an error type, with the file of the error
TABLES: Final = (
    # Sessions by the value of each key, newest first: `changed` is the negative time of the last change.
    "CREATE TABLE debug_value (key INT, value BLOB, file BLOB, changed REAL, id BLOB,"
    " PRIMARY KEY (key, value, changed, id, file)) WITHOUT ROWID",
    "CREATE INDEX debug_value_by_id ON debug_value (id)",
    # What each session adds to the sums of the results of fixes.
    "CREATE TABLE debug_fix (kind TEXT, category BLOB, text BLOB, id BLOB, passed INT, failed INT,"
    " PRIMARY KEY (kind, category, text, id)) WITHOUT ROWID",
    "CREATE INDEX debug_fix_by_id ON debug_fix (id)",
)


class Rows(Protocol):
    """The index as far as it is read here; the room of the index is above this one."""

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]: ...
    def row(self, sql: str, *values: object) -> tuple[Any, ...] | None: ...


class FixCounts(Struct, frozen=True, kw_only=True):
    """Number of fixes that worked (`passed`) and that did not (`failed`)."""

    passed: int = 0
    failed: int = 0

    @property
    def known(self) -> int:
        return self.passed + self.failed

    @property
    def rate(self) -> float | None:
        """Share of fixes that worked, 0..1; None if no result is known."""
        return self.passed / self.known if self.known else None

    @property
    def text(self) -> str:
        """Such as "worked in 1 of 4 (25 %)"; "" if no result is known."""
        rate = self.rate
        return f"worked in {self.passed:,} of {self.known:,} ({format_percent(rate)})" if rate is not None else ""

    def interval(self, level: float) -> tuple[float, float]:
        """Return the Jeffreys interval of the rate for a credible level 0..1."""
        return jeffreys_interval(self.passed, self.failed, level)

    def __add__(self, other: FixCounts) -> FixCounts:
        return FixCounts(passed=self.passed + other.passed, failed=self.failed + other.failed)


def fix_key(text: str) -> str:
    """Return what is equal for descriptions of the same fix."""
    return one_line(text).rstrip(".").casefold()


CAUSE_FIXES: Final = "cause"  # of runs with a root cause category
PATTERN_FIXES: Final = "pattern"  # of sessions that recorded a pattern
OTHER_FIXES: Final = "other"  # of sessions that recorded no pattern of the category
TEXT_FIXES: Final = "text"  # of fixes with the same text; the category is ""
NAMES: Final = "names"  # `passed` is how often a session recorded a pattern
FixKey = tuple[str, str, str]  # kind, category, text


def count_fixes(session: DebugSession) -> dict[FixKey, FixCounts]:
    """Return what one session adds to the sums of the results of fixes."""
    counts: defaultdict[FixKey, FixCounts] = defaultdict(FixCounts)
    by_category: defaultdict[str, FixCounts] = defaultdict(FixCounts)  # "" for runs without an analysis
    for run, worked in zip(session.executions, session.verdicts, strict=True):
        if worked is not None:
            result = FixCounts(passed=1) if worked else FixCounts(failed=1)
            by_category[run.analysis.category if run.analysis is not None else ""] += result
            if run.fix is not None and (key := fix_key(run.fix.description)):
                counts[TEXT_FIXES, "", key] += result
    patterns: defaultdict[str, set[str]] = defaultdict(set)
    for lesson in session.lessons:
        patterns[lesson.category].add(lesson.pattern)
        counts[NAMES, lesson.category, lesson.pattern] += FixCounts(passed=1)
    analysed = {run.analysis.category for run in session.executions if run.analysis is not None}
    for category in analysed | patterns.keys():
        result = by_category[category]
        if category:  # runs without a category are most likely about the same problem of the session
            result += by_category[""]
        if category in analysed:
            counts[CAUSE_FIXES, category, ""] += result
        for pattern in patterns.get(category, ()):
            counts[PATTERN_FIXES, category, pattern] += result
        if category not in patterns:
            counts[OTHER_FIXES, category, ""] += result
    return counts


class DebugIndex:
    """Index of the debug sessions of one view by the values of `KEYS`."""

    def __init__(self, reader: Rows, sessions: Mapping[str, DebugSession]) -> None:
        self._reader = reader
        self.sessions = sessions
        self.fix_results = FixResults(reader)

    def values(self, key: str) -> list[str]:
        """Return the values of a key (may be ""), in the order of their newest sessions."""
        sql = "SELECT value FROM debug_value WHERE key = ? ORDER BY changed, id, value"
        return list(dict.fromkeys(from_bytes(value) for (value,) in self._reader.rows(sql, KEYS.index(key))))

    def find(self, key: str, value: str) -> tuple[DebugSession, ...]:
        """Return the sessions with this value of a key, newest first."""
        sql = "SELECT id FROM debug_value WHERE key = ? AND value = ? ORDER BY changed, id"
        return self._sessions(sql, KEYS.index(key), to_bytes(value))

    def find_in_files(self, file_pattern: str) -> tuple[DebugSession, ...]:
        """Return sessions with a matching main file, newest first; see `find_similar`."""
        sql = "SELECT id FROM debug_value WHERE key = ? AND CAST(value AS TEXT) LIKE ? ORDER BY changed, id"
        return self._sessions(sql, KEYS.index(FILE_PATH), check_like(file_pattern))

    def find_similar(
        self, error_type: str, file_pattern: str = ANY_FILE, limit: int = MAX_SIMILAR
    ) -> tuple[DebugSession, ...]:
        """Return sessions with an error of this type in a matching file, newest first.

        `error_type` must be spelled as in the files. `file_pattern` is a LIKE pattern of SQLite: `%` matches any text,
        `_` any character; A-Z equals a-z; there are no escapes. A failure without a file has the path "". Raises
        BadInput if the pattern is too long.
        """
        # The error may have occurred in several files of a session.
        sql = (
            "SELECT DISTINCT id, changed FROM debug_value WHERE key = ? AND value = ? AND CAST(file AS TEXT) LIKE ?"
            " ORDER BY changed, id LIMIT ?"
        )
        return self._sessions(sql, _SOURCE, to_bytes(error_type), check_like(file_pattern), limit)

    def _sessions(self, sql: str, *values: object) -> tuple[DebugSession, ...]:
        return tuple(self.sessions[from_bytes(row[0])] for row in self._reader.rows(sql, *values))

    def find_lessons(
        self, category: str, min_effectiveness: float = MIN_EFFECTIVENESS
    ) -> tuple[tuple[DebugSession, Lesson], ...]:
        """Return lessons above a minimum effectiveness (0..1), newest session first."""
        return tuple(
            (session, lesson)
            for session in self.find(CATEGORY, category)
            for lesson in session.lessons
            if lesson.category == category and (lesson.effectiveness or 0.0) > min_effectiveness
        )


class FixResults:
    """Number of fixes that worked, by cause category, by pattern, and by fix text.

    See docs/scoring.md#known-fixes. All sessions count, including failed ones. A session without a recorded pattern for
    a category counts for the usual pattern of that category.
    """

    def __init__(self, reader: Rows) -> None:
        self._reader = reader

    def _sum(self, kind: str, category: str, text: str = "") -> FixCounts:
        sql = "SELECT total(passed), total(failed) FROM debug_fix WHERE kind = ? AND category = ? AND text = ?"
        row = self._reader.row(sql, kind, to_bytes(category), to_bytes(text)) or (0, 0)
        return FixCounts(passed=int(row[0]), failed=int(row[1]))

    def of_cause(self, category: str) -> FixCounts:
        return self._sum(CAUSE_FIXES, category)

    def of_pattern(self, category: str, pattern: str) -> FixCounts:
        """Return the results of a pattern; the usual one includes sessions without any."""
        usual = self.usual_pattern(category)
        counts = self._sum(PATTERN_FIXES, category, pattern)
        return counts + self._sum(OTHER_FIXES, category) if usual in ("", pattern) else counts

    def of_fix(self, text: str) -> FixCounts:
        """Return the results of the fix with this description, in all sessions."""
        return self._sum(TEXT_FIXES, "", fix_key(text))

    def of_lesson(self, lesson: Lesson) -> FixCounts:
        """Return a lesson's results: of its fix, or of its pattern if no session has it.

        A pattern that is only named after its category has none of its own.
        """
        counts = self.of_fix(lesson.fix_template)
        return counts if counts.known or not lesson.is_named else self.of_pattern(lesson.category, lesson.pattern)

    def effectiveness(self, lesson: Lesson) -> float | None:
        """Return the share of fixes that worked, 0..1; if unknown, the recorded one."""
        rate = self.of_lesson(lesson).rate
        return lesson.effectiveness if rate is None else rate

    def usual_pattern(self, category: str) -> str:
        """Return the pattern that most sessions recorded for a category, or ""."""
        sql = "SELECT text, sum(passed) FROM debug_fix WHERE kind = ? AND category = ? GROUP BY text"
        counts = ((-count, from_bytes(text)) for text, count in self._reader.rows(sql, NAMES, to_bytes(category)))
        return min(counts, default=(0, ""))[1]


def matching_spellings(known: Iterable[str], word: str) -> list[str]:
    """Return known words that equal `word` except for case and surrounding spaces."""
    folded = word.strip().casefold()
    return [name for name in known if name.casefold() == folded]


def check_like(pattern: str) -> str:
    """Return a LIKE pattern of SQLite; raise `BadInput` if it is invalid."""
    if len(pattern) > MAX_PATTERN or replace_surrogates(pattern) != pattern:
        raise BadInput(f"the file pattern {visible_line(pattern, 60)!r} is too long or not valid Unicode")
    return pattern


def newest_first(session: DebugSession) -> tuple[float, str]:
    """Return the sort key for most recently changed first, undated last."""
    changed = session.changed_at
    return -changed.timestamp() if changed is not None else float("inf"), session.id


def error_sources(session: DebugSession) -> frozenset[tuple[str, str]]:
    """Return the error type and the file of each failure of a session."""
    return frozenset((failure.error_type, failure.file) for run in session.executions for failure in run.failures)


def key_values(session: DebugSession) -> tuple[frozenset[str], ...]:
    """Return the values of a session for each key, in the order of `KEYS`."""
    runs = session.executions
    failures = [failure for run in runs for failure in run.failures]
    return (
        frozenset((session.file_path,)),
        frozenset((session.status,)),
        frozenset(failure.error_type for failure in failures),
        frozenset(run.analysis.category for run in runs if run.analysis is not None),
        frozenset(lesson.pattern for lesson in session.lessons),
        frozenset(lesson.category for lesson in session.lessons),
        frozenset(failure.test_name for failure in failures),
    )


def update_debug_sessions(
    connection: sqlite3.Connection, sessions: Mapping[str, DebugSession], changed: Iterable[str]
) -> None:
    """Index the changed sessions again."""
    for id in changed:
        for table in ("debug_value", "debug_fix"):
            connection.execute(f"DELETE FROM {table} WHERE id = ?", (to_bytes(id),))
    add_debug_sessions(connection, (session for id in changed if (session := sessions.get(id)) is not None))


def add_debug_sessions(connection: sqlite3.Connection, sessions: Iterable[DebugSession]) -> None:
    """Index sessions that are not indexed; takes about 50 us each."""
    values: list[tuple[object, ...]] = []
    fixes: list[tuple[object, ...]] = []
    for session in sessions:
        key, changed = to_bytes(session.id), newest_first(session)[0]
        for number, found in enumerate(key_values(session)):
            values += ((number, to_bytes(value), b"", changed, key) for value in found)
        values += ((_SOURCE, to_bytes(name), to_bytes(file), changed, key) for name, file in error_sources(session))
        for (kind, category, text), counts in count_fixes(session).items():
            fixes.append((kind, to_bytes(category), to_bytes(text), key, counts.passed, counts.failed))
    connection.executemany("INSERT INTO debug_value VALUES (?, ?, ?, ?, ?)", sorted(values))
    connection.executemany("INSERT INTO debug_fix VALUES (?, ?, ?, ?, ?, ?)", sorted(fixes))


# Reports on all sessions

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
    for category in index.values(CAUSE):
        sessions = index.find(CAUSE, category)
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
    for test in {*index.values(TEST), *recorded} - {""}:
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
