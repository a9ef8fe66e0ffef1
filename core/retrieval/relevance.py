"""Relevance of patterns for a task: a weighted sum (docs/retrieval.md#relevance).

Above it, the inverted index of patterns by word, tag, category, error type and language.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.base.text import safe_matcher
from core.records.patterns import Pattern, PatternType
from core.retrieval.embeddings import Closeness, Floats, scale_closeness
from core.retrieval.task import LANGUAGES, content_words

if TYPE_CHECKING:
    from core.records.debug_sessions import Failure
    from core.retrieval.reflections import LearningMatch
    from core.retrieval.task import TaskProfile

Rows = NDArray[np.int32]
_Key = TypeVar("_Key")


# Kinds of terms of patterns; `FOUND_IN` names the work in which an error pattern with a regex was found.
WORD, TAG, CATEGORY, ERROR, LANGUAGE, FOUND_IN = range(6)
Term = tuple[int, str]  # kind and text


class Postings(Protocol):
    """Rows by term, ascending; they may be read from a database when they are needed."""

    def get(self, kind: int, text: str, /) -> Rows | None:
        """Return the rows of a term; None if no row has it."""

    def count(self, kind: int, texts: Iterable[str], /) -> dict[str, int]:
        """Return the number of rows of each term that a row has."""

    def find_tags(self, word: str, /) -> Iterable[str]:
        """Return the tags that contain a content word."""


class RowsByTerm(dict[Term, Rows]):
    """Posting lists in memory."""

    def get(self, kind: int, text: str, /) -> Rows | None:  # type: ignore[override]
        return super().get((kind, text))

    def count(self, kind: int, texts: Iterable[str], /) -> dict[str, int]:
        return {text: len(rows) for text in texts if (rows := self.get(kind, text)) is not None}

    def find_tags(self, word: str, /) -> Iterable[str]:
        return self._tags_by_word.get(word, ())

    @cached_property
    def _tags_by_word(self) -> Mapping[str, list[str]]:
        tags: dict[str, list[str]] = {}
        for kind, tag in self:
            for word in content_words(tag) if kind == TAG else ():
                tags.setdefault(word, []).append(tag)
        return tags


class ChangedRows:
    """Posting lists of which a few differ from those of another index."""

    def __init__(self, base: Postings) -> None:
        self._base = base
        self._changed: dict[Term, Rows] = {}
        if isinstance(base, ChangedRows):  # one level, however many changes follow each other
            self._base, self._changed = base._base, dict(base._changed)

    def get(self, kind: int, text: str, /) -> Rows | None:
        rows = self._changed.get((kind, text))
        return self._base.get(kind, text) if rows is None else rows if len(rows) else None

    def count(self, kind: int, texts: Iterable[str], /) -> dict[str, int]:
        changed = {text: rows for text in texts if (rows := self._changed.get((kind, text))) is not None}
        counts = self._base.count(kind, [text for text in texts if text not in changed])
        return counts | {text: len(rows) for text, rows in changed.items() if len(rows)}

    def find_tags(self, word: str, /) -> Iterable[str]:
        tags = {tag for (kind, tag), rows in self._changed.items() if kind == TAG and len(rows)}
        return {*self._base.find_tags(word), *(tag for tag in tags if word in content_words(tag))}

    def move(self, row: int, before: set[Term], after: set[Term]) -> None:
        """Change the terms of a row from `before` to `after`."""
        for term in before ^ after:
            rows = self.get(*term)
            rows = np.empty(0, np.int32) if rows is None else rows[rows != row]
            if term in after:
                rows = np.insert(rows, int(rows.searchsorted(row)), np.int32(row))
            self._changed[term] = rows


def index_rows(keys_of_rows: Iterable[Iterable[_Key]]) -> dict[_Key, Rows]:
    """Return the rows by key."""
    rows_of: dict[_Key, array[int]] = {}
    for row, keys in enumerate(keys_of_rows):
        for key in keys:
            rows_of.setdefault(key, array("i")).append(row)
    return {key: np.array(rows, np.int32) for key, rows in rows_of.items()}


TYPES: Final = tuple(PatternType)  # pattern types by their code in arrays

_MAX_LIST: Final = 32  # indexed items of a list (tags, steps) of one pattern
_REBUILD_SHARE: Final = 4  # if more than one in this number of patterns changed, a new index is faster than an update


@dataclass(frozen=True)
class PatternIndex:
    """Immutable inverted index of patterns, in memory or `core.index.terms` tables."""

    ids: Sequence[str]  # pattern ID by row; "" where a pattern was removed
    types: NDArray[np.int8]  # index into `TYPES` by row; -1 where a pattern was removed
    tag_counts: NDArray[np.int8]  # number of tags by row
    terms: Postings
    _patterns: Mapping[str, Pattern]

    @classmethod
    def build(cls, patterns: Mapping[str, Pattern]) -> PatternIndex:
        """Index all patterns; takes about 20 us each."""
        terms = [pattern_terms(pattern) for pattern in patterns.values()]
        types = np.array([TYPES.index(pattern.type) for pattern in patterns.values()], np.int8)
        tag_counts = np.array([count_tags(one) for one in terms], np.int8)
        return cls(tuple(patterns), types, tag_counts, RowsByTerm(index_rows(terms)), patterns)

    def updated(self, patterns: Mapping[str, Pattern], changed_ids: Iterable[str]) -> PatternIndex:
        """Return an index of `patterns`; only `changed_ids` differ from the old ones."""
        changed = set(changed_ids)
        if not changed and patterns is self._patterns:
            return self
        if len(changed) * _REBUILD_SHARE > len(self.ids):
            return PatternIndex.build(patterns)
        ids, types, tag_counts = list(self.ids), self.types.tolist(), self.tag_counts.tolist()
        terms = ChangedRows(self.terms)
        for id in sorted(changed):
            old, new = self._patterns.get(id), patterns.get(id)
            row = self.rows.get(id)
            if row is None:
                if new is None:
                    continue
                row = len(ids)
                ids.append(id)
                types.append(0)
                tag_counts.append(0)
            before, after = (pattern_terms(one) if one else set() for one in (old, new))
            if new:
                types[row] = TYPES.index(new.type)
            else:
                ids[row], types[row] = "", -1
            tag_counts[row] = count_tags(after)
            terms.move(row, before, after)
        counts = np.array(tag_counts, np.int8)
        return PatternIndex(tuple(ids), np.array(types, np.int8), counts, terms, patterns)

    @cached_property
    def rows(self) -> Mapping[str, int]:
        return {id: row for row, id in enumerate(self.ids) if id}

    @cached_property
    def size(self) -> int:
        """Number of indexed patterns."""
        return int(np.count_nonzero(self.types >= 0))

    def rarities(self, words: Iterable[str]) -> dict[str, float]:
        """Return the weight of each word, the larger the fewer patterns contain it."""
        asked, size = list(words), max(self.size, 1)
        counts = self.terms.count(WORD, asked)
        return {word: math.log1p(size / counts.get(word, 1)) for word in asked}


def pattern_terms(pattern: Pattern) -> set[Term]:
    """Return the content words, the tags and the other terms of a pattern."""
    texts = (
        *(pattern.id.partition("-")[2], pattern.title, pattern.description, pattern.use_case, pattern.category),
        *(pattern.error_type, pattern.error_message, pattern.error_pattern, pattern.task_pattern),
        *(*pattern.tags[:_MAX_LIST], *pattern.steps[:_MAX_LIST]),
    )
    tags = {tag.strip().lower()[:80] for tag in pattern.tags[:_MAX_LIST]} - {""}
    named = [(CATEGORY, pattern.category), (ERROR, pattern.error_type), (LANGUAGE, pattern.template_language)]
    if pattern.type is PatternType.TEMPLATE:
        named.append((LANGUAGE, pattern.category))
    terms = {(kind, value.lower()) for kind, value in named if value}
    if pattern.error_pattern:
        terms |= {(FOUND_IN, source.loop_id) for source in pattern.source_loops if source.loop_id}
    terms |= {(LANGUAGE, tag) for tag in tags if tag in LANGUAGES} | of_kind(TAG, tags)
    terms |= of_kind(WORD, content_words(" ".join(texts)))
    return terms


def of_kind(kind: int, texts: Iterable[str]) -> set[Term]:
    """Return the terms of a kind with these texts."""
    return set(zip(repeat(kind), texts))


def count_tags(terms: set[Term]) -> int:
    return sum(kind == TAG for kind, _ in terms)


_SEPARATOR: Final = "::"
_PARAMETERS: Final = re.compile(r"\[.{0,200}\]$")
MAX_PLACE: Final = 200  # characters of a place

WEIGHTS: Final[Mapping[PatternType, Mapping[str, float]]] = {
    PatternType.ERROR: {"words": 0.30, "error": 0.40, "category": 0.10, "tags": 0.10, "language": 0.10},
    PatternType.SUCCESS: {"words": 0.30, "task": 0.30, "category": 0.25, "tags": 0.10, "language": 0.05},
    PatternType.ANTI: {"words": 0.45, "category": 0.25, "tags": 0.20, "language": 0.10},
    PatternType.TEMPLATE: {"words": 0.45, "category": 0.10, "tags": 0.20, "language": 0.25},
}  # weights of the parts by type, for patterns without a vector; each row sums to 1 (docs/retrieval.md#parts)
SEMANTIC_WEIGHTS: Final[Mapping[PatternType, Mapping[str, float]]] = {
    kind: {"meaning": meaning, "words": 0.10} | rest
    for kind, meaning, rest in (
        (PatternType.ERROR, 0.61, {"error": 0.19, "category": 0.02, "tags": 0.04, "language": 0.04}),
        (PatternType.SUCCESS, 0.63, {"task": 0.16, "category": 0.03, "tags": 0.04, "language": 0.04}),
        (PatternType.ANTI, 0.65, {"category": 0.05, "tags": 0.10, "language": 0.10}),
        (PatternType.TEMPLATE, 0.63, {"category": 0.03, "tags": 0.10, "language": 0.14}),
    )
}
"""Weights for patterns with a vector. `meaning` is the cosine, scaled so that `UNRELATED` is 0 and `SAME` is 1."""
RELEVANCE_PARTS: Final = ("meaning", "words", "error", "task", "category", "tags", "language")

PAST_TASKS: Final = "past_tasks"  # part of the tasks in which a pattern worked; added to the weighted sum
MAX_PAST: Final = 0.25  # most that this part adds, since agents report what worked
_FAINT_PAST: Final = 0.15  # lowest similarity of the tasks that counts
_PAST_WEIGHT: Final = 0.9  # of the similarity of the tasks, since a pattern may have helped with a side issue only
FAINT: Final = 0.14  # lowest meaning part, before its weight, that alone makes a pattern relevant
NAMED_ERROR: Final = 0.7  # error part if the task names the error type of the pattern
LIKELY_ERROR: Final = 0.4  # error part if words of the task suggest the error type

_SALIENT_WORDS: Final = 8  # rare words that give full coverage, so that long tasks keep their relevance
_ENOUGH_TAGS: Final = 2
_MAX_REGEXES: Final = 512  # best candidates of each type whose regex is matched
_FAILURES_IN: Final[Mapping[str, tuple[str, ...]]] = {
    "debugging": ("incorrect_fix", "repeated_same_error", "infinite_loop", "scope_creep"),
    "implementation": ("scope_creep", "quality_degradation", "breaking_change"),
    "refactoring": ("scope_creep", "breaking_change", "quality_degradation"),
    "optimization": ("performance_regression", "scope_creep"),
    "migration": ("breaking_change",),
    "testing": ("repeated_same_error", "quality_degradation"),
    "architecture": ("scope_creep",),
    "documentation": (),
    "": (),
}  # typical failure modes of tasks by category
_TYPE_FOR: Final = {"debugging": PatternType.ERROR, "implementation": PatternType.TEMPLATE}  # by category
_KINDS: Final = {"error": ERROR, "category": CATEGORY, "language": LANGUAGE}  # kinds of terms by part
_MEANINGLESS: Final = ("", "qz")  # a regex that matches one of these matches any task


def list_places(failure: Failure) -> tuple[str, ...]:
    """Return a failure's places, `file::name` or `file`: test, function, files."""
    test = _PARAMETERS.sub("", failure.test_name.rpartition(_SEPARATOR)[2].rpartition(" > ")[2]).strip()
    test_file = failure.test_file or failure.test_name.partition(_SEPARATOR)[0] * (_SEPARATOR in failure.test_name)
    is_file = test == test_file
    named = [f"{test_file}{_SEPARATOR}{test}"] if test and not is_file else []
    named += [f"{failure.file}{_SEPARATOR}{failure.function}"] if failure.function else []
    places = (*named, failure.file, test_file)
    return tuple(dict.fromkeys(place[:MAX_PLACE] for place in places if place.strip(_SEPARATOR)))


