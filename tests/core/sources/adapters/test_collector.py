"""All adapters together, also those of other packages: masked, joined, and kept apart from what fails."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from core.base.prompt_text import render_blocks
from core.records.findings import Finding
from core.records.loops import LoopStatus
from core.sources.adapters.adapter_table import ENTRY_POINTS, load_adapters, own_adapters
from core.sources.adapters.collector import Collector
from core.sources.adapters.folders import Folders
from core.sources.adapters.transcripts import KeptFile
from tests.core.sources.adapters.fake_adapter import START, FakeAdapter, FakeRunner, NotesFold
from tests.core.sources.adapters.fixtures import DATA, open_case
from tests.factories import RunningProcesses, record_calls

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7h8"


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeRunner:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return FakeRunner(tmp_path / "project")


def open_collector(runner: FakeRunner, *adapters: FakeAdapter, kept: bool = False) -> Collector:
    project = runner.notes.parents[1]
    return Collector(
        Folders(project=project),
        clock=lambda: START,
        adapters=adapters or (FakeAdapter(),),
        processes=RunningProcesses(),
        kept=KeptFile(project) if kept else None,
    )


def tasks(loops: Sequence[Struct]) -> dict[str, str]:
    return {loop.id: loop.task for loop in loops}  # type: ignore[attr-defined]


def test_loops_and_lessons_are_found(runner: FakeRunner) -> None:
    runner.write("Make the tests pass")
    runner.lessons.write_text("# Notes\n- Use the fake clock\n")
    found = open_collector(runner).look()
    assert tasks(found.loops) == {"fake:a": "Make the tests pass"}
    assert [(one.text, one.file, one.line) for one in found.lessons] == [("Use the fake clock", ".fake/lessons.md", 2)]
    (report,) = found.reports
    assert (report.evidence, report.loops, report.lessons, report.findings) == ((".fake",), 1, 1, ())


def test_a_runner_that_was_not_used_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = record_calls(monkeypatch, FakeAdapter, "loops")
    collector = Collector(Folders(project=tmp_path), clock=lambda: START, adapters=[FakeAdapter()])
    assert not collector.look().loops
    assert not collector.look_at_changed().loops
    assert not calls
    FakeRunner(tmp_path).write("now it is used")
    assert tasks(collector.look_at_changed().loops) == {"fake:a": "now it is used"}


def test_nothing_is_looked_at_again_without_a_change(runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    path = runner.write("one")
    make_old(path.parent, path)
    collector = open_collector(runner)
    first = collector.look()
    calls = record_calls(monkeypatch, FakeAdapter, "loops")
    assert collector.look_at_changed() is first
    assert not calls


def test_only_a_changed_transcript_is_read_again(runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        runner.write("one", f"s{number}")
    make_old(runner.notes, *runner.notes.iterdir())
    collector = open_collector(runner)
    before = collector.look()
    lines = record_calls(monkeypatch, NotesFold, "add")
    runner.write("two", "s7")
    after = collector.look_at_changed()
    assert len(lines) == 1
    changed = {loop.id for loop, old in zip(after.loops, before.loops, strict=True) if loop is not old}
    assert changed == {"fake:s7"}


def test_new_and_deleted_transcripts_are_noticed_at_the_next_check(runner: FakeRunner) -> None:
    path = runner.write("one")
    collector = open_collector(runner)
    collector.look()
    runner.write("two", "b")
    assert set(tasks(collector.look_at_changed().loops)) == {"fake:a", "fake:b"}
    path.unlink()
    assert set(tasks(collector.look_at_changed().loops)) == {"fake:b"}


def test_secrets_are_masked_in_loops_lessons_and_details(runner: FakeRunner) -> None:
    runner.write(f"Log in with {TOKEN}")
    runner.lessons.write_text(f"- The token is {TOKEN}\n")
    collector = open_collector(runner)
    found = collector.look()
    assert TOKEN not in repr(found)
    assert "[secret: " in found.loops[0].task and "[secret: " in found.lessons[0].text
    assert TOKEN not in repr(collector.details(found.loops[0]))


def test_an_unchanged_loop_is_masked_once(runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    runner.write("one")
    collector = open_collector(runner)
    first = collector.look()
    calls = record_calls(monkeypatch, __import__("core.sources.adapters.collector", fromlist=[""]), "mask_texts")
    assert collector.look().loops[0] is first.loops[0]
    assert not calls


@pytest.mark.parametrize("method", ["fingerprint", "loops", "lessons", "details"])
def test_an_adapter_that_fails_harms_no_other(runner: FakeRunner, method: str) -> None:
    runner.write("one")
    runner.lessons.write_text("- Use the fake clock\n")
    bad, good = FakeAdapter("bad"), FakeAdapter("good")
    collector = open_collector(runner, bad, good)
    before = collector.look()
    bad.fails = method
    after = collector.look()
    assert {loop.id for loop in after.loops} == {loop.id for loop in before.loops}, "the last good records stay"
    assert len(after.lessons) == 2
    for loop in after.loops:
        assert collector.details(loop).loop_id == loop.id
    codes = [finding.code for finding in after.reports[0].findings]
    assert codes == ([] if method == "details" else ["adapter-failed"])
    assert not after.reports[1].findings


def test_a_loop_with_the_id_of_another_adapter_is_refused(runner: FakeRunner) -> None:
    runner.write("one")
    bad = FakeAdapter("bad")
    collector = open_collector(runner, bad)
    bad._loop = lambda *args: FakeAdapter("good")._loop(*args)  # type: ignore[method-assign]
    found = collector.look()
    assert not found.loops
    assert [finding.code for finding in found.findings] == ["adapter-failed"]


def test_details_are_those_of_the_adapter_of_the_loop(runner: FakeRunner) -> None:
    runner.write("one")
    runner.write("two")
    collector = open_collector(runner)
    (loop,) = collector.look().loops
    assert [one.number for one in collector.details(loop).iterations] == [1, 2]
    assert [one.number for one in open_collector(runner).details(loop).iterations] == [1, 2], "without a look"


def test_what_was_read_is_not_read_again_after_a_restart(runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    runner.write("one")
    first = open_collector(runner, kept=True)
    before = first.look()
    first.close()
    lines = record_calls(monkeypatch, NotesFold, "add")
    second = open_collector(runner, kept=True)
    assert second.look().loops == before.loops
    assert not lines
    runner.write("two")
    assert tasks(second.look_at_changed().loops) == {"fake:a": "two"}
    assert len(lines) == 1
    second.close()


def make_old(*paths: Path) -> None:
    """Set a modification time at which no two changes can have the same time."""
    import os

    for path in paths:
        os.utime(path, (1e9, 1e9))


def test_lessons_and_findings_of_an_adapter_are_limited(runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.sources.adapters.collector.MAX_LESSONS", 2)
    monkeypatch.setattr("core.sources.adapters.collector.MAX_FINDINGS", 1)
    runner.write("Make the tests pass")
    runner.lessons.write_text("- Use the fake clock\n- Pin the seed\n- Round once\n")
    collector = open_collector(runner)
    collector.look()
    (report,) = collector.records.reports
    assert report.lessons == 2
    assert [finding.code for finding in report.findings] == ["too-many-lessons"]


def test_contexts_are_neither_lessons_nor_part_of_a_task(runner: FakeRunner) -> None:
    context = render_blocks("- guard\n", "- retry\n")
    runner.write(f"Fix it\n\n{context}")
    runner.lessons.write_text("# Notes\n- Use the fake clock\n- " + context.replace("\n", " ") + "\n")
    found = open_collector(runner).look()
    assert tasks(found.loops) == {"fake:a": "Fix it"}
    assert [one.text for one in found.lessons] == ["Use the fake clock"]


PAGE = Path(__file__).parents[4] / "docs/adapters.md"


RUN = """{"at": "2026-11-20T09:00:00Z", "task": "Make the tests pass", "status": "running"}
{"at": "2026-11-20T09:10:00Z", "task": "", "status": "done"}
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """An installed package with the adapter of the template; the list of entry points can be extended."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (tmp_path / "acme_ralphdeck.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    found = [EntryPoint("acme", "acme_ralphdeck:AcmeAdapter", ENTRY_POINTS)]

    def entry_points(**options: Any) -> list[EntryPoint]:
        assert options == {"group": ENTRY_POINTS}
        return found

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    return found


def test_loops_and_lessons_of_an_installed_adapter_are_shown(package: list[EntryPoint], tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".acme/runs").mkdir(parents=True)
    (project / ".acme/runs/7.jsonl").write_text(RUN)
    (project / ".acme/notes.md").write_text("- Use the fake clock\n")
    collector = Collector(Folders(project=project), clock=lambda: START)
    found = collector.look()
    assert not found.findings
    (loop,) = found.loops
    assert (loop.id, loop.task, loop.status, loop.iteration) == (
        "acme:7",
        "Make the tests pass",
        LoopStatus.COMPLETED,
        2,
    )
    assert [lesson.text for lesson in found.lessons] == ["Use the fake clock"]
    assert collector.details(loop).facts == (("turns", "2"),)


@pytest.mark.parametrize("value", ["missing_package:Adapter", "acme_ralphdeck:Missing", "core.base.errors:Refused"])
def test_an_adapter_that_cannot_be_loaded_is_a_finding(package: list[EntryPoint], value: str) -> None:
    package.append(EntryPoint("other", value, ENTRY_POINTS))
    findings: list[Finding] = []
    names = [one.name for one in load_adapters(findings)]
    assert names == [*(one.name for one in own_adapters()), "acme"]
    assert [(one.file, one.code) for one in findings] == [("other", "adapter-failed")]


def test_a_second_adapter_with_the_same_name_is_refused(package: list[EntryPoint]) -> None:
    package.append(EntryPoint("zzz", "acme_ralphdeck:AcmeAdapter", ENTRY_POINTS))
    findings: list[Finding] = []
    assert [one.name for one in load_adapters(findings)].count("acme") == 1
    assert len(findings) == 1


def test_each_runner_that_was_used_has_a_mark(tmp_path: Path) -> None:
    known = {one.name: one for one in load_adapters([])}
    cases = [case for folder in DATA.iterdir() for case in folder.iterdir() if folder.name in known]
    used = 0
    for number, folder in enumerate(cases):
        name = folder.parent.name
        adapter = known[name].adapter
        case = open_case(adapter, f"{name}/{folder.name}", tmp_path / str(number))
        if adapter.fingerprint(case.folders):
            used += 1
            assert known[name].may_be_used(case.folders), folder
    assert used > len(known)
