"""Style sheets are parsed when they can come out differently, and only then."""

from __future__ import annotations

import pytest
from textual.css.errors import UnresolvedVariableError

from tui.style_sheets import StyleSheets


def sheets(**variables: str) -> StyleSheets:
    made = StyleSheets(variables=variables)
    made.add_source("Label { color: $quiet; }", ("here", ""))
    return made


def test_a_theme_with_other_values_is_taken_on() -> None:
    found = sheets(quiet="red")
    before = found.css
    found.set_variables({"quiet": "blue"})
    found.reparse()
    assert found.css != before


def test_the_same_values_again_change_nothing() -> None:
    found = sheets(quiet="red")
    rules = found.rules
    found.set_variables({"quiet": "red"})
    found.reparse()
    assert found.rules is rules


def test_an_incomplete_theme_keeps_the_parsed_sheets() -> None:
    found = sheets(quiet="red")
    before = found.css
    found.set_variables({})
    with pytest.raises(UnresolvedVariableError):
        found.reparse()
    assert found.css == before
