from __future__ import annotations

import re

import pytest
from textual.color import Color
from textual.css.errors import UnresolvedVariableError

from tui.kit.themes import DEFAULT_THEME, STYLES, StyleSheets, load_themes

THEMES = load_themes()
DRAWN = {name: theme for name, (_, theme) in THEMES.items() if not theme.ansi}


def test_all_documented_themes_exist() -> None:
    assert list(THEMES) == ["dark", "light", "high-contrast", "colour-blind-safe", "ansi"]
    assert DEFAULT_THEME in THEMES
    assert all(name == theme.name and label for name, (label, theme) in THEMES.items())


def test_every_theme_sets_all_variables_of_ralphdeck() -> None:
    ours = THEMES[DEFAULT_THEME][1].variables
    for name, (_, theme) in THEMES.items():
        assert theme.variables.keys() >= ours.keys(), name


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("background", ["background", "surface", "panel"])
def test_text_is_readable_on_every_background(name: str, background: str) -> None:
    theme = DRAWN[name]
    ground = Color.parse(str(getattr(theme, background)))
    texts = {role: str(getattr(theme, role)) for role in ("foreground", "accent", "warning", "error", "success")}
    texts |= {key: value for key, value in theme.variables.items() if key.startswith("state-") or key == "quiet"}
    for role, value in texts.items():
        least = 7 if name == "high-contrast" and role == "foreground" else 4.5 if role == "foreground" else 3
        assert contrast(Color.parse(value), ground) >= least, f"{name}: {role} on {background}"


def contrast(one: Color, other: Color) -> float:
    """The ratio of WCAG 2, 1..21."""

    def luminance(color: Color) -> float:
        parts = [(c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4) for c in color.normalized]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_style_sheets_name_no_colour_themselves() -> None:
    for file in STYLES.glob("*.tcss"):
        text = re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.S)
        assert not re.search(r"#[0-9a-fA-F]{3,8}\s*;|rgb\(", text), file.name


def sheets(**variables: str) -> StyleSheets:
    made = StyleSheets(variables=variables)
    made.add_source("Label { color: $quiet; }", ("here", ""))
    return made


def test_an_edited_theme_is_applied() -> None:
    found = sheets(quiet="red")
    before = found.css
    found.set_variables({"quiet": "blue"})
    found.reparse()
    assert found.css != before


def test_setting_the_same_values_changes_nothing() -> None:
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
