from __future__ import annotations

import pytest

from core.show.filter_parser import FieldKind, Fields, completions

FIELDS: Fields = {
    "status": ("running", "paused"),
    "state": ("open",),
    "uses": FieldKind.NUMBER,
    "rate": FieldKind.SHARE,
    "age": FieldKind.AGE,
    "tag": FieldKind.TEXT,
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("word ", ()),
        ("sta", ("status:", "state:")),
        ("null -STA", ("null -status:", "null -state:")),
        ("status:", ("status:running", "status:paused")),
        ("-status:P", ("-status:paused",)),
        ("status:paused", ()),
        ("a status:running u", ("a status:running uses:",)),
        ("uses:", ("uses:>3",)),
        ("uses:5", ()),
        ("rate:", ("rate:>50%",)),
        ("age:", ("age:<7d",)),
        ("tag:a", ()),
        ("other:a", ()),
        ('"sta', ()),
    ],
)
def test_the_last_term_is_completed_by_fields_and_values(text: str, expected: tuple[str, ...]) -> None:
    assert completions(text, FIELDS) == expected
