"""Everything that is printed goes through here: JSON, tables, lines. Untrusted text comes out harmless."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

import click
from rich.cells import cell_len, set_cell_size

from core.base.formatting import percent_text
from core.base.text import ELLIPSIS, plural, visible_line
from core.records.findings import Finding, Severity
from core.records.times import day_of, minute_of
from core.redaction.masking import mask_secrets

STRICT_EXIT: Final = 3
MAX_CELL: Final = 200
"""Characters of a cell that may be shortened, where no terminal says how many fit."""
MAX_WHOLE_CELL: Final = 512
"""Characters of any other cell: longer than every id that a program makes. JSON has all."""
MIN_CELL: Final = 20
INDENT: Final = 2
"""Cells before the further lines of a row."""
ID_END: Final = 8
"""Characters of the end of an ID that are kept where it must be shortened."""

Part = str | tuple[str, str]
"""Text, or text and the colour it gets on a terminal."""

# Legal inside a JSON string as they are, but a terminal would obey or hide them. All of them are escaped.
_UNSEEN: Final = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


OUTCOME_COLOURS: Final = {"success": "green", "failure": "red", "timeout": "red"}


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def print_json(document: Mapping[str, Any], *, one_line: bool = False) -> None:
    """One JSON document as `json_bytes`; indented on a terminal, one line elsewhere (or always, for JSON lines)."""
    print_bytes(json_bytes(document, indent=2 if _is_terminal() and not one_line else None))


def json_bytes(document: Mapping[str, Any], *, indent: int | None = None) -> bytes:
    """A JSON document in UTF-8 with a final line feed.

    Secrets are masked, see `core.redaction.masking.mask_secrets`.
    Control, bidirectional and invisible characters and lone surrogates are written as `\\uXXXX`, so that every
    string comes back as it is in the files. NaN and infinities do not occur.
    """
    text = json.dumps(without_secrets(document), ensure_ascii=False, allow_nan=False, indent=indent)
    text = _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text)
    return f"{text}\n".encode("utf-8", "backslashreplace")


def without_secrets(value: Any, key: str = "") -> Any:
    """A JSON value with its secrets masked; a text may be one because of the key that it stands under."""
    if isinstance(value, str):
        shown = mask_secrets(value)
        if shown == value and _may_name_secret(key):
            return mask_secrets(f'{key}: "{value}"').removeprefix(f'{key}: "').removesuffix('"')
        return shown
    if isinstance(value, Mapping):
        return {name: without_secrets(item, name) for name, item in value.items()}
    return [without_secrets(item, key) for item in value] if isinstance(value, list | tuple) else value


@lru_cache
def _may_name_secret(key: str) -> bool:
    told = f'{key}: "0aA1bB2cC3"'
    return mask_secrets(told) != told


def print_bytes(data: bytes) -> None:
    """Exactly these bytes."""
    click.echo(data, nl=False)


def line(*parts: Part) -> None:
    """One line made of the parts, each made harmless."""
    click.echo("".join(_styled(part) for part in parts))


def warn(text: str) -> None:
    """One line on stderr."""
    click.echo(f"Warning: {visible_line(text)}", err=True)


def remark(text: str) -> None:
    """One line on stderr that is no warning, e.g. that a list is empty."""
    click.echo(visible_line(text), err=True)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        title: Its heading.
        right: Align to the right.
        free: Text that may be shortened to what the terminal has left; of other cells only what is beyond any measure.
        least: Cells that are left of such a text; where there is less room, a row takes several lines.
        colours: The colour of a cell by its text.
        expendable: From 1 on, in which order columns are left out where a terminal is too narrow for all; 0: never.
    """

    title: str
    right: bool = False
    free: bool = False
    least: int = MIN_CELL
    colours: Mapping[str, str] | None = None
    expendable: int = 0


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """Print an aligned table with a heading; nothing at all for no rows.

    On a terminal no line is wider than it: expendable columns are left out, then texts are shortened, and where that is
    not enough a row takes several lines, all but the first indented. Elsewhere every value is printed in full.
    """
    cells = [
        [_Cell.of(cell, MAX_CELL if column.free else MAX_WHOLE_CELL) for column, cell in zip(columns, row, strict=True)]
        for row in rows
    ]
    if not cells:
        return
    cells.insert(0, [_Cell.of(column.title) for column in columns])
    # One id of any length must not widen all other rows with it; it stands out of its column.
    widths = [min(MAX_CELL, max(row[n].width for row in cells)) for n in range(len(columns))]
    groups = [list(range(len(columns)))]
    if _is_terminal():
        room = shutil.get_terminal_size().columns
        kept = _affordable(widths, columns, room)
        columns, widths = [columns[n] for n in kept], [widths[n] for n in kept]
        cells = [[row[n] for n in kept] for row in cells]
        widths, groups = _fitted(widths, columns, room)
    painted = _colours()
    lines = []
    for row in cells:
        for number, group in enumerate(groups):
            shown = (row[n].shown(widths[n], columns[n], painted, heading=row is cells[0]) for n in group)
            text = (" " * (INDENT if number else 0) + "  ".join(shown)).rstrip()
            if text or not number:
                lines.append(text)
    click.echo("\n".join(lines))


