"""The dashboard in a pseudo-terminal: when something is on screen, and what that costs."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Final

import platformdirs

from tests.bench.measured import Measured, spread
from tests.bench.place import Place
from tests.bench.retrieval import write_vectors
from tests.bench.screen import Screen
from tests.bench.trees import loop_name

_BARE: Final = """
from textual.app import App
from textual.widgets import Label

class Bare(App):
    def compose(self):
        yield Label("Loops")

Bare().run()
"""


def bare_frame(_place: Place) -> Measured:
    """First frame of a Textual app with one label."""
    taken = []
    for _ in range(5):
        with Screen.of_code(_BARE) as screen:
            taken.append((screen.wait_for("Loops") - screen.begun) * 1000)
    return Measured(median(taken))


def stat_sweep(place: Place) -> Measured:
    """List all folders and get the status of all files below `.aiwg`, as little as any check must do."""
    taken = []
    for _ in range(3):
        begin = time.perf_counter()
        pending = [str(place.loops / ".aiwg")]
        while pending:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        entry.stat(follow_symlinks=False)
        taken.append((time.perf_counter() - begin) * 1000)
    return Measured(median(taken))


def write_to_row(place: Place) -> Measured:
    """Time from a write of a running loop's state to the row on screen."""
    return spread(_writes_to_rows(place.loops), 0.99)


def median_write_to_row(place: Place) -> Measured:
    return Measured(median(_writes_to_rows(place.loops)))


@lru_cache(1)
def _writes_to_rows(project: Path, writes: int = 100) -> list[float]:
    path = project / ".aiwg" / "ralph" / "loops" / loop_name(6) / "state.json"
    original = path.read_text()
    state = json.loads(original)
    taken = []
    with Screen(project) as screen:
        screen.show_loops()
        screen.calm()
        screen.press("g")  # the cursor may have stayed on a row of the first, partial list
        for number in range(writes):
            state["task"] = f"Q{number:03d}X"
            text = json.dumps(state)
            begin = time.perf_counter()
            path.write_text(text)
            taken.append((screen.wait_for(state["task"]) - begin) * 1000)
            screen.settle()
    path.write_text(original)
    return taken


def key_to_paint(place: Place) -> Measured:
    """Time from a key in the list of many patterns to the first bytes of the next frame."""
    taken = []
    with Screen(place.many) as screen:
        screen.show_loops()
        screen.show_patterns()
        screen.calm()
        for _ in range(60):
            begin = screen.press("j")
            taken.append((screen.wait_for_paint() - begin) * 1000)
            screen.settle()
    return spread(taken)


def idle(place: Place, seconds: float = 130) -> Measured:
    """Processor share of the idle dashboard, with at least one regular sweep."""
    with Screen(place.loops) as screen:
        screen.show_loops()
        screen.calm(300, times=15)  # searches and savings that follow the opening have ended
        share = screen.processor_share(seconds)
        return Measured(share * 100, "%", note=f"{screen.resident_mb():.0f} MB")


def memory(place: Place) -> Measured:
    """Resident size of the dashboard, without its workers, after everything is loaded and searched."""
    return _memory(place, "")


def memory_after_all_screens(place: Place) -> Measured:
    """The same after all screens were opened."""
    return _memory(place, "123456781")


def _memory(place: Place, keys: str) -> Measured:
    write_vectors(place.opened_many)  # computing them takes longer than everything else
    with Screen(place.many) as screen:
        screen.wait_until_loaded()
        screen.calm(300)
        for key in keys:
            screen.press(key)
            screen.settle()
            screen.calm(60)
        screen.calm(times=15)  # what was not used for some time is freed
        return screen.own_memory()


def _from_nothing(project: Path, show: Callable[[Screen], float]) -> Measured:
    """Open a project of which the program has cached nothing, while its files are in memory."""
    for path in project.joinpath(".aiwg").rglob("*"):
        if path.is_file():
            path.read_bytes()
    return _opened(project, show, before=_forget, times=3)


def _opened(
    project: Path, show: Callable[[Screen], float], *, before: Callable[[], object] = tuple, times: int = 5
) -> Measured:
    """Median time from the start of the process until `show` returns, and its processor time."""
    taken, cpu = [], []
    for _ in range(times):
        before()
        with Screen(project) as screen:
            taken.append((show(screen) - screen.begun) * 1000)
            cpu.append(screen.processor_seconds() * 1000)
    return Measured(median(taken), cpu=median(cpu))


def _fill_cache(project: Path) -> None:
    with Screen(project) as screen:
        screen.wait_until_loaded()
        screen.calm()


def _forget() -> None:
    shutil.rmtree(platformdirs.user_cache_path("ralphdeck"), ignore_errors=True)


def _new(show: Callable[[Screen], float], *, is_many: bool = False) -> Callable[[Place], Measured]:
    """Measure the time from the start of the process until something is shown, with nothing cached."""
    return lambda place: _from_nothing(place.many if is_many else place.loops, show)


def _again(show: Callable[[Screen], float], *, is_filled: bool = True) -> Callable[[Place], Measured]:
    """Measure the time from the start of the process until something is shown in a project that was opened before."""

    def measure(place: Place) -> Measured:
        if is_filled:
            _fill_cache(place.loops)
        return _opened(place.loops, show)

    return measure


first_frame: Final = _again(lambda screen: screen.wait_for("Loops"), is_filled=False)
now_reopened: Final = _again(Screen.show_now)
loops_reopened: Final = _again(Screen.show_loops)
patterns_reopened: Final = _again(Screen.show_patterns)
all_checked: Final = _again(Screen.wait_until_loaded)
loops_from_nothing: Final = _new(Screen.show_loops)
all_from_nothing: Final = _new(Screen.wait_until_loaded)
loops_of_many_from_nothing: Final = _new(Screen.show_loops, is_many=True)
all_of_many_from_nothing: Final = _new(Screen.wait_until_loaded, is_many=True)
