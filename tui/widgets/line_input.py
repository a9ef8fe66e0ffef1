"""An input that Enter leaves."""

from __future__ import annotations

from textual import events
from textual.widgets import Input


class LineInput(Input):
    """What is typed right behind the Enter belongs to where that leads, not into the line that is left.

    Keys go to what has focus when they arrive, and Enter moves it only after some messages: without this, of
    `Enter p`, typed fast, the `p` would be text.
    """

    _is_left = False

    def on_key(self, event: events.Key) -> None:
        """Keep what comes behind Enter until the focus has moved."""
        if self._is_left:
            event.stop()
            event.prevent_default()  # of Input, which would take it as text
            self._behind.append(event)
        elif event.key == "enter":
            self._is_left = True
            self._behind: list[events.Key] = []

    def stay(self) -> None:
        """Enter leads nowhere: what is typed goes on."""
        self._give_back()

    def on_blur(self) -> None:
        """The focus has moved."""
        self._give_back()

    def on_unmount(self) -> None:
        """The line has gone."""
        self._give_back()

    def _give_back(self) -> None:
        if self._is_left:
            self._is_left = False
            for event in self._behind:
                self.app.post_message(events.Key(event.key, event.character))
