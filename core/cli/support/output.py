"""JSON, tables, lines, progress; control characters in untrusted text are shown."""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
import msgspec
from msgspec import Struct

from core.base.formatting import format_percent
from core.base.masking import find_secrets, mask_secrets
from core.base.text import end_with_ellipsis, escape_invisible, plural, visible_line, visible_lines
from core.cli.support.options import invocation
from core.records.findings import Finding, Severity
from core.records.times import day_of, minute_of

if TYPE_CHECKING:
    from core.cli.json.wire import Wire


STRICT_EXIT: Final = 3
MAX_CELL: Final = 200  # Most characters of a free text without a terminal.
MAX_WHOLE_CELL: Final = 512  # Most characters of any other cell: longer than every generated ID.
MIN_CELL: Final = 20
MIN_ID: Final = 24  # Narrowest widths of free text and of IDs.
INDENT: Final = 2  # Indentation of the further lines of a row.
ID_END: Final = 8  # Characters at the end of a shortened ID.

_NARROW: Final = str.maketrans(dict.fromkeys("…–—→←·×“”‘’✓✗", "-"))

Part = str | tuple[str, str]  # Text, or text and its colour on a terminal.

OUTCOME_COLOURS: Final = {"success": "green", "failure": "red", "timeout": "red"}


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def print_json(document: Struct | Mapping[str, Any], *, one_line: bool = False) -> None:
    """Print a JSON document, indented on a terminal unless `one_line`."""
    print_bytes(json_bytes(document, indent=2 if _is_terminal() and not one_line else None))


def json_bytes(document: Struct | Mapping[str, Any], *, indent: int | None = None) -> bytes:
    """Encode a JSON document without secrets in UTF-8, with a final line feed.

    Control, bidirectional and invisible characters and lone surrogates are written as `\\uXXXX`, so that every string
    is decoded to the text of the files. NaN and infinities do not occur.
    """
    value = msgspec.to_builtins(document) if isinstance(document, Struct) else document
    text = json.dumps(without_secrets(value), ensure_ascii=False, allow_nan=False, indent=indent)
    return f"{escape_invisible(text)}\n".encode("utf-8", "backslashreplace")


def without_secrets(document: Any) -> Any:
    """Mask the secrets in a JSON value; a text may be secret because of its key."""
    texts: defaultdict[str, dict[str, None]] = defaultdict(dict)
    _collect(document, "", texts)
    masks = {key: found for key, those in texts.items() if (found := _find_secrets(key, those))}
    return _replace(document, "", masks) if masks else document


def _collect(value: Any, key: str, texts: defaultdict[str, dict[str, None]]) -> None:
    """Collect the texts in a JSON value by their keys."""
    if isinstance(value, str):
        texts[key][value] = None
    elif isinstance(value, dict | Mapping):  # the first is recognised faster
        for name, item in value.items():
            _collect(item, name, texts)
    elif isinstance(value, list | tuple):
        for item in value:
            _collect(item, key, texts)


def _find_secrets(key: str, texts: Collection[str]) -> Mapping[str, str]:
    """Return the masked form of each text under a key that contains or is a secret."""
    found = find_secrets(texts)
    if _may_name_secret(key):
        for text in [one for one in texts if one not in found]:
            shown = mask_secrets(f'{key}: "{text}"').removeprefix(f'{key}: "').removesuffix('"')
            if shown != text:
                found[text] = shown
    return found


def _replace(value: Any, key: str, masks: Mapping[str, Mapping[str, str]]) -> Any:
    if isinstance(value, str):
        return masks[key].get(value, value) if key in masks else value
    if isinstance(value, dict | Mapping):
        return {name: _replace(item, name, masks) for name, item in value.items()}
    return [_replace(item, key, masks) for item in value] if isinstance(value, list | tuple) else value


@lru_cache
def _may_name_secret(key: str) -> bool:
    sample = f'{key}: "0aA1bB2cC3"'
    return mask_secrets(sample) != sample


def print_bytes(data: bytes) -> None:
    click.echo(data, nl=False)


def line(*parts: Part) -> None:
    """Print one line of parts, with control characters made visible."""
    is_coloured = _colours()
    texts = []
    for part in parts:
        text, colour = part if isinstance(part, tuple) else (part, "")
        texts.append(_painted(visible_line(text), colour) if colour and is_coloured else visible_line(text))
    click.echo("".join(texts))


def warn(*texts: str) -> None:
    for text in texts:
        click.echo(f"Warning: {visible_line(text)}", err=True)


def remark(text: str) -> None:
    """Print a line on stderr that is not a warning, e.g. that a list is empty."""
    click.echo(visible_line(text), err=True)