def matches_failure(pattern: Pattern, failure: Failure) -> bool:
    """Return whether an error pattern's trigger and places match a failure.

    A failure of unknown place needs the same message as the one from which the trigger was made.
    """
    texts = (failure.message, f"{failure.error_type}: {failure.message}" if failure.error_type else "")
    regex = safe_matcher(pattern.error_pattern) if pattern.error_pattern else None
    if regex is None or not any(regex.matches(text) for text in texts if text):
        return False
    own = list_places(failure)
    if not own and pattern.error_message:
        return any(f": {pattern.error_message}".endswith(f": {text}") for text in texts if text)
    return not pattern.places or any(_is_same(one, other) for one in pattern.places for other in own)


def occurs_in(places: Iterable[str], text: str) -> bool:
    """Return whether a text names the file and test or function of any place."""
    return any(all(part.rpartition("/")[2] in text for part in place.split(_SEPARATOR) if part) for place in places)


def _is_same(one: str, other: str) -> bool:
    """Return whether two places are the same, even in different project copies."""
    (file, _, name), (other_file, _, other_name) = one.rpartition(_SEPARATOR), other.rpartition(_SEPARATOR)
    if not file and not other_file:
        return name == other_name or name.endswith(f"/{other_name}") or other_name.endswith(f"/{name}")
    is_same_file = file == other_file or file.endswith(f"/{other_file}") or other_file.endswith(f"/{file}")
    return name == other_name and is_same_file


