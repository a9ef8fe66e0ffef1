"""The style sheets of the app, parsed once for each theme."""

from __future__ import annotations

from textual.css.stylesheet import Stylesheet


class StyleSheets(Stylesheet):
    """Style sheets that are parsed anew only when the values of the theme are others.

    Textual asks for that three times while it starts, and forgets each time what it has parsed: that was a tenth of
    the time to the first frame.
    """

    _outdated = False

    def set_variables(self, variables: dict[str, str]) -> None:
        """From now on the theme has these values."""
        if variables != self._variables:
            super().set_variables(variables)
            self._outdated = True

    def reparse(self) -> None:
        """Parse everything anew, if it can come out differently.

        Raises:
            StylesheetParseError: If a sheet is wrong; what was parsed before stays.
        """
        if self._outdated:
            self.parse()
            self._outdated = False
