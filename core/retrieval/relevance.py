"""How relevant patterns are to a task: a documented mix of parts, each 0..1 (semantics 6)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from core.base.text import safe_matcher
from core.records.patterns import Pattern, PatternType
from core.retrieval.index import TYPES, PatternIndex
from core.retrieval.task import TaskProfile
from core.retrieval.vectors import SAME, UNRELATED, Closeness, Floats

if TYPE_CHECKING:
    from core.retrieval.learnings import LearningMatch

WEIGHTS: Final[Mapping[PatternType, Mapping[str, float]]] = {
    PatternType.ERROR: {"words": 0.30, "error": 0.40, "category": 0.10, "tags": 0.10, "language": 0.10},
    PatternType.SUCCESS: {"words": 0.30, "task": 0.30, "category": 0.25, "tags": 0.10, "language": 0.05},
    PatternType.ANTI: {"words": 0.45, "category": 0.25, "tags": 0.20, "language": 0.10},
    PatternType.TEMPLATE: {"words": 0.45, "category": 0.10, "tags": 0.20, "language": 0.25},
}
"""What each part is worth in the relevance of each type where meaning is not known; every row sums to 1.

`words`: how much of the task's rare words the pattern holds. `error`: 1 if the pattern's error regex is found
in the task, 0.7 if the task names the pattern's error type, 0.4 if its wording suggests it. `task`: 1 if the
pattern's own regex for task descriptions is found. `category`: 1 if the pattern's category is the task's; an
error pattern fits debugging, an anti-pattern the tasks that fail in its way, a template implementation.
`tags`: 1 if two tags (or the only one) occur in the task, 0.5 for one of several. `language`: 1 if they share
a language.
"""
SEMANTIC_WEIGHTS: Final[Mapping[PatternType, Mapping[str, float]]] = {
    kind: {"meaning": 0.60, "words": 0.10} | rest
    for kind, rest in {
        PatternType.ERROR: {"error": 0.19, "category": 0.03, "tags": 0.04, "language": 0.04},
        PatternType.SUCCESS: {"task": 0.16, "category": 0.06, "tags": 0.04, "language": 0.04},
        PatternType.ANTI: {"category": 0.10, "tags": 0.10, "language": 0.10},
        PatternType.TEMPLATE: {"category": 0.06, "tags": 0.10, "language": 0.14},
    }.items()
}
"""The same for patterns that have a vector. `meaning`: the cosine of pattern and task, from `UNRELATED` as 0 to
`SAME` as 1."""
RELEVANCE_PARTS: Final = ("meaning", "words", "error", "task", "category", "tags", "language")

FAINT: Final = 0.1
"""A meaning part, 0..1 before its weight, from which on a pattern has something in common with a task by it alone."""
NAMED_ERROR: Final = 0.7
LIKELY_ERROR: Final = 0.4

_SALIENT_WORDS: Final = 8
"""How many of a task's rarest words make full coverage, so that a long text is not held against a pattern."""
_ENOUGH_TAGS: Final = 2
_MAX_REGEXES: Final = 512
"""How many of the best candidates of each kind have their regex tried."""
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
}
"""How tasks of a category typically fail, by the failure modes of (3)."""
_TELLS_NOTHING: Final = ("", "qz")
"""A regex that is found in one of these would be found in any task."""


@dataclass(frozen=True, slots=True)
class Relevance:
    """The patterns that share something with a task.

    Attributes:
        rows: Their rows in the index.
        values: Relevance, 0..1, of each.
        parts: Each part of it, 0..1 before its weight, by name.
        by_meaning: Whether the meaning of each is known.
        learnings: What tasks and loops have learned that fits the task.
        decomposition: Whether the task is to split work into parts.
    """

    rows: NDArray[np.int64]
    values: Floats
    parts: Mapping[str, Floats]
    by_meaning: NDArray[np.bool_]
    learnings: tuple[LearningMatch, ...] = ()
    decomposition: bool = False

    def parts_of(self, place: int, kind: PatternType) -> dict[str, float]:
        """What each part adds to the relevance of the pattern at `place`; they sum to it."""
        weights = (SEMANTIC_WEIGHTS if self.by_meaning[place] else WEIGHTS)[kind]
        return {name: float(self.parts[name][place] * weight) for name, weight in weights.items()}


