"""Processor time of a sweep, and of a change on screen."""

from __future__ import annotations

import json
from statistics import median

from core.sources.record_kinds import ROOT_FOLDERS, FolderWalk
from tests.bench.measured import Measured, processor_seconds
from tests.bench.place import Place, open_project
from tests.bench.screen import Screen
from tests.bench.trees import loop_name


def next_sweep(place: Place) -> Measured:
    """Find all changed files of a project that was swept before."""
    paths = open_project(place.loops, cache=False).project
    first = FolderWalk(paths)
    first.run(ROOT_FOLDERS)
    taken = []
    for _ in range(5):
        begin = processor_seconds()
        FolderWalk(paths, folders=first.listed).run(ROOT_FOLDERS)
        taken.append((processor_seconds() - begin) * 1000)
    return Measured(median(taken))


def change_on_screen(place: Place, writes: int = 40) -> Measured:
    """Processor time of the dashboard for a change of a running loop, from the file to the row."""
    path = place.loops / ".aiwg" / "ralph" / "loops" / loop_name(6) / "state.json"
    original = path.read_text()
    state = json.loads(original)
    with Screen(place.loops) as screen:
        screen.show_loops()
        screen.calm()
        screen.press("g")
        screen.settle()
        before = screen.processor_seconds()
        for number in range(writes):
            state["task"] = f"Q{number:03d}X"
            path.write_text(json.dumps(state))
            screen.wait_for(state["task"])
            screen.settle()
        used = screen.processor_seconds() - before
    path.write_text(original)
    return Measured(used / writes * 1000)
