"""Records as Markdown, for the clipboard."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from core.base.text import visible, visible_line

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|~])")
_TICKS: Final = re.compile(r"`+")


def record_markdown(title: str, cells: Sequence[tuple[str, str]], texts: Sequence[tuple[str, str]]) -> str:
    """A heading, a list of what stood in the row, and each text in a fence that nothing in it can end.

    Args:
        title: Of the record; untrusted.
        cells: Column title and what stood there; empty ones are left out.
        texts: Heading ("" = none) and text; empty texts are left out.
    """
    parts = [f"## {_escaped(title)}"]
    rows = [f"- {name}: {_escaped(' '.join(text.split()))}" for name, text in cells if text.strip()]
    if rows:
        parts.append("\n".join(rows))
    for heading, text in texts:
        if text.strip():
            fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
            parts += [f"### {_escaped(heading)}"] if heading else []
            parts.append(f"{fence}text\n{visible(text).strip(chr(10))}\n{fence}")
    return "\n\n".join(parts) + "\n" if len(parts) > 1 else ""


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", visible_line(text))
