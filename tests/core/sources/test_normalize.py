"""Fields of JSON objects, by name and as structs of keys in any spelling."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from hypothesis import given
from hypothesis import strategies as st

from core.records.findings import Finding, Severity
from core.records.times import parse_time
from core.sources import normalize
from core.sources.keys import Count, Entries, Flag, Keys, Names, Rate, Text, Texts, Time, pairs, read_keys
from core.sources.normalize import Fields, document, quote_value


def of(**mapping: Any) -> Fields:
    return Fields("f.json", mapping, [], "/here")


def test_the_first_valid_spelling_counts_and_invalid_ones_are_findings() -> None:
    fields = of(a={}, b=None, c="7", d=8)
    assert fields.count("a", "b", "c", "d") == 7
    (finding,) = fields.findings
    assert (finding.file, finding.pointer, finding.code) == ("f.json", "/here/a", "wrong-type")
    assert finding.message == "expected a whole number of at least 0, found an object"
    invalid: list[Any] = [True, -1, 1.5, "x", [], {}, 10**300]
    for value in invalid:
        fields = of(n=value)
        assert (fields.count("n"), len(fields.findings)) == (None, 1), value


def test_missing_and_null_are_not_findings() -> None:
    fields = of(n=None, empty="", none=[])
    assert (fields.text("n", "x", "empty"), fields.texts("n", "x", "none"), fields.lines("empty")) == ("", (), ())
    assert (fields.count("n"), fields.number("x"), fields.flag("n"), fields.time("n")) == (None,) * 4
    assert fields.inside("n") is None
    assert list(fields.objects("n")) == []
    assert fields.findings == []


def test_text_is_one_or_many() -> None:
    fields = of(one="a", many=["a", "", 3, None], wrong={"a": 1})
    assert (fields.texts("one"), fields.texts("many"), fields.texts("wrong")) == (("a",), ("a", "3"), ())
    assert [finding.pointer for finding in fields.findings] == ["/here/wrong"]


def test_objects_come_from_lists_and_mappings_with_their_place() -> None:
    fields = of(items=[{"n": 1}, 2], keyed={"a/b~": {"n": 3}})
    assert [(key, one.pointer, one.count("n")) for key, one in fields.objects("items")] == [("0", "/here/items/0", 1)]
    assert [(key, one.pointer) for key, one in fields.objects("keyed")] == [("a/b~", "/here/keyed/a~1b~0")]
    assert [finding.pointer for finding in fields.findings] == ["/here/items/1"]


def test_times_come_as_text_and_as_numbers() -> None:
    fields = of(a="2026-05-01T12:00:00Z", b=1777636800000, c="soon")
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert (fields.time("a"), fields.time("b"), fields.time("c")) == (noon, noon, None)
    assert [finding.code for finding in fields.findings] == ["bad-time"]


def test_findings_of_one_document_are_limited() -> None:
    findings: list[Finding] = []
    fields = document("f.json", {"items": [0] * 1000}, findings)
    assert fields is not None
    assert list(fields.objects("items")) == []
    assert len(findings) == 20


def test_a_document_that_is_not_an_object_is_an_error() -> None:
    findings: list[Finding] = []
    assert document("f.json", [], findings) is None
    assert findings == [Finding("f.json", "", Severity.ERROR, "wrong-type", "expected an object, found a list")]


def test_values_are_shown_safely() -> None:
    rows: list[tuple[Any, str]] = [({}, "an object"), ([], "a list"), (None, "null"), (True, "true"), (3, "'3'")]
    for value, text in (*rows, ("a\x1bb", "'a␛b'")):
        assert quote_value(value) == text, value
    assert len(quote_value("x" * 1000)) < 70


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


def test_the_first_name_with_a_value_counts() -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"title": "usual", "name": "first"}, "first"),
        ({"title": "usual", "task_id": "later"}, "usual"),
        ({"title": None, "task_id": "later"}, "later"),
        ({"title": "", "task_id": "later"}, ""),
    ]
    for value, title in rows:
        assert read(value)[0].title == title
    keys, findings = read({"name": {}, "title": "usual"})
    assert (keys.title, findings) == ("usual", [("/name", "wrong-type")]), "a later name replaces a wrong value"
    assert read({"tags": [], "labels": ["a"]})[0].tags == ("a",), "empty texts do not count"
    keys, _ = read({"items": {"a/b": {"number": 1}}})
    assert [(key, item.number) for key, item in pairs(keys.items)] == [("a~1b", 1)]
    assert read({"fix": "as text"})[0].fix == "as text", "a text may replace an object"
    assert content(read({"fix": {"iteration": 3, "notes": "a"}})[0].fix) == (3, ("a",))


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
