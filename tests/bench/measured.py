"""One measured value, and how to take it."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from msgspec import Struct


class Measured(Struct, frozen=True):
    """A value with its unit; `cpu` is processor time in the same unit, of this process and its ended children.

    `mark` is shown beside the value if it does not count as it is: the work failed, gave nothing, or was ended.
    """

    value: float
    unit: str = "ms"
    cpu: float | None = None
    note: str = ""
    mark: str = ""

    def __str__(self) -> str:
        cpu = [] if self.cpu is None else [f"processor {_digits(self.cpu)}"]
        more = ", ".join([*cpu, *filter(None, [self.mark, self.note])])
        value = f"{_digits(self.value)} {self.unit}".strip()
        return f"{value} ({more})" if more else value


def _digits(value: float) -> str:
    """Three significant digits are more than a run repeats."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def milliseconds(action: Callable[[], object], times: int = 1) -> list[float]:
    """Time some calls, in milliseconds, sorted."""
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        action()
        taken.append((time.perf_counter() - begin) * 1000)
    return sorted(taken)


def spread(taken: list[float], share: float = 0.95) -> Measured:
    """The quantile `share` of times in milliseconds, with the median as a note."""
    ordered = sorted(taken)
    return Measured(ordered[min(int(len(ordered) * share), len(ordered) - 1)], note=f"median {median(ordered):.1f}")


def timed(action: Callable[[], object], note: str = "") -> Measured:
    """Wall and processor time of one call; processes that it started and that ended are included."""
    begin, cpu = time.perf_counter(), processor_seconds()
    action()
    return Measured((time.perf_counter() - begin) * 1000, cpu=(processor_seconds() - cpu) * 1000, note=note)


def processor_seconds() -> float:
    """Processor time of this process and of its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def resident_mb(process: int | str = "self") -> float:
    """Resident size of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