@dataclass(frozen=True, slots=True)
class UntriedRegexes:
    """Relevant patterns' regexes not tried yet: most cannot change a context."""

    values: Floats  # relevance of each pattern if its regex matches, without a regex to try the one that it has
    text: str  # of the task

    def matches(self, pattern: Pattern | None) -> bool:
        """Match the task with the regex of a pattern."""
        return _matches_regex(pattern, self.text)


@dataclass(frozen=True, slots=True)
class Relevance:
    """Relevant patterns and learnings of a task."""

    rows: NDArray[np.int64]  # rows of the relevant patterns in the index
    values: Floats  # relevance of each, 0..1
    parts: Mapping[str, Floats]  # parts of the relevance by name, each 0..1 before its weight; see `without_parts`
    is_semantic: NDArray[np.bool_]  # whether each has a vector
    weights: Mapping[PatternType, Mapping[str, float]]  # for patterns without a vector
    learnings: tuple[LearningMatch, ...] = ()  # learnings that fit the task
    decomposition: bool = False  # whether the task is a decomposition
    untried: UntriedRegexes | None = None  # None if all regexes are matched
    has_vectors: bool = False  # whether the task was compared by vectors

    def only(self, rows: NDArray[np.int64]) -> Relevance:
        """Return the relevance of these rows of the index alone."""
        kept = np.isin(self.rows, rows)
        parts = {name: values[kept] for name, values in self.parts.items()}
        values, is_semantic = self.values[kept], self.is_semantic[kept]
        return replace(self, rows=self.rows[kept], values=values, parts=parts, is_semantic=is_semantic)

    def without_parts(self) -> Relevance:
        """Return the same with a fifth of the memory, which is enough for a context."""
        return replace(self, parts={})

    def parts_of(self, place: int, kind: PatternType) -> dict[str, float]:
        """Return what each part adds to the relevance at `place`; empty if dropped."""
        if not self.parts:
            return {}
        weights = (SEMANTIC_WEIGHTS if self.is_semantic[place] else self.weights)[kind]
        added = {name: float(self.parts[name][place] * weight) for name, weight in weights.items()}
        past = float(self.parts[PAST_TASKS][place])
        return added | {PAST_TASKS: past} if past else added


