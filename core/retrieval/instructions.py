"""Instructions that contradict or repeat others (docs/instructions.md#pairs).

`core.retrieval.instruction_clauses` parses them. Two clauses with the same head and tails that fit together contradict
each other if one is a ban, if they choose different alternatives, or if their numbers differ. In doubt they do not. Two
texts contradict each other if two of their clauses do; they repeat each other if they have most words in common, or
close vectors, and the same demands.
"""

from __future__ import annotations

from itertools import product
from typing import Final, NamedTuple

from core.records.instructions import Relation
from core.retrieval.instruction_clauses import (
    COMMON,
    WEAK,
    Area,
    Clause,
    ParsedInstruction,
    core_words,
    do_the_same,
    have_common_area,
    have_same_case,
    heavy_words,
    is_substituted,
    language_words,
    share_of_lighter,
    weigh,
    word_table,
)

_SAME_STEP: Final = 0.6  # share of the lighter step's words that both contain, 0..1, from which they are the same step
SAME_HEAD: Final = 0.7  # share of the lighter head that both clauses contain, 0..1, from which they are about the same
CLOSE_HEAD: Final = 0.67  # the same, for two texts whose vectors are close
_SAME_REST: Final = 0.6  # the same, without the alternatives of a choice
_CODE_WORD: Final = 0.75  # weight of each shared word that both have in code: `terraform apply`
_SURE: Final = 1.5  # weight of the words that a ban and a demand share
_TWO: Final = 2  # alternatives of a choice without a third
_THING: Final = 1.0  # the same, for a ban of one thing
_MOST_OTHERS: Final = 1.5  # weight of what else a demand may be about that a ban of one thing forbids
_MOST_CLOSE: Final = 2.5  # the same, for two texts whose vectors are close
_OWN_UNITS: Final = frozenset({"space", "python", "node", "java", "go", "php", "ruby", "react", "rust", "typescript"})
"""Units of numbers that name their subject."""
_QUANTITIES: Final = frozenset({"max", "min", "limit", "length", "aim", "target"})
ASK: Final = "ask"
_WORK: Final = frozenset({"implementation", "featur", "task"})  # what tests are written before or after
REMOVE: Final = "remov"


def find_conflict(one: Clause, other: Clause, *, is_close: bool) -> str | None:
    """Return the choice or unit that differs, "" for other contradictions, else None."""
    if not do_the_same(one, other) or is_removal(one) is not is_removal(other):
        return None
    if one.order and other.order and one.order != other.order and one.is_ban is other.is_ban:
        is_work = heavy_words(one.tail) | heavy_words(other.tail) <= _WORK
        is_same = is_work or share_of_lighter(one.tail, other.tail) >= SAME_HEAD
        return "" if is_same and share_of_lighter(one.head, other.head) >= SAME_HEAD else None
    names = one.tail & other.tail & one.names & other.names
    aside = names | language_words()  # whose languages differ are not compared
    if not have_same_case(one.tail - aside, other.tail - aside):
        return None
    # A word of one head counts as shared if it is in the tail of the other: "no prefixes on commits", "prefix commits".
    head, others = one.head | (one.tail & other.head) | names, other.head | (other.tail & one.head) | names
    shared = max(weigh(core_words(head & others)), _CODE_WORD * len(head & others & one.names & other.names))
    is_same = share_of_lighter(head, others) >= (CLOSE_HEAD if is_close else SAME_HEAD)
    if one.is_ban is not other.is_ban:
        ban, demand = (one, other) if one.is_ban else (other, one)
        is_conflict = _forbids(ban, demand, shared if is_same else 0.0, is_close=is_close)
        return "" if is_conflict else None
    if one.is_ban or one.is_condition or other.is_condition:
        return None
    cause = _find_choice(one, other)
    # A clause that is nothing but a number with a unit is about any of these: "at most 88 characters".
    is_same_number = head <= _QUANTITIES or others <= _QUANTITIES or (is_same and shared >= WEAK)
    return cause or _find_number(one, other, is_same=is_same_number)


