"""The bench: no row is forgotten, and a value that does not count is marked."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import click
import msgspec
import pytest

from core.agents.agent_table import AGENTS
from core.records.patterns import Maturity
from tests.bench import report
from tests.bench.command_runs import CHANGING, LONG_RUNNING, NEEDS, RUNS
from tests.bench.measured import Measured
from tests.bench.one_change import CHANGES
from tests.bench.place import Sizes, open_project
from tests.bench.processes import Ended
from tests.bench.rows import CHANGES as CHANGE_ROWS
from tests.bench.rows import ROWS
from tests.bench.run import NOW, ROOT, Run
from tests.bench.sized import SIZES, decide, write_team_sums
from tests.bench.trees import error_id, write_patterns
from tui.cli import cli

_RUN = """
import sys, msgspec
from tests.bench import processes
processes.TIMEOUT_SECONDS = float(sys.argv[1])
ended = processes.run([sys.executable, "-c", sys.argv[2]], processes.Path(), processes.os.environ)
sys.stdout.buffer.write(msgspec.json.encode(ended))
"""
LEAVE = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "sum(range(5_000_000))"], start_new_session=True, stdout=subprocess.DEVNULL)
print("done")
"""


def command_names(path: tuple[str, ...], command: click.Command) -> Iterator[str]:
    if command.hidden:
        return
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from command_names((*path, name), inner)
    else:
        yield " ".join(path)


def rows_at(size: str, group: str) -> set[str]:
    return {row.what for row in ROWS if row.group == group and row.size == size}


def run_of(tmp_path: Path) -> Run:
    return Run(tmp_path, tmp_path, Sizes(), ["sample"], slow=False)


def ended_run(seconds: float, code: str) -> Ended:
    """Run Python code by the bench, which adopts what the code leaves behind, so not in this process."""
    command = [sys.executable, "-c", _RUN, str(seconds), code]
    return msgspec.json.decode(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout, type=Ended)


@pytest.mark.parametrize("size", SIZES)
def test_every_command_has_a_row_at_each_size(size: str) -> None:
    rows = rows_at(size, "commands")
    runs = {row.strip("`") for row in rows}
    assert {name for name in command_names((), cli) if not _has_run(name, runs)} == LONG_RUNNING | {"hook"}


def _has_run(command: str, runs: Collection[str]) -> bool:
    """Return whether a command has a run, at least with an option."""
    return any(run == command or run.startswith(f"{command} --") for run in runs)


@pytest.mark.parametrize("size", SIZES)
def test_every_hook_event_of_each_agent_has_a_row_at_each_size(size: str) -> None:
    events = {f"{agent}: (`{name}`)" for agent, info in AGENTS.items() for name in info.events}
    assert {f"{row.split(': ')[0]}: {row[row.index('(') :]}" for row in rows_at(size, "hooks")} == events


def test_tables_about_commands_name_only_commands() -> None:
    assert set(RUNS) >= CHANGING | NEEDS.keys() | set(NEEDS.values())
    commands = set(command_names((), cli))
    runs = {name for name in RUNS if not name.startswith("--")}
    assert [name for name in runs if not commands & {name, name.rpartition(" ")[0]}] == []
    assert {name for name in commands if not _has_run(name, runs)} == LONG_RUNNING


def test_each_row_has_a_name_of_its_own_and_a_function_that_measures() -> None:
    assert all(callable(row.function) for row in ROWS)
    assert not [key for key, count in Counter(row.key for row in ROWS).items() if count > 1]
    assert set(CHANGE_ROWS) == CHANGES.keys()


def test_a_run_that_does_not_end_is_ended_and_marked() -> None:
    assert ended_run(0.1, "import signal; signal.pause()").is_late


def test_a_run_includes_what_the_program_leaves_in_the_background() -> None:
    ended = ended_run(60, LEAVE)
    assert (ended.code, ended.output, ended.is_late) == (0, "done\n", False)
    assert ended.background > 0


@pytest.mark.slow
def test_commands_and_hooks_of_the_sample_project_are_measured(tmp_path: Path) -> None:
    run = Run(tmp_path, tmp_path, Sizes(runs=1), ["sample"], slow=False)
    run.measure(["`task log`, sample", "claude: prompt"], None, 1)
    measured = {key: values[NOW] for key, values in run.values.items()}
    assert len(measured) == 2
    assert not [one.note for one in measured.values() if one.mark]


@pytest.mark.slow
def test_generated_projects_have_decisions_and_uses_in_a_team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RALPHDECK_TRUSTED_PATHS", str(tmp_path))
    write_patterns(tmp_path, 1300)
    decide(tmp_path)
    write_team_sums(tmp_path, 1300)
    project = open_project(tmp_path, cache=False)
    project.load()
    snapshot = project.view.snapshot
    curation = snapshot.curation
    states = Counter(pin.state for pin in curation.pins.values())
    assert states[Maturity.PROVEN] > 30
    assert states[Maturity.DEPRECATED] > 30
    assert curation.reset
    assert curation.undone
    assert len(curation.arrivals) > 50  # in quarantine
    assert error_id(3) in snapshot.team.sums
    assert not [finding for finding in snapshot.findings if "evidence.jsonl" in finding.file]


def test_a_limit_of_processor_time_ignores_the_clock() -> None:
    row = next(row for row in ROWS if row.limits_cpu and row.at_most == 50)
    assert not row.is_over(Measured(900, cpu=50))
    assert row.is_over(Measured(900, cpu=51))


def test_a_page_keeps_what_a_run_did_not_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "performance.md"
    page.write_text("<!-- measured -->\n<!-- end -->\n\n<!-- measured at three sizes -->\n<!-- end -->\n")
    monkeypatch.setattr(report, "PAGE", page)
    for key, value in (("first frame", 1), ("`loop list`, sample", 2), ("`loop list`, large", 3)):
        run = run_of(tmp_path)
        run.values = {key: {NOW: Measured(value, mark="timeout")}}
        report.write_page(run)
    rows = [line.split(" | ") for line in page.read_text().splitlines() if line.startswith("| ")]
    assert [cells for cells in rows if cells[0] in ("| first frame", "| `loop list`")] == [
        ["| first frame", "400 ms", "1 ms timeout", " |"],
        ["| `loop list`", "- / 400 / - ms", "2 ms timeout", "3 ms timeout", " |"],
    ]
