"""The frame of every screen: top bar, key line, and lines of tabs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.content import Content
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.widgets.line_view import is_same, to_strip


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of a line.

    Attributes:
        content: What is drawn.
        value: What a click sends; "" = nothing.
    """

    content: Content
    value: str = ""


def _are_same(one: Sequence[Item], other: Sequence[Item]) -> bool:
    """Whether two lines of items look the same and send the same clicks."""
    values = [item.value for item in one] == [item.value for item in other]
    return values and is_same([item.content for item in one], [item.content for item in other])


class ItemLine(Widget):
    """One line of items from the left and from the right.

    If space is short, the last items on the left are dropped, then the first ones on the right.
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
        """Cells needed for all items."""
        return 1 + sum(item.content.cell_length + len(cls.SEPARATOR) for item in items)

    def show(self, left: Sequence[Item], right: Sequence[Item] = ()) -> None:
        """Show these items; redraws only on a change."""
        if not (_are_same(left, self._left) and _are_same(right, self._right)):
            self._left, self._right = tuple(left), tuple(right)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        style = self.visual_style
        if y:
            return Strip.blank(width, style.rich_style)
        gap = len(self.SEPARATOR)
        right = list(self._right)
        needed = sum(item.content.cell_length + gap for item in right)
        spots: list[tuple[int, int, str]] = []
        x = 1
        parts: list[Content | str] = [" "]
        for item in self._left:
            size = item.content.cell_length
            if x + size + 1 > width - needed and spots:
                break
            parts += [item.content, self.SEPARATOR]
            spots.append((x, x + size, item.value))
            x += size + gap
        while right and x + sum(item.content.cell_length + gap for item in right) - gap + 1 > width:
            right.pop(0)
        start = width - 1 - (sum(item.content.cell_length + gap for item in right) - gap)
        if right:
            parts.append(" " * (start - x))
            x = start
            for item in right:
                size = item.content.cell_length
                parts += [item.content, self.SEPARATOR]
                spots.append((x, x + size, item.value))
                x += size + gap
        self._spots = spots
        return to_strip(self, Content.assemble(*parts).rstrip().truncate(width, ellipsis=True), width, style)

    def on_click(self, event: events.Click) -> None:
        for start, end, value in self._spots:
            if start <= event.x < end and value:
                event.stop()
                self.post_message(self.Clicked(self, value))
                return


class TopBar(ItemLine):
    """Project, screens with their number and badge, and how live the data is."""

    DEFAULT_CSS = """
    TopBar { dock: top; background: $surface; }
    """
    SEPARATOR = " "


class KeyLine(ItemLine):
    """The keys that can act now."""

    DEFAULT_CSS = """
    KeyLine { dock: bottom; background: $surface; color: $quiet; }
    """


class TabLine(ItemLine):
    """The tabs of a pane."""

    DEFAULT_CSS = """
    TabLine { background: $background; color: $quiet; border-top: solid $rule; height: 2; }
    """

    def show_tabs(self, names: Sequence[str], active: int, note: Content | None = None) -> None:
        """Show tab names, the active one underlined, and a note on the right."""
        self.show(
            [
                Item(Content.styled(name, "$accent bold underline" if n == active else ""), str(n))
                for n, name in enumerate(names)
            ],
            [Item(note)] if note is not None else [],
        )
