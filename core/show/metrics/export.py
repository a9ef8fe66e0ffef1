"""Export the metrics as CSV or as a Markdown report."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from core.base.text import plural, visible_line
from core.show.metrics.sections import Figure, build_figures, part_text, reach_text

if TYPE_CHECKING:
    from core.show.metrics.dashboard import Dashboard

_COLUMNS: Final = ("section", "row", "part", "value", "low", "high", "n")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # first characters of a formula in a spreadsheet
_MARKDOWN: Final = str.maketrans({char: f"\\{char}" for char in "\\`*_{}[]<>|#~&$"})
_NAME_CHARS: Final = 80


def export_metrics(found: Dashboard, suffix: str, project: str) -> bytes:
    """Render the metrics of a project; `suffix` is a key of `FORMATS`."""
    return FORMATS[suffix](found, build_figures(found), visible_line(project, _NAME_CHARS)).encode()


def to_csv(found: Dashboard, figures: Sequence[Figure], project: str) -> str:
    """Render one line per value; rates are 0..1. No text cell starts like a formula."""
    file = io.StringIO()
    out = csv.writer(file, lineterminator="\n")
    out.writerow(_COLUMNS)
    for figure in figures:
        for row in figure.rows:
            ends = ["" if end is None else f"{end:.6g}" for end in (row.low, row.high)]
            values = [f"{value:.10g}" for value in row.values] or [""]
            for part, value in zip(figure.parts, values, strict=False):
                out.writerow([_cell(figure.id), _cell(row.label), _cell(part), value, *ends, row.count])
    return file.getvalue()


def _cell(text: str) -> str:
    text = visible_line(text)
    return f"'{text}" if text.startswith(_FORMULA) else text


def to_markdown(found: Dashboard, figures: Sequence[Figure], project: str) -> str:
    """Render a report: for each section, the takeaway and a table."""
    weeks = f"As of {found.now:%Y-%m-%d %H:%M} UTC, {plural(found.weeks, 'week')} back and ahead"
    head = f"# Metrics of {_escape(project)}\n\n{weeks}; {found.level * 100:g} % intervals.\n"
    return "\n".join([head, *map(section_markdown, figures)])


def section_markdown(figure: Figure) -> str:
    groups = [figure.group] * bool(figure.group)
    count = ["n"] * figure.has_count
    titles = [*groups, figure.about, *figure.parts, *filter(None, (figure.reach, figure.extra)), *count]
    table = [titles, [*["---"] * (len(groups) + 1), *["---:"] * (len(titles) - len(groups) - 1)]]
    for row in figure.rows:
        values = [part_text(figure, row, part) for part in range(len(figure.parts))]
        reach = [reach_text(figure, row) or "—"] if figure.reach else []
        extra = [_escape(row.extra) or "—"] if figure.extra else []
        group, count = [row.group] * bool(figure.group), [f"{row.count:,}"] * figure.has_count
        table.append([*group, _escape(row.label), *values, *reach, *extra, *count])
    lines = [f"| {' | '.join(cells)} |" for cells in table] + [""] if figure.rows else []
    end = _escape(figure.missing or figure.note)
    return "\n".join([f"## {figure.title}", "", _escape(figure.takeaway), "", *lines, end, ""])


def _escape(text: str) -> str:
    return visible_line(text).translate(_MARKDOWN)


FORMATS: Final[Mapping[str, Callable[[Dashboard, Sequence[Figure], str], str]]] = {".md": to_markdown, ".csv": to_csv}
"""Renderer by file suffix."""
