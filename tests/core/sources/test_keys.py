from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.records.findings import Finding
from core.records.times import parse_time
from core.sources import normalize
from core.sources.fields import Fields
from core.sources.keys import Count, Entries, Flag, Keys, Names, Rate, Text, Texts, Time, pairs, read_keys

FILE = ".aiwg/x.json"


class Inner(Keys):
    number: Annotated[Count, Names("number", "iteration")] = None
    notes: Texts = None


class Outer(Keys):
    title: Annotated[Text, Names("name", "title", "task_id")] = None
    started: Annotated[Time, Names("started", "started_at")] = None
    score: Rate = None
    is_done: Flag = None
    tags: Annotated[Texts, Names("tags", "labels")] = None
    first: Inner | None = None
    items: Entries[Inner] = None
    fix: Inner | str | None = None


def read(value: dict[str, Any]) -> tuple[Outer, list[tuple[str, str]]]:
    findings: list[Finding] = []
    keys = read_keys(Outer, Fields(FILE, value, findings))
    return keys, [(one.pointer, one.code) for one in findings]


def test_other_spellings_of_keys_and_values_count() -> None:
    usual, _ = read({"title": "a", "started": "2026-05-01T10:00:00Z", "score": 0.75, "items": [{"number": 2}]})
    other, findings = read({"taskId": "a", "started_at": 1777629600000, "score": "75 %", "items": [{"iteration": "2"}]})
    assert findings == []
    assert (other.title, other.started, other.score) == (usual.title, usual.started, usual.score)
    assert [item.number for _, item in pairs(usual.items)] == [item.number for _, item in pairs(other.items)] == [2]


@pytest.mark.parametrize(
    ("value", "title"),
    [
        ({"title": "usual", "name": "first"}, "first"),
        ({"title": "usual", "task_id": "later"}, "usual"),
        ({"title": None, "task_id": "later"}, "later"),
        ({"title": "", "task_id": "later"}, ""),
    ],
)
def test_the_first_name_with_a_value_counts(value: dict[str, Any], title: str) -> None:
    assert read(value)[0].title == title


def test_empty_texts_do_not_count() -> None:
    assert read({"tags": [], "labels": ["a"]})[0].tags == ("a",)


def test_wrong_values_are_reported_at_their_place_and_read_as_missing() -> None:
    keys, findings = read(
        {"started": "soon", "is_done": 7, "items": [{"number": 1}, {"iteration": -1}, 5], "first": []}
    )
    assert (keys.started, keys.is_done, keys.first) == (None, None, None)
    assert [(key, item.number) for key, item in pairs(keys.items)] == [("0", 1), ("1", None)]
    assert findings == [
        ("/started", "bad-time"),
        ("/is_done", "wrong-type"),
        ("/first", "wrong-type"),
        ("/items/1/iteration", "wrong-type"),
        ("/items/2", "wrong-type"),
    ]


def test_a_later_name_replaces_a_wrong_value() -> None:
    keys, findings = read({"name": {}, "title": "usual"})
    assert (keys.title, findings) == ("usual", [("/name", "wrong-type")])


def test_entries_of_an_object_have_its_keys_in_their_pointers() -> None:
    keys, _ = read({"items": {"a/b": {"number": 1}}})
    assert [(key, item.number) for key, item in pairs(keys.items)] == [("a~1b", 1)]


def test_a_text_may_replace_an_object() -> None:
    assert read({"fix": "as text"})[0].fix == "as text"
    assert content(read({"fix": {"iteration": 3, "notes": "a"}})[0].fix) == (3, ("a",))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=6),
    st.sampled_from(["2026-05-01T10:00:00+02:00", "2026-05-01", "3.0", "yes", "75%", 10**15 + 1, 1777629600000]),
    st.lists(st.text(max_size=3), max_size=2),
    st.dictionaries(st.sampled_from(["number", "iteration", "notes"]), st.integers() | st.text(max_size=2), max_size=2),
)
NAMES = st.sampled_from([*Outer.__struct_fields__, "name", "started_at", "labels", "other"])


@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_a_value_reads_the_same_beside_other_spellings(value: dict[str, Any]) -> None:
    alone, _ = read(value)
    beside, _ = read({"labels": [], **value})  # with this name, keys are read one by one
    for name in ("title", "score", "is_done", "fix"):
        assert content(getattr(alone, name)) == content(getattr(beside, name))
    assert parse_time(alone.started) == parse_time(beside.started)
    assert normalize.texts(alone.tags) == normalize.texts(beside.tags)


def content(value: Any) -> Any:
    return (value.number, normalize.texts(value.notes)) if isinstance(value, Inner) else value or None
