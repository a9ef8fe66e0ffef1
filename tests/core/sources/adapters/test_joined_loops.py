"""Loops of runners with the sessions and plans that are joined to them, as the program reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from core.sources.adapters.collector import Collector
from core.sources.adapters.ralph_tui import RalphTuiAdapter
from tests.core.sources.adapters.fixtures import NOW, open_case
from tests.e2e.play_claude import FAILURE, Records, lines, slug

START = datetime(2026, 11, 20, 11, 20, 5, tzinfo=UTC)


def test_the_failures_of_a_session_are_in_the_iteration_that_started_it(tmp_path: Path) -> None:
    case = open_case(RalphTuiAdapter(), "ralph-tui/limit", tmp_path / "case")
    times = (START + timedelta(seconds=n) for n in range(100))
    make = Records(case.project, now=lambda: next(times), entrypoint="sdk-cli", promptSource="sdk")
    call = make.tool("Bash", command="npm test")
    records = [make.prompt("Round totals once"), call, make.result(call, FAILURE, failed=True), make.answer("Stopped.")]
    transcript = case.home / ".claude" / "projects" / slug(case.project) / f"{make.session}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_bytes(lines(records))
    collector, later = (Collector(case.folders, clock=lambda: NOW, processes=case.processes) for _ in range(2))
    (loop,) = collector.read_all().loops
    assert loop.session_ids == (make.session,)
    for reader in (collector, later):  # the second one is asked about a loop that another process has stored
        first, second = reader.details(loop).iterations
        assert "clock.now is not a function" in str([one.message for one in first.failures])
        assert [one.message for one in second.failures] == ["exit 1"]
        reader.close()


def test_a_plan_that_another_runner_works_on_is_not_a_loop_of_its_own(tmp_path: Path) -> None:
    case = open_case(RalphTuiAdapter(), "ralph-tui/crashed-lock", tmp_path / "case")
    collector = Collector(case.folders, clock=lambda: NOW, processes=case.processes)
    (loop,) = collector.read_all().loops
    assert loop.runner == "ralph-tui"
    assert any(alias.startswith("snarktank:") for alias in loop.aliases)
    collector.close()
