"""The measured tables, for the terminal and for docs/performance.md."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.bench.measured import Measured
from tests.bench.rows import ROWS, Row
from tests.bench.run import NOW, Run
from tests.bench.sized import SIZES

PAGE: Final = Path(__file__).parents[2] / "docs" / "performance.md"
_ONE: Final = "measured"
_THREE: Final = "measured at three sizes"
"""Names of the tables in the page."""


def print_tables(run: Run) -> None:
    """Print all rows; values above their limit are marked with `!`."""
    print(f"machine: {run.machine}\n")
    for row, cells in _cells(run):
        _print(row, f"{row.what:<58}", cells[1:], run)
    for name, rows in _sized(run).items():
        for row in rows.values():
            label = f"{name:<50} {row.size:<7}"
            _print(row, label, [_limit(row), *_values(row, run)], run)


def _print(row: Row, label: str, cells: Iterable[str], run: Run) -> None:
    measured = run.values[row.key][NOW]
    print(f"{'!' if row.is_over(measured) else ' '} {label} " + "  ".join(f"{cell:>12}" for cell in cells))
    if measured.note:
        print(f"      {measured.note}")


def write_page(run: Run) -> None:
    """Write the measured rows into the tables of docs/performance.md; others stay if they have the same columns."""
    others = [f"at `{one}`" for one in run.revisions[:-1]]
    heads = ["what", "at most", *others, "measured", *("ratio" for _ in others), "to floor"]
    _write(run, _ONE, heads, {row.what: cells for row, cells in _cells(run)})
    heads = ["what", "at most"]
    for size in SIZES:
        heads += [*(f"{size} {one}" for one in others), size, *(f"ratio, {size}" for _ in others)]
    rows = {}
    for name, sizes in _sized(run).items():
        cells = [name, _limits(name)]
        for size in SIZES:
            row = sizes.get(size)
            cells += _values(row, run) if row else [""] * (1 + 2 * len(others))
        rows[name] = cells
    _write(run, _THREE, heads, rows)


def _write(run: Run, table: str, heads: Sequence[str], measured: Mapping[str, Sequence[str]]) -> None:
    """Replace a table of the page; an empty cell keeps what the page has."""
    if not measured:
        return
    place = re.compile(rf"(?<=<!-- {table} -->\n).*?(?=<!-- end -->)", re.DOTALL)
    page = PAGE.read_text()
    found = place.search(page)
    before = found[0].splitlines() if found else []
    known = [line[2:-2].split(" | ") for line in before if line.startswith("| ") and line.endswith(" |")]
    columns = next((cells for cells in known if cells[0] == heads[0] and set(heads) <= set(cells)), list(heads))
    rows = {cells[0]: cells for cells in known if len(cells) == len(columns)}
    for name, cells in measured.items():
        fresh = dict(zip(heads, cells, strict=True))
        old = dict(zip(columns, rows.get(name, ()), strict=False))
        rows[name] = [fresh.get(head) or old.get(head, "") for head in columns]
    order = dict.fromkeys(row.what for row in ROWS if row.what in rows)
    lines = [_line(columns), _line(["---", *("---:" for _ in columns[1:])]), *(_line(rows[name]) for name in order)]
    text = f"\nMeasured on {run.machine}; processor time in brackets.\n\n" + "\n".join(lines) + "\n\n"
    PAGE.write_text(place.sub(lambda _: text, page, count=1))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(run: Run) -> Iterator[tuple[Row, list[str]]]:
    """For each measured row without a size: name, limit, values by revision, ratios to the present value and floor."""
    for row in ROWS:
        if not row.size and NOW in run.values.get(row.key, {}):
            floor = run.values.get(row.floor, {}).get(NOW)
            now = run.values[row.key][NOW]
            yield row, [row.what, _limit(row, now.unit), *_values(row, run), _ratio(now, floor) if floor else ""]


def _sized(run: Run) -> dict[str, dict[str, Row]]:
    """The measured rows with a size, by name and size."""
    found: dict[str, dict[str, Row]] = {}
    for row in ROWS:
        if row.size and NOW in run.values.get(row.key, {}):
            found.setdefault(row.what, {})[row.size] = row
    return found


def _values(row: Row, run: Run) -> list[str]:
    """Values by revision, and the ratios of the present value to the others."""
    values = run.values[row.key]
    shown = [_shown(values.get(revision)) for revision in run.revisions]
    return shown + [_ratio(values[NOW], values.get(revision)) for revision in run.revisions[:-1]]


def _limit(row: Row, unit: str = "ms") -> str:
    limit = "" if row.at_most is None else f"{row.at_most:,g} {unit}".strip()
    return f"({limit})" if limit and row.limits_cpu else limit


def _limits(name: str) -> str:
    """Limits of a row at its sizes, such as `120 / 150 / 200 ms`."""
    limits = [row.at_most for row in ROWS if row.what == name]
    if all(limit is None for limit in limits):
        return ""
    text = " / ".join("-" if limit is None else f"{limit:,g}" for limit in limits) + " ms"
    return f"({text})" if any(row.limits_cpu for row in ROWS if row.what == name) else text


def _shown(measured: Measured | None) -> str:
    if measured is None or math.isnan(measured.value):
        return "-"
    cpu = "" if measured.cpu is None else f" ({_figure(measured.cpu)})"
    mark = f" {measured.mark}" if measured.mark else ""
    return f"{_figure(measured.value)} {measured.unit}".strip() + cpu + mark


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _ratio(now: Measured, other: Measured | None) -> str:
    """The ratio of the values, in brackets that of processor times."""
    if other is None or not other.value > 0:
        return "-"
    cpu = f" ({now.cpu / other.cpu:.2f})" if now.cpu is not None and other.cpu else ""
    return f"{now.value / other.value:.2f}{cpu}"
