"""The places, each imported when one goes there: the first frame waits for one of them only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from textual.screen import Screen

if TYPE_CHECKING:
    from tui.screens.place import Place


def _loops() -> type[Place]:
    from tui.screens.loops import LoopsPlace

    return LoopsPlace


def _patterns() -> type[Place]:
    from tui.screens.patterns import PatternsPlace

    return PatternsPlace


def _review() -> type[Place]:
    from tui.screens.review import ReviewPlace

    return ReviewPlace


def _context() -> type[Place]:
    from tui.screens.context import ContextPlace

    return ContextPlace


def _reflections() -> type[Place]:
    from tui.screens.reflections import ReflectionsPlace

    return ReflectionsPlace


def _memory() -> type[Place]:
    from tui.screens.memory import MemoryPlace

    return MemoryPlace


def _metrics() -> type[Place]:
    from tui.screens.metrics import MetricsPlace

    return MetricsPlace


def _log() -> type[Place]:
    from tui.screens.log import LogPlace

    return LogPlace


KINDS: Final[dict[str, Callable[[], type[Place]]]] = {
    "loops": _loops,
    "patterns": _patterns,
    "review": _review,
    "context": _context,
    "reflections": _reflections,
    "memory": _memory,
    "metrics": _metrics,
    "log": _log,
}
"""What imports the class of each place, by its name."""


def _making(kind: Callable[[], type[Place]]) -> Callable[[], Screen[Any]]:
    return lambda: kind()()


MODES: Final = {name: _making(kind) for name, kind in KINDS.items()}
"""What makes each place, by its name."""
