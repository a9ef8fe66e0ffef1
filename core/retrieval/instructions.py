"""Comparison of instructions for agents: whether one contradicts or repeats another (docs/instructions.md#pairs).

`core.retrieval.instruction_clauses` parses them. Two texts contradict each other if two of their clauses do; they
repeat each other if they have most words in common, or close vectors, and the same demands.
"""

from __future__ import annotations

from itertools import product
from typing import Final, NamedTuple

from core.records.instructions import Relation
from core.retrieval.instruction_clauses import (
    Area,
    Clause,
    ParsedInstruction,
    core_words,
    do_the_same,
    have_common_area,
    have_same_case,
    heavy_words,
    is_substituted,
    share_of_lighter,
    weigh,
    word_table,
)
from core.retrieval.instruction_conflicts import (
    ASK,
    REMOVE,
    choose_both_the_same,
    choose_the_same,
    find_conflict,
    have_same_order,
    is_removal,
)

CLOSE: Final = 0.55  # cosine of two vectors, from which texts are about the same
LEAST_CLOSE: Final = 0.35  # cosine below which texts are not the same, whatever their words are
SAME_MEANING: Final = 0.5  # mean of cosine and share of common words, from which one text repeats the other
SAME_VECTOR: Final = 0.8  # cosine from which texts with few words in common can be the same
SAME_FORM: Final = 0.5  # the same, for two bans of one thing, or two ways to demand it
SAME_TEXT: Final = 0.5  # share of all words that both texts contain, 0..1, from which one repeats the other
SAME_PART: Final = 0.4  # the same, if one text has no words that the other lacks
SAME_FEW: Final = 0.67  # the same, for texts that have hardly more than one word in common
SAME_CLAUSE: Final = 0.75  # the same, for two clauses
CLOSE_CLAUSE: Final = 0.6  # the same, for two clauses of texts whose vectors are close
_SURE: Final = 1.5  # weight of more than one word
_SEVERAL: Final = 2.0  # weight of two words
_MIN_WEIGHT: Final = 1.0  # of the words that two texts share
_WHOLE: Final = 0.99  # share from which a set of words is part of another one
_MAX_DIFFERING: Final = 0.3  # share of the common words that one text forbids and the other demands
_FORMATS: Final = frozenset({"choice 1", "choice 2", "unit space", "unit char"})
"""Causes that differ by language: indentation, quotes, line length."""


class Comparison(NamedTuple):
    """How two instructions are related, how similar they are, 0..1, and the choice in which they differ, if any."""

    relation: Relation
    similarity: float
    cause: str = ""


def compare_instructions(
    one: ParsedInstruction, other: ParsedInstruction, closeness: float | None = None
) -> Comparison | None:
    """Return how two instructions are related; None if they are not.

    `closeness` is the cosine of their vectors, None if they are compared by words alone.
    """
    if not have_common_area(one.areas, other.areas):
        return None
    similarity = max(_share(one, other), closeness or 0.0)
    order = have_same_order(one, other)
    if order is False:
        return Comparison(Relation.CONTRADICTS, similarity)
    is_close = closeness is not None and closeness >= CLOSE
    for mine, theirs in product(one.clauses, other.clauses):
        cause = find_conflict(mine, theirs, is_close=is_close)
        if cause == "" and order:
            continue  # "X, then Y" does not contradict "never Y before X"
        if cause is not None and not _is_exception(one, other, cause) and not _agree(one, other, mine, theirs):
            choice = cause if cause.startswith("choice") else ""
            return Comparison(Relation.CONTRADICTS, similarity, choice)
    if order is None and one.steps and other.steps:
        return None
    if one.areas == other.areas and choose_both_the_same(one, other):
        return Comparison(Relation.REPEATS, similarity)
    for mine, theirs in product(one.clauses, other.clauses):
        is_main = mine is one.clauses[0] or theirs is other.clauses[0]
        if one.areas == other.areas and choose_the_same(mine, theirs):
            return Comparison(Relation.REPEATS, similarity)
        if is_main and (share := _share_clause(mine, theirs)) >= (CLOSE_CLAUSE if is_close else SAME_CLAUSE):
            return Comparison(Relation.REPEATS, max(share, closeness or 0.0))
    if order and _have_same_things(one, other):
        return Comparison(Relation.REPEATS, similarity)
    is_same = _is_same_text(one, other, closeness) or _demand_the_same(one, other, closeness)
    return Comparison(Relation.REPEATS, similarity) if is_same and _have_same_demands(one, other) else None


def _is_exception(one: ParsedInstruction, other: ParsedInstruction, cause: str) -> bool:
    """Return whether one text is an exception: "use 4 spaces" is a default, "use 2 spaces in YAML" is none."""
    return cause in _FORMATS and _subjects(one) != _subjects(other)


def _subjects(parsed: ParsedInstruction) -> frozenset[Area]:
    return frozenset(area for area in parsed.areas if area[0] in ("language", "subject"))


def _agree(one: ParsedInstruction, other: ParsedInstruction, mine: Clause, theirs: Clause) -> bool:
    """Return whether the ban, or the demand, of two clauses is also in the other text.

    "Put X in Y, never in Z" agrees with "Never put X in Z", "Mock X" with "Tests never call X; mock it".
    """
    if mine.is_ban is theirs.is_ban:
        return False
    (ban, forbidding), (demand, demanding) = (
        ((mine, one), (theirs, other)) if mine.is_ban else ((theirs, other), (mine, one))
    )
    if any(core_words(clause.words) <= ban.words for clause in demanding.clauses if clause.is_ban):
        return True
    demands = (core_words(clause.words) for clause in forbidding.clauses if not clause.is_ban)
    return any(weigh(words) >= _MIN_WEIGHT and words <= demand.head for words in demands)


