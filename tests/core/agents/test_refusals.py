"""A file that cannot be changed safely is reported with its place, and no file of that agent is changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from core.agents.apply import apply_plan
from core.agents.plan import plan_connect
from core.base.errors import Conflict
from core.files.managed_text import MAX_BYTES
from tests.core.agents.conftest import Desk, problems

SETTINGS = ".claude/settings.json"
TEXTS: dict[str, tuple[str, bytes, str]] = {
    "line comment": (SETTINGS, b'{\n  "env": {},\n  // mine\n  "a": "//"\n}', "line 3: JSON with comments"),
    "block comment": (SETTINGS, b'/* mine */ {"env": {}}', "line 1: JSON with comments"),
    "trailing comma": (SETTINGS, b'{\n  "a": 1,\n}', ": is not JSON"),
    "cut short": (SETTINGS, b'{"env": {"A": ', "line 1, column 15: is not JSON"),
    "duplicate key": (SETTINGS, b'{"hooks": {}, "hooks": {}}', "key 'hooks' occurs twice in one object"),
    "list": (SETTINGS, b"[]", "is not a JSON object"),
    "text": (SETTINGS, b'"hooks"', "is not a JSON object"),
    "JSON lines": (SETTINGS, b'{"a": 1}\n{"b": 2}\n', "is not JSON"),
    "hooks is a list": (SETTINGS, b'{"hooks": []}', "hooks is not an object"),
    "hooks is null": (SETTINGS, b'{"hooks": null}', "hooks is not an object"),
    "event is an object": (SETTINGS, b'{"hooks": {"Stop": {}}}', "hooks.Stop is not a list"),
    "not UTF-8": (SETTINGS, b'{"a": "\xff\xfe"}', "not UTF-8"),
    "nested deeply": (SETTINGS, b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}", "nested deeper than 64 levels"),
    "huge": (SETTINGS, b'{"a": "' + b"x" * MAX_BYTES + b'"}', f"at most {MAX_BYTES:,} are read"),
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
    assert not any((desk.project / path).exists() for path in {SETTINGS, ".mcp.json", "CLAUDE.md"} - {name})


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
    desk.write(SETTINGS, "").unlink()
    (desk.project / SETTINGS).symlink_to(outside)


def linked_folder(desk: Desk) -> None:
    (desk.project.parent / "outside").mkdir()
    (desk.project / ".claude").symlink_to(desk.project.parent / "outside")


def folder_in_place(desk: Desk) -> None:
    (desk.project / SETTINGS).mkdir(parents=True)


def file_in_place_of_a_folder(desk: Desk) -> None:
    desk.write(".claude", "x")


def pipe(desk: Desk) -> None:
    (desk.project / ".claude").mkdir()
    os.mkfifo(desk.project / SETTINGS)


def read_only_file(desk: Desk) -> None:
    desk.write(SETTINGS, "{}").chmod(0o444)


def read_only_folder(desk: Desk) -> None:
    desk.write(SETTINGS, "{}").parent.chmod(0o555)


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
    assert problem.startswith(f"{SETTINGS}: ") and message in problem
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
    desk.write(SETTINGS, f'{{"hooks": {{"UserPromptSubmit": [{hook}]}}}}')
    (plan,) = desk.connect("claude")
    assert "contexts are given twice" in plan.notes[0]
