"""Whether two sentences that look alike ask for different things: "do X" and "don't do X" share nearly all words.

By words alone, without grammar: it would rather keep apart what says the same than put together what does not.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final, NamedTuple

_NOT: Final = re.compile(
    r"\b(?:not|never|cannot|can'?t|don'?t|doesn'?t|didn'?t|won'?t|isn'?t|aren'?t|shouldn'?t|mustn'?t|needn'?t"
    r"|avoid\w*|refrain\w*|forbid\w*|free of|stop \w+ing|no longer"
    r"|nicht|kein\w*|nie|niemals|vermeid\w*|ne|jamais|évit\w*|nunca|evit\w*|não)\b|^\W*no\b"
    r"|ない|ません|避け|禁止|不|别|勿|않|말고"
)
"""What turns the sense of a sentence around, in lower case and with straight apostrophes."""
_REASON: Final = re.compile(r"\b(?:so that|because|otherwise|or else|since|damit|weil|sonst)\b.*", re.DOTALL)
"""A reason may deny something, whatever the sentence asks for."""
_NUMBER: Final = re.compile(
    r"(?<![\w.#/:-])(?<!attempt )(?<!iteration )(?<!line )(?<!step )(?<!loop )(?<!task )"
    r"\d+(?:[.,]\d+)*\b(?![\w.]*[/:-])"
    r"(?!(?: of \d+)?(?: \w+)? (?:tests?|errors?|failures?|failing|failed|problems?|warnings?)\b)"
)
"""A number that may be what is asked for: none in a name, none that only says where, and none of what was found."""
_ORDER: Final = re.compile(r"\b(?:(before|instead of|rather than|than|bevor|vor|statt|anstatt)|(after|nachdem|nach))\b")
"""What stands between two things whose order is the point; of the second kind the later one comes first."""
_WORD: Final = re.compile(r"\w+")
_SMALL: Final = frozenset(
    {"a", "an", "the", "of", "to", "in", "on", "and", "or", "any", "all", "it", "der", "die", "das"}
)
_MORE: Final = "increase raise enlarge extend grow", "decrease reduce lower shrink shorten"
_AXES: Final = (
    (f"{_MORE[0]} more higher larger bigger longer erhöhen mehr", f"{_MORE[1]} less fewer smaller verringern weniger"),
    ("enable activate aktivieren", "disable deactivate deaktivieren"),
    ("add", "remove delete drop"),
    ("allow permit", "deny forbid"),
    ("include", "exclude"),
    ("lock", "unlock"),
    ("open", "close"),
    ("start", "stop"),
    ("show", "hide"),
    ("first zuerst", "last zuletzt"),
    ("early earlier", "late later"),
    ("with mit", "without ohne"),
    ("sync synchronous", "async asynchronous"),
    ("public", "private"),
    ("mutable", "immutable"),
    ("upgrade", "downgrade"),
    ("install", "uninstall"),
)
"""Words that are opposites of each other."""


def _forms(word: str) -> set[str]:
    stem = word.removesuffix("e")
    return {word, f"{word}s", f"{stem}ed", f"{stem}ing"}


_SIDES: Final = {
    form: (axis, side)
    for axis, sides in enumerate(_AXES)
    for side, words in enumerate(sides)
    for word in words.split()
    for form in _forms(word)
}


class Demand(NamedTuple):
    """What a sentence asks for, as far as two that ask for different things can be told apart by it.

    Attributes:
        denied: Whether it says what not to do.
        numbers: Those that it names.
        sides: By axis of opposites on which side it stands; no axis of which it names both.
        order: The words of what it puts first and of what comes after that; empty where order is not its point.
    """

    denied: bool = False
    numbers: tuple[str, ...] = ()
    sides: tuple[tuple[int, int], ...] = ()
    order: tuple[frozenset[str], ...] = ()

    def differs(self, other: Demand) -> bool:
        """Whether the two ask for different things."""
        if self.denied != other.denied or (self.numbers and other.numbers and self.numbers != other.numbers):
            return True
        if self.sides and other.sides and self.sides != other.sides:
            theirs = dict(other.sides)
            if any(theirs.get(axis, side) != side for axis, side in self.sides):
                return True
        return bool(self.order and other.order) and self.order != other.order and self._is_turned(other)

    def _is_turned(self, other: Demand) -> bool:
        """Whether something that one puts first comes after for the other, and the other way round."""
        (first, after), (their_first, their_after) = self.order, other.order
        moved_back = first & their_after - after - their_first
        moved_ahead = after & their_first - first - their_after
        return bool(moved_back and moved_ahead)


def demand_of(text: str) -> Demand:
    """What a sentence asks for."""
    said = _REASON.sub("", text.lower().replace("\u2019", "'"))
    found = dict.fromkeys(_SIDES[word] for word in _WORD.findall(said) if word in _SIDES)
    axes = [axis for axis, _ in found]
    return Demand(
        denied=_NOT.search(said) is not None,
        numbers=tuple(sorted(set(_NUMBER.findall(said)))),
        sides=tuple(sorted(side for side in found if axes.count(side[0]) == 1)),
        order=_order(said),
    )


def _order(said: str) -> tuple[frozenset[str], ...]:
    between = _ORDER.search(said)
    if between is None:
        return ()
    parts = [_telling(said[: between.start()]), _telling(said[between.end() :])]
    return tuple(parts if between[1] else parts[::-1])


def _telling(said: str) -> frozenset[str]:
    return frozenset(_WORD.findall(said)) - _SMALL


_JOINED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]{2,}")


def spaced(text: str) -> str:
    """With pairs of letters as words where words are written without a space between them."""
    return _JOINED.sub(lambda run: f" {' '.join(map(''.join, pairwise(run[0])))} ", text)
