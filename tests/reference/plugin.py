"""Generate the plugin for the marketplaces of Claude Code and Codex from the texts and tables of `core.agents`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from core import __version__
from core.agents.agent_table import AGENTS
from core.agents.entries import CONNECTIONS, fill

ROOT: Final = Path(__file__).parents[2]
_TEXTS: Final = ROOT / "core/agents"
_NAME: Final = "ralphdeck"
_DESCRIPTION: Final = "Gives an agent the lessons of earlier work that a person curates, and records its sessions."
_MISSING: Final = f"command -v {_NAME} >/dev/null || {{ echo '{_NAME} is not installed' >&2; exit 0; }}"
_MARKETPLACE: Final = {"name": _NAME, "source": "./plugin", "description": _DESCRIPTION}
_PLUGIN: Final = {"name": _NAME, "version": __version__, "description": _DESCRIPTION}
_LESSONS: Final = """\
---
description: List the lessons of earlier work for a task.
argument-hint: <task>
---

Call the MCP tool `loop_context` with the task "$ARGUMENTS", and list the lessons with their evidence. Without MCP, run
`ralphdeck loop inject --task "$ARGUMENTS"`.
"""


def render_pages() -> dict[Path, str]:
    """The files of the plugin and of both marketplaces."""
    files: dict[str, str | dict[str, Any]] = {
        ".claude-plugin/marketplace.json": {
            "name": _NAME,
            "owner": {"name": "The ralphdeck maintainers"},
            "plugins": [_MARKETPLACE],
        },
        ".agents/plugins/marketplace.json": {
            "name": _NAME,
            "interface": {"displayName": _NAME},
            "plugins": [
                {
                    "name": _NAME,
                    "source": {"source": "local", "path": "./plugin"},
                    "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                    "category": "Productivity",
                }
            ],
        },
        "plugin/.claude-plugin/plugin.json": _PLUGIN,
        "plugin/.codex-plugin/plugin.json": {
            **_PLUGIN,
            "skills": "./skills/",
            "hooks": "./hooks/codex.json",
            "mcpServers": "./.mcp.json",
        },
        "plugin/.mcp.json": {"mcpServers": {_NAME: {"command": _NAME, "args": ["mcp"]}}},
        "plugin/hooks/hooks.json": _hooks("claude"),
        "plugin/hooks/codex.json": _hooks("codex"),
        "plugin/commands/lessons.md": _LESSONS,
        f"plugin/skills/{_NAME}/SKILL.md": (_TEXTS / "skill.md").read_text("utf-8"),
    }
    return {
        ROOT / name: content if isinstance(content, str) else f"{json.dumps(content, indent=2)}\n"
        for name, content in files.items()
    }


def _hooks(agent: str) -> dict[str, Any]:
    file = CONNECTIONS[agent].hooks
    assert file is not None
    command = f"{_MISSING}; {_NAME} hook --agent {agent}"
    events = {event: [fill(file.entries.get(event, file.entry), hook=command)] for event in AGENTS[agent].events}
    return {"hooks": events}
