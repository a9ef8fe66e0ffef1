from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.diff import DELETED, EQUAL, INSERTED, field_changes, line_changes, word_changes
from core.records.patterns import Pattern, PatternType

EXAMPLES = settings(max_examples=40)
texts = st.text(st.sampled_from("ab \n"), max_size=30)


def test_word_changes_mark_deleted_inserted_and_equal_words() -> None:
    assert word_changes("Guard the value first", "Guard every value") == (
        (EQUAL, "Guard "),
        (DELETED, "the"),
        (INSERTED, "every"),
        (EQUAL, " value"),
        (DELETED, " first"),
    )


@EXAMPLES
@given(texts, texts)
def test_pieces_form_both_texts(before: str, after: str) -> None:
    for changes in (word_changes(before, after), line_changes(before, after)):
        assert "".join(piece.text for piece in changes if piece.mark != INSERTED) == before
        assert "".join(piece.text for piece in changes if piece.mark != DELETED) == after


def test_long_texts_count_as_replaced() -> None:
    before, after = "same " + "x-" * 200_000 + " end", "same " + "y z " * 100_000 + "end"
    begun = time.process_time()
    assert [(piece.mark, len(piece.text)) for piece in word_changes(before, after)] == [
        (EQUAL, 5),
        (DELETED, 400_000),
        (INSERTED, 399_999),
        (EQUAL, 4),
    ]
    assert time.process_time() - begun < 2


def test_field_changes_list_only_fields_that_differ() -> None:
    one = Pattern(id="a", type=PatternType.SUCCESS, title="Split", steps=("look", "split"), tags=("x",))
    other = Pattern(id="b", type=PatternType.SUCCESS, title="Split", steps=("split",), placeholders=(("a", "b"),))
    assert field_changes(one, other) == (("steps", "look\nsplit", "split"), ("placeholders", "", "a: b"))
