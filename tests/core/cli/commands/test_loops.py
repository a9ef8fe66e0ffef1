from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from core.records.loops import Liveness, Loop, LoopStatus
from core.records.snapshot import Snapshot
from tests.core.cli.conftest import Call

KEYS = {
    "id", "task", "status", "raw_status", "sources", "iteration", "max_iterations", "started_at", "ended_at",
    "archived", "liveness",
}  # fmt: skip
RUNNING = "ralph-fix-null-customer-crash-in-the-644aee36"
FINDING = {"file", "pointer", "severity", "code", "message"}


def test_json_has_the_stable_shape(upstream: Path, call: Call) -> None:
    document = call("loop", "list", "--json", "--project", upstream).document
    assert set(document) == {"loops", "findings"}
    assert len(document["loops"]) == 19
    for loop in document["loops"]:
        assert set(loop) >= KEYS
        assert loop["status"] in list(LoopStatus) and loop["liveness"] in list(Liveness)
        assert isinstance(loop["sources"], list) and isinstance(loop["archived"], bool)
        for moment in (loop["started_at"], loop["ended_at"]):
            assert moment is None or moment.endswith("Z")
    assert all(set(finding) == FINDING for finding in document["findings"])


def test_status_and_archive_narrow_the_list(sample: Path, call: Call) -> None:
    def ids(*args: str) -> set[str]:
        return {loop["id"] for loop in call("loop", "list", "--json", "--project", sample, *args).document["loops"]}

    everything = ids()
    running = ids("--status", "running")
    assert running and ids("--status", "running,paused") == running | ids("--status", "paused")
    assert ids("--status", "running", "--status", "PAUSED") == running | ids("--status", "paused")
    assert ids("--archived") | ids("--no-archived") == everything
    assert ids("--archived") and not ids("--archived") & ids("--no-archived")


def test_ids_are_never_truncated_and_tasks_fit_on_one_line(upstream: Path, call: Call) -> None:
    document = call("loop", "list", "--json", "--project", upstream).document
    lines = call("loop", "list", "--project", upstream).out.splitlines()
    assert len(lines) == len(document["loops"]) + 1
    for loop, line in zip(document["loops"], lines[1:], strict=True):
        assert line.endswith(loop["id"])


def test_the_filter_of_the_screen_selects_sessions(sample: Path, call: Call) -> None:
    listed = call("loop", "list", "is:stuck", "--json", "--project", sample).document["loops"]
    assert listed and all(one["needs"]["kind"] for one in listed)
    assert listed[0]["needs"]["text"] in call("loop", "show", listed[0]["id"], "--project", sample).out
    both = call("loop", "list", "is:ended", "result", "--json", "--project", sample)
    assert both.code == 0 and both.document["loops"] == []
    assert "is: must be one of stuck" in call("loop", "list", "is:banana", "--project", sample).err


def test_each_session_that_ended_has_a_result(sample: Path, call: Call) -> None:
    loops = call("loop", "list", "--json", "--project", sample).document["loops"]
    assert {one["result"] for one in loops} == {None, "worked", "failed", "unclear"}
    assert all(one["result"] is None for one in loops if one["status"] == "running" and not one["archived"])


def test_each_loop_has_its_outcome_once_it_has_one(sample: Path, call: Call) -> None:
    scored = {one["id"]: one for one in call("loop", "score", "--json", "--project", sample).document["outcomes"]}
    for loop in call("loop", "list", "--json", "--project", sample).document["loops"]:
        outcome, known = loop["outcome"], scored.get(loop["id"])
        assert (outcome is None) == (known is None)
        if known is not None:
            assert [outcome[key] for key in ("verdict", "raw", "parts", "reasoning")] == [
                known[key] for key in ("verdict", "raw", "parts", "reasoning")
            ]
            assert outcome["decayed"] == pytest.approx(known["decayed"], abs=1e-4)


def test_strict_asks_for_3_where_a_file_cannot_be_used(examples: Path, call: Call) -> None:
    assert call("loop", "list", "--strict", "--project", examples).code == 0
    broken = examples / ".aiwg" / "ralph" / "loops" / "ralph-fix-api-d4e5f6a7" / "state.json"
    broken.write_text("[1, 2]")
    plain, strict = (call("loop", "list", "--json", *more, "--project", examples) for more in ([], ["--strict"]))
    assert (plain.code, strict.code) == (0, 3)
    assert plain.document == strict.document
    errors = [found for found in strict.document["findings"] if found["severity"] == "error"]
    assert errors[0]["file"] == ".aiwg/ralph/loops/ralph-fix-api-d4e5f6a7/state.json"
    assert "of severity error; see: ralphdeck doctor" in plain.err


@pytest.mark.slow
def test_a_file_that_stays_torn_is_a_finding(examples: Path, call: Call) -> None:
    torn = examples / ".aiwg" / "ralph" / "loops" / "ralph-fix-api-d4e5f6a7" / "state.json"
    torn.write_text(torn.read_text()[:40])
    result = call("loop", "list", "--json", "--strict", "--project", examples)
    assert result.code == 3
    assert any(found["file"].endswith("d4e5f6a7/state.json") for found in result.document["findings"])
    assert len(result.document["loops"]) == 2