def measure_relevance(
    profile: TaskProfile,
    index: PatternIndex,
    patterns: Mapping[str, Pattern],
    closeness: Closeness | None = None,
    past: Floats | None = None,
    weights: Mapping[PatternType, Mapping[str, float]] = WEIGHTS,
    *,
    defers_regexes: bool = False,
) -> Relevance:
    """Find patterns that share a meaning, word, error or tag with the task.

    For success and anti-patterns, the same category is enough; the same language alone never is. Of patterns with a
    vector, only those of a similar meaning are found by a word, tag or category. `closeness` is the
    cosine of each row of the index; None if no pattern has a vector. `past` is the similarity of the task with past
    tasks in which each pattern worked. `weights` are those of the parts of patterns without a vector. With
    `defers_regexes`, no regex is matched, and the result has no parts.
    """
    size = len(index.ids)
    parts = {name: np.zeros(size) for name in RELEVANCE_PARTS}
    is_semantic = np.zeros(size, np.bool_)
    if closeness is not None:
        is_semantic = ~np.isnan(closeness)
        parts["meaning"] = scale_closeness(closeness)
    _add_words(parts["words"], profile, index)
    _add_tags(parts["tags"], profile, index)
    _add_facets(parts, profile, index)
    by_category = np.isin(index.types, (TYPES.index(PatternType.SUCCESS), TYPES.index(PatternType.ANTI)))
    common = parts["words"] + parts["tags"] + parts["category"] * by_category
    is_common = (common > 0) & (~is_semantic | (parts["meaning"] > 0)) | (parts["meaning"] >= FAINT)
    past = np.zeros(size) if past is None else count_similarity(past)
    rows = np.flatnonzero(is_common | (parts["error"] > 0) | (past > 0)).astype(np.int64)
    parts_of_rows = {name: values[rows] for name, values in parts.items()}
    kinds, is_semantic = index.types[rows], is_semantic[rows]
    own = _mixed(parts_of_rows, kinds, is_semantic, weights)
    candidates = _regex_candidates(own, kinds)
    if defers_regexes:
        values = own + _count_past(past[rows], own)
        for name, places in candidates.items():
            parts_of_rows[name][places] = 1.0
        own = _mixed(parts_of_rows, kinds, is_semantic, weights)
        untried = UntriedRegexes(own + _count_past(past[rows], own), profile.text)
        return Relevance(rows, values, {}, is_semantic, weights, untried=untried, has_vectors=closeness is not None)
    for name, places in candidates.items():
        for place in places.tolist():
            if _matches_regex(patterns.get(index.ids[rows[place]]), profile.text):
                parts_of_rows[name][place] = 1.0
    own = _mixed(parts_of_rows, kinds, is_semantic, weights)
    parts_of_rows[PAST_TASKS] = _count_past(past[rows], own)
    values = own + parts_of_rows[PAST_TASKS]
    return Relevance(rows, values, parts_of_rows, is_semantic, weights, has_vectors=closeness is not None)


