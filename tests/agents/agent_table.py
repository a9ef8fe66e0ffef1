"""The agents that are tested: their packages, and how each runs without a person against a model on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

KEY: Final = "scripted"
"""API key of the scripted model, which takes any."""


@dataclass(frozen=True)
class Place:
    """Where an agent runs."""

    project: Path
    home: Path
    port: int

    @property
    def url(self) -> str:
        """Address of the scripted model."""
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True)
class RealAgent:
    """One agent."""

    package: str
    version: str
    program: str
    command: Callable[[str], Sequence[str]]
    """Arguments of a session without a person, with its prompt."""
    environment: Callable[[Place], Mapping[str, str]]
    settings: Callable[[Place], Mapping[str, str]] = field(default=lambda place: {})
    """Files below the home folder, with their texts."""
    events: frozenset[str] = frozenset()
    """Hook events that a session with a fix fires; none if the agent runs no hook commands."""


def _claude_command(prompt: str) -> Sequence[str]:
    return ["-p", prompt, "--allowedTools", "Bash Edit Read Write mcp__ralphdeck", "--model", "claude-opus-4-6"]


def _claude_environment(place: Place) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": place.url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CONFIG_DIR": str(place.home / ".claude"),
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def _codex_command(prompt: str) -> Sequence[str]:
    return ["exec", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", prompt]


def _codex_settings(place: Place) -> Mapping[str, str]:
    text = f"""
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = "{place.url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"

[projects."{place.project}"]
trust_level = "trusted"
"""
    return {".codex/config.toml": text}


def _gemini_command(prompt: str) -> Sequence[str]:
    return ["--model", "gemini-3-pro-preview", "--approval-mode", "yolo", "-p", prompt]


def _gemini_settings(place: Place) -> Mapping[str, str]:
    settings = {
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
    }
    return {
        ".gemini/settings.json": json.dumps(settings),
        ".gemini/trustedFolders.json": json.dumps({str(place.project): "TRUST_FOLDER"}),
    }


def _copilot_environment(place: Place) -> Mapping[str, str]:
    return {
        "COPILOT_OFFLINE": "true",
        "COPILOT_HOME": str(place.home / ".copilot"),
        "COPILOT_PROVIDER_BASE_URL": f"{place.url}/v1",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_MODEL": "gpt-5",
        "COPILOT_AUTO_UPDATE": "false",
    }


def _opencode_settings(place: Place) -> Mapping[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{place.url}/v1", "apiKey": KEY},
        "models": {"scripted": {"limit": {"context": 100_000, "output": 10_000}}},
    }
    settings = {
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "autoupdate": False,
        "share": "disabled",
        "provider": {"scripted": provider},
    }
    return {"config/opencode/opencode.json": json.dumps(settings)}


AGENTS: Final[dict[str, RealAgent]] = {
    "claude": RealAgent(
        package="@anthropic-ai/claude-code",
        version="2.1.331",
        program="claude",
        command=_claude_command,
        environment=_claude_environment,
        events=frozenset(
            ["SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop", "SessionEnd"]
        ),
    ),
    "codex": RealAgent(
        package="@openai/codex",
        version="0.169.0",
        program="codex",
        command=_codex_command,
        environment=lambda place: {"CODEX_HOME": str(place.home / ".codex"), "SCRIPTED_KEY": KEY},
        settings=_codex_settings,
        events=frozenset(["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"]),
    ),
    "gemini": RealAgent(
        package="@google/gemini-cli",
        version="0.61.0",
        program="gemini",
        command=_gemini_command,
        environment=lambda place: {"GOOGLE_GEMINI_BASE_URL": place.url, "GEMINI_API_KEY": KEY},
        settings=_gemini_settings,
        events=frozenset(["SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "SessionEnd"]),
    ),
    "copilot": RealAgent(
        package="@github/copilot",
        version="1.0.102",
        program="copilot",
        command=lambda prompt: ["-p", prompt, "--allow-all-tools", "--trust-folder"],
        environment=_copilot_environment,
        events=frozenset(["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"]),
    ),
    "opencode": RealAgent(
        package="opencode-ai",
        version="1.18.33",
        program="opencode",
        command=lambda prompt: ["run", prompt],
        environment=lambda place: {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        settings=_opencode_settings,
    ),
}
