"""Measure the rows in fresh processes, with the code of one or two revisions in turns."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from tests.bench.measured import Measured
from tests.bench.place import Place, Sizes
from tests.bench.rows import GROUPS, ROWS, Row

ROOT: Final = Path(__file__).parents[2]
NOW: Final = "now"
_WITHOUT_PROJECTS: Final = {"start", "code", "imports"}  # groups that need no generated project


class Run:
    """One run of the bench. `values` has by row the measured values, by revision; "now" is the present code."""

    def __init__(self, temporary: Path, folder: Path, sizes: Sizes, projects: Sequence[str], *, slow: bool) -> None:
        self.values: dict[str, dict[str, Measured]] = {}
        self.sizes = sizes
        self.revisions = [NOW]
        self.machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the first row"
        self._temporary = temporary
        self._place = Place(folder, sizes)
        self._projects = projects  # names of the sizes that are measured
        self._slow = slow

    def rows(self, only: Sequence[str]) -> Iterator[Row]:
        """The rows of some groups, or with some words in their names; all without any."""
        for row in ROWS:
            is_wanted = not only or any(name == row.group if name in GROUPS else name in row.key for name in only)
            if is_wanted and (self._slow or not row.slow) and (not row.size or row.size in self._projects):
                yield row

    def measure(self, only: Sequence[str], compare: str | None, repeat: int) -> None:
        """Generate the projects and measure all rows; medians of the rounds."""
        rows = list(self.rows(only))
        begin = time.perf_counter()
        if any(not row.size and row.group not in _WITHOUT_PROJECTS for row in rows):
            self._place.generate()
        for size in dict.fromkeys(row.size for row in rows if row.size):
            self._place.generate_sized(size)
        print(f"projects made in {time.perf_counter() - begin:.0f} s", file=sys.stderr)
        codes = {NOW: ROOT}
        if compare:
            codes = {compare: self._check_out(compare), NOW: ROOT}
        self.revisions = list(codes)
        for group in GROUPS:
            names = [row.key for row in rows if row.group == group]
            found: dict[str, dict[str, list[Measured]]] = defaultdict(lambda: defaultdict(list))
            for _ in range(repeat if names else 0):
                for revision, code in codes.items():
                    for what, measured in self._measure_group(group, names, revision, code):
                        found[what][revision].append(measured)
                        print(f"{what} [{revision}]: {measured}", file=sys.stderr)
            for what, by_revision in found.items():
                self.values[what] = {revision: _middle(values) for revision, values in by_revision.items()}

    def _measure_group(
        self, group: str, names: Sequence[str], revision: str, code: Path
    ) -> Iterator[tuple[str, Measured]]:
        sizes = msgspec.json.encode(self.sizes).decode()
        arguments = [sys.executable, "-m", "tests.bench.child", group, str(self._place.folder), sizes, *names]
        environment = os.environ | self._own_folders(revision) | {"PYTHONPATH": str(code)}
        with subprocess.Popen(arguments, cwd=code, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                yield msgspec.json.decode(line, type=tuple[str, Measured])

    def _own_folders(self, revision: str) -> Mapping[str, str]:
        """Folders for caches, settings and state that only this revision uses."""
        own = self._temporary / "own" / revision.replace("/", "-")
        folders = {f"XDG_{kind}_HOME": str(own / kind.lower()) for kind in ("CACHE", "CONFIG", "STATE", "DATA")}
        return folders | {"HOME": str(own), "CLAUDE_CONFIG_DIR": str(own), "PYTHONDONTWRITEBYTECODE": ""}

    def _check_out(self, revision: str) -> Path:
        """The code of a revision with the measurements of this one."""
        code = self._temporary / "code"
        code.mkdir()
        archive = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(code)], input=archive, check=True)
        shutil.rmtree(code / "tests" / "bench")
        shutil.copytree(ROOT / "tests" / "bench", code / "tests" / "bench")
        return code


def _middle(values: Sequence[Measured]) -> Measured:
    """The medians of value and processor time, with the note of the last round."""
    cpus = [one.cpu for one in values if one.cpu is not None]
    last = values[-1]
    value, cpu = median(one.value for one in values), median(cpus) if cpus else None
    return Measured(value, last.unit, cpu, last.note, last.mark)
