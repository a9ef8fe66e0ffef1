"""Files of agents are changed and restored byte for byte, and hostile ones are refused."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.agents.agent_table import AGENTS
from core.agents.entries import CONNECTIONS, TomlTable, fill, start_event
from core.agents.plan import _write, apply_plan, plan_connect, save_points
from core.base.errors import Conflict
from core.files.managed_text import MAX_BYTES, Block, OwnFile
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
def test_connecting_twice_changes_nothing_and_removing_restores_every_byte(
    desk: Desk, files: dict[str, bytes | str]
) -> None:
    for name, data in files.items():
        desk.write(name, data)
    before = desk.snapshot()
    plans = desk.connect(*CONNECTIONS)
    assert problems(plans) == []
    assert all(plan.changes for plan in plans)
    after = desk.snapshot()
    assert not any(plan.changes for plan in desk.connect(*CONNECTIONS))
    assert desk.snapshot() == after
    assert problems(desk.remove(*CONNECTIONS)) == []
    assert desk.snapshot() == before


@pytest.mark.parametrize("written", range(9))
def test_a_process_that_is_killed_leaves_files_that_can_be_restored(
    desk: Desk, written: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = leave_draft(desk.write("CLAUDE.md", "no line end"))
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
        patch.setattr("core.agents.plan._write", write(_write))
        patch.setattr("core.agents.plan.save_points", write(save_points))
        desk.connect("claude")
        desk.remove("claude")
    assert problems(desk.connect("claude")) == []
    assert not draft.exists()
    assert problems(desk.remove("claude")) == []
    before.pop(draft.name)
    assert desk.snapshot() == before


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
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


HOSTILE_SETTINGS = ".claude/settings.json"
TEXTS: dict[str, tuple[str, bytes, str]] = {
    "line comment": (HOSTILE_SETTINGS, b'{\n  "env": {},\n  // mine\n  "a": "//"\n}', "line 3: JSON with comments"),
    "block comment": (HOSTILE_SETTINGS, b'/* mine */ {"env": {}}', "line 1: JSON with comments"),
    "trailing comma": (HOSTILE_SETTINGS, b'{\n  "a": 1,\n}', ": is not JSON"),
    "cut short": (HOSTILE_SETTINGS, b'{"env": {"A": ', "line 1, column 15: is not JSON"),
    "duplicate key": (HOSTILE_SETTINGS, b'{"hooks": {}, "hooks": {}}', "key 'hooks' occurs twice in one object"),
    "list": (HOSTILE_SETTINGS, b"[]", "is not a JSON object"),
    "text": (HOSTILE_SETTINGS, b'"hooks"', "is not a JSON object"),
    "JSON lines": (HOSTILE_SETTINGS, b'{"a": 1}\n{"b": 2}\n', "is not JSON"),
    "hooks is a list": (HOSTILE_SETTINGS, b'{"hooks": []}', "hooks is not an object"),
    "hooks is null": (HOSTILE_SETTINGS, b'{"hooks": null}', "hooks is not an object"),
    "event is an object": (HOSTILE_SETTINGS, b'{"hooks": {"Stop": {}}}', "hooks.Stop is not a list"),
    "not UTF-8": (HOSTILE_SETTINGS, b'{"a": "\xff\xfe"}', "not UTF-8"),
    "nested deeply": (HOSTILE_SETTINGS, b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}", "nested deeper than 64 levels"),
    "huge": (HOSTILE_SETTINGS, b'{"a": "' + b"x" * MAX_BYTES + b'"}', f"at most {MAX_BYTES:,} are read"),
    "servers is a list": (".mcp.json", b'{"mcpServers": []}', "mcpServers is not an object"),
    "another server": (".mcp.json", b'{"mcpServers": {"ralphdeck": {"command": "x"}}}', "is another server"),
    "half a section": ("CLAUDE.md", b"a\n<!-- END ralphdeck -->\n", "line 2: the marks"),
    "two sections": ("CLAUDE.md", b"<!-- BEGIN ralphdeck -->\n<!-- END ralphdeck -->\n" * 2, "line 1: the marks"),
    "instructions not in UTF-8": ("CLAUDE.md", b"caf\xe9\n", "byte 3: not UTF-8"),
    "a skill of others": (".claude/skills/ralphdeck/SKILL.md", b"mine\n", "was not written by ralphdeck"),
}


@pytest.mark.parametrize(("name", "data", "message"), TEXTS.values(), ids=TEXTS.keys())
def test_unusable_texts(desk: Desk, name: str, data: bytes, message: str) -> None:
    desk.write(name, data)
    before = desk.snapshot()
    plans = desk.connect("claude", "codex")
    (problem,) = problems(plans)
    assert problem.startswith(f"{name}: ") and message in problem
    assert {path: desk.snapshot()[path] for path in before} == before
    assert (desk.project / ".codex/hooks.json").exists(), "other agents are connected"
    assert not any((desk.project / path).exists() for path in {HOSTILE_SETTINGS, ".mcp.json", "CLAUDE.md"} - {name})


TOML: dict[str, tuple[bytes, str]] = {
    "invalid": (b"model = \n", "not TOML"),
    "another table": (b'[mcp_servers.ralphdeck]\ncommand = "x"\n', "was not written by ralphdeck"),
    "servers is a list": (b"mcp_servers = []\n", "mcp_servers is not a table"),
    "inline table": (b"mcp_servers = {}\n", "not TOML"),
}


@pytest.mark.parametrize(("data", "message"), TOML.values(), ids=TOML.keys())
def test_unusable_toml(desk: Desk, data: bytes, message: str) -> None:
    desk.write(".codex/config.toml", data)
    (problem,) = problems(desk.connect("codex"))
    assert message in problem
    assert desk.snapshot() == {".codex": None, ".codex/config.toml": data}


def link_to_outside(desk: Desk) -> None:
    outside = desk.project.parent / "outside.json"
    outside.write_text("{}")
    desk.write(HOSTILE_SETTINGS, "").unlink()
    (desk.project / HOSTILE_SETTINGS).symlink_to(outside)


def linked_folder(desk: Desk) -> None:
    (desk.project.parent / "outside").mkdir()
    (desk.project / ".claude").symlink_to(desk.project.parent / "outside")


def folder_in_place(desk: Desk) -> None:
    (desk.project / HOSTILE_SETTINGS).mkdir(parents=True)


def file_in_place_of_a_folder(desk: Desk) -> None:
    desk.write(".claude", "x")


def pipe(desk: Desk) -> None:
    (desk.project / ".claude").mkdir()
    os.mkfifo(desk.project / HOSTILE_SETTINGS)


def read_only_file(desk: Desk) -> None:
    desk.write(HOSTILE_SETTINGS, "{}").chmod(0o444)


def read_only_folder(desk: Desk) -> None:
    desk.write(HOSTILE_SETTINGS, "{}").parent.chmod(0o555)


PLACES: dict[Callable[[Desk], None], str] = {
    link_to_outside: "is a link",
    linked_folder: ".claude is a link",
    folder_in_place: "is not a regular file",
    file_in_place_of_a_folder: ".claude is not a folder",
    pipe: "is not a regular file",
    read_only_file: "is read-only",
    read_only_folder: "the folder .claude is read-only",
}


@pytest.mark.parametrize(("prepare", "message"), PLACES.items(), ids=[one.__name__ for one in PLACES])
def test_unusable_places(desk: Desk, prepare: Callable[[Desk], None], message: str) -> None:
    prepare(desk)
    (problem,) = problems(desk.connect("claude"))
    assert problem.startswith(f"{HOSTILE_SETTINGS}: ") and message in problem
    assert not (desk.project / ".mcp.json").exists() and not (desk.project / "CLAUDE.md").exists()
    assert list(desk.project.parent.glob("outside/*")) == []


@pytest.mark.parametrize(("link", "file"), [("CLAUDE.md", "AGENTS.md"), ("AGENTS.md", "CLAUDE.md")])
def test_instructions_that_are_a_link_to_those_of_another_agent_get_one_section(
    desk: Desk, link: str, file: str
) -> None:
    desk.write(file, "# Rules\n")
    (desk.project / link).symlink_to(file)
    before = desk.snapshot()
    assert problems(desk.connect("claude", "codex")) == []
    assert (desk.project / link).is_symlink() and (desk.project / file).read_text().count("BEGIN ralphdeck") == 1
    desk.remove("codex")
    assert (desk.project / file).read_text().count("BEGIN ralphdeck") == 1
    desk.remove("claude")
    assert desk.snapshot() == before


def test_instructions_that_are_another_link_are_refused(desk: Desk) -> None:
    (desk.project / "CLAUDE.md").symlink_to("../outside.md")
    (problem,) = problems(desk.connect("claude"))
    assert problem.startswith("CLAUDE.md: is a link") and not (desk.project.parent / "outside.md").exists()


def test_a_file_that_changed_since_the_plan_is_not_written_and_others_are_restored(desk: Desk) -> None:
    desk.write(".mcp.json", "{}")
    (plan,) = plan_connect(["claude"], desk.target(), {})
    desk.write(".mcp.json", '{"new": 1}')
    with pytest.raises(Conflict, match="changed by another program"):
        apply_plan(plan, desk.points)
    assert desk.snapshot() == {".mcp.json": b'{"new": 1}'}


def test_a_folder_that_cannot_be_made_restores_the_other_files(desk: Desk) -> None:
    (plan,) = plan_connect(["claude"], desk.target(), {})
    desk.write(".claude/skills", "a file")
    with pytest.raises(Exception, match="skills"):
        apply_plan(plan, desk.points)
    assert desk.snapshot() == {".claude": None, ".claude/skills": b"a file"}


def test_hooks_of_claude_code_are_not_installed_for_cursor_again(desk: Desk) -> None:
    desk.connect("cursor")
    assert (desk.project / ".cursor/hooks.json").exists()
    claude, cursor = desk.connect("claude", "cursor")
    assert claude.changes and "also runs the hooks of Claude Code" in cursor.notes[0]
    assert b"ralphdeck" not in (desk.project / ".cursor/hooks.json").read_bytes()
    (removed,) = desk.remove("claude")
    assert removed.notes == ("Cursor ran these hooks too; to give it its own: ralphdeck connect cursor",)


def test_detection_starts_no_process_and_needs_no_program(
    desk: Desk, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.agents.plan import detect

    monkeypatch.setenv("PATH", str(desk.project))
    assert [*detect(desk.project)] == []
    desk.write("opencode.json", "{}")
    (home / ".codex").mkdir()
    (desk.project / "gemini").write_text("#!/bin/sh\n")
    (desk.project / "gemini").chmod(0o755)
    assert [*detect(desk.project)] == ["codex", "gemini", "opencode"]


@pytest.mark.parametrize(
    ("agent", "file", "text"),
    [
        ("claude", "project/.claude/settings.local.json", '{"enabledPlugins": {"ralphdeck@ralphdeck": true}}'),
        ("codex", "home/.codex/config.toml", '[plugins."ralphdeck@ralphdeck"]\nenabled = true\n'),
    ],
)
def test_with_the_plugin_only_the_instructions_are_added(desk: Desk, agent: str, file: str, text: str) -> None:
    desk.connect(agent)
    path = desk.project.parent / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    (plan,) = desk.connect(agent)
    assert len(plan.changes) == 3 and "has the ralphdeck plugin" in plan.notes[0]
    left = {name for name, data in desk.snapshot().items() if isinstance(data, bytes) and b"ralphdeck" in data}
    assert left - {".claude/settings.local.json"} == {{"claude": "CLAUDE.md", "codex": "AGENTS.md"}[agent]}


def test_hooks_by_hand_are_mentioned(desk: Desk) -> None:
    hook = '{"hooks": [{"type": "command", "command": "ralphdeck loop inject --hook claude-code"}]}'
    desk.write(HOSTILE_SETTINGS, f'{{"hooks": {{"UserPromptSubmit": [{hook}]}}}}')
    (plan,) = desk.connect("claude")
    assert "contexts are given twice" in plan.notes[0]


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(item)


def test_every_agent_has_entries_for_its_events_that_name_the_program() -> None:
    assert [*CONNECTIONS] == [*AGENTS]
    for name, agent in AGENTS.items():
        hooks = CONNECTIONS[name].hooks
        assert bool(agent.events) == (hooks is not None) == bool(start_event(name)), name
        assert any("{program}" in text for text in texts(CONNECTIONS[name].mcp.entry)), name
        if hooks is not None:
            assert hooks.entries.keys() <= agent.events.keys(), name
            assert all("{hook}" in texts(entry) for entry in (hooks.entry, *hooks.entries.values())), name


def test_an_entry_is_filled_at_every_depth() -> None:
    filled = fill({"a": ["{program}", {"b": "run {program}"}], "c": 1}, program='x "y"')
    assert filled == {"a": ['x "y"', {"b": 'run x "y"'}], "c": 1}
    assert json.dumps(filled)


def test_the_home_folder_of_an_agent_can_be_moved(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CONNECTIONS["claude"].home_folder() == home / ".claude"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "elsewhere"))
    assert CONNECTIONS["claude"].home_folder() == tmp_path / "elsewhere"
    assert CONNECTIONS["claude"].resolve("{home}/settings.json", tmp_path)[0] == tmp_path / "elsewhere/settings.json"


OLD, NEW = Block("old text"), Block("new text")
LESSONS = Block("- one\n- two", name="lessons of ralphdeck")
LINES = st.lists(
    st.sampled_from(["", "text", " ", "# Title", "\ufeff", "\x0b", "- one", "<!-- BEGIN x -->", "é"]), max_size=6
)


@given(LINES, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.integers(0, 3), LINES)
def test_removing_a_named_block_restores_the_bytes_around_it(
    lines: list[str], newline: str, has_end: bool, blocks: int, after: list[str]
) -> None:
    before = (newline.join(lines) + newline * has_end).encode()
    data = LESSONS.merge(before)
    assert LESSONS.merge(data) == data and LESSONS.strip(data) == before
    longer = Block("other text\n" * blocks, name=LESSONS.name).merge(data)
    assert LESSONS.strip(longer) == before
    connected = NEW.merge(before)
    assert LESSONS.strip(NEW.strip(LESSONS.merge(connected))) == NEW.strip(connected)
    assert LESSONS.strip(LESSONS.merge(connected)) == connected
    added = newline.join(after).encode()
    gap = (
        newline.encode() if before and added and not before.endswith(b"\n") else b""
    )  # they stay on lines of their own
    assert LESSONS.strip(data + added) == before + gap + added


def test_a_block_is_replaced_in_place_unless_it_is_current_or_edited() -> None:
    data = b"before\n\n" + OLD.merge(None) + b"\nafter\n"
    assert NEW.merge(data) == b"before\n\n" + NEW.merge(None) + b"\nafter\n"
    edited = OLD.merge(b"before\n").replace(b"old text", b"my text")
    assert NEW.merge(edited) == edited
    assert NEW.strip(edited) == b"before\n"
    for head in (b"", b"\r\n", b"a\r\nb\n"):
        for block in (NEW.merge(None), NEW.merge(None).replace(b"\n", b"\r\n"), NEW.merge(None).rstrip()):
            assert NEW.merge(head + block) == head + block
            assert b"ralphdeck" not in NEW.strip(head + block)
    assert b"\n" not in NEW.merge(b"a\r\n").replace(b"\r\n", b"")


def test_a_file_that_a_person_edited_stays_and_an_outdated_one_is_replaced() -> None:
    old, new = OwnFile("old"), OwnFile("new")
    assert new.merge(old.merge(None)) == new.merge(None)
    edited = old.merge(None).replace(b"old", b"mine")
    assert new.merge(edited) == edited and new.strip(edited) == edited
    assert new.strip(old.merge(None)) == b""


@pytest.mark.parametrize(
    "program", ["ralphdeck", "/a b/ralphdeck", '/q"uote\\/ralphdeck', "/t\tab/\x7f/ralphdeck", "/é/ralphdeck"]
)
def test_any_program_is_written_as_valid_toml(program: str) -> None:
    table = TomlTable("mcp_servers", {"command": "{program}", "args": ["mcp"]}, program)
    data = table.merge(b'model = "x"\n')
    assert tomllib.loads(data.decode())["mcp_servers"]["ralphdeck"] == {"command": program, "args": ["mcp"]}
    assert table.merge(data) == data
    assert table.strip(data) == b'model = "x"\n'