def have_same_order(one: ParsedInstruction, other: ParsedInstruction) -> bool | None:
    """Compare the order of the same steps: True: equal, False: opposite, else None."""
    if one.steps is None or other.steps is None:
        return None
    if all(map(_is_same_step, one.steps, other.steps)):
        return True
    return False if all(map(_is_same_step, one.steps, reversed(other.steps))) else None


def _is_same_step(one: frozenset[str], other: frozenset[str]) -> bool:
    return share_of_lighter(one, other) >= _SAME_STEP and not is_substituted(one, other)


def is_removal(clause: Clause) -> bool:
    """Return whether a clause is about the removal of something."""
    return word_table().verbs[REMOVE] in clause.actions


def _forbids(ban: Clause, demand: Clause, shared: float, *, is_close: bool) -> bool:
    """Return whether a ban forbids a demand; `shared`: weight of common head words."""
    if demand.is_condition or not _is_in_context(ban, demand):
        return False
    kinds = word_table().kinds
    if _forbids_choice(ban, demand) or any(core_words(ban.head) == {kinds.get(word)} for word in demand.head):
        return not heavy_words(ban.tail)
    if demand.is_soft and (demand.tail or ban.tail):
        return False  # "prefer X", "do not use X in Y"
    if ASK in demand.head and ASK not in ban.words:
        return False  # "ask before X", "no X"
    return shared >= (_THING if _forbids_thing(ban, demand, is_close=is_close) else _SURE)


def _forbids_thing(ban: Clause, demand: Clause, *, is_close: bool) -> bool:
    """Return whether a ban, even of one word, is about a demand: no other condition."""
    thing = core_words(ban.head)
    is_about = thing | heavy_words(ban.tail) <= demand.words and thing.isdisjoint(ban.tail - {ASK})
    is_about = is_about and (weigh(thing) >= _SURE or thing <= demand.head)
    if not is_about and thing != core_words(demand.head):
        return False
    most = _MOST_CLOSE if is_close else _MOST_OTHERS
    return not ban.actions or bool(demand.actions) or weigh(heavy_words(demand.words - ban.words)) <= most


def _forbids_choice(ban: Clause, demand: Clause) -> bool:
    """Return whether a ban of alternatives alone forbids one the demand chooses."""
    table = word_table()
    common = {choice for choice in ban.choices if choice in demand.choices and choice[0] in table.own}
    return bool(common) and not heavy_words(ban.tail) and all(word in table.choices for word in core_words(ban.head))


def _is_in_context(ban: Clause, demand: Clause) -> bool:
    """Return whether the ban "X, not Y" is about a demand: of only Y, or with X."""
    if ban.context is None or ban.names & demand.names:
        return True
    others = heavy_words(demand.words - ban.words)
    return not others or bool(others & ban.context)


def _find_choice(one: Clause, other: Clause) -> str:
    """Return the choice whose alternatives differ in two clauses, "" if none."""
    table = word_table()
    decided = {choice for choice, _ in {*one.choices}.intersection(other.choices)}
    for choice in ({choice for choice, _ in one.choices} & {choice for choice, _ in other.choices}) - decided:
        sides = {word for word, places in table.choices.items() if any(place[0] == choice for place in places)}
        if choice in table.own or _have_same_rest(one.words - sides, other.words - sides):
            return f"choice {choice}"
    return ""


def choose_both_the_same(one: ParsedInstruction, other: ParsedInstruction) -> bool:
    """Return whether both texts choose and forbid the same: "use X, not Y"."""
    demanded, banned = (
        set.intersection(
            *(
                {choice for clause in parsed.clauses if clause.is_ban is is_ban for choice in clause.choices}
                for parsed in (one, other)
            )
        )
        for is_ban in (False, True)
    )
    return any(choice in word_table().own and choice in dict(banned) for choice, _ in demanded - banned)