def _numbers(parsed: ParsedInstruction) -> set[tuple[str, str]]:
    return {number for clause in parsed.clauses for number in clause.numbers}


def _weigh_shared(one: ParsedInstruction, other: ParsedInstruction) -> float:
    return weigh(core_words(one.words & other.words)) + len(_numbers(one) & _numbers(other))


def _share(one: ParsedInstruction, other: ParsedInstruction) -> float:
    """Return the share of all words and numbers that both texts contain, 0..1."""
    union = weigh(core_words(one.words | other.words)) + len(_numbers(one) | _numbers(other))
    return _weigh_shared(one, other) / union if union else 0.0


def _demand_the_same(one: ParsedInstruction, other: ParsedInstruction, closeness: float | None) -> bool:
    """Return whether two texts with close vectors forbid the same, or demand it as "X has Y" and "no X without Y"."""
    if closeness is None or closeness < SAME_FORM:
        return False
    for mine, theirs in product(one.clauses, other.clauses):
        shared = mine.words & theirs.words
        is_rest_small = share_of_lighter(mine.words, theirs.words) >= SAME_TEXT
        if not is_rest_small or not heavy_words(shared) - word_table().verbs.keys():
            continue  # they do the same, but not with the same thing
        weight = weigh(core_words(shared))
        if _forbids_words(mine) and _forbids_words(theirs):
            is_same_case = have_same_case(mine.tail - theirs.words, theirs.tail - mine.words)
        else:
            is_same_case = mine.is_condition is not theirs.is_condition and not (mine.is_ban or theirs.is_ban)
            weight -= _SEVERAL - _SURE
        if is_same_case and weight >= _SURE:
            return True
    return False


def _is_same_text(one: ParsedInstruction, other: ParsedInstruction, closeness: float | None) -> bool:
    """Return whether two texts have enough words in common, or close vectors."""
    share, weight = _share(one, other), _weigh_shared(one, other)
    if weight < _MIN_WEIGHT and share < _WHOLE and (closeness or 0.0) < SAME_VECTOR:
        return False
    is_part = share_of_lighter(one.words, other.words) >= _WHOLE
    least = (SAME_PART if is_part else SAME_TEXT) if weight >= _SURE else (SAME_TEXT if is_part else SAME_FEW)
    if closeness is None:
        return share >= least
    if (closeness + share) / 2 >= SAME_MEANING:
        return True
    return share >= least and closeness >= (LEAST_CLOSE if share >= SAME_FEW else CLOSE)


def _share_clause(one: Clause, other: Clause) -> float:
    """Return the share of all words that both clauses contain, 0..1; 0 if they do not demand the same."""
    are_asked = one.is_asked and other.is_asked  # "ask before X", "no X unless I ask"
    if not do_the_same(one, other) or (not are_asked and _forbids_words(one) is not _forbids_words(other)):
        return 0.0
    if not have_same_case(one.tail - other.head, other.tail - one.head) or not _have_same_facts(one.facts, other.facts):
        return 0.0
    aside = {REMOVE, ASK} if are_asked else {REMOVE}
    words = one.words - aside, other.words - aside
    if is_substituted(*words):
        return 0.0
    numbers = len({*one.numbers}.intersection(other.numbers))
    shared, union = (weigh(core_words(some)) + numbers for some in (words[0] & words[1], words[0] | words[1]))
    return shared / union if shared >= _SURE else 0.0


def _forbids_words(clause: Clause) -> bool:
    """Return whether a clause forbids what its words name: "no X", "remove X"."""
    return clause.is_ban is not (is_removal(clause) and ASK not in clause.words)


def _have_same_demands(one: ParsedInstruction, other: ParsedInstruction) -> bool:
    """Return whether shared words are demanded, or forbidden, by both, with the same numbers and choices."""
    actions = [[clause.actions for clause in parsed.clauses] for parsed in (one, other)]
    if all(map(all, actions)) and set().union(*actions[0]).isdisjoint(set().union(*actions[1])):
        return False
    shared = one.words & other.words
    differing = sum(weigh((word,)) for word in shared if _is_banned(one, word) is not _is_banned(other, word))
    return differing <= _MAX_DIFFERING * weigh(shared) and _have_same_things(one, other)


def _have_same_things(one: ParsedInstruction, other: ParsedInstruction) -> bool:
    """Return whether two texts have the same numbers and choices, and nothing in the place of something else."""
    if is_substituted(one.words, other.words) or (one.named - other.words and other.named - one.words):
        return False
    facts = [frozenset().union(*(clause.facts for clause in parsed.clauses)) for parsed in (one, other)]
    return _have_same_facts(*facts)


def _have_same_facts(
    one: frozenset[tuple[str | int, str | int]], other: frozenset[tuple[str | int, str | int]]
) -> bool:
    """Return whether numbers with the same unit, and alternatives of the same choice, are also the same."""
    subjects = {subject for subject, _ in one} & {subject for subject, _ in other}
    return subjects <= {subject for subject, _ in one & other}


def _is_banned(parsed: ParsedInstruction, word: str) -> bool:
    """Return whether a text forbids, or removes, what a word names wherever it has it."""
    return all(_forbids_words(clause) for clause in parsed.clauses if word in clause.words)
