"""The fast search for texts without secrets misses no text that the masks change."""

from __future__ import annotations

import re

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from core.base.masking import mask_secrets
from core.base.secret_patterns import COMMAND_RULES, RULES, TOKEN_FORMATS
from core.base.secret_prefilter import loosen, may_contain_secret
from core.base.value_shapes import REGEX
from tests.core.base.scanning.samples import sample
from tests.core.base.test_masking import PIECES

WORDS = [
    *("api_key", "secret", " = ", ": ", '"hunter22"', "ENV TOKEN", "IDENTIFIED BY ", "mysql ", "-p", "login x ", "\v"),
    *("password is 'xy12z'", "<token>", "</token>", "?sig=abcdef12", "redis-cli -a ", "0123456789abcdef" * 2, "\x1c"),
]


@given(st.lists(st.sampled_from(PIECES + WORDS), max_size=12).map("".join))
def test_a_text_that_the_masks_change_may_contain_a_secret(text: str) -> None:
    assert may_contain_secret(text) or mask_secrets(text) == text


@pytest.mark.parametrize("name", [*RULES, *(f"{command}_option" for command in COMMAND_RULES)])
@given(data=st.data())
def test_a_loose_expression_matches_where_the_expression_does(name: str, data: st.DataObject) -> None:
    text = data.draw(st.lists(st.sampled_from(PIECES + WORDS), max_size=8).map(" ".join))
    text = "".join(char for char in text if char in "\t\n\f\r" or " " <= char <= "~")
    assert re2.search(loosen(REGEX.sources[name]), text) or not REGEX[name].search(text)


def test_every_token_may_contain_a_secret() -> None:
    patterns = [pattern for patterns in TOKEN_FORMATS.values() for pattern in patterns]
    drawn = {pattern: sample(pattern, 1) for pattern in patterns}
    matched = [pattern for pattern, text in drawn.items() if re.search(pattern, text)]
    assert len(matched) > 0.9 * len(patterns)
    for pattern in matched:
        assert may_contain_secret(f"use {drawn[pattern]}")


def test_prose_code_and_paths_contain_no_secret() -> None:
    for text in (
        "Cannot read properties of undefined (reading 'token')",
        "if ({{value}} == null) { // the key of the session table\n}",
        "see src/components/orders/OrderTable.test.tsx and https://docs.example/api-keys",
    ):
        assert not may_contain_secret(text)


@pytest.mark.parametrize(
    ("expression", "loose"),
    [
        (r"(?i)(?<![a-z])a{2,5}(?!b(c|[)])d)e*+\Z", r"(?:(?i)a{2,}e*)"),
        (r"(?P<quote>x)?(?(quote)[^)}]{300}|\()\)$", r"(?:(?:x)?(?:[^)}]{20,}|\()\))"),
    ],
)
def test_assertions_and_upper_bounds_are_removed(expression: str, loose: str) -> None:
    assert re.compile(expression)
    assert loosen(expression) == loose
