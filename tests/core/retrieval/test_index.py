"""An updated pattern index equals a new one."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core.records.patterns import Pattern, PatternType
from core.retrieval.index import TYPES, PatternIndex, Postings
from tests.factories import make_pattern

_TEXTS = st.sampled_from(["null check", "parse cache", "user token null", "", "修复 cache"])
_TAGS = st.lists(st.sampled_from(["python", "Auth", "null-safety", " "]), max_size=3).map(tuple)
_PATTERNS = st.dictionaries(
    st.sampled_from([f"pat-error-{letter}-001" for letter in "abcdefghij"]),
    st.tuples(_TEXTS, _TAGS, st.sampled_from(list(PatternType)), st.sampled_from(["", "TypeError"])),
    max_size=10,
)


def made(drawn: dict[str, tuple[str, tuple[str, ...], PatternType, str]]) -> dict[str, Pattern]:
    return {
        id: make_pattern(id, kind, title=title, tags=tags, error_type=error)
        for id, (title, tags, kind, error) in drawn.items()
    }


def content(index: PatternIndex) -> object:
    def named(postings: Postings[Any]) -> dict[object, list[str]]:
        lists = ((key, postings.get(key)) for key in postings)
        return {key: sorted(index.ids[row] for row in rows) for key, rows in lists if rows is not None}

    facts = {id: (TYPES[index.types[row]], int(index.tag_counts[row])) for row, id in enumerate(index.ids) if id}
    return facts, named(index.words), named(index.tags), named(index.facets), set(index.rows)


@given(_PATTERNS, _PATTERNS, _PATTERNS)
def test_updated_is_a_new_index_of_what_changed(one: dict, two: dict, three: dict) -> None:  # type: ignore[type-arg]
    index = PatternIndex.build(made(one))
    before = made(one)
    for after in (made(two), made(three)):
        changed = {id for id in before.keys() | after.keys() if before.get(id) != after.get(id)}
        index = index.updated(after, changed)
        assert content(index) == content(PatternIndex.build(after))
        before = after


def test_an_update_does_not_change_the_old_index() -> None:
    patterns = {id: make_pattern(id, title="cache") for id in (f"pat-error-x-{n:03}" for n in range(20))}
    index = PatternIndex.build(patterns)
    changed = {**patterns, "pat-error-x-003": make_pattern("pat-error-x-003", title="token")}
    newer = index.updated(changed, {"pat-error-x-003"})
    assert index.words.count(["cach", "token"]) == {"cach": 20}
    assert newer.words.count(["cach", "token"]) == {"cach": 19, "token": 1}
    assert (rows := newer.words.get("token")) is not None and rows.tolist() == [3]
