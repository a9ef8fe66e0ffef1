"""Search index of the command palette over all records that can be opened."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from core.base.pattern_titles import pattern_title
from core.base.text import ELLIPSIS, visible_line
from core.show.work import session_key, task_key

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.decisions import Decision
    from core.records.patterns import Pattern
    from core.sources.patterns import ArchivedPattern

MAX_OF_A_KIND: Final = 8
MAX_RANKED: Final = 3_000  # Matching records of one kind that are ranked.
MAX_CHARS: Final = 1_000  # Searched characters of a record's text.
_SHOWN: Final = 120  # Maximum characters of the text in a row.
_BEFORE: Final = 30  # Characters before a match that is not at the beginning.
MAX_QUERY: Final = 100
ARCHIVED: Final = "archived pattern"  # Kind of the archived patterns, which no screen lists.

_BEGINNINGS: Final = re.compile(r"(?:^|[^0-9a-z])$")


@dataclass(frozen=True, slots=True)
class Target:
    """A search result: its `key` on the screen `place`, "" if archived.

    `id` and `text`, of at most `MAX_CHARS` characters, are untrusted; `rank` is the quality of the match, 0..1.
    """

    kind: str
    place: str
    key: str
    id: str
    text: str
    rank: float

    @property
    def shown(self) -> str:
        return f"{self.kind}  {visible_line(self.id, 80)}  {visible_line(self.text, _SHOWN)}"


class _Kind:
    """Records of one kind, joined to one text that is fast to search."""

    def __init__(self, name: str, place: str, records: Iterable[tuple[str, str, str]]) -> None:
        self.name, self.place = name, place
        self._records = [(key, id, text[:MAX_CHARS]) for key, id, text in records]
        lines = [f"{_flat(id)}\t{_flat(text)}" for _key, id, text in self._records]
        self._starts = [0, *accumulate(len(line) + 1 for line in lines)][:-1]
        self._text = "\n".join(lines)

    def find(self, query: str, words: Sequence[str]) -> list[Target]:
        """Return the best records that contain all words."""
        rarest = min(words, key=self._text.count) if len(words) > 1 else words[0]
        matching = ((row, line) for row, line in self._with(rarest) if all(word in line for word in words))
        best = sorted((-_rank(line, query), row) for row, line in matching)[:MAX_OF_A_KIND]
        found = ((worse, *self._records[row]) for worse, row in best)
        return [Target(self.name, self.place, key, id, _excerpt(text, words), -worse) for worse, key, id, text in found]

    def _with(self, word: str) -> Iterator[tuple[int, str]]:
        at, count = self._text.find(word), 0
        while at >= 0 and count < MAX_RANKED:
            row = bisect_right(self._starts, at) - 1
            end = self._starts[row + 1] - 1 if row + 1 < len(self._starts) else len(self._text)
            yield row, self._text[self._starts[row] : end]
            count += 1
            at = self._text.find(word, end + 1)


class PaletteIndex:
    """Index of one snapshot; takes about 0.4 s for 100,000 patterns, in a worker."""

    def __init__(self, view: ProjectState, archived: Sequence[ArchivedPattern]) -> None:
        snapshot = view.snapshot
        self.number = snapshot.number
        self._kinds = (
            _Kind("pattern", "patterns", ((key, key, _pattern_text(p)) for key, p in snapshot.patterns.items())),
            _Kind("loop", "loops", ((key, key, loop.task) for key, loop in snapshot.loops.items())),
            _Kind("question", "review", ((q.question_key, q.subject, q.question) for q in view.queue)),
            _Kind("task", "loops", ((task_key(key), key, t.description) for key, t in snapshot.tasks.items())),
            _Kind(
                "session",
                "loops",
                (
                    (session_key(k), k, s.file_path)
                    for k, s in snapshot.debug_sessions.items()
                    if s.attempt_id not in snapshot.attempts
                ),
            ),
            _Kind("reflection", "reflections", ((key, key, r.text) for key, r in snapshot.reflections.items())),
            _Kind("lesson", "reflections", ((key, key, one.text) for key, one in snapshot.lessons.items())),
            _Kind("decision", "log", ((d.id, d.subject, _decision_text(d)) for d in reversed(snapshot.decisions))),
            _Kind(ARCHIVED, "", ((a.pattern.id, a.pattern.id, pattern_title(a.pattern)) for a in archived)),
        )

    def find(self, query: str) -> list[Target]:
        """Return at most `MAX_OF_A_KIND` matches of each kind, best first."""
        query = _flat(query[:MAX_QUERY]).strip()
        words = query.split()
        if not words:
            return []
        found = [target for kind in self._kinds for target in kind.find(query, words)]
        return sorted(found, key=lambda target: -target.rank)


def _pattern_text(pattern: Pattern) -> str:
    title, name = pattern_title(pattern), pattern.title
    texts = (title, *([name] if name != title else []), pattern.description, pattern.error_pattern, pattern.use_case)
    return " ".join((*texts, *pattern.tags))


def _excerpt(text: str, words: Sequence[str]) -> str:
    """Return the text around the first word if it would not be shown otherwise."""
    flat = " ".join(text.split())
    at = min((at for word in words if (at := flat.lower().find(word)) >= 0), default=0)
    return flat if at < _SHOWN - _BEFORE else f"{ELLIPSIS}{flat[at - _BEFORE :]}"


def _decision_text(decision: Decision) -> str:
    return f"{decision.verb.value.replace('_', ' ')} by {decision.by} {decision.reason} {decision.id}"


def _rank(line: str, query: str) -> float:
    """Return the rank of a match: best in the ID, and at the start of ID or text."""
    id, _, text = line.partition("\t")
    if id == query:
        return 1.0
    for place, (part, best) in enumerate(((id, 0.95), (text, 0.7))):
        at = part.find(query)
        if at == 0:
            return best
        if at > 0:
            return best - (0.05 if _BEGINNINGS.search(part[:at]) else 0.1) - 0.02 * place
    return 0.5


def _flat(text: str) -> str:
    return " ".join(text[:MAX_CHARS].lower().split())
