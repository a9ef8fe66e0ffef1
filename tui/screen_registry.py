"""Screen classes by name, imported on demand so that the start is fast."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

from tui.actions import PLACES

if TYPE_CHECKING:
    from tui.screens.base_screen import BaseScreen


def screen_class(name: str) -> type[BaseScreen]:
    """Import a screen class: `LoopsScreen` of `tui.screens.loops` for `loops`."""
    found: type[BaseScreen] = getattr(import_module(f"tui.screens.{name}"), f"{name.title()}Screen")
    return found


def _make(name: str) -> BaseScreen:
    return screen_class(name)()


MODES: Final[dict[str, Callable[[], BaseScreen]]] = {name: partial(_make, name) for name in PLACES}
