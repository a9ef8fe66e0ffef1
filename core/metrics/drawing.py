"""The figures as one SVG: charts of their own, since a picture of a terminal reads badly in a report.

Every text in it was made harmless and escaped; nothing is loaded from elsewhere. Parts differ in shade as well as in
colour. The picture follows the reader's preference of light or dark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor, log10
from textwrap import wrap
from typing import Final
from xml.sax.saxutils import escape

from core.base.text import visible_line
from core.metrics.dashboard import Dashboard
from core.metrics.figures import Figure, Kind, Row, reach_text, value_text

_WIDTH: Final = 920
_LEFT: Final = 40
_PLOT_LEFT: Final = 250
"""Where bars begin; the labels stand before it."""
_PLOT_WIDTH: Final = 520
_WEEKS_LEFT: Final = 90
_WEEKS_WIDTH: Final = 790
_WEEKS_HEIGHT: Final = 150
_LINE: Final = 24
_LABEL_CHARS: Final = 30
_TEXT_CHARS: Final = 125
"""Characters of a line of text; longer texts are broken."""
_CHAR_PIXELS: Final = 7
_STYLE: Final = """
svg { background: #fbfbfd; font: 13px system-ui, sans-serif; }
text { fill: #22252e; } .quiet { fill: #656c80; font-size: 12px; } .title { font-size: 17px; font-weight: 600; }
.rule { stroke: #c9cedb; } .whisker { stroke: #2458b8; stroke-width: 2; } .point { fill: #2458b8; }
.band { fill: #2458b8; opacity: .15; } .line { fill: none; stroke: #2458b8; stroke-width: 1.5; }
.part0 { fill: #2f6b12; } .part1 { fill: #2458b8; opacity: .85; } .part2 { fill: #b07a1e; opacity: .7; }
.part3 { fill: #656c80; opacity: .45; } .part4 { fill: #b3243c; } .part5 { fill: #0f6f8c; }
@media (prefers-color-scheme: dark) {
  svg { background: #16181f; } text { fill: #c8d0e8; } .quiet { fill: #7d86a5; } .rule { stroke: #343a4a; }
  .whisker, .line { stroke: #7aa2f7; } .point, .band { fill: #7aa2f7; }
  .part0 { fill: #9ece6a; } .part1 { fill: #7aa2f7; } .part2 { fill: #e0af68; } .part3 { fill: #7d86a5; }
  .part4 { fill: #f7768e; } .part5 { fill: #7dcfff; }
}
"""
_SHADES: Final = {
    "worked": 0,
    "failed": 4,
    "no result": 2,
    "only shown": 3,
    "proven": 0,
    "established": 5,
    "candidate": 3,
    "deprecated": 4,
}
"""Of parts that are good or bad; others have one by their number."""
_PARTS: Final = 6
"""Shades there are."""
_ALONE: Final = 1
"""The shade of a part that has no other beside it."""


def to_svg(found: Dashboard, figures: Sequence[Figure], project: str) -> str:
    """All sections below each other."""
    y = 62
    body = [
        _text(_LEFT, 36, f"Metrics of {project}", "title"),
        _text(_LEFT, 56, f"As of {found.now:%Y-%m-%d %H:%M} UTC, {found.weeks} weeks back and ahead", "quiet"),
    ]
    for figure in figures:
        drawn, y = _section(figure, y)
        body += drawn
    height = y + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img">\n<style>{_STYLE}</style>\n' + "\n".join(body) + "\n</svg>\n"
    )


def nice_top(value: float) -> float:
    """Where an axis may end: the least round number that is not below a value, and whose half is a whole one."""
    if value <= 1:
        return 1.0
    unit = 10.0 ** floor(log10(value))
    steps = (2, 4, 6, 8, 10) if unit == 1 else (1, 2, 3, 4, 5, 6, 8, 10)
    return next(unit * step for step in steps if unit * step >= value)


def _section(figure: Figure, y: int) -> tuple[list[str], int]:
    """One section from a height on, and where it ends."""
    y += 40
    parts = [
        f'<line class="rule" x1="{_LEFT}" x2="{_WIDTH - _LEFT}" y1="{y - 22}" y2="{y - 22}"/>',
        _text(_LEFT, y, figure.title, "title"),
    ]
    said = wrap(visible_line(figure.takeaway), _TEXT_CHARS)
    parts += [_text(_LEFT, y + 21 + 17 * n, text) for n, text in enumerate(said)]
    y += 15 + 17 * len(said)
    if figure.rows and len(figure.parts) > 1:
        parts += _legend(figure, y + 14)
        y += 22
    if figure.rows and figure.kind in (Kind.COLUMNS, Kind.CURVE):
        parts += _weeks(figure, y + 10)
        y += _WEEKS_HEIGHT + 34
    elif figure.rows:
        scale = max((max(sum(row.values), row.high or 0.0) for row in figure.rows), default=1.0) or 1.0
        scale = 1.0 if figure.percent and figure.kind is Kind.SPANS else scale
        for row in figure.rows:
            parts += _bar(figure, row, y, scale) if figure.kind is Kind.BARS else _span(figure, row, y, scale)
            y += _LINE
    notes = wrap(visible_line(figure.missing or figure.note), _TEXT_CHARS)
    parts += [_text(_LEFT, y + 18 + 16 * n, text, "quiet") for n, text in enumerate(notes)]
    return parts, y + 6 + 16 * len(notes)


def _legend(figure: Figure, y: int) -> Iterator[str]:
    x = _LEFT
    for n, part in enumerate(figure.parts):
        yield f'<rect class="{_shade(figure, n)}" x="{x}" y="{y - 10}" width="11" height="11"/>'
        yield _text(x + 16, y, part, "quiet")
        x += 36 + _CHAR_PIXELS * len(part)


def _shade(figure: Figure, part: int) -> str:
    if len(figure.parts) == 1:
        return f"part{_ALONE}"
    return f"part{_SHADES.get(figure.parts[part], (part + 1) % _PARTS)}"


def _bar(figure: Figure, row: Row, y: int, scale: float) -> Iterator[str]:
    yield _text(_LEFT, y + 16, visible_line(row.label, _LABEL_CHARS))
    x = float(_PLOT_LEFT)
    for n, value in enumerate(row.values):
        width = value / scale * _PLOT_WIDTH
        if value:
            yield f'<rect class="{_shade(figure, n)}" x="{x:.1f}" y="{y + 4}" width="{width:.1f}" height="15"/>'
        x += width
    told = f"{row.count:,}" if not figure.percent else f"{value_text(figure, sum(row.values))}, {row.count:,}"
    yield _text(x + 8, y + 16, told, "quiet")


def _span(figure: Figure, row: Row, y: int, scale: float) -> Iterator[str]:
    yield _text(_LEFT, y + 16, visible_line(row.label, _LABEL_CHARS))
    if not row.values:
        yield _text(_PLOT_LEFT, y + 16, f"too few, n = {row.count:,}", "quiet")
        return
    low, high = (_PLOT_LEFT + (end or 0.0) / scale * _PLOT_WIDTH for end in (row.low, row.high))
    yield f'<line class="whisker" x1="{low:.1f}" x2="{high:.1f}" y1="{y + 12}" y2="{y + 12}"/>'
    value = row.values[0]
    yield f'<circle class="point" cx="{_PLOT_LEFT + value / scale * _PLOT_WIDTH:.1f}" cy="{y + 12}" r="5"/>'
    told = f"{value_text(figure, value)}  ({reach_text(figure, row)}), n = {row.count:,}"
    yield _text(high + 12, y + 16, told, "quiet")


def _weeks(figure: Figure, y: int) -> Iterator[str]:
    """A chart over weeks: axis, then columns or a curve."""
    top = 1.0 if figure.percent else nice_top(max(sum(row.values) for row in figure.rows))
    for share in (0.0, 0.5, 1.0):
        at = y + _WEEKS_HEIGHT * (1 - share)
        yield f'<line class="rule" x1="{_WEEKS_LEFT}" x2="{_WEEKS_LEFT + _WEEKS_WIDTH}" y1="{at}" y2="{at}"/>'
        yield _text(_WEEKS_LEFT - 8, at + 4, value_text(figure, top * share), "quiet", anchor="end")
    step = _WEEKS_WIDTH / len(figure.rows)
    label = (max(len(row.label) for row in figure.rows) + 2) * _CHAR_PIXELS
    every = -(-len(figure.rows) * label // _WEEKS_WIDTH)
    for n, row in enumerate(figure.rows):
        if n % every == 0:
            x = _WEEKS_LEFT + step * (n + 0.5)
            yield _text(x, y + _WEEKS_HEIGHT + 18, row.label, "quiet", anchor="middle")
    yield from (_columns(figure, y, step, top) if figure.kind is Kind.COLUMNS else _curve(figure, y, step))


def _columns(figure: Figure, y: int, step: float, top: float) -> Iterator[str]:
    for n, row in enumerate(figure.rows):
        bottom = y + float(_WEEKS_HEIGHT)
        for part, value in enumerate(row.values):
            height = value / top * _WEEKS_HEIGHT
            bottom -= height
            if value:
                yield (
                    f'<rect class="{_shade(figure, part)}" x="{_WEEKS_LEFT + step * (n + 0.15):.1f}" y="{bottom:.1f}" '
                    f'width="{step * 0.7:.1f}" height="{height:.1f}"/>'
                )


def _curve(figure: Figure, y: int, step: float) -> Iterator[str]:
    """Points with their intervals; a line joins the points of weeks that follow on each other."""
    before: tuple[float, float] | None = None
    for n, row in enumerate(figure.rows):
        if not row.values:
            before = None
            continue
        x, at = _WEEKS_LEFT + step * (n + 0.5), y + _WEEKS_HEIGHT * (1 - row.values[0])
        if row.low is not None and row.high is not None:
            upper, lower = y + _WEEKS_HEIGHT * (1 - row.high), y + _WEEKS_HEIGHT * (1 - row.low)
            yield (
                f'<rect class="band" x="{x - step * 0.3:.1f}" y="{upper:.1f}" '
                f'width="{step * 0.6:.1f}" height="{lower - upper:.1f}"/>'
            )
        if before is not None:
            yield f'<line class="line" x1="{before[0]:.1f}" y1="{before[1]:.1f}" x2="{x:.1f}" y2="{at:.1f}"/>'
        yield f'<circle class="point" cx="{x:.1f}" cy="{at:.1f}" r="4"/>'
        before = x, at


def _text(x: float, y: float, text: str, style: str = "", *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">{escape(visible_line(text))}</text>'
