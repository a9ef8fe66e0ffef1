"""The search index of a large task memory: time to build it, its size, and its growth with the number of tasks."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import numpy as np

from core.base.paths import ProjectPaths
from core.base.text import plural
from core.index.database import Database, delete
from core.index.search import TaskView, WordFiller, search
from core.index.search_words import SearchWords
from tests.bench.episodes import FREQUENT, RARE, write_tasks
from tests.bench.measured import Measured, processor_seconds, timed

if TYPE_CHECKING:
    from tests.bench.place import Place

_SIZES: Final = (1_000, 2_000, 4_000)  # numbers of tasks


def build(place: Place) -> Measured:
    """Index all tasks, in seconds; the note has the size of the index."""
    seconds, cpu, size = _build(place.episodes)
    return Measured(seconds, "s", cpu, note=f"{size / 1e6:.0f} MB")


def growth(place: Place) -> Measured:
    """Exponents of the processor time to build the index, of its size, and of a search for each word."""
    costs: dict[str, list[float]] = {"build": [], "size": [], "rare word": [], "frequent word": []}
    for size in _SIZES:
        with TemporaryDirectory(dir=place.folder) as name:
            folder = Path(name)
            paths = ProjectPaths(folder / "project")
            write_tasks(paths, size, 1)
            _, cpu, written = _build(paths)
            database = Database.open(paths.project)
            view = TaskView(database.read(), paths, checks_all=True)
            costs["build"].append(cpu)
            costs["size"].append(written)
            for what, word in (("rare word", RARE), ("frequent word", FREQUENT)):
                find = partial(search, paths, SearchWords(word), limit=50, view=view)
                find()
                costs[what].append(min(timed(find).cpu or 0.0 for _ in range(5)))
            view.close()
            database.close()
    exponents = {what: float(np.polyfit(np.log(_SIZES), np.log(taken), 1)[0]) for what, taken in costs.items()}
    note = "; ".join(f"{what} {exponent:.2f}" for what, exponent in exponents.items())
    return Measured(max(exponents.values()), "", note=f"{note}; at {plural(_SIZES[-1], 'task')} at most")


def _build(paths: ProjectPaths) -> tuple[float, float, int]:
    """Index all tasks anew; wall and processor time in seconds, and bytes of the index that has nothing else."""
    delete(paths.project)
    database = Database.open(paths.project)
    before = database.file.stat().st_size
    begin = processor_seconds()
    taken = timed(lambda: _fill(WordFiller(paths), database))
    cpu = processor_seconds() - begin
    database.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return taken.value / 1000, cpu, database.file.stat().st_size - before


def _fill(filler: WordFiller, database: Database) -> None:
    while filler.fill(database, 1.0):
        pass
