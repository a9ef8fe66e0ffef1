"""An updated pattern index equals a new one."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from core.records.patterns import Pattern, PatternType
from core.retrieval.index import TAG, TYPES, WORD, PatternIndex, Term, pattern_terms
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


def content(index: PatternIndex, patterns: Iterable[Pattern]) -> object:
    """What an index has of the terms of these patterns."""

    def named(term: Term) -> list[str]:
        rows = index.terms.get(*term)
        return sorted(index.ids[row] for row in rows) if rows is not None else []

    terms = set().union(*map(pattern_terms, patterns))
    facts = {id: (TYPES[index.types[row]], int(index.tag_counts[row])) for row, id in enumerate(index.ids) if id}
    words = {text for kind, text in terms if kind == WORD}
    tags = {word: sorted(tag for tag in index.terms.find_tags(word) if named((TAG, tag))) for word in words}
    return facts, {term: named(term) for term in terms}, index.terms.count(WORD, words), tags, set(index.rows)


@given(_PATTERNS, _PATTERNS, _PATTERNS)
def test_updated_is_a_new_index_of_what_changed(one: dict, two: dict, three: dict) -> None:  # type: ignore[type-arg]
    index = PatternIndex.build(made(one))
    before = made(one)
    for after in (made(two), made(three)):
        changed = {id for id in before.keys() | after.keys() if before.get(id) != after.get(id)}
        index = index.updated(after, changed)
        known = [*before.values(), *after.values()]
        assert content(index, known) == content(PatternIndex.build(after), known)
        before = after


def test_an_update_does_not_change_the_old_index() -> None:
    patterns = {id: make_pattern(id, title="cache") for id in (f"pat-error-x-{n:03}" for n in range(20))}
    index = PatternIndex.build(patterns)
    changed = {**patterns, "pat-error-x-003": make_pattern("pat-error-x-003", title="token")}
    newer = index.updated(changed, {"pat-error-x-003"})
    assert index.terms.count(WORD, ["cach", "token"]) == {"cach": 20}
    assert newer.terms.count(WORD, ["cach", "token"]) == {"cach": 19, "token": 1}
    assert (rows := newer.terms.get(WORD, "token")) is not None and rows.tolist() == [3]
