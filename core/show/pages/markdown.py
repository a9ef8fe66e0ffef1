"""Documents as Markdown; texts of files are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from core.base.regexes import lazy_regex
from core.base.text import visible, visible_line
from core.show.pages import document as doc

MAX_CHARS: Final = 64_000
_SPECIAL: Final = lazy_regex(r"([\\`*_\[\]<>#|~])")
_OPENER: Final = lazy_regex(r"[-+=>]|\d+(?=[.)])")
"""Start of a line that would open a list, a quotation or an underlined heading."""
_TICKS: Final = lazy_regex(r"`+")
_LEVELS: Final = 6


def to_markdown(document: doc.Document) -> str:
    return "\n\n".join([f"# {escape(document.title)}", *_blocks(document.blocks, 2)]) + "\n"


def blocks_markdown(blocks: Iterable[doc.Block], level: int = 3) -> str:
    """Render blocks; sections get headings from `level` on."""
    return "\n\n".join(_blocks(blocks, level))


def record_markdown(
    title: str, cells: Sequence[tuple[str, str]], shown: Sequence[tuple[str, str | Sequence[doc.Block]]]
) -> str:
    """Render a row of a table and the details shown beside it; "" if both are empty.

    `cells` has column titles and values. `shown` has headings ("" for none) and details: blocks, or text for a fence.
    """
    rows = [f"- {name}: {escape(' '.join(text.split()))}" for name, text in cells if text.strip()]
    parts = [f"## {escape(title)}", *(["\n".join(rows)] if rows else [])]
    for heading, content in shown:
        if content and not (isinstance(content, str) and content.isspace()):
            parts += [f"### {escape(heading)}"] if heading else []
            parts += [fence(content)] if isinstance(content, str) else _blocks(content, 4)
    return "\n\n".join(parts) + "\n" if len(parts) > 1 else ""


def escape(text: str) -> str:
    """Escape untrusted text as one line that Markdown shows unchanged."""
    return _SPECIAL.sub(r"\\\1", visible_line(text, MAX_CHARS))


def fence(text: str, language: str = "text") -> str:
    """Put a text into a code block whose fence does not occur in the text."""
    text = visible(text, MAX_CHARS).strip("\n")
    ticks = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    return f"{ticks}{language}\n{text}\n{ticks}"


def _blocks(blocks: Iterable[doc.Block], level: int) -> Iterator[str]:
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, doc.Line) and (text := _text(block.parts)):
            lines.append(_at_start(text))
            continue
        if lines:
            yield "  \n".join(lines)
            lines = []
        if not isinstance(block, doc.Line):
            yield from _block(block, level)
    if lines:
        yield "  \n".join(lines)


def _block(block: doc.Block, level: int) -> Iterator[str]:
    match block:
        case doc.Fields():
            yield "\n".join(f"- {escape(label)}: {_text(parts)}" for label, parts in block.rows)
        case doc.Items():
            bullets = (f"{n}." if block.is_numbered else "-" for n in range(1, len(block.items) + 1))
            rows = [f"{bullet} {_at_start(_text(parts))}" for bullet, parts in zip(bullets, block.items, strict=True)]
            if block.label:
                yield f"{escape(block.label)}:"
            yield "\n".join(rows)
        case doc.Code():
            if block.label:
                yield f"{escape(block.label)}:"
            if block.language:
                yield fence(block.text, block.language)
            else:
                yield "  \n".join(_prose(block.text))
        case doc.Passage():
            rows = [f"{n}. {_at_start(escape(item))}" for n, item in enumerate(block.items, 1)]
            first = f"**{escape(block.label)}**:{f' {escape(block.question)}' if block.question else ''}"
            yield "\n".join([first, *_prose(block.text), *rows])
        case doc.Table():
            titles = [escape(title) for title in block.titles]
            rules = ["---:" if n in block.right else "---" for n in range(len(titles))]
            cells = [[_text(cell) for cell in row] for row in block.rows]
            yield "\n".join(f"| {' | '.join(row)} |" for row in (titles, rules, *cells))
        case doc.Section():
            yield f"{'#' * min(level, _LEVELS)} {_at_start(escape(block.title))}"
            yield from _blocks(block.blocks, level + 1)


def _prose(text: str) -> list[str]:
    return [_at_start(escape(row)) for row in visible(text, MAX_CHARS).split("\n") if row.strip()]


def _at_start(text: str) -> str:
    """Escape what would open a block at the start of a line."""
    found = _OPENER.match(text)
    if found is None:
        return text
    return f"{found[0]}\\{text[found.end() :]}" if found[0].isdigit() else f"\\{text}"


def _text(parts: doc.Text) -> str:
    return " ".join("".join(escape(doc.part_text(part)) for part in parts).split())