def _count_past(past: Floats, own: Floats) -> Floats:
    """Return what past tasks add to the relevance that patterns have by themselves."""
    return np.clip(past - own, 0.0, MAX_PAST)


def count_similarity(past: Floats) -> Floats:
    """Return how much the similarity with past tasks counts as relevance."""
    return _PAST_WEIGHT * past * (past >= _FAINT_PAST)


def _mixed(
    parts: Mapping[str, Floats],
    kinds: NDArray[np.int8],
    is_semantic: NDArray[np.bool_],
    of_words: Mapping[PatternType, Mapping[str, float]],
) -> Floats:
    mixed = np.zeros(len(kinds))
    tables = (of_words, SEMANTIC_WEIGHTS)
    for name in RELEVANCE_PARTS:
        weights = np.array([[table[kind].get(name, 0.0) for kind in TYPES] for table in tables])
        mixed += weights[is_semantic.astype(np.int8), kinds] * parts[name]
    return np.minimum(mixed, 1.0)


def _add_words(part: Floats, profile: TaskProfile, index: PatternIndex) -> None:
    """Weight each word by its rarity, `log(1 + patterns / patterns with the word)`."""
    size = max(index.size, 1)
    weights = []
    for word in sorted(profile.words):  # sorted, so that every process gets the same sums
        rows = index.terms.get(WORD, word)
        if rows is not None:
            weight = math.log1p(size / len(rows))
            part[rows] += weight
            weights.append(weight)
    if not weights:
        return
    unknown = [math.log1p(size)] * (len(profile.words) - len(weights))
    full = sum((sorted(weights, reverse=True) + unknown)[:_SALIENT_WORDS])
    np.minimum(part / full, 1.0, out=part)


