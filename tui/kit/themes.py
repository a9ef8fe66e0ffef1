"""Themes from `styles/themes.toml`, and a cache of parsed style sheets."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

from textual.css.stylesheet import Stylesheet
from textual.theme import Theme

from tui.kit.textual_private import variables_of

STYLES: Final = Path(__file__).parents[2] / "styles"
"""The folder of style sheets and themes, beside this package in the repository and in the wheel."""

DEFAULT_THEME: Final = "dark"
PLAIN_THEME: Final = "ansi"  # Theme in the terminal's own colours; the only one that is readable without colours.


def load_themes() -> dict[str, tuple[str, Theme]]:
    """Return label and theme by name, in the order of the file."""
    text = (STYLES / "themes.toml").read_text(encoding="utf-8")
    themes: dict[str, tuple[str, Theme]] = {}
    for name, values in tomllib.loads(text).items():
        label = str(values.pop("label"))
        themes[name] = (label, Theme(name=name, **values))
    return themes


class StyleSheets(Stylesheet):
    """Style sheets that are parsed again only when theme variables change.

    Without this Textual parses them three times at the start, which takes a tenth of the time to the first frame.
    """

    _outdated = False

    def set_variables(self, variables: dict[str, str]) -> None:
        if variables != variables_of(self):
            super().set_variables(variables)
            self._outdated = True

    def reparse(self) -> None:
        """Parse again if variables changed; raises `StylesheetParseError`."""
        if self._outdated:
            self.parse()
            self._outdated = False
