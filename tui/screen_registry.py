"""The screens, imported on demand: the first frame waits for one of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Final

from tui.screens.base_screen import BaseScreen

_CLASSES: Final = {
    "loops": "LoopsScreen",
    "patterns": "PatternsScreen",
    "review": "ReviewScreen",
    "context": "ContextScreen",
    "reflections": "ReflectionsScreen",
    "memory": "MemoryScreen",
    "metrics": "MetricsScreen",
    "log": "LogScreen",
}
"""Class of each screen, by the name of its module in `tui.screens`."""


def screen_class(name: str) -> type[BaseScreen]:
    found: type[BaseScreen] = getattr(import_module(f"tui.screens.{name}"), _CLASSES[name])
    return found


def _make(name: str) -> BaseScreen:
    return screen_class(name)()


MODES: Final[dict[str, Callable[[], BaseScreen]]] = {name: partial(_make, name) for name in _CLASSES}
"""What makes each screen, by its name."""
