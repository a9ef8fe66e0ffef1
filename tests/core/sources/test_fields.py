from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from core.records.findings import Finding, Severity
from core.sources.fields import Fields, document, quote_value


def of(**mapping: Any) -> Fields:
    return Fields("f.json", mapping, [], "/here")


def test_the_first_valid_spelling_counts_and_invalid_ones_are_findings() -> None:
    fields = of(a={}, b=None, c="7", d=8)
    assert fields.count("a", "b", "c", "d") == 7
    (finding,) = fields.findings
    assert (finding.file, finding.pointer, finding.code) == ("f.json", "/here/a", "wrong-type")
    assert finding.message == "expected a whole number of at least 0, found an object"


@pytest.mark.parametrize("value", [True, -1, 1.5, "x", [], {}, 10**300])
def test_an_invalid_count_is_none_and_a_finding(value: Any) -> None:
    fields = of(n=value)
    assert fields.count("n") is None
    assert len(fields.findings) == 1


def test_missing_and_null_are_not_findings() -> None:
    fields = of(n=None, empty="", none=[])
    assert (fields.text("n", "x", "empty"), fields.texts("n", "x", "none"), fields.lines("empty")) == (
        "",
        (),
        (),
    )
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


@pytest.mark.parametrize(
    ("value", "text"),
    [({}, "an object"), ([], "a list"), (None, "null"), (True, "true"), (3, "'3'"), ("a\x1bb", "'a␛b'")],
)
def test_values_are_shown_safely(value: Any, text: str) -> None:
    assert quote_value(value) == text


def test_a_long_value_is_truncated() -> None:
    assert len(quote_value("x" * 1000)) < 70
