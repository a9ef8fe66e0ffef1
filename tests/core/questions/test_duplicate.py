from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from core.base.settings import Settings
from core.base.steps import run_all
from core.index.similarity import SimilarityIndex
from core.index.texts import Texts
from core.index.verdicts import VerdictsInMemory
from core.questions.duplicate import Duplicates, find_duplicates
from core.records.patterns import Pattern, PatternType
from core.records.snapshot import Snapshot


def pattern(id: str, text: str, **changes: object) -> Pattern:
    values = {"id": id, "type": PatternType.ERROR, "title": text, "error_pattern": text, "content_hash": text}
    return Pattern(**(values | changes))  # type: ignore[arg-type]


class Desk:
    """A registry that is searched, each time after what was found before."""

    def __init__(self, *patterns: Pattern, stored: VerdictsInMemory | None = None) -> None:
        self.stored = VerdictsInMemory() if stored is None else stored
        self.found = Duplicates()
        self.change(patterns)

    def find(self) -> list[tuple[str, str]]:
        """Return the pairs of similar patterns."""
        view: Any = SimpleNamespace(snapshot=self.texts.snapshot, texts=self.texts, settings=Settings())
        self.found = run_all(find_duplicates(view, self.found, self.stored))
        return [(one, other) for one, other, _ in self.found.alike]

    def change(self, patterns: Iterable[Pattern]) -> None:
        self.texts = Texts(Snapshot(patterns={one.id: one for one in patterns}))


ONE = pattern("one", "cannot read property name of undefined in the session store")
LIKE_ONE = pattern("two", "cannot read property name of undefined in the session cache")
ELSE = pattern("three", "connection refused by the database after five attempts")


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The patterns that were compared with all others."""
    found: list[str] = []
    some_nearest = SimilarityIndex.some_nearest

    def counted(index: SimilarityIndex, one: Pattern, threshold: float) -> tuple[tuple[str, float], ...]:
        found.append(one.id)
        return some_nearest(index, one, threshold)

    monkeypatch.setattr(SimilarityIndex, "some_nearest", counted)
    return found


def test_duplicates_are_found() -> None:
    assert Desk(ONE, LIKE_ONE, ELSE).find() == [("one", "two")]


def test_only_new_texts_are_compared_again(compared: list[str]) -> None:
    desk = Desk(ONE, LIKE_ONE, ELSE)
    desk.find()
    compared.clear()
    counted = pattern("one", ONE.title, file="elsewhere")
    desk.change([counted, LIKE_ONE, ELSE])
    desk.find()
    assert compared == []
    copied = pattern("four", ELSE.title)
    desk.change([counted, LIKE_ONE, ELSE, copied])
    assert desk.find() == [("four", "three"), ("one", "two")]
    assert compared == ["four"]


def test_pair_disappears_with_either_pattern() -> None:
    desk = Desk(ONE, LIKE_ONE, ELSE)
    desk.find()
    desk.change([ONE, ELSE])
    assert desk.find() == []


def test_number_of_pairs_per_pattern_is_limited() -> None:
    many = [pattern(f"same-{number:03}", ONE.title) for number in range(300)]
    pairs = Desk(*many).find()
    assert {id for pair in pairs for id in pair} == {one.id for one in many}
    assert len(pairs) < 20 * len(many), "and not with all others, which would be 45,000 pairs"


def test_duplicates_of_a_removed_pattern_are_compared_again() -> None:
    many = [pattern(f"same-{number:03}", ONE.title) for number in range(40)]
    desk = Desk(*many)
    for left in (40, 20, 5, 2):
        desk.change(many[-left:])
        pairs = desk.find()
    assert pairs == [("same-038", "same-039")]


def test_a_pattern_that_returns_is_compared_with_what_came_meanwhile() -> None:
    desk = Desk(ONE, ELSE)
    for patterns in ([ONE, ELSE], [ELSE], [LIKE_ONE, ELSE], [ONE, LIKE_ONE, ELSE]):
        desk.change(patterns)
        pairs = desk.find()
    assert pairs == [("one", "two")]


def test_stored_verdicts_give_the_same_pairs_without_a_comparison(compared: list[str]) -> None:
    stored = VerdictsInMemory()
    copy = pattern("copy", ONE.title)
    first = Desk(ONE, LIKE_ONE, ELSE, copy, stored=stored)
    first.find()
    compared.clear()
    again = Desk(ELSE, copy, ONE, LIKE_ONE, stored=stored)
    again.find()
    assert again.found.alike == first.found.alike and not compared


def test_a_new_text_is_compared_and_the_others_are_not(compared: list[str]) -> None:
    stored = VerdictsInMemory()
    Desk(ONE, ELSE, stored=stored).find()
    compared.clear()
    assert Desk(ONE, ELSE, LIKE_ONE, stored=stored).find() == [("one", "two")]
    assert compared == ["two"]


def test_a_text_is_compared_again_if_its_stored_duplicate_was_removed() -> None:
    stored = VerdictsInMemory()
    texts = [f"cannot read property name of undefined in the session {word}" for word in ("store", "cache", "pool")]
    three = [pattern(f"{number}", text) for number, text in enumerate(texts)]
    Desk(*three[:2], stored=stored).find()
    assert Desk(three[0], three[2], stored=stored).find() == [("0", "2")]
