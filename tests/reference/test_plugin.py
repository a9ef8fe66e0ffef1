"""The plugin has what the marketplaces of Claude Code and Codex require, and nothing that they do not know."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest

from core.agents.entries import hook_program
from tests.reference.plugin import ROOT

PLUGIN = ROOT / "plugin"
MANIFEST_KEYS = {
    *("name", "version", "description", "author", "homepage", "repository", "license", "keywords"),
    *("commands", "agents", "skills", "hooks", "mcpServers"),
}


def read(name: str) -> Any:
    return json.loads((ROOT / name).read_text())


@pytest.mark.parametrize("folder", [".claude-plugin", ".codex-plugin"])
def test_a_manifest_names_the_plugin_and_files_that_exist(folder: str) -> None:
    manifest = read(f"plugin/{folder}/plugin.json")
    assert manifest.keys() <= MANIFEST_KEYS and manifest.keys() >= {"name", "version", "description"}
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", manifest["name"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", manifest["version"])
    for key in ("skills", "hooks", "mcpServers"):
        assert key not in manifest or (manifest[key].startswith("./") and (PLUGIN / manifest[key]).exists())
    assert [path.name for path in (PLUGIN / folder).iterdir()] == ["plugin.json"]


def test_the_marketplace_of_claude_code() -> None:
    marketplace = read(".claude-plugin/marketplace.json")
    assert marketplace.keys() == {"name", "owner", "plugins"} and marketplace["owner"].keys() == {"name"}
    (entry,) = marketplace["plugins"]
    assert entry.keys() == {"name", "source", "description"}
    assert entry["source"].startswith("./") and (ROOT / entry["source"] / ".claude-plugin/plugin.json").exists()


def test_the_marketplace_of_codex() -> None:
    marketplace = read(".agents/plugins/marketplace.json")
    assert marketplace.keys() == {"name", "interface", "plugins"}
    (entry,) = marketplace["plugins"]
    assert entry.keys() == {"name", "source", "policy", "category"}
    assert entry["source"]["source"] == "local"
    assert (ROOT / entry["source"]["path"] / ".codex-plugin/plugin.json").exists()
    assert entry["policy"] == {"installation": "AVAILABLE", "authentication": "ON_INSTALL"}


@pytest.mark.parametrize(("file", "agent"), [("hooks", "claude"), ("codex", "codex")])
def test_the_hooks_call_ralphdeck_and_do_nothing_without_it(file: str, agent: str) -> None:
    hooks = read(f"plugin/hooks/{file}.json")
    assert hooks.keys() == {"hooks"}
    for groups in hooks["hooks"].values():
        for group in groups:
            assert group.keys() <= {"matcher", "hooks"}
            (hook,) = group["hooks"]
            assert hook["type"] == "command" and hook_program(hook)
            assert hook["command"].endswith(f"ralphdeck hook --agent {agent}")
    done = subprocess.run(["/bin/sh", "-c", hook["command"]], env={"PATH": "/nowhere"}, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "ralphdeck is not installed\n")


def test_the_mcp_server_and_the_skill() -> None:
    assert read("plugin/.mcp.json") == {"mcpServers": {"ralphdeck": {"command": "ralphdeck", "args": ["mcp"]}}}
    skill = (PLUGIN / "skills/ralphdeck/SKILL.md").read_text()
    head = re.match(r"---\nname: (.+)\ndescription: (.+)\n---\n", skill)
    assert head is not None and head[1] == "ralphdeck" and len(head[2]) <= 1024
