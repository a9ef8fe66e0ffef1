"""Detection of similar sentences with opposite demands, by words, not grammar."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from msgspec import Struct

from core.base.polarity import is_negated
from core.base.regexes import lazy_regex
from core.base.text import strip_label

MIN_SIMILARITY: Final = 0.7  # above it, 0..1, learnings make the same statement unless their demands differ

_REASON: Final = lazy_regex(r"\b(?:so that|because|otherwise|or else|since|damit|weil|sonst)\b.*", re.DOTALL)
"""The reason for a demand; a negation in it does not negate the demand."""
_NUMBER: Final = lazy_regex(
    r"(?<![\w.#/:-])(?<!attempt )(?<!iteration )(?<!line )(?<!step )(?<!loop )(?<!task )"
    r"\d+(?:[.,]\d+)*\b(?![\w.]*[/:-])"
    r"(?!(?: of \d+)?(?: \w+)? (?:tests?|errors?|failures?|failing|failed|problems?|warnings?)\b)"
)  # a number that may be part of the demand: not part of a name, not a position, not a count of results
_ORDER: Final = lazy_regex(r"\b(?:(before|instead of|rather than|than|bevor|vor|statt|anstatt)|(after|nachdem|nach))\b")
"""Words between two things whose order matters; for the words of group 2 the second thing comes first."""
_WORD: Final = re.compile(r"\w+")
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]{2,}")
_SMALL: Final = frozenset(
    {"a", "an", "the", "of", "to", "in", "on", "and", "or", "any", "all", "it", "der", "die", "das"}
)


@cache
def _sides() -> dict[str, tuple[int, int]]:
    """Return (axis, side) of each form of each word in `opposites.yaml`."""
    sides = {}
    lines = Path(__file__).with_name("opposites.yaml").read_text(encoding="utf-8").splitlines()
    # Importing a parser for all of YAML takes 10 ms, in each hook with a prompt.
    pairs = (line.removeprefix("- [").removesuffix("]").split(", ") for line in lines if not line.startswith("#"))
    for axis, pair in enumerate(pairs):
        for side, words in enumerate(pair):
            for word in words.split():
                stem = word.removesuffix("e")
                for form in (word, f"{word}s", f"{stem}ed", f"{stem}ing"):
                    sides[form] = (axis, side)
    return sides


class Demand(Struct, frozen=True, gc=False):  # tuples and strings only, so that collections skip it
    """Parts of a sentence in which two demands can differ."""

    negated: bool = False  # whether the sentence forbids something
    numbers: tuple[str, ...] = ()  # numbers that are part of the demand, sorted
    sides: tuple[tuple[int, int], ...] = ()  # (axis, side) of named opposites, unless both sides are named
    order: tuple[tuple[str, ...], ...] = ()  # sorted words of what comes first, and of what second; else empty

    def differs(self, other: Demand) -> bool:
        if self.negated != other.negated or (self.numbers and other.numbers and self.numbers != other.numbers):
            return True
        theirs = dict(other.sides)
        if any(theirs.get(axis, side) != side for axis, side in self.sides):
            return True
        if not self.order or not other.order:
            return False
        # Two things changed places.
        first, second, their_first, their_second = map(set, (*self.order, *other.order))
        return bool(first & their_second - second - their_first) and bool(second & their_first - first - their_second)


def parse_demand(text: str) -> Demand:
    """Parse the demand that a sentence makes."""
    text = _REASON.sub("", text.lower().replace("\u2019", "'"))
    sides = _sides()
    sides_named = dict.fromkeys(sides[word] for word in _WORD.findall(text) if word in sides)
    axes = [axis for axis, _ in sides_named]
    order: tuple[tuple[str, ...], ...] = ()
    if between := _ORDER.search(text):
        parts = (text[: between.start()], text[between.end() :])
        parts = parts if between[1] else parts[::-1]
        order = tuple(tuple(sorted({*_WORD.findall(part)} - _SMALL)) for part in parts)
    return Demand(
        negated=is_negated(text),
        numbers=tuple(sorted(set(_NUMBER.findall(text)))),
        sides=tuple(sorted(side for side in sides_named if axes.count(side[0]) == 1)),
        order=order,
    )


def split_unspaced(text: str) -> str:
    """Split text in languages without spaces into pairs of characters."""
    return _UNSPACED.sub(lambda run: f" {' '.join(map(''.join, pairwise(run[0])))} ", text)


class Statement(Struct, frozen=True, gc=False):
    """Learning in comparable form: its sorted words and its demand."""

    words: str
    demand: Demand

    @classmethod
    def of(cls, learning: str) -> Statement:
        from core.retrieval.similarity import sorted_words

        text = strip_label(learning)
        return cls(sorted_words(split_unspaced(text)), parse_demand(text))

    @property
    def key(self) -> tuple[str, bool, str]:
        """Unique key for sorting."""
        demand = self.demand
        return self.words, demand.negated, f"{demand.numbers} {demand.sides} {demand.order}"