def _affordable(widths: Sequence[int], columns: Sequence[Column], room: int) -> list[int]:
    """The columns that are left where those that one can do without give way to the others."""
    least = [min(width, column.least) if column.free else width for width, column in zip(widths, columns, strict=True)]
    shown = list(range(len(columns)))
    for n in sorted((n for n in shown if columns[n].expendable), key=lambda n: columns[n].expendable):
        if sum(least[place] + 2 for place in shown) - 2 <= room:
            break
        shown.remove(n)
    return shown


def _fitted(widths: Sequence[int], columns: Sequence[Column], room: int) -> tuple[list[int], list[list[int]]]:
    """The widths of columns that fit into a terminal, and the columns of each line of a row."""
    fitted = list(widths)
    for n, column in enumerate(columns):
        excess = sum(fitted) + 2 * (len(fitted) - 1) - room
        if column.free and excess > 0:
            fitted[n] = max(fitted[n] - excess, min(column.least, fitted[n]))
    if sum(fitted) + 2 * (len(fitted) - 1) <= room:
        return fitted, [list(range(len(columns)))]
    groups: list[list[int]] = [[]]
    left = room
    for n, column in enumerate(columns):
        gap = 2 if groups[-1] else 0
        least = min(widths[n], max(column.least, 2 * MIN_CELL)) if column.free else widths[n]
        if groups[-1] and least + gap > left:
            groups.append([])
            left, gap = room - INDENT, 0
        groups[-1].append(n)
        fitted[n] = min(widths[n], max(left - gap, 1))
        left -= fitted[n] + gap
    return fitted, groups


class _Cell(NamedTuple):
    """Harmless text and how many columns of a terminal it takes."""

    text: str
    width: int

    @classmethod
    def of(cls, text: str, limit: int | None = None) -> _Cell:
        text = visible_line(text, limit)
        return cls(text, len(text) if text.isascii() else cell_len(text))

    def shown(self, width: int, column: Column, painted: bool, heading: bool) -> str:
        text, size = self.text, self.width
        if size > width and (column.free or _is_terminal()):
            text = _shortened(text, width, keep_end=not column.free)
            size = cell_len(text)
        pad = " " * (width - size)
        colour = "bold" if heading else (column.colours or {}).get(text, "")
        if colour and painted:
            text = _painted(text, colour)
        return pad + text if column.right else text + pad


def _shortened(text: str, width: int, *, keep_end: bool) -> str:
    """The text in at most `width` cells; of an ID the end too, because IDs that begin alike differ there."""
    tail = text[-ID_END:] if keep_end and width > 2 * ID_END else ""
    return set_cell_size(text, max(width - 1 - cell_len(tail), 0)).rstrip() + ELLIPSIS + tail


def _styled(part: Part) -> str:
    text, colour = part if isinstance(part, tuple) else (part, "")
    text = visible_line(text)
    return _painted(text, colour) if colour and _colours() else text


def _painted(text: str, colour: str) -> str:
    return click.style(text, bold=True) if colour == "bold" else click.style(text, fg=colour)


def _colours() -> bool:
    return _is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def minute(at: datetime | None) -> str:
    """`2026-02-02 15:04`; nothing for no time."""
    return minute_of(at) if at is not None else ""


def day(at: datetime | None) -> str:
    """`2026-02-02`; nothing for no time."""
    return day_of(at) if at is not None else ""


def percent(rate: float | None) -> str:
    """`71 %`; nothing for no rate."""
    return "" if rate is None else percent_text(rate)


def findings_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """The stable shape of findings."""
    return [finding.to_json() for finding in findings]


def end(findings: Sequence[Finding], *, strict: bool, listed: bool = False) -> None:
    """End a reading command: say if files could not be used, unless they were listed; with `--strict` exit with 3."""
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    if errors:
        if not listed:
            what = plural(errors, "finding of severity error", "findings of severity error")
            remark(f"{what}; see: ralphdeck doctor")
        if strict:
            click.get_current_context().exit(STRICT_EXIT)