def _add_facets(parts: Mapping[str, Floats], profile: TaskProfile, index: PatternIndex) -> None:
    likely = set(profile.error_types) - set(profile.named_errors)
    named = [("error", name, LIKELY_ERROR if name in likely else NAMED_ERROR) for name in profile.error_types]
    named += [("category", name, 1.0) for name in (profile.category, *_FAILURES_IN[profile.category])]
    named += [("language", name, 1.0) for name in profile.languages]
    for part, name, value in named:
        rows = index.terms.get(_KINDS[part], name.lower())
        if rows is not None:
            parts[part][rows] = value
    if profile.category in _TYPE_FOR:
        parts["category"][index.types == TYPES.index(_TYPE_FOR[profile.category])] = 1.0


def _add_tags(part: Floats, profile: TaskProfile, index: PatternIndex) -> None:
    words = profile.words | set(profile.languages)
    done: set[str] = set()
    for word in words:
        for tag in index.terms.find_tags(word):
            if tag not in done and content_words(tag) <= words:
                done.add(tag)
                if (rows := index.terms.get(TAG, tag)) is not None:
                    part[rows] += 1.0
    np.minimum(part / np.clip(index.tag_counts, 1, _ENOUGH_TAGS), 1.0, out=part)


def _regex_candidates(so_far: Floats, kinds: NDArray[np.int8]) -> dict[str, NDArray[np.int64]]:
    """Return by part the places of regexes to match: those most relevant so far."""
    candidates = {}
    for kind, name in ((PatternType.ERROR, "error"), (PatternType.SUCCESS, "task")):
        places = np.flatnonzero(kinds == TYPES.index(kind))
        if len(places) > _MAX_REGEXES:
            places = places[np.argpartition(-so_far[places], _MAX_REGEXES)[:_MAX_REGEXES]]
        candidates[name] = places
    return candidates


def _matches_regex(pattern: Pattern | None, text: str) -> bool:
    """Return whether a pattern's regex, and the places of an error, match a task."""
    if pattern is None:
        return False
    is_error = pattern.type is PatternType.ERROR
    source = pattern.error_pattern if is_error else pattern.task_pattern
    if not source or (is_error and pattern.places and not occurs_in(pattern.places, text)):
        return False
    regex = safe_matcher(source)
    return regex.matches(text) and not any(map(regex.matches, _MEANINGLESS))
