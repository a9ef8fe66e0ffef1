"""The frame that is shown until the project is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import Screen

from tui.kit.bars import KeyLine, TopBar
from tui.screens.services import services_of

if TYPE_CHECKING:
    from textual.app import ComposeResult


class OpeningScreen(Screen[None], inherit_bindings=False):
    """The top bar of a screen without its content; it needs nothing of the project but the name.

    Its module imports little, so that the first frame is fast. `place` is the screen that opens next.
    """

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place

    def compose(self) -> ComposeResult:
        yield TopBar()
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one(TopBar).show(*services_of(self.app).top_items(self._place))
