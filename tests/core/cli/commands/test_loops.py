from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from core.records.loops import Loop, LoopStatus
from core.records.snapshot import Snapshot
from tests.core.cli.conftest import Call

RUNNING = "ralph-fix-null-customer-crash-in-the-644aee36"


def test_options_narrow_the_list(sample: Path, call: Call) -> None:
    def ids(*args: str) -> set[str]:
        return {loop["id"] for loop in call("loop", "list", "--json", *args).document["loops"]}

    running = ids("--status", "running")
    assert running and ids("--status", "running", "--status", "PAUSED") == running | ids("--status", "paused")
    assert ids("--archived") | ids("--no-archived") == ids()
    assert ids("--archived") and not ids("--archived") & ids("--no-archived")
    for source in ("frankbria", "ralph-claude-code", "Ralph-Claude-Code,.aiwg"):
        assert call("loop", "list", "--source", source).code == 0, "a source has a name and a title"
    unknown = call("loop", "list", "--source", "clade")
    assert unknown.code == 2 and "did you mean claude?" in unknown.err
    assert "unknown source 'clade'; use aiwg, beads, claude (Claude Code), codex (Codex)" in unknown.err


def test_json_is_one_line_of_utf8_and_a_pipe_gets_whole_ids(upstream: Path, call: Call) -> None:
    out = call("loop", "list", "--json").out
    assert out.count("\n") == 1 and "修正 日本語 テスト" in out
    lines = call("loop", "list").out.splitlines()[1:]
    assert [line.split()[-1] for line in lines] == [loop["id"] for loop in json.loads(out)["loops"]]


def test_the_filter_of_the_screen_selects_sessions(sample: Path, call: Call) -> None:
    listed = call("loop", "list", "is:stuck", "--json").document["loops"]
    assert listed and all(one["needs"]["kind"] for one in listed)
    assert listed[0]["needs"]["text"] in call("loop", "show", listed[0]["id"]).out
    both = call("loop", "list", "is:ended", "result", "--json")
    assert both.code == 0 and both.document["loops"] == []
    assert "is: must be one of stuck" in call("loop", "list", "is:banana").err


def test_strict_asks_for_3_where_a_file_cannot_be_used(examples: Path, call: Call) -> None:
    assert call("loop", "list", "--strict").code == 0
    broken = examples / ".aiwg" / "ralph" / "loops" / "ralph-fix-api-d4e5f6a7" / "state.json"
    broken.write_text("[1, 2]")
    plain, strict = (call("loop", "list", "--json", *more) for more in ([], ["--strict"]))
    assert (plain.code, strict.code) == (0, 3)
    assert plain.document == strict.document
    errors = [found for found in strict.document["findings"] if found["severity"] == "error"]
    assert errors[0]["file"] == ".aiwg/ralph/loops/ralph-fix-api-d4e5f6a7/state.json"
    assert "of severity error; see: ralphdeck doctor" in plain.err


def test_a_file_that_is_torn_for_long_is_reported_without_waiting(
    examples: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    torn = examples / ".aiwg" / "ralph" / "loops" / "ralph-fix-api-d4e5f6a7" / "state.json"
    torn.write_text("{")
    os.utime(torn, (0, 0))
    monkeypatch.setattr("core.cli.support.project.time.sleep", lambda _: pytest.fail("waited"))
    assert call("loop", "list", "--strict").code == 3


def test_a_loop_shows_its_injected_recorded_and_extracted_patterns(sample: Path, call: Call) -> None:
    def shown(key: str) -> dict[str, Any]:
        listed = call("loop", "list", "--json").document["loops"]
        return next(loop for loop in listed if loop["id"] == key)

    before = shown(RUNNING)
    pattern = "pat-error-jwt-expired-006"
    assert pattern not in before["injected"]
    injected = call("loop", "inject", RUNNING, "--json").document
    chosen = [one["id"] for one in injected["patterns"]]
    assert set(chosen) - set(before["injected"])
    assert set(shown(RUNNING)["injected"]) == {*before["injected"], *chosen}
    call("loop", "record", RUNNING, pattern, "--failure", "--iteration", "3")
    after = shown(RUNNING)
    assert pattern in after["injected"]
    (use,) = [use for use in after["uses"] if use["id"] == pattern]
    assert (use["applied"], use["success"], use["iteration"]) == (True, False, 3)
    assert shown("current-loop")["extracted"] == []
    call("loop", "extract", "current-loop")
    assert shown("current-loop")["extracted"] == ["pat-success-clean-up-lint-warnings-001"]
    call("undo")
    assert shown("current-loop")["extracted"] == []


def test_loops_that_wait_for_a_person_come_first(call: Call, monkeypatch: pytest.MonkeyPatch, sample: Path) -> None:
    statuses = {"codex:new": LoopStatus.RUNNING, "codex:limit": LoopStatus.COMPLETED, "codex:old": LoopStatus.WAITING}
    loops = {key: Loop(id=key, runner="codex", status=status) for key, status in statuses.items()}
    monkeypatch.setattr("core.cli.commands.loops.read_snapshot", lambda *_, **__: Snapshot(loops=loops))
    lines = call("loop", "list").out.splitlines()
    assert [line.split()[-1] for line in lines] == ["ID", "codex:old", "codex:new", "codex:limit"]
    assert "asks" in lines[1]


def test_show_prints_what_the_dashboard_shows(sample: Path, call: Call) -> None:
    document = call("loop", "show", RUNNING, "--json").document
    assert document["loop"]["id"] == RUNNING
    assert document["loop"] in call("loop", "list", "--json").document["loops"]
    out = call("loop", "show", RUNNING).out
    assert out.startswith(f"{document['loop']['task']}\n")
    assert out.splitlines()[1].endswith(RUNNING)
    assert all(one["action"] in out for one in document["iterations"]) and document["iterations"]
    assert all(f"\n{title}:" in out for title in ("Iterations", "Lessons", "Reflections", "Files"))
    assert all(file in out for file in document["loop"]["files"])


def test_a_loop_of_a_runner_is_found_by_its_id(sample: Path, call: Call) -> None:
    stories = [{"id": "US-001", "title": "Type the user", "passes": False}]
    plan = {"branchName": "ralph/types", "description": "Fix TypeScript type errors", "userStories": stories}
    (sample / "prd.json").write_text(json.dumps(plan))
    (sample / "progress.txt").write_text("# Ralph Progress Log\n---\n")
    listed = call("loop", "list", "--source", "snarktank", "--json").document["loops"]
    for command in (("show",), ("inject", "--no-record")):
        result = call("loop", *command, listed[0]["id"])
        assert (result.code, result.err) == (0, "") and "type errors" in result.out.lower()
