"""The part of Context that shows the files that agents load by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from textual.containers import Vertical
from textual.widget import Widget

from tui.present import agent_files as present
from tui.widgets.bars import Item, ItemLine
from tui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from core.adapters.agent_files import AgentFile
    from core.retrieval.similarity import Repetition

BESIDE: Final = 150  # cells of the screen from which the files are beside the injected text


class AgentFilesSide(Vertical):
    """Shows the files, and marks the lines that the injected text repeats."""

    def __init__(self) -> None:
        super().__init__(classes="side side--files")
        self.display = False

    def compose(self) -> ComposeResult:
        yield ItemLine(id="context-files-head")
        yield TextPane(id="context-files")

    @property
    def pane(self) -> TextPane:
        return self.query_one(TextPane)

    def show(self, files: Sequence[AgentFile], repeated: Mapping[str, Repetition], *, top: bool) -> None:
        self.query_one(ItemLine).show([Item(present.agent_size_line(files))])
        self.pane.show(present.agent_file_lines(files, repeated), top=top)

    def place_by(self, text: TextPane, *, wanted: bool) -> None:
        """Show the files beside the injected text or in its place, or hide them. The focus stays on what is visible."""
        has_focus, is_wide = text.has_focus or self.pane.has_focus, self.screen.size.width >= BESIDE
        self.set_class(is_wide, "-beside")
        self.display = wanted
        if isinstance(text.parent, Widget):
            text.parent.display = is_wide or not wanted
        if has_focus and not (visible := self.reading(text)).has_focus:
            visible.focus()

    def reading(self, text: TextPane) -> TextPane:
        """Return the visible text: the injected one, unless the files are in its place or have focus."""
        is_hidden = isinstance(text.parent, Widget) and not text.parent.display
        return self.pane if self.display and (self.pane.has_focus or is_hidden) else text