class Column(Struct, frozen=True):
    """A column of a table; `value` returns the text of a row's cell."""

    title: str
    value: Callable[[Any], str]
    right: bool = False
    free: bool = False  # Free text, which may be shortened to the room that the terminal has left.
    least: int = 0
    """Narrowest width of free text or of an ID; 0: never shortened. Below that, a row takes several lines."""
    colours: Mapping[str, str] | None = None  # The colour of a cell by its text.
    expendable: int = 0  # From 1, the order in which columns are dropped on a narrow terminal; 0: never.

    @property
    def min_width(self) -> int:
        """Minimum width of the cells; 0 for the width of the widest cell."""
        return self.least or (MIN_CELL if self.free else 0)


def remark_missing_vectors(patterns: int, tasks: int = 0) -> None:
    """Print how many patterns and tasks have no vector, and how to compute them."""
    missing = [plural(count, noun) for count, noun in ((patterns, "pattern"), (tasks, "task")) if count]
    if missing:
        remark(f"{' and '.join(missing)} found by words only; to compute their vectors: ralphdeck doctor --embed")


def id_column(title: str, value: Callable[[Any], str]) -> Column:
    """Make a column of IDs, which may be shortened in the middle."""
    return Column(title, value, least=MIN_ID)


def print_table(columns: Sequence[Column], rows: Iterable[Any], empty: str = "") -> None:
    """Print an aligned table with a heading, or the remark `empty` without rows.

    On a terminal the table is fitted to the width: expendable columns are dropped, then free texts and IDs are
    shortened, and if necessary a row is split into several lines. Elsewhere all values are complete.
    """
    listed = list(rows)
    if not listed:
        if empty:
            remark(empty)
        return
    values = [[column.value(row) for row in listed] for column in columns]
    cells = [_cells_of(column, texts) for column, texts in zip(columns, values, strict=True)]
    # One ID of any length must not widen all rows; it exceeds its column.
    widths = [
        min(MAX_CELL, max(len(column.title), *(cell.width for cell in column_cells.values())))
        for column, column_cells in zip(columns, cells, strict=True)
    ]
    groups = [list(range(len(columns)))]
    if _is_terminal():
        import shutil  # takes longer to import than the rest of the standard library here

        room = shutil.get_terminal_size().columns
        shown = _affordable(widths, columns, room)
        columns, widths = [columns[n] for n in shown], [widths[n] for n in shown]
        values, cells = [values[n] for n in shown], [cells[n] for n in shown]
        widths, groups = _fitted(widths, columns, room)
    painted = _colours()
    drawn = []
    for column, width, texts, known in zip(columns, widths, values, cells, strict=True):
        heading = _Cell.of(column.title).shown(width, column, painted, heading=True)
        by_text = {text: cell.shown(width, column, painted, heading=False) for text, cell in known.items()}
        drawn.append([heading, *(by_text[text] for text in texts)])
    lines = []
    for row in zip(*drawn, strict=True):
        for number, group in enumerate(groups):
            text = (" " * (INDENT if number else 0) + "  ".join([row[n] for n in group])).rstrip()
            if text or not number:
                lines.append(text)
    _echo_table(lines)


def _cells_of(column: Column, texts: Iterable[str]) -> dict[str, _Cell]:
    """Return the cells of a column by text: equal ones are made once."""
    shown = visible_lines(texts, MAX_CELL if column.free else MAX_WHOLE_CELL)
    return {text: _Cell(line, _width(line)) for text, line in shown.items()}


def _echo_table(lines: Sequence[str]) -> None:
    click.echo("\n".join(lines))


def _affordable(widths: Sequence[int], columns: Sequence[Column], room: int) -> list[int]:
    """Return the columns that remain after expendable columns are dropped."""
    least = [min(width, column.min_width or width) for width, column in zip(widths, columns, strict=True)]
    shown = list(range(len(columns)))
    for n in sorted((n for n in shown if columns[n].expendable), key=lambda n: columns[n].expendable):
        if sum(least[column] + 2 for column in shown) - 2 <= room:
            break
        shown.remove(n)
    return shown


def _fitted(widths: Sequence[int], columns: Sequence[Column], room: int) -> tuple[list[int], list[list[int]]]:
    """Compute the widths of columns on a terminal, and the columns of each line."""
    fitted = list(widths)
    for n in sorted(range(len(columns)), key=lambda n: not columns[n].free):
        excess = sum(fitted) + 2 * (len(fitted) - 1) - room
        if columns[n].min_width and excess > 0:
            fitted[n] = max(fitted[n] - excess, min(columns[n].min_width, fitted[n]))
    if sum(fitted) + 2 * (len(fitted) - 1) <= room:
        return fitted, [list(range(len(columns)))]
    groups: list[list[int]] = [[]]
    left = room
    for n, column in enumerate(columns):
        gap = 2 if groups[-1] else 0
        least = min(widths[n], max(column.min_width, 2 * MIN_CELL)) if column.free else widths[n]
        if groups[-1] and least + gap > left:
            groups.append([])
            left, gap = room - INDENT, 0
        groups[-1].append(n)
        fitted[n] = min(widths[n], max(left - gap, 1))
        left -= fitted[n] + gap
    return fitted, groups


