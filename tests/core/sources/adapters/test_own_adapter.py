"""The template of docs/adapters.md runs as an adapter of another package."""

from __future__ import annotations

import importlib.metadata
import re
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from core.records.findings import Finding
from core.records.loops import LoopStatus
from core.sources.adapters.adapter_table import ENTRY_POINTS, load_adapters, own_adapters
from core.sources.adapters.collector import Collector
from core.sources.adapters.contract import Folders
from tests.core.sources.adapters.fake_adapter import START
from tests.core.sources.adapters.fixtures import DATA, open_case

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
