"""What hooks and short commands import: time and number of modules, in a copy of the sample project."""

from __future__ import annotations

import os
from statistics import median
from typing import TYPE_CHECKING, Final

from tests.bench.command_runs import NEEDS
from tests.bench.commands import Copy, copy_of
from tests.bench.hooks import EVENTS, answer
from tests.bench.measured import Measured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.place import Place
    from tests.bench.processes import Ended

COMMANDS: Final = (
    *("task log", "pattern list", "pattern show", "loop list", "loop inject", "mcp"),
    *("pattern promote", "pattern deprecate"),
)
AGENT: Final = "claude"
EVENT_KINDS: Final = tuple(kind for kind, _, _ in EVENTS[AGENT])
_OPTIONS: Final = ("-X", "importtime")
_RUNS: Final = 3
_LINE: Final = "import time:"
_HEADING: Final = "self [us]"


def of_command(place: Place, command: str) -> Measured:
    """The imports of a command."""
    copy = _sample(place)
    if needed := NEEDS.get(command):
        copy.prepare(needed)
    return _summary([copy.run_command(command, *_OPTIONS) for _ in range(_RUNS)])


def of_event(place: Place, kind: str) -> Measured:
    """The imports of the hook at an event, after the events of a session before it."""
    copy = _sample(place)
    runs = []
    for _ in range(_RUNS):
        session = os.urandom(8).hex()
        last = EVENT_KINDS.index(kind)
        for number in range(last):
            answer(copy, AGENT, session, number)
        runs.append(answer(copy, AGENT, session, last, *_OPTIONS))
    return _summary(runs)


def _sample(place: Place) -> Copy:
    """The copy of the sample project of this group of rows."""
    place.generate_sized("sample")
    return copy_of(place.folder, "sample")


def _summary(runs: Sequence[Ended]) -> Measured:
    """The median time of all imports; the note has the number of modules, and of those of the program."""
    times = []
    modules: list[str] = []
    for ended in runs:
        lines = [line.removeprefix(_LINE).split("|") for line in ended.errors.splitlines() if line.startswith(_LINE)]
        imported = [(int(own), name.strip()) for own, _, name in lines if own.strip() != _HEADING]
        times.append(sum(own for own, _ in imported) / 1000)
        modules = [name for _, name in imported]
    own = sum(name.startswith(("core.", "tui.")) for name in modules)
    return Measured(median(times), note=f"{len(modules)} modules, {own} own")
