"""Lines of clickable items: top bar, key line and lines of tabs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from tui.kit.drawing import is_same, to_strip

if TYPE_CHECKING:
    from textual import events
    from textual.notifications import SeverityLevel

_NOTICE_STYLES: Final[dict[SeverityLevel, str]] = {
    "information": "$foreground bold",
    "warning": "$warning bold",
    "error": "$error bold",
}


LEAST_NOTICE: Final = 12  # cells of a notice that are shown on any screen


@dataclass(frozen=True, slots=True)
class Item:
    """A styled, optionally clickable part of a line."""

    content: Content
    value: str = ""  # value of the `Clicked` message; "" if the item is not clickable


def _are_same(one: Sequence[Item], other: Sequence[Item]) -> bool:
    """Return True if two lines of items look the same and send the same clicks."""
    values = [item.value for item in one] == [item.value for item in other]
    return values and is_same([item.content for item in one], [item.content for item in other])


class ItemLine(Widget):
    """One line of items, aligned left and right.

    If there is too little space, the last items on the left are dropped, then the first ones on the right.
    """

    DEFAULT_CSS = """
    ItemLine { height: 1; background: $surface; color: $foreground; }
    """
    ALLOW_SELECT = False
    SEPARATOR: ClassVar[str] = "  "

    @dataclass(eq=False)
    class Clicked(Message):
        """A click on an item."""

        line: ItemLine
        value: str

        @property
        def control(self) -> ItemLine:
            return self.line

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._left: tuple[Item, ...] = ()
        self._right: tuple[Item, ...] = ()
        self._spots: list[tuple[int, int, str]] = []

    @classmethod
    def cells(cls, items: Sequence[Item]) -> int:
        """Return the number of cells needed for all items."""
        return 1 + sum(item.content.cell_length + len(cls.SEPARATOR) for item in items)

    def show(self, left: Sequence[Item], right: Sequence[Item] = ()) -> None:
        """Show these items. Redraw only if they have changed."""
        if not (_are_same(left, self._left) and _are_same(right, self._right)):
            self._left, self._right = tuple(left), tuple(right)
            self.refresh()

    def left_items(self) -> Sequence[Item]:
        """Return the items on the left, in the order in which they need space."""
        return self._left

    def render_line(self, y: int) -> Strip:
        width, style, gap = self.size.width, self.visual_style, len(self.SEPARATOR)
        if y:
            return Strip.blank(width, style.rich_style)
        right = list(self._right)
        needed = self.cells(right) - 1
        parts: list[Content | str] = [" "]
        self._spots = []
        x = 1
        for item in self.left_items():
            if x + item.content.cell_length + 1 > width - needed and self._spots:
                break
            x = self._place(item, x, parts)
        while right and x + self.cells(right) - gap > width:
            right.pop(0)
        start = width - self.cells(right) + gap
        if right:
            parts.append(" " * (start - x))
        for item in right:
            start = self._place(item, start, parts)
        return to_strip(self, Content.assemble(*parts).rstrip().truncate(width, ellipsis=True), width, style)

    def _place(self, item: Item, x: int, parts: list[Content | str]) -> int:
        """Add an item at a cell, and return the cell after it."""
        end = x + item.content.cell_length
        parts += [item.content, self.SEPARATOR]
        self._spots.append((x, end, item.value))
        return end + len(self.SEPARATOR)

    def on_click(self, event: events.Click) -> None:
        for start, end, value in self._spots:
            if start <= event.x < end and value:
                event.stop()
                self.post_message(self.Clicked(self, value))
                return


class TopBar(ItemLine):
    """Shows the project, screens with number and badge, and how current the data is."""

    DEFAULT_CSS = """
    TopBar { dock: top; background: $surface; }
    """
    SEPARATOR = " "


@dataclass(frozen=True, slots=True, eq=False)
class Notice:
    """A displayable text that the footer shows for some seconds."""

    text: str
    severity: SeverityLevel


class KeyLine(ItemLine):
    """Shows the available keys, and before them the newest notices, warnings first.

    Notices take at most half of the line, or what the keys leave of it; a click on them lists all.
    """

    DEFAULT_CSS = """
    KeyLine { dock: bottom; background: $surface; color: $quiet; }
    """
    BAR: ClassVar[str] = " | "  # after each notice
    notices: reactive[tuple[Notice, ...]] = reactive(())

    def say(self, notices: tuple[Notice, ...]) -> None:
        """Show these notices, the oldest first."""
        self.notices = notices

    def left_items(self) -> Sequence[Item]:
        newest_first = list(reversed(self.notices))
        newest_first.sort(key=lambda notice: notice.severity == "information")
        room = max(self.size.width // 2, self.size.width - self.cells(self._left) - self.cells(self._right))
        shown: list[Item] = []
        for notice in newest_first:
            text = Content.styled(notice.text, _NOTICE_STYLES[notice.severity])
            text = text.truncate(max(room - len(self.BAR), LEAST_NOTICE), ellipsis=True)
            room -= text.cell_length + len(self.BAR)
            if shown and room < 0:
                break
            shown.append(Item(Content.assemble(text, (self.BAR.rstrip(), "$quiet")), "findings"))
        return [*shown, *self._left]


class TabLine(ItemLine):
    """Shows the tabs of a pane."""

    DEFAULT_CSS = """
    TabLine { background: $background; color: $quiet; border-top: solid $rule; height: 2; }
    """

    def show_tabs(self, names: Sequence[str], active: int, note: Content | None = None) -> None:
        """Show tab names, the active one underlined, and a note on the right."""
        styles = ["$accent bold underline" if n == active else "" for n in range(len(names))]
        tabs = [Item(Content.styled(name, styles[n]), str(n)) for n, name in enumerate(names)]
        self.show(tabs, [Item(note)] if note is not None else [])
