"""Regular expressions that are compiled on first use."""

from __future__ import annotations

import re

import pytest

from core.base.regexes import lazy_regex


def test_a_lazy_regex_finds_what_a_compiled_one_finds() -> None:
    lazy, compiled = (
        lazy_regex(r"(?P<word>[a-z]+)\d?", re.IGNORECASE),
        re.compile(r"(?P<word>[a-z]+)\d?", re.IGNORECASE),
    )
    for _ in range(2):
        assert lazy.findall("Ab1 c2") == compiled.findall("Ab1 c2")
        assert lazy.sub(r"<\g<word>>", "Ab1 c2") == compiled.sub(r"<\g<word>>", "Ab1 c2")
    assert lazy.pattern == compiled.pattern


def test_a_wrong_expression_fails_when_it_is_used() -> None:
    lazy = lazy_regex(b"(")
    with pytest.raises(re.error):
        lazy.search(b"x")
