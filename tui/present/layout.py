"""Headings and labelled text with a hanging indent."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from core.base.text import visible_line

MIN_CELLS: Final = 20
"""Minimum cells of the text beside a label; below that the pane wraps it."""
UNBROKEN: Final = 1_000_000
"""A width that is never reached: the pane wraps the lines."""


def heading(text: str, note: str = "") -> list[Content]:
    """Return an empty line and a heading."""
    return [Content(""), Content.assemble((text, "bold"), (f"   {note}" if note else "", "$quiet"))]


def labelled(label: str, text: str) -> Content:
    """Return a quiet label with untrusted text."""
    return Content.assemble((f"{label}: ", "$quiet"), visible_line(text, 2000))


def hanging(label: Content, text: Content, width: int) -> list[Content]:
    """Return text beside a label; further lines are indented like the first.

    Args:
        width: Cells available.
    """
    indent = label.cell_length
    room = max(width - indent, MIN_CELLS)
    lines: list[Content] = []
    for part in text.split("\n", allow_blank=True):
        lines += part.wrap(room) if part.cell_length > room else [part]
    first, *others = lines or [Content("")]
    return [Content.assemble(label, first), *(line.pad_left(indent) for line in others)]
