from __future__ import annotations

from collections.abc import Iterable

import pytest

from core.config.settings import ExtractionSettings
from core.index.similarity import SimilarityIndex
from core.index.texts import Texts
from core.index.verdicts import VerdictsInMemory
from core.questions import duplicate
from core.questions.duplicate import DuplicateSearch
from core.records.patterns import Pattern, PatternType
from core.records.snapshot import Snapshot


def pattern(id: str, text: str, **changes: object) -> Pattern:
    values = {"id": id, "type": PatternType.ERROR, "title": text, "error_pattern": text, "content_hash": text}
    return Pattern(**(values | changes))  # type: ignore[arg-type]


class Desk:
    """A registry that can be looked at until nothing is left."""

    def __init__(self, *patterns: Pattern, stored: VerdictsInMemory | None = None) -> None:
        self.search = DuplicateSearch(ExtractionSettings(), VerdictsInMemory() if stored is None else stored)
        self.patterns = {one.id: one for one in patterns}
        self.texts = Texts(Snapshot(patterns=self.patterns))

    def look(self) -> bool | None:
        return self.search.look(self.patterns, self.texts)

    def search_all(self) -> int:
        """Look until nothing is left; returns how often something changed."""
        changed = 0
        while (found := self.look()) is not None:
            changed += found
        return changed

    def change(self, patterns: Iterable[Pattern]) -> None:
        self.patterns = {one.id: one for one in patterns}
        self.texts = Texts(Snapshot(patterns=self.patterns))

    def pairs(self) -> list[tuple[str, str]]:
        return [(one, other) for one, other, _ in self.search.alike]


ONE = pattern("one", "cannot read property name of undefined in the session store")
LIKE_ONE = pattern("two", "cannot read property name of undefined in the session cache")
ELSE = pattern("three", "connection refused by the database after five attempts")


def test_duplicates_are_found_and_the_search_ends() -> None:
    desk = Desk(ONE, LIKE_ONE, ELSE)
    assert desk.search_all() == 1
    assert desk.pairs() == [("one", "two")]
    assert desk.look() is None


def test_large_registry_is_compared_in_steps_and_reported_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicate, "_AT_ONCE", 1)
    desk = Desk(ONE, LIKE_ONE, ELSE)
    assert [desk.look(), desk.look(), desk.look(), desk.look()] == [False, False, True, None]


def test_only_new_texts_are_compared_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicate, "_AT_ONCE", 1)
    desk = Desk(ONE, LIKE_ONE, ELSE)
    desk.search_all()
    counted = pattern("one", ONE.title, file="elsewhere")
    desk.change([counted, LIKE_ONE, ELSE])
    assert desk.look() is None
    copied = pattern("four", ELSE.title)
    desk.change([counted, LIKE_ONE, ELSE, copied])
    assert [desk.look(), desk.look()] == [True, None]
    assert desk.pairs() == [("four", "three"), ("one", "two")]


def test_pair_disappears_with_either_pattern() -> None:
    desk = Desk(ONE, LIKE_ONE, ELSE)
    desk.search_all()
    desk.change([ONE, ELSE])
    assert desk.search_all() == 1
    assert desk.pairs() == []


def test_number_of_pairs_per_pattern_is_limited() -> None:
    many = [pattern(f"same-{number:03}", ONE.title) for number in range(300)]
    desk = Desk(*many)
    desk.search_all()
    assert {id for pair in desk.pairs() for id in pair} == {one.id for one in many}
    assert len(desk.pairs()) < 20 * len(many), "and not with all others, which would be 45,000 pairs"


def test_duplicates_of_a_removed_pattern_are_compared_again() -> None:
    many = [pattern(f"same-{number:03}", ONE.title) for number in range(40)]
    desk = Desk(*many)
    desk.search_all()
    for left in (20, 5, 2):
        desk.change(many[-left:])
        desk.search_all()
    assert desk.pairs() == [("same-038", "same-039")]


class Unused(Texts):
    """Fails when the patterns are compared."""

    @property
    def similarity(self) -> SimilarityIndex:
        raise AssertionError("compared again")


def test_stored_verdicts_give_the_same_pairs_without_a_comparison() -> None:
    stored = VerdictsInMemory()
    first = Desk(ONE, LIKE_ONE, ELSE, stored=stored)
    first.search_all()
    again = Desk(ELSE, ONE, LIKE_ONE, stored=stored)
    again.texts = Unused(Snapshot(patterns=again.patterns))
    assert again.search_all() == 1
    assert again.search.alike == first.search.alike


def test_a_new_text_is_compared_and_the_others_are_not() -> None:
    stored = VerdictsInMemory()
    Desk(ONE, ELSE, stored=stored).search_all()
    again = Desk(ONE, ELSE, LIKE_ONE, stored=stored)
    again.search_all()
    assert again.pairs() == [("one", "two")]


def test_a_text_is_compared_again_if_its_stored_duplicate_was_removed() -> None:
    stored = VerdictsInMemory()
    texts = [f"cannot read property name of undefined in the session {word}" for word in ("store", "cache", "pool")]
    three = [pattern(f"{number}", text) for number, text in enumerate(texts)]
    Desk(*three[:2], stored=stored).search_all()
    again = Desk(three[0], three[2], stored=stored)
    again.search_all()
    assert again.pairs() == [("0", "2")]


def test_patterns_with_equal_texts_are_compared_in_each_run() -> None:
    stored = VerdictsInMemory()
    for _ in range(2):
        desk = Desk(ONE, pattern("copy", ONE.title), stored=stored)
        desk.search_all()
        assert desk.pairs() == [("copy", "one")]
