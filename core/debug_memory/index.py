"""The index over all debug sessions, and the queries of (4): each looks at what its key has, never at all sessions."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from itertools import groupby, islice
from typing import Final

from core.base.errors import BadInput
from core.base.lazy_index import LazyIndex
from core.base.text import Matcher, safe_matcher, visible_line
from core.debug_memory.effectiveness import FixResults
from core.records.debug_sessions import DebugSession, Lesson

FILE_PATH: Final = "file_path"
STATUS: Final = "status"
ERROR_TYPE: Final = "executions.failures.error_type"
CAUSE: Final = "executions.analysis.root_cause_category"
PATTERN: Final = "learnings.patterns_identified.pattern"
CATEGORY: Final = "learnings.patterns_identified.category"
TEST: Final = "executions.failures.test_name"
KEYS: Final = (FILE_PATH, STATUS, ERROR_TYPE, CAUSE, PATTERN, CATEGORY, TEST)
"""(4) `secondary_indexes`, then what its second query and the recurring failures are found by."""

ANY_FILE: Final = "%"
SIMILAR: Final = 10
"""(4) find_similar_failures: LIMIT."""
MIN_EFFECTIVENESS: Final = 0.7
"""(4) get_fix_templates: a template must work more often than that."""

_REBUILD_SHARE: Final = 4
"""An update of more than one session in so many is slower than a new index."""
_LIKE: Final = {"%": "(?s:.*)", "_": "(?s:.)"}
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_SPECIAL: Final = frozenset("\\.^$*+?{}[]|()")

Postings = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class DebugIndex:
    """Which sessions hold which value of each key. Never changed, only replaced.

    Attributes:
        sessions: By id (4) `primary_key`.
        keys: By the name of a key (`KEYS`): ids of sessions by value, newest first; what has no such
            value stands under "".
        sources: By the type of an error: ids of sessions by the file that it came from, newest first.
    """

    sessions: Mapping[str, DebugSession]
    keys: Mapping[str, Postings]
    sources: Mapping[str, Postings]

    @classmethod
    def build(cls, sessions: Mapping[str, DebugSession]) -> DebugIndex:
        """Index everything: about 20 us a session."""
        found: dict[str, dict[str, list[str]]] = {key: {} for key in KEYS}
        sources: dict[str, dict[str, list[str]]] = {}
        for session in sorted(sessions.values(), key=newest_first):
            for key, values in zip(KEYS, _values(session), strict=True):
                for value in values:
                    found[key].setdefault(value, []).append(session.id)
            for error_type, file in _sources(session):
                sources.setdefault(error_type, {}).setdefault(file, []).append(session.id)
        return cls(sessions, _frozen(found), _frozen(sources))

    def updated(self, sessions: Mapping[str, DebugSession], changed_ids: Iterable[str]) -> DebugIndex:
        """The index of `sessions`, of which only those in `changed_ids` were added, changed or removed."""
        changed = set(changed_ids)
        if len(changed) * _REBUILD_SHARE > len(self.sessions):
            return DebugIndex.build(sessions)
        keys = {key: dict(postings) for key, postings in self.keys.items()}
        sources = dict(self.sources)
        before = [self.sessions[id] for id in changed if id in self.sessions]
        after = [sessions[id] for id in changed if id in sessions]

        def bring(postings: dict[str, tuple[str, ...]], value: str, having: Iterable[DebugSession]) -> None:
            ids = [id for id in postings.pop(value, ()) if id not in changed]
            for session in having:
                insort(ids, session.id, key=lambda id: newest_first(sessions[id]))
            if ids:
                postings[value] = tuple(ids)

        was, now = [_values(session) for session in before], [_values(session) for session in after]
        for place, key in enumerate(KEYS):
            for value in {value for values in (*was, *now) for value in values[place]}:
                having = (one for one, values in zip(after, now, strict=True) if value in values[place])
                bring(keys[key], value, having)
        pairs = [_sources(session) for session in after]
        for error_type, file in set().union(*map(_sources, before), *pairs):
            files = dict(sources.pop(error_type, {}))
            bring(files, file, (one for one, told in zip(after, pairs, strict=True) if (error_type, file) in told))
            if files:
                sources[error_type] = files
        return DebugIndex(sessions, keys, sources)

    @cached_property
    def fix_results(self) -> FixResults:
        """How often fixes held; counted on first use."""
        return FixResults(self.sessions.values())

    def find(self, key: str, value: str) -> tuple[DebugSession, ...]:
        """The sessions that hold a value of a key, newest first."""
        return tuple(self.sessions[id] for id in self.keys[key].get(value, ()))

    def similar(self, error_type: str, file_pattern: str = ANY_FILE, limit: int = SIMILAR) -> tuple[DebugSession, ...]:
        """(4) find_similar_failures: sessions in which an error of this type came from such a file, newest first.

        Args:
            error_type: As written in the files.
            file_pattern: As of SQL LIKE in SQLite: `%` any text, `_` any character, A-Z as a-z; nothing escapes
                them. One failure must meet both. A failure without a file has the empty one.
            limit: At most so many.

        Raises:
            BadInput: The pattern is too long.
        """
        if file_pattern == ANY_FILE:
            found: Iterable[str] = self.keys[ERROR_TYPE].get(error_type, ())
        else:
            fits = like(file_pattern)
            postings = (ids for file, ids in self.sources.get(error_type, {}).items() if fits(file))
            merged = merge(*postings, key=lambda id: newest_first(self.sessions[id]))
            found = (id for id, _ in groupby(merged))  # where an error came from several files
        return tuple(self.sessions[id] for id in islice(found, limit))

    def templates(
        self, category: str, min_effectiveness: float = MIN_EFFECTIVENESS
    ) -> tuple[tuple[DebugSession, Lesson], ...]:
        """(4) get_fix_templates: what sessions learned of a category that works more often, newest session first.

        Args:
            category: A `root_cause_category` of (4), or another word.
            min_effectiveness: 0..1; exactly so much is not enough.
        """
        return tuple(
            (session, lesson)
            for session in self.find(CATEGORY, category)
            for lesson in session.lessons
            if lesson.category == category and (lesson.effectiveness or 0.0) > min_effectiveness
        )


class LazyDebugIndex(LazyIndex[DebugSession, DebugIndex]):
    """The index of some debug sessions, made when it is first asked for."""

    kind = DebugIndex


def matching_spellings(known: Iterable[str], word: str) -> list[str]:
    """The known words that differ from a word in nothing but case and the spaces around it."""
    folded = word.strip().casefold()
    return [name for name in known if name.casefold() == folded]


def like(pattern: str) -> _Like:
    """Whether a text is LIKE the pattern, as SQLite means it: in linear time, and only A-Z without case.

    Raises:
        BadInput: The pattern is too long, or no valid Unicode.
    """
    lower = _lower(pattern)
    regex = "".join(_LIKE.get(char) or (f"\\{char}" if char in _SPECIAL else char) for char in lower)
    found = safe_matcher(f"\\A{regex}\\z")
    if found.problem is not None:
        raise BadInput(f"the file pattern {visible_line(pattern, 60)!r} is too long, or no text")
    first, *others = lower.replace("_", "%").split("%")
    return _Like(found, first, tuple(others), is_prefix=lower == f"{first}%")


class _Like:
    """A pattern of LIKE that can be asked again and again.

    Args:
        regex: The pattern.
        first: What a text must begin with.
        others: What must be in it as well: looked for first, since most texts lack one of them.
        is_prefix: Nothing else is asked of a text.
    """

    def __init__(self, regex: Matcher, first: str, others: tuple[str, ...], *, is_prefix: bool) -> None:
        self._regex = regex
        self._is_prefix = is_prefix
        self._first = first
        self._others = tuple(filter(None, others))

    def __call__(self, text: str) -> bool:
        lower = _lower(text)
        if not lower.startswith(self._first) or any(part not in lower for part in self._others):
            return False
        return self._is_prefix or self._regex.matches(lower)


def _lower(text: str) -> str:
    """A-Z as a-z, and nothing else."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


def newest_first(session: DebugSession) -> tuple[float, str]:
    """A key to sort by: those changed last first, undated ones last."""
    changed = session.changed_at
    return -changed.timestamp() if changed is not None else float("inf"), session.id


def _frozen(found: Mapping[str, Mapping[str, Iterable[str]]]) -> dict[str, Postings]:
    return {key: {value: tuple(ids) for value, ids in postings.items()} for key, postings in found.items()}


def _sources(session: DebugSession) -> frozenset[tuple[str, str]]:
    """The types of its errors, each with a file that it came from."""
    return frozenset((failure.error_type, failure.file) for run in session.executions for failure in run.failures)


def _values(session: DebugSession) -> tuple[frozenset[str], ...]:
    """What a session is found by, in the order of `KEYS`."""
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
