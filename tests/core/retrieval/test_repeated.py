from __future__ import annotations

from core.retrieval.repeated import Repetition, find_repeated

FILE = ("CLAUDE.md", ["# Rules", "", "- Always pin the seed before you run the tests.", "Use Decimal for money."])


def test_the_same_words_in_another_order_are_a_repetition() -> None:
    found = find_repeated({"pat-1": ["Before you run the tests, always pin the seed"]}, [FILE])
    assert found == {"pat-1": Repetition("CLAUDE.md", 3)}


def test_another_text_does_not_count() -> None:
    assert find_repeated({"pat-1": ["Never round totals in the templates"]}, [FILE]) == {}


def test_texts_of_few_words_are_not_compared() -> None:
    assert find_repeated({"pat-1": ["# Rules"]}, [("CLAUDE.md", ["# Rules"])]) == {}


def test_nothing_is_compared_without_files() -> None:
    assert find_repeated({"pat-1": ["Always pin the seed before you run"]}, []) == {}
