"""All adapters: those of the program, and those that other packages add (docs/adapters.md#own-adapter)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from core.base.errors import BadInput
from core.base.id_lookup import suggest_id
from core.base.text import visible_line
from core.records.findings import Finding, Severity
from core.records.loops import OWN

if TYPE_CHECKING:
    from core.adapters.contract import Adapter, AdapterReport

ENTRY_POINTS: Final = "ralphdeck.adapters"
_OWN: Final[tuple[str, ...]] = (
    "beads:BeadsAdapter",
    "claude:ClaudeAdapter",
    "codex:CodexAdapter",
    "frankbria:FrankbriaAdapter",
    "gemini:GeminiAdapter",
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


def load_adapters(findings: list[Finding]) -> list[Adapter]:
    """Return all adapters; those of other packages that cannot be loaded are added to `findings`."""
    from importlib.metadata import entry_points  # imports much

    found = own_adapters()
    names = {one.name for one in found}
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        try:
            adapter: Adapter = entry.load()()
            if not adapter.name.replace("-", "_").isidentifier() or adapter.name in names:
                raise ValueError(f"the name {adapter.name!r} is invalid or in use")
        except Exception as error:  # code of others
            message = f"the adapter {entry.value} cannot be loaded: {type(error).__name__}: {error}"
            findings.append(Finding(entry.name, "", Severity.ERROR, "adapter-failed", message[:300]))
        else:
            names.add(adapter.name)
            found.append(adapter)
    return found


def find_source(text: str) -> str:
    """Return the name of the source of loops with this name or title; raises BadInput for an unknown one."""
    adapters = load_adapters([])
    names = {OWN: OWN, f".{OWN}": OWN}
    for one in adapters:
        names |= dict.fromkeys((one.name, one.title.casefold(), *one.title.casefold().split(", ")), one.name)
    if (name := names.get(text.strip().casefold())) is None:
        known = ", ".join((OWN, *map(format_source, adapters)))
        raise BadInput(f"unknown source {visible_line(text, 80)!r}; use {known}{suggest_id(text, names)}")
    return name


def format_source(adapter: Adapter | AdapterReport) -> str:
    """Return the name of an adapter with its title, such as `claude (Claude Code)`."""
    return adapter.name if adapter.name == adapter.title else f"{adapter.name} ({adapter.title})"