def choose_the_same(one: Clause, other: Clause) -> bool:
    """Return whether one clause demands X and the other bans its only alternative."""
    if one.is_ban is other.is_ban or heavy_words(one.tail ^ other.tail):
        return False
    table, ban = word_table(), one if one.is_ban else other
    if any(word not in table.choices for word in core_words(ban.head)):
        return False
    others = dict(other.choices)
    for choice, side in one.choices:
        places = {place for found in table.choices.values() for place in found if place[0] == choice}
        if choice in table.own and len(places) == _TWO and others.get(choice, side) != side:
            return True
    return False


def _have_same_rest(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether two clauses are equal apart from the alternatives of a choice."""
    if not one or not other:
        return one == other
    return weigh(core_words(one & other)) >= COMMON and share_of_lighter(one, other) >= _SAME_REST


def _find_number(one: Clause, other: Clause, *, is_same: bool) -> str | None:
    """Return the first unit whose numbers differ in two clauses, or None."""
    has_scope = bool(heavy_words(one.tail - other.words)) is not bool(heavy_words(other.tail - one.words))
    for unit, number in one.numbers:
        values = [value for known, value in other.numbers if known == unit]
        if values and number not in values:
            return f"unit {unit}" if unit in _OWN_UNITS or (is_same and not has_scope) else None
    return None


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
_SEVERAL: Final = 2.0  # weight of two words
_MIN_WEIGHT: Final = 1.0  # of the words that two texts share
_WHOLE: Final = 0.99  # share from which a set of words is part of another one
_MAX_DIFFERING: Final = 0.3  # share of the common words that one text forbids and the other demands
_FORMATS: Final = frozenset({"choice 1", "choice 2", "unit space", "unit char"})
"""Causes that differ by language: indentation, quotes, line length."""


class Comparison(NamedTuple):
    """Relation of two instructions, similarity (0..1), and the choice that differs."""

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
        # "Use 4 spaces" is a default; "use 2 spaces in YAML" is an exception, which does not contradict it.
        is_exception = cause in _FORMATS and _subjects(one) != _subjects(other)
        if cause is not None and not is_exception and not _agree(one, other, mine, theirs):
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


def _subjects(parsed: ParsedInstruction) -> frozenset[Area]:
    return frozenset(area for area in parsed.areas if area[0] in ("language", "subject"))


def _agree(one: ParsedInstruction, other: ParsedInstruction, mine: Clause, theirs: Clause) -> bool:
    """Return whether the ban or demand of two clauses is also in the other text.

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
    """Return whether close texts ban the same, or are "X has Y", "no X without Y"."""
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
    """Return the share of words in both clauses, 0..1; 0 if their demands differ."""
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
    """Return whether both demand or ban shared words, with equal numbers and choices."""
    actions = [[clause.actions for clause in parsed.clauses] for parsed in (one, other)]
    if all(map(all, actions)) and set().union(*actions[0]).isdisjoint(set().union(*actions[1])):
        return False
    shared = one.words & other.words
    differing = sum(weigh((word,)) for word in shared if _is_banned(one, word) is not _is_banned(other, word))
    return differing <= _MAX_DIFFERING * weigh(shared) and _have_same_things(one, other)


def _have_same_things(one: ParsedInstruction, other: ParsedInstruction) -> bool:
    """Return whether texts have equal numbers and choices, and no substituted thing."""
    if is_substituted(one.words, other.words) or (one.named - other.words and other.named - one.words):
        return False
    facts = [frozenset().union(*(clause.facts for clause in parsed.clauses)) for parsed in (one, other)]
    return _have_same_facts(*facts)


def _have_same_facts(
    one: frozenset[tuple[str | int, str | int]], other: frozenset[tuple[str | int, str | int]]
) -> bool:
    """Return whether numbers of one unit, and alternatives of one choice, are equal."""
    subjects = {subject for subject, _ in one} & {subject for subject, _ in other}
    return subjects <= {subject for subject, _ in one & other}


def _is_banned(parsed: ParsedInstruction, word: str) -> bool:
    """Return whether a text forbids or removes what a word names wherever it occurs."""
    return all(_forbids_words(clause) for clause in parsed.clauses if word in clause.words)
