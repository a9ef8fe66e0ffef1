"""Helpers of widgets that draw line by line: fit content, selection and cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.content import Content
from textual.strip import Strip
from textual.style import Style

from tui.kit.textual_private import style_parser

if TYPE_CHECKING:
    from textual.selection import Selection
    from textual.widget import Widget

    from core.show.table import Align


def is_same(one: Sequence[Content], other: Sequence[Content]) -> bool:
    """Return True if texts and styles are equal. `==` on Content compares only texts."""
    return len(one) == len(other) and all(a.is_same(b) for a, b in zip(one, other, strict=True))


def fit(content: Content, width: int, align: Align = "left", keep_end: int = 0) -> Content:
    """Cut or pad `content` to exactly `width` cells.

    A cut keeps the last `keep_end` characters, because some IDs differ only at the end.
    """
    if width <= 0:
        return Content("")
    if keep_end and content.cell_length > width > keep_end:
        head = content.truncate(width - keep_end, ellipsis=True)
        content = Content.assemble(head, content[len(content) - keep_end :])
    content = content.truncate(width, ellipsis=True)
    missing = max(width - content.cell_length, 0)
    return content.pad_left(missing) if align == "right" else content.pad_right(missing)


def to_strip(widget: Widget, content: Content, width: int, style: Style) -> Strip:
    """Convert one line of content to a strip of `width` cells with a base style."""
    content = content.truncate(width, ellipsis=True)
    segments = [
        Segment(text, (style + text_style).rich_style)
        for text, text_style in content.render(style, end="", parse_style=style_parser(widget))
    ]
    strip = Strip(segments, content.cell_length)
    return strip.extend_cell_length(width, style.rich_style)


def cursor_line(widget: Widget, content: Content, component: str) -> tuple[Content, Style]:
    """Return the content and background of the line under the cursor.

    The background comes from the component class. Themes with the terminal's colours use reverse video instead.
    """
    style = widget.get_visual_style(component)
    if widget.app.native_ansi_color:
        return Content(content.plain), style + Style(reverse=True)
    return content, style


def with_selection(widget: Widget, content: Content, row: int) -> Content:
    """Return `content`, line `row` of the widget, with the mouse selection highlighted."""
    selection = widget.text_selection
    span = selection.get_span(row) if selection is not None else None
    if span is None:
        return content
    start, end = span
    style = Style.from_styles(widget.screen.get_component_styles("screen--selection"))
    return content.stylize(style, start, len(content) if end == -1 else end)


def selected(lines: Sequence[str], selection: Selection) -> str:
    """Return the selected text of these lines, without trailing padding."""
    first = max(selection.start.y, 0) if selection.start is not None else 0
    last = min(selection.end.y, len(lines) - 1) if selection.end is not None else len(lines) - 1
    spans = [(row, selection.get_span(row)) for row in range(first, last + 1)]
    return "\n".join(lines[row][span[0] : span[1] if span[1] != -1 else None].rstrip() for row, span in spans if span)