def test_json_is_one_line_of_utf8_for_a_program(upstream: Path, call: Call) -> None:
    out = call("loop", "list", "--json", "--project", upstream).out
    assert out.count("\n") == 1
    assert "修正 日本語 テスト" in out
    assert json.loads(out)


def test_a_file_that_is_torn_for_long_is_reported_without_waiting(
    examples: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    torn = examples / ".aiwg" / "ralph" / "loops" / "ralph-fix-api-d4e5f6a7" / "state.json"
    torn.write_text("{")
    os.utime(torn, (0, 0))
    monkeypatch.setattr("core.cli.support.project.time.sleep", lambda _: pytest.fail("waited"))
    assert call("loop", "list", "--strict", "--project", examples).code == 3


def test_a_loop_shows_its_injected_recorded_and_extracted_patterns(sample: Path, call: Call) -> None:
    def shown(key: str) -> dict[str, Any]:
        listed = call("loop", "list", "--json", "--project", sample).document["loops"]
        return next(loop for loop in listed if loop["id"] == key)

    before = shown(RUNNING)
    pattern = "pat-error-jwt-expired-006"
    assert pattern not in before["injected"]
    injected = call("loop", "inject", RUNNING, "--json", "--project", sample).document
    chosen = [one["id"] for one in injected["patterns"]]
    assert set(chosen) - set(before["injected"])
    assert set(shown(RUNNING)["injected"]) == {*before["injected"], *chosen}
    call("loop", "record", RUNNING, pattern, "--failure", "--iteration", "3", "--project", sample)
    after = shown(RUNNING)
    assert pattern in after["injected"]
    (use,) = [use for use in after["uses"] if use["id"] == pattern]
    assert (use["applied"], use["success"], use["iteration"]) == (True, False, 3)
    assert shown("current-loop")["extracted"] == []
    call("loop", "extract", "current-loop", "--project", sample)
    assert shown("current-loop")["extracted"] == ["pat-success-clean-up-lint-warnings-001"]
    call("undo", "--project", sample)
    assert shown("current-loop")["extracted"] == []


def test_an_estimated_improvement_is_in_json(examples: Path, call: Call) -> None:
    loops = call("loop", "list", "--json", "--project", examples).document["loops"]
    (found,) = [loop["improvement_estimate"] for loop in loops if loop["improvement_estimate"]]
    assert (found["baseline_iterations"], found["actual_iterations"]) == (6, 4)
    assert found["improvement"] == pytest.approx(1 / 3)


def test_loops_that_wait_for_a_person_come_first(call: Call, monkeypatch: pytest.MonkeyPatch, sample: Path) -> None:
    statuses = {"codex:new": LoopStatus.RUNNING, "codex:limit": LoopStatus.COMPLETED, "codex:old": LoopStatus.WAITING}
    loops = {key: Loop(id=key, runner="codex", status=status) for key, status in statuses.items()}
    monkeypatch.setattr("core.cli.commands.loops.read_snapshot", lambda *_, **__: Snapshot(loops=loops))
    lines = call("loop", "list", "--project", sample).out.splitlines()
    assert [line.split()[-1] for line in lines] == ["ID", "codex:old", "codex:new", "codex:limit"]
    assert "asks" in lines[1]


@pytest.mark.parametrize("source", ["frankbria", "ralph-claude-code", "Ralph-Claude-Code,.aiwg"])
def test_a_source_has_a_name_and_a_title(tmp_path: Path, call: Call, source: str) -> None:
    assert call("loop", "list", "--source", source, "--project", tmp_path).code == 0


def test_an_unknown_source_fails_with_the_known_ones(tmp_path: Path, call: Call) -> None:
    result = call("loop", "list", "--source", "clade", "--project", tmp_path)
    assert result.code == 2
    assert "unknown source 'clade'; use aiwg, beads, claude (Claude Code), codex (Codex)" in result.err
    assert "did you mean claude?" in result.err


def test_show_prints_what_the_dashboard_shows(sample: Path, call: Call) -> None:
    document = call("loop", "show", RUNNING, "--json", "--project", sample).document
    assert document["loop"]["id"] == RUNNING
    assert document["loop"] in call("loop", "list", "--json", "--project", sample).document["loops"]
    out = call("loop", "show", RUNNING, "--project", sample).out
    assert out.startswith(f"{document['loop']['task']}\n")
    assert out.splitlines()[1].endswith(RUNNING)
    assert all(one["action"] in out for one in document["iterations"]) and document["iterations"]
    assert all(f"\n{title}:" in out for title in ("Iterations", "Lessons", "Reflections", "Files"))
    assert all(file in out for file in document["loop"]["files"])


@pytest.mark.parametrize("command", [("show",), ("inject", "--no-record")])
def test_a_loop_of_a_runner_is_found_by_its_id(sample: Path, call: Call, command: tuple[str, ...]) -> None:
    stories = [{"id": "US-001", "title": "Type the user", "passes": False}]
    plan = {"branchName": "ralph/types", "description": "Fix TypeScript type errors", "userStories": stories}
    (sample / "prd.json").write_text(json.dumps(plan))
    (sample / "progress.txt").write_text("# Ralph Progress Log\n---\n")
    listed = call("loop", "list", "--source", "snarktank", "--json", "--project", sample).document["loops"]
    result = call("loop", *command, listed[0]["id"], "--project", sample)
    assert (result.code, result.err) == (0, "")
    assert "type errors" in result.out.lower()
