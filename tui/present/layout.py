"""Headings and labelled paragraphs of details, broken to a width where their labels hang."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.content import Content

from core.base.text import visible_line

LEAST_CELLS: Final = 20
"""Cells that text beside a label has at least; where there are fewer, the pane breaks it."""
UNBROKEN: Final = 1_000_000
"""A width that no line has: all breaking is left to the pane."""


def heading(text: str, note: str = "") -> list[Content]:
    """A line that begins a part, with an empty one above it."""
    return [Content(""), Content.assemble((text, "bold"), (f"   {note}" if note else "", "$quiet"))]


def labelled(label: str, text: str) -> Content:
    """A quiet label, and untrusted text after it on the same line."""
    return Content.assemble((f"{label}: ", "$quiet"), visible_line(text, 2000))


def hanging(label: Content, text: Content, width: int) -> list[Content]:
    """Displayable text beside a label; its further lines begin where the first one does.

    Args:
        width: Cells there are.
    """
    indent = label.cell_length
    room = max(width - indent, LEAST_CELLS)
    lines: list[Content] = []
    for part in text.split("\n", allow_blank=True):
        lines += part.wrap(room) if part.cell_length > room else [part]
    first, *others = lines or [Content("")]
    return [Content.assemble(label, first), *(line.pad_left(indent) for line in others)]


def bullets(mark: str, style: str, texts: Sequence[str], width: int) -> list[Content]:
    """Untrusted texts, each below the other with a mark before it."""
    label = Content.styled(f"  {mark} ", style)
    return [line for text in texts for line in hanging(label, Content(visible_line(text, 1000)), width)]