class _Cell(NamedTuple):
    """Visible text, and its width on a terminal."""

    text: str
    width: int

    @classmethod
    def of(cls, text: str) -> _Cell:
        text = visible_line(text)
        return cls(text, _width(text))

    def shown(self, width: int, column: Column, painted: bool, heading: bool) -> str:
        text, size = self.text, self.width
        if size > width and (column.free or _is_terminal()):
            text = _shortened(text, width, keep_end=not column.free)
            size = _width(text)
        pad = " " * (width - size)
        colour = "bold" if heading else (column.colours or {}).get(text, "")
        if colour and painted:
            text = _painted(text, colour)
        return pad + text if column.right else text + pad


def _shortened(text: str, width: int, *, keep_end: bool) -> str:
    """Shorten a text to `width` cells; keep the end of an ID, where IDs differ."""
    tail = text[-ID_END:] if keep_end and width > 2 * ID_END else ""
    room = max(width - 1 - _width(tail), 0)
    if _is_narrow(text):
        return end_with_ellipsis(text[:room].rstrip()) + tail
    from rich.cells import set_cell_size

    return end_with_ellipsis(set_cell_size(text, room).rstrip()) + tail


def _width(text: str) -> int:
    """Return the cells that a text takes on a terminal."""
    if _is_narrow(text):
        return len(text)
    from rich.cells import cell_len  # takes 15 ms to import

    return cell_len(text)


def _is_narrow(text: str) -> bool:
    """Return whether each character surely takes one cell, as in ralphdeck's texts."""
    return text.isascii() or text.translate(_NARROW).isascii()


def _painted(text: str, colour: str) -> str:
    return click.style(text, bold=True) if colour == "bold" else click.style(text, fg=colour)


def _colours() -> bool:
    return _is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def minute(at: datetime | None) -> str:
    """Format a time as `2026-02-02 15:04`; "" for None."""
    return minute_of(at) if at is not None else ""


def day(at: datetime | None) -> str:
    """Format a time as `2026-02-02`; "" for None."""
    return day_of(at) if at is not None else ""


def format_optional(number: int | None) -> str:
    """Format a number; "" for None."""
    return "" if number is None else str(number)


def percent(rate: float | None) -> str:
    """Format a rate as `71 %`; "" for None."""
    return "" if rate is None else format_percent(rate)


def print_difference(name: str, before: bytes | None, after: bytes | None) -> None:
    """Print the difference of a file, indented."""
    for text in list_difference(name, before, after):
        line("  ", (text, {"+": "green", "-": "red", "@": "cyan"}.get(text[:1], "")))


def list_difference(name: str, before: bytes | None, after: bytes | None) -> Iterator[str]:
    """Yield the lines of a file's difference; None is a file that does not exist."""
    import difflib

    if after is None:
        yield from (f"--- {name}", "+++ (deleted)")
        return
    old, new = (data.decode(errors="replace").splitlines() if data else [] for data in (before, after))
    from_name = name if before is not None else "(new file)"
    lines = [*difflib.unified_diff(old, new, from_name, name, lineterm="", n=2)]
    yield from lines or [f"--- {from_name}", f"+++ {name}"]


def wants_json() -> bool:
    """Return whether the command was given `--json`."""
    return invocation().as_json


def print_object(kind: type[Wire], /, *records: object, **values: Any) -> None:
    """Print a JSON object, filled with records and values as in `Wire.of`."""
    print_json(kind.of(*records, **values))


def end(findings: Sequence[Finding], *, listed: bool = False, has_failed: bool = False) -> None:
    """Report unusable files unless they were listed.

    Exits with 3 for `--strict` if there are any, or if something else `has_failed`.
    """
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    if errors and not listed:
        what = plural(errors, "finding of severity error", "findings of severity error")
        remark(f"{what}; see: ralphdeck doctor")
    if (errors or has_failed) and invocation().strict:
        click.get_current_context().exit(STRICT_EXIT)


_SHOWN_AFTER: Final = 1.0  # seconds: most work ends sooner
_PAUSE: Final = 0.1  # seconds between two changes of the line

ShowProgress = Callable[[str, int, int], None]
"""Shows what is done, how much of it, and of how much; 0 for an unknown whole."""


@contextmanager
def show_progress() -> Iterator[ShowProgress]:
    """Show progress in a line of stderr that disappears at the end; terminals only."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    progress = _ProgressLine()
    try:
        yield progress.show
    finally:
        progress.remove()


class _ProgressLine:
    """One line of a terminal that is written again and again."""

    def __init__(self) -> None:
        self._text = ""
        self._due = monotonic() + _SHOWN_AFTER

    def show(self, what: str, done: int, total: int) -> None:
        now = monotonic()
        if now >= self._due:
            self._due = now + _PAUSE
            text = f"{what}: {done:,} of {total:,}" if total else f"{what}: {done:,}"
            click.echo(f"\r{text:{len(self._text)}}", nl=False, err=True)
            self._text = text

    def remove(self) -> None:
        if self._text:
            click.echo(f"\r{'':{len(self._text)}}\r", nl=False, err=True)
