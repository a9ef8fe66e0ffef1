"""Adapters of the program and of other packages; docs/adapters.md#own-adapter."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Final

from core.base.errors import BadInput
from core.base.text import visible_line
from core.base.validation import suggest_id
from core.records.findings import Finding, Severity
from core.records.loops import OWN

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from core.sources.adapters.contract import Adapter
    from core.sources.adapters.folders import Folders

ENTRY_POINTS: Final = "ralphdeck.adapters"
_MAX_ROOTS: Final = 5  # working trees in which marks are looked for
_OWN: Final[tuple[tuple[str, str, tuple[str, ...], tuple[str, str] | None], ...]] = (
    ("beads", "beads:BeadsAdapter", (".beads",), None),
    ("claude", "claude:ClaudeAdapter", (), ("CLAUDE_CONFIG_DIR", ".claude")),
    ("codex", "codex:CodexAdapter", (), ("CODEX_HOME", ".codex")),
    ("frankbria", "frankbria:FrankbriaAdapter", (".ralph/status.json", "status.json", ".ralphrc"), None),
    ("gemini", "gemini:GeminiAdapter", (), ("GEMINI_CLI_HOME", ".gemini")),
    ("guardrails", "guardrails:GuardrailsAdapter", (".ralph/guardrails.md",), None),
    ("open-ralph", "open_ralph:OpenRalphAdapter", (".ralph",), None),
    ("opencode", "opencode:OpencodeAdapter", (), ("XDG_DATA_HOME", ".local/share/opencode")),
    ("orchestrator", "orchestrator:OrchestratorAdapter", (".ralph",), None),
    ("ralph-loop", "ralph_loop:RalphLoopAdapter", (".claude", ".sisyphus"), None),
    ("ralph-tui", "ralph_tui:RalphTuiAdapter", (".ralph-tui",), ("", ".config/ralph-tui/sessions.json")),
    ("snarktank", "snarktank:SnarktankAdapter", ("prd.json", "scripts", "ralph", "tasks", ".agents"), None),
)
"""Name, module and class below `core.sources.adapters`, marks in a working tree, and the private folder of an agent as
its variable and its default below the home folder; in the order of the lists. An adapter is only imported if one of its
marks exists; its `fingerprint` then shows whether it was used."""


class KnownAdapter:
    """An adapter, known by its name; imported and created on first use."""

    def __init__(
        self,
        name: str,
        place: str = "",
        marks: tuple[str, ...] = (),
        private: tuple[str, str] | None = None,
        adapter: Adapter | None = None,
    ) -> None:
        self.name = name
        self._place, self._marks, self._private, self._made = place, marks, private, adapter

    @cached_property
    def adapter(self) -> Adapter:
        if self._made is not None:
            return self._made
        module, _, kind = self._place.partition(":")
        made: Adapter = getattr(import_module(f"core.sources.adapters.{module}"), kind)()
        return made

    def may_be_used(self, folders: Folders) -> bool:
        """Return whether a mark of its runner exists."""
        if self._made is not None:
            return True
        private = folders.private(*self._private) if self._private is not None else None
        paths = [root / mark for root in folders.roots[:_MAX_ROOTS] for mark in self._marks]
        return any(map(_exists, (*paths, *((private,) if private is not None else ()))))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def own_adapters() -> list[Adapter]:
    """Return the adapters of the program."""
    return [KnownAdapter(*row).adapter for row in _OWN]


def load_adapters(findings: list[Finding]) -> list[KnownAdapter]:
    """Return all adapters; add a finding for each that cannot be loaded."""
    from importlib.metadata import entry_points  # imports much

    known = [KnownAdapter(*row) for row in _OWN]
    names = {one.name for one in known}
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
            known.append(KnownAdapter(adapter.name, adapter=adapter))
    return known


def source_titles() -> dict[str, str]:
    """Return the title of each adapter by its name; imports all of them."""
    return {known.name: known.adapter.title for known in load_adapters([])}


def find_source(text: str) -> str:
    """Resolve the name or title of a source of loops; raise BadInput if unknown."""
    titles = source_titles()
    names = {OWN: OWN, f".{OWN}": OWN}
    for name, title in titles.items():
        names |= dict.fromkeys((name, title.casefold(), *title.casefold().split(", ")), name)
    if (found := names.get(text.strip().casefold())) is None:
        known = ", ".join((OWN, *(format_source(name, titles) for name in titles)))
        raise BadInput(f"unknown source {visible_line(text, 80)!r}; use {known}{suggest_id(text, names)}")
    return found


def format_source(name: str, titles: Mapping[str, str]) -> str:
    """Return the name of an adapter with its title, such as `claude (Claude Code)`."""
    title = titles.get(name, name)
    return name if name == title else f"{name} ({title})"
