"""Contradictions of two clauses of instructions (docs/instructions.md#pairs).

Two clauses with the same head and tails that fit together contradict each other if one is a ban, if they choose
different alternatives, or if their numbers differ. In doubt they do not.
"""

from __future__ import annotations

from typing import Final

from core.retrieval.instruction_clauses import (
    COMMON,
    WEAK,
    Clause,
    ParsedInstruction,
    core_words,
    do_the_same,
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
    """Return the choice or unit in which two clauses differ, "" if they contradict each other otherwise, else None."""
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
    """Return whether two texts order the same steps equally, False if in the opposite order, else None."""
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
    """Return whether a ban forbids what is demanded; `shared` is the weight of the words of both heads."""
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
    """Return whether a ban, even of a single word, is about a demand: it has no condition that the demand lacks."""
    thing = core_words(ban.head)
    is_about = thing | heavy_words(ban.tail) <= demand.words and thing.isdisjoint(ban.tail - {ASK})
    is_about = is_about and (weigh(thing) >= _SURE or thing <= demand.head)
    if not is_about and thing != core_words(demand.head):
        return False
    most = _MOST_CLOSE if is_close else _MOST_OTHERS
    return not ban.actions or bool(demand.actions) or weigh(heavy_words(demand.words - ban.words)) <= most


def _forbids_choice(ban: Clause, demand: Clause) -> bool:
    """Return whether a ban of nothing but alternatives, such as tools, forbids one that the demand chooses."""
    table = word_table()
    common = {choice for choice in ban.choices if choice in demand.choices and choice[0] in table.own}
    return bool(common) and not heavy_words(ban.tail) and all(word in table.choices for word in core_words(ban.head))


def _is_in_context(ban: Clause, demand: Clause) -> bool:
    """Return whether "not Y" of "X, not Y" is about a demand: it is about nothing but Y, or also about X."""
    if ban.context is None or ban.names & demand.names:
        return True
    others = heavy_words(demand.words - ban.words)
    return not others or bool(others & ban.context)


def _find_choice(one: Clause, other: Clause) -> str:
    """Return the choice in which two clauses have different alternatives, "" if there is none."""
    table = word_table()
    decided = {choice for choice, _ in {*one.choices}.intersection(other.choices)}
    for choice in ({choice for choice, _ in one.choices} & {choice for choice, _ in other.choices}) - decided:
        sides = {word for word, places in table.choices.items() if any(place[0] == choice for place in places)}
        if choice in table.own or _have_same_rest(one.words - sides, other.words - sides):
            return f"choice {choice}"
    return ""


def choose_both_the_same(one: ParsedInstruction, other: ParsedInstruction) -> bool:
    """Return whether two texts choose the same alternative, and forbid the same other one: "use X, not Y"."""
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
    """Return whether one clause demands one of two alternatives, and the other one forbids the other."""
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
    """Return whether two clauses are the same apart from the alternatives of a choice."""
    if not one or not other:
        return one == other
    return weigh(core_words(one & other)) >= COMMON and share_of_lighter(one, other) >= _SAME_REST


def _find_number(one: Clause, other: Clause, *, is_same: bool) -> str | None:
    """Return the first unit of which two clauses have different numbers, None if there is none."""
    has_scope = bool(heavy_words(one.tail - other.words)) is not bool(heavy_words(other.tail - one.words))
    for unit, number in one.numbers:
        values = [value for known, value in other.numbers if known == unit]
        if values and number not in values:
            return f"unit {unit}" if unit in _OWN_UNITS or (is_same and not has_scope) else None
    return None
