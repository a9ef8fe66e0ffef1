"""The style sheets of the app, parsed once per theme."""

from __future__ import annotations

from textual.css.stylesheet import Stylesheet


class StyleSheets(Stylesheet):
    """Style sheets that are parsed again only when theme variables change.

    Textual requests that three times during the start without caching, a tenth of the time to the first frame.
    """

    _outdated = False

    def set_variables(self, variables: dict[str, str]) -> None:
        if variables != self._variables:
            super().set_variables(variables)
            self._outdated = True

    def reparse(self) -> None:
        """Parse again, if the variables have changed.

        Raises:
            StylesheetParseError: A sheet is invalid; the parsed sheets stay.
        """
        if self._outdated:
            self.parse()
            self._outdated = False