def measure_relevance(
    profile: TaskProfile,
    index: PatternIndex,
    patterns: Mapping[str, Pattern],
    closeness: Closeness | None = None,
) -> Relevance:
    """Every pattern that has something in common with the task: a meaning, a word, an error or a tag.

    The category alone is enough for success and anti-patterns, which are searched by it (0); a language alone
    is not enough for any.

    Args:
        profile: The task.
        index, patterns: Where to look.
        closeness: None if no pattern has a vector.
    """
    size = len(index.ids)
    parts = {name: np.zeros(size) for name in RELEVANCE_PARTS}
    by_meaning = np.zeros(size, np.bool_)
    if closeness is not None:
        by_meaning = ~np.isnan(closeness)
        parts["meaning"] = np.clip(
            (np.nan_to_num(closeness).astype(np.float64) - UNRELATED) / (SAME - UNRELATED), 0.0, 1.0
        )
    _add_words(parts["words"], profile, index)
    _add_errors(parts["error"], profile, index)
    _add_categories(parts["category"], profile, index)
    _add_tags(parts["tags"], profile, index)
    for language in profile.languages:
        sharing = index.facets.get(("language", language))
        if sharing is not None:
            parts["language"][sharing] = 1.0
    by_category = np.isin(index.types, (TYPES.index(PatternType.SUCCESS), TYPES.index(PatternType.ANTI)))
    close = parts["meaning"] * (parts["meaning"] >= FAINT)
    common = close + parts["words"] + parts["error"] + parts["tags"] + parts["category"] * by_category
    rows = np.flatnonzero(common).astype(np.int64)
    found = {name: values[rows] for name, values in parts.items()}
    kinds, by_meaning = index.types[rows], by_meaning[rows]
    _try_regexes(found, _mixed(found, kinds, by_meaning), rows, kinds, profile, index, patterns)
    return Relevance(rows, _mixed(found, kinds, by_meaning), found, by_meaning)


def _mixed(parts: Mapping[str, Floats], kinds: NDArray[np.int8], by_meaning: NDArray[np.bool_]) -> Floats:
    mixed = np.zeros(len(kinds))
    tables = (WEIGHTS, SEMANTIC_WEIGHTS)
    for name in RELEVANCE_PARTS:
        weights = np.array([[table[kind].get(name, 0.0) for kind in TYPES] for table in tables])
        mixed += weights[by_meaning.astype(np.int8), kinds] * parts[name]
    return np.minimum(mixed, 1.0)


def _add_words(part: Floats, profile: TaskProfile, index: PatternIndex) -> None:
    """Rare words count more: each by its absolute idf `log(1 + patterns / patterns that hold it)`."""
    size = max(len(index.rows), 1)
    known = []
    for word in profile.words:
        rows = index.words.get(word)
        if rows is not None:
            weight = math.log1p(size / len(rows))
            part[rows] += weight
            known.append(weight)
    if not known:
        return
    unknown = [math.log1p(size)] * (len(profile.words) - len(known))
    full = sum((sorted(known, reverse=True) + unknown)[:_SALIENT_WORDS])
    np.minimum(part / full, 1.0, out=part)


def _add_errors(part: Floats, profile: TaskProfile, index: PatternIndex) -> None:
    for name in profile.error_types:
        rows = index.facets.get(("error", name.lower()))
        if rows is not None:
            part[rows] = NAMED_ERROR if name in profile.named_errors else LIKELY_ERROR


def _add_categories(part: Floats, profile: TaskProfile, index: PatternIndex) -> None:
    for name in (profile.category, *_FAILURES_IN[profile.category]):
        rows = index.facets.get(("category", name))
        if rows is not None:
            part[rows] = 1.0
    if profile.category == "debugging":
        part[index.types == TYPES.index(PatternType.ERROR)] = 1.0
    if profile.category == "implementation":
        part[index.types == TYPES.index(PatternType.TEMPLATE)] = 1.0


def _add_tags(part: Floats, profile: TaskProfile, index: PatternIndex) -> None:
    words = profile.words | set(profile.languages)
    seen: set[str] = set()
    for word in words:
        for tag, tag_words in index.tags_by_word.get(word, ()):
            if tag not in seen and tag_words <= words:
                seen.add(tag)
                part[index.tags[tag]] += 1.0
    np.minimum(part / np.clip(index.tag_counts, 1, _ENOUGH_TAGS), 1.0, out=part)


def _try_regexes(
    parts: Mapping[str, Floats],
    so_far: Floats,
    rows: NDArray[np.int64],
    kinds: NDArray[np.int8],
    profile: TaskProfile,
    index: PatternIndex,
    patterns: Mapping[str, Pattern],
) -> None:
    """Match the task against the best candidates' own regexes; those share words with what they are for."""
    for kind, name in ((PatternType.ERROR, "error"), (PatternType.SUCCESS, "task")):
        places = np.flatnonzero(kinds == TYPES.index(kind))
        if len(places) > _MAX_REGEXES:
            places = places[np.argpartition(-so_far[places], _MAX_REGEXES)[:_MAX_REGEXES]]
        for place in places.tolist():
            pattern = patterns.get(index.ids[rows[place]])
            source = (pattern.error_pattern if name == "error" else pattern.task_pattern) if pattern else ""
            if source and _found(source, profile.text):
                parts[name][place] = 1.0


def _found(source: str, text: str) -> bool:
    regex = safe_matcher(source)
    return regex.matches(text) and not any(regex.matches(nothing) for nothing in _TELLS_NOTHING)
