"""Shared by the line-API widgets: styled content becomes strips of exact width."""

from __future__ import annotations

from typing import Literal

from rich.segment import Segment
from textual.content import Content
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

Align = Literal["left", "right"]


def fit(content: Content, width: int, align: Align = "left", keep_end: int = 0) -> Content:
    """`content` cut or padded to exactly `width` cells.

    Args:
        keep_end: Where it must be cut, keep this many characters of its end, so that ids that differ
            only there stay different.
    """
    if width <= 0:
        return Content("")
    if keep_end and content.cell_length > width > keep_end:
        head = content.truncate(width - keep_end, ellipsis=True)
        content = Content.assemble(head, content[len(content) - keep_end :])
    content = content.truncate(width, ellipsis=True)
    missing = width - content.cell_length
    if missing <= 0:
        return content
    return content.pad_left(missing) if align == "right" else content.pad_right(missing)


def to_strip(widget: Widget, content: Content, width: int, style: Style) -> Strip:
    """One line of content as a strip of `width` cells on `style`, theme variables resolved."""
    content = content.truncate(width, ellipsis=True)
    segments = [
        Segment(text, (style + text_style).rich_style)
        for text, text_style in content.render(style, end="", parse_style=widget._get_style)
    ]
    strip = Strip(segments, content.cell_length)
    return strip.extend_cell_length(width, style.rich_style)
