"""All adapters: those of the program, and those that other packages add (docs/adapters.md#own-adapter)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from core.adapters.contract import Adapter

ENTRY_POINTS: Final = "ralphdeck.adapters"
_OWN: Final[tuple[str, ...]] = (
    "beads:BeadsAdapter",
    "claude:ClaudeAdapter",
    "codex:CodexAdapter",
    "frankbria:FrankbriaAdapter",
    "guardrails:GuardrailsAdapter",
    "open_ralph:OpenRalphAdapter",
    "opencode:OpencodeAdapter",
    "orchestrator:OrchestratorAdapter",
    "ralph_loop:RalphLoopAdapter",
    "ralph_tui:RalphTuiAdapter",
    "snarktank:SnarktankAdapter",
)  # `module:class` below `core.adapters`, in the order of the lists


def own_adapters() -> list[Adapter]:
    """Return the adapters of the program."""
    found: list[Adapter] = []
    for name in _OWN:
        module, _, kind = name.partition(":")
        found.append(getattr(import_module(f"core.adapters.{module}"), kind)())
    return found
