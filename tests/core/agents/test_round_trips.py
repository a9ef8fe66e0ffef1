"""Connecting and disconnecting leaves every file as it was, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.agents import apply
from core.agents.connection_table import CONNECTIONS
from tests.core.agents.conftest import Desk, problems
from tests.factories import leave_draft

CLAUDE = ".claude/settings.json"
NESTED = '{"hooks": {"Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "say done"}]}]}}'
UNUSUAL: dict[str, dict[str, bytes | str]] = {
    "tabs": {CLAUDE: '{\n\t"env": {\n\t\t"A": "1"\n\t}\n}\n'},
    "CRLF": {CLAUDE: '{\r\n  "env": {"A": "1"}\r\n}\r\n', "CLAUDE.md": "# Rules\r\n\r\n- be kind\r\n"},
    "byte order mark": {CLAUDE: b'\xef\xbb\xbf{"env": {}}', ".mcp.json": b'\xef\xbb\xbf{\n  "mcpServers": {}\n}'},
    "one line, no line end": {CLAUDE: NESTED, "CLAUDE.md": "no line end"},
    "an empty object with white space": {CLAUDE: "{ \n }\n\n"},
    "empty files": {CLAUDE: "", ".mcp.json": "\n", "CLAUDE.md": "", "AGENTS.md": "\n\n"},
    "empty containers": {CLAUDE: '{"hooks": {"Stop": [ ], "SessionStart": []}}', ".mcp.json": '{"mcpServers": { }}'},
    "hooks of others on all our events": {
        CLAUDE: json.dumps(
            {"hooks": {event: [{"hooks": [{"type": "command", "command": "x"}]}] for event in ("Stop", "PostToolUse")}},
            indent=4,
        )
    },
    "odd numbers and escapes": {CLAUDE: '{"a": 1.0, "b": 1e3, "c": "\\u00e9\\/", "d": 12345678901234567 }'},
    "hostile names": {CLAUDE: '{"\\u202e\\u001b[31m": "\\u0007", "hooks": {"\\u0000": [1, null, {"hooks": 3}]}}'},
    "TOML without line end": {".codex/config.toml": 'model = "x" # comment\n[mcp_servers.other]\ncommand = "o"'},
    "TOML with CRLF": {".codex/config.toml": 'model = "x"\r\n\r\n[projects."/a"]\r\ntrust_level = "trusted"\r\n'},
    "other servers": {
        ".mcp.json": '{"mcpServers": {"other": {"command": "o"}}, "x": []}',
        ".cursor/mcp.json": '{"mcpServers":{"other":{"url":"http://o"}}}',
        "opencode.json": '{"$schema": "https://opencode.ai/config.json", "mcp": {"other": {"type": "remote"}}}',
    },
    "instructions that import AGENTS.md": {"CLAUDE.md": "Read @AGENTS.md first.\n", "AGENTS.md": "# All\n"},
    "two kinds of entries in one file": {".gemini/settings.json": '{"hooks": {"BeforeTool": []}, "theme": "dark"}\n'},
    "a version": {".cursor/hooks.json": '{"version": 1, "hooks": {"stop": [{"command": "./x.sh"}]}}'},
}


@pytest.mark.parametrize("files", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_removing_restores_every_byte(desk: Desk, files: dict[str, bytes | str]) -> None:
    for name, data in files.items():
        desk.write(name, data)
    before = desk.snapshot()
    plans = desk.connect(*CONNECTIONS)
    assert problems(plans) == []
    assert all(plan.changes for plan in plans)
    assert problems(desk.remove(*CONNECTIONS)) == []
    assert desk.snapshot() == before


@pytest.mark.parametrize("written", range(9))
def test_a_process_that_is_killed_leaves_files_that_can_be_restored(
    desk: Desk, written: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write("CLAUDE.md", "no line end")
    desk.write(".mcp.json", "{}\n")
    before = desk.snapshot()
    killed = written + 1  # the number of the write that never returns

    def write(call: Callable[..., None]) -> Callable[..., None]:
        def counted(*given: Any) -> None:
            nonlocal killed
            killed -= 1
            if not killed:
                raise KeyboardInterrupt
            call(*given)

        return counted

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(apply, "_write", write(apply._write))
        patch.setattr("core.agents.apply.save_points", write(apply.save_points))
        desk.connect("claude")
        desk.remove("claude")
    assert problems(desk.connect("claude")) == []
    assert problems(desk.remove("claude")) == []
    assert desk.snapshot() == before


def test_drafts_of_a_process_that_was_killed_are_deleted(desk: Desk) -> None:
    draft = leave_draft(desk.write("CLAUDE.md", "# Shop\n"))
    desk.connect("claude")
    assert not draft.exists()


@pytest.mark.parametrize("files", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_connecting_twice_changes_nothing(desk: Desk, files: dict[str, bytes | str]) -> None:
    for name, data in files.items():
        desk.write(name, data)
    desk.connect(*CONNECTIONS)
    after = desk.snapshot()
    assert not any(plan.changes for plan in desk.connect(*CONNECTIONS))
    assert desk.snapshot() == after


@pytest.mark.parametrize("files", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_without_restore_points_the_values_of_others_stay(desk: Desk, files: dict[str, bytes | str]) -> None:
    for name, data in files.items():
        desk.write(name, data)
    desk.connect(*CONNECTIONS)
    desk.points.write_bytes(b"damaged")
    desk.remove(*CONNECTIONS)
    for name, data in files.items():
        path = desk.project / name
        raw = data if isinstance(data, bytes) else data.encode()
        if name.endswith(".json") and raw.strip():
            assert without_empty(read_json(path)) == without_empty(json.loads(raw.decode("utf-8-sig")))
        elif path.exists():
            assert path.read_bytes().split() == raw.split()
        else:
            assert not raw.strip()


def read_json(path: Path) -> Any:
    return json.loads(path.read_bytes().decode("utf-8-sig")) if path.exists() else {}


def without_empty(value: Any) -> Any:
    """A JSON object without empty containers in it."""
    if not isinstance(value, dict):
        return value
    members = ((key, without_empty(item)) for key, item in value.items())
    return {key: item for key, item in members if item not in ({}, [])}


@pytest.mark.parametrize("agent", CONNECTIONS)
def test_an_agent_alone_leaves_nothing_behind(desk: Desk, agent: str) -> None:
    desk.connect(agent)
    assert desk.snapshot()
    desk.remove(agent)
    assert desk.snapshot() == {}


@pytest.mark.parametrize("order", ["claude cursor gemini", "gemini claude cursor", "cursor gemini claude"])
def test_agents_can_be_removed_in_any_order(desk: Desk, order: str) -> None:
    desk.write("AGENTS.md", "# Rules")
    desk.connect("claude", "codex", "cursor", "gemini", "copilot", "opencode")
    for agent in (*order.split(), "opencode", "codex", "copilot"):
        desk.remove(agent)
    assert desk.snapshot() == {"AGENTS.md": b"# Rules"}


def test_what_another_agent_still_uses_stays(desk: Desk) -> None:
    desk.connect("codex", "opencode")
    desk.remove("codex")
    assert b"BEGIN ralphdeck" in (desk.project / "AGENTS.md").read_bytes()
    desk.remove("opencode")
    assert desk.snapshot() == {}


def test_changes_of_others_survive_removal(desk: Desk) -> None:
    path = desk.write(CLAUDE, '{\n  "env": {"A": "1"}\n}\n')
    desk.connect("claude")
    value = json.loads(path.read_bytes())
    value["model"] = "opus"
    value["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "say done"}]})
    path.write_text(json.dumps(value, indent=2))
    (desk.project / "CLAUDE.md").write_text("# New\n\n" + (desk.project / "CLAUDE.md").read_text() + "\nlast\n")
    desk.remove("claude")
    assert json.loads(path.read_bytes()) == {
        "env": {"A": "1"},
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]},
        "model": "opus",
    }
    assert (desk.project / "CLAUDE.md").read_text().split() == ["#", "New", "last"]
    assert not (desk.project / ".mcp.json").exists()


def test_tables_that_codex_wrote_between_the_marks_survive(desk: Desk) -> None:
    path = desk.write(".codex/config.toml", 'model = "x"\n')
    desk.connect("codex")
    trusted = '[hooks.state."/p/.codex/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:1"\n'
    text = path.read_text()
    path.write_text(text.replace("# END ralphdeck", f"{trusted}# END ralphdeck"))
    desk.remove("codex")
    assert trusted in path.read_text() and "ralphdeck" not in path.read_text().replace(trusted, "")


def test_folders_of_others_stay(desk: Desk) -> None:
    (desk.project / ".claude/skills").mkdir(parents=True)
    desk.connect("claude")
    desk.remove("claude")
    assert desk.snapshot() == {".claude": None, ".claude/skills": None}


def test_a_skill_that_a_person_edited_is_never_touched(desk: Desk) -> None:
    desk.connect("claude")
    path = desk.project / ".claude/skills/ralphdeck/SKILL.md"
    path.write_text(path.read_text().replace("# Lessons", "# My lessons"))
    edited = path.read_bytes()
    assert not any(plan.changes for plan in desk.connect("claude"))
    desk.remove("claude")
    assert path.read_bytes() == edited


def test_modes_of_files_stay_and_restore_points_are_private(desk: Desk) -> None:
    path = desk.write(CLAUDE, '{"env": {"TOKEN": "secret"}}')
    path.chmod(0o600)
    desk.connect("claude")
    assert path.stat().st_mode & 0o777 == 0o600
    assert desk.points.stat().st_mode & 0o077 == 0


def test_another_name_of_the_same_program_is_up_to_date(
    desk: Desk, tmp_path: Path, program: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program("exit 0")
    monkeypatch.setenv("PATH", str(Path(path).parent))
    desk.connect("claude", "codex", "opencode", program="ralphdeck")
    assert not any(plan.changes for plan in desk.connect("claude", "codex", "opencode", program=path))
    other = tmp_path / "other/ralphdeck"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    plans = desk.connect("claude", "codex", "opencode", program=str(other))
    assert [len(plan.changes) for plan in plans] == [2, 2, 1]
    desk.remove("claude", "codex", "opencode")
    assert desk.snapshot() == {}


def test_the_user_files_are_written_on_demand(
    desk: Desk, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    (plan,) = desk.connect("codex", is_global=True)
    assert [change.path for change in plan.changes] == [
        tmp_path / "codex/hooks.json",
        tmp_path / "codex/config.toml",
        home / ".agents/skills/ralphdeck/SKILL.md",
    ]
    assert desk.snapshot() == {}
    desk.remove("codex", is_global=True)
    assert not (tmp_path / "codex").exists() and list(home.iterdir()) == []


NAMES = st.sampled_from(["hooks", "Stop", "mcpServers", "PostToolUse", "matcher", "command", "a", "é", "\u202e", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
GROUPS = st.lists(st.dictionaries(NAMES, VALUES, max_size=3), max_size=3)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "env": VALUES,
        "hooks": st.dictionaries(st.sampled_from(["Stop", "SessionStart", "Other"]), GROUPS, max_size=3),
        "é": VALUES,
    },
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=SETTINGS, indent=st.sampled_from([None, 1, 4, "\t"]), ascii=st.booleans(), end=st.sampled_from(["", "\n"]))
def test_any_settings_are_restored(
    desk: Desk, value: dict[str, Any], indent: int | str | None, ascii: bool, end: str
) -> None:
    data = (json.dumps(value, indent=indent, ensure_ascii=ascii) + end).encode()
    path = desk.write(CLAUDE, data)
    plans = desk.connect("claude")
    assert problems(plans) == []
    connected = json.loads(path.read_bytes())
    assert {key: item for key, item in connected.items() if key != "hooks"} == {
        key: item for key, item in value.items() if key != "hooks"
    }
    for event, groups in value.get("hooks", {}).items():
        assert connected["hooks"][event][: len(groups)] == groups
    assert not any(plan.changes for plan in desk.connect("claude"))
    desk.points.write_bytes(b"")
    desk.remove("claude")
    left = json.loads(path.read_bytes()) if path.exists() else {}
    assert without_empty(left) == without_empty(value)
    desk.connect("claude")
    path.write_bytes(data)
    desk.remove("claude")
    assert path.read_bytes() == data
