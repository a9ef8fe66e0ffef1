"""An input that Enter and Escape leave."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.widgets import Input


class LineInput(Input):
    """What is typed right behind the Enter or the Escape belongs to where that leads, not into the line that is left.

    Keys go to what has focus when they arrive, and these move it only after some messages: without this, of
    `Enter p`, typed fast, the `p` would be text.
    """

    class Followed(Message):
        """Goes the way of an Escape, right behind it: when the app hears of it, the Escape has done what it does."""

        def __init__(self, line: LineInput) -> None:
            super().__init__()
            self.line = line

    _is_left = False

    def on_key(self, event: events.Key) -> None:
        """Keep what comes behind Enter and Escape until the focus has moved."""
        if self._is_left:
            event.stop()
            event.prevent_default()  # of Input, which would take it as text
            self._behind.append(event)
        elif event.key in ("enter", "escape"):
            self._is_left = True
            self._behind: list[events.Key] = []
            if event.key == "escape":
                self.post_message(self.Followed(self))

    def stay(self) -> None:
        """The key leads nowhere: what is typed goes on."""
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
