"""Untrusted texts as single lines and slugs."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.record_text import MAX_LINE, MAX_SLUG, make_slug, one_line, strip_label


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cannot read property of null", "cannot-read-property-null"),
        ("The user is not the owner", "user-not-owner"),
        ("ERR_42 2fast", "err-fast"),
        ("修正 日本語", "other"),
        ("../../etc/passwd; rm -rf ~", "etc-passwd-rm-rf"),
        ("supercalifragilistic expialidocious antidisestablishment x", "supercalifragilistic-expialidocious"),
        ("a" * 1000, "a" * MAX_SLUG),
        ("", "other"),
    ],
)
def test_slugs(text: str, expected: str) -> None:
    assert make_slug(text, "other") == expected


@given(st.text())
def test_any_text_has_a_slug_and_a_line(text: str) -> None:
    name = make_slug(text, "other")
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*", name) and len(name) <= MAX_SLUG
    assert "\n" not in one_line(text) and len(one_line(text)) <= MAX_LINE
    one_line(text).encode()


def test_labels_are_removed_at_the_start_only() -> None:
    assert strip_label("Attempt 2: guard before\naccess") == "guard before access"
    assert strip_label("Undid attempt 2: it was worse") == "Undid attempt 2: it was worse"
