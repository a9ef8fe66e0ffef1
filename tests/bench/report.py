"""The measured table, for the terminal and for docs/performance.md."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.bench.measured import Measured
from tests.bench.rows import ROWS, Row
from tests.bench.run import NOW, Run

PAGE: Final = Path(__file__).parents[2] / "docs" / "performance.md"
_TABLE: Final = re.compile(r"(?<=<!-- measured -->\n).*?(?=<!-- end -->)", re.DOTALL)


def print_tables(run: Run) -> None:
    """Print all rows; rows above their limit are marked with `!`."""
    print(f"machine: {run.machine}\n")
    for row, cells in _cells(run):
        measured = run.values[row.what][NOW]
        is_over = row.at_most is not None and not measured.value <= row.at_most
        print(f"{'!' if is_over else ' '} {cells[0]:<58} " + "  ".join(f"{cell:>12}" for cell in cells[1:]))
        if measured.note:
            print(f"      {measured.note}")


def write_page(run: Run) -> None:
    """Write the measured rows into the table of docs/performance.md; other rows stay if they have the same columns."""
    others = run.revisions[:-1]
    heads = ["what", "at most", *(f"at `{one}`" for one in others), "measured", *("ratio" for _ in others), "to floor"]
    page = PAGE.read_text()
    before = "".join(_TABLE.findall(page)).splitlines()
    known = [line[2:-2].split(" | ") for line in before if line.startswith("| ") and line.endswith(" |")]
    table = next((cells for cells in known if cells[0] == heads[0] and set(heads) <= set(cells)), heads)
    rows = {cells[0]: cells for cells in known if len(cells) == len(table)}
    for row, cells in _cells(run):
        found = dict(zip(heads, cells, strict=True))
        rows[row.what] = [found.get(head, "") for head in table]
    lines = [_line(table), _line(["---", *("---:" for _ in table[1:])])]
    lines += [_line(rows[row.what]) for row in ROWS if row.what in rows]
    text = f"\nMeasured on {run.machine}; processor time in brackets.\n\n" + "\n".join(lines) + "\n\n"
    PAGE.write_text(_TABLE.sub(lambda _: text, page))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(run: Run) -> Iterator[tuple[Row, list[str]]]:
    """For each measured row: name, limit, values by revision, ratios to the present value, ratio to the floor."""
    for row in ROWS:
        values = run.values.get(row.what)
        if values is None or NOW not in values:
            continue
        now = values[NOW]
        limit = "" if row.at_most is None else f"{row.at_most:,g} {now.unit}".strip()
        shown = [_shown(values.get(revision)) for revision in run.revisions]
        ratios = [_ratio(now, values.get(revision)) for revision in run.revisions[:-1]]
        floor = run.values.get(row.floor, {}).get(NOW)
        yield row, [row.what, limit, *shown, *ratios, _ratio(now, floor) if floor else ""]


def _shown(measured: Measured | None) -> str:
    if measured is None or math.isnan(measured.value):
        return "-"
    cpu = "" if measured.cpu is None else f" ({_figure(measured.cpu)})"
    return f"{_figure(measured.value)} {measured.unit}".strip() + cpu


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _ratio(now: Measured, other: Measured | None) -> str:
    """The ratio of the values, in brackets that of processor times."""
    if other is None or not other.value > 0:
        return "-"
    cpu = f" ({now.cpu / other.cpu:.2f})" if now.cpu is not None and other.cpu else ""
    return f"{now.value / other.value:.2f}{cpu}"
