from __future__ import annotations

import gc
import json
import weakref
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.decisions.commands import Archive, Command, Deprecate, Merge, Promote, Undo
from core.index.project_state import ProjectState
from core.project.dry_run import dry_run
from core.project.project import Project
from core.records.patterns import Maturity, Pattern
from core.sources.pattern_text import slice_file

NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
ONE, TWO, THREE = (f"pat-error-x-00{number}" for number in (1, 2, 3))


def record(pattern_id: str, text: str = "guard", **more: Any) -> dict[str, Any]:
    return {"pattern_id": pattern_id, "fix_approach": text, "usage_count": 4, "success_rate": 0.75, **more}


def opened(folder: Path, content: str, name: str = "error-patterns.json") -> Project:
    paths = ProjectPaths(folder)
    paths.patterns.mkdir(parents=True)
    (paths.patterns / name).write_text(content)
    open_project = Project(paths, Settings(), by="ana", clock=lambda: NOW, cache=False)
    open_project.load()
    return open_project


def known(view: ProjectState) -> dict[str, tuple[Pattern, Maturity]]:
    """Everything about the patterns except their place in the file."""
    return {
        id: (msgspec.structs.replace(pattern, pointer=""), view.assessment(id).state)
        for id, pattern in view.snapshot.patterns.items()
    }


RECORDS = [record(ONE), record(TWO, "wait"), record(THREE, "guard it"), record("pat-error-x-004", "retry")]
SHAPES = {
    "(3)": ("error-patterns.json", json.dumps({"pattern_registry": {"error_patterns": RECORDS, "anti_patterns": []}})),
    "list": ("error-patterns.json", json.dumps(RECORDS)),
    "patterns": ("error-patterns.json", "\N{ZERO WIDTH NO-BREAK SPACE}" + json.dumps({"patterns": RECORDS})),
    "by id": ("error-patterns.json", json.dumps({one["pattern_id"]: one for one in RECORDS})),
    "lines": ("error-patterns.jsonl", "".join(json.dumps(one) + "\n" for one in RECORDS)),
    "not a number": ("error-patterns.json", json.dumps([*RECORDS, record("pat-error-y-001", odd=float("nan"))])),
}


def test_a_dry_run_is_freed_at_once(tmp_path: Path) -> None:
    project = opened(tmp_path, SHAPES["list"][1])
    gc.collect()
    gc.disable()
    try:
        board = weakref.ref(dry_run(project, Promote(TWO)).state.board)
        assert board() is None
    finally:
        gc.enable()


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_dry_run_matches_the_decision_for_every_file_shape(tmp_path: Path, shape: str) -> None:
    name, content = SHAPES[shape]
    open_project = opened(tmp_path, content, name)
    decisions: tuple[Command, ...] = (Promote(ONE), Merge(ONE, THREE), Archive(ONE, reason="old"), Undo())
    for command in decisions:
        expected = known(dry_run(open_project, command).state)
        assert expected != known(open_project.view)
        open_project.decide(command)
        assert known(open_project.view) == expected


def test_dry_run_reads_a_file_changed_meanwhile_whole(tmp_path: Path) -> None:
    open_project = opened(tmp_path, json.dumps(RECORDS))
    path = open_project.project.patterns / "error-patterns.json"
    path.write_text(json.dumps([record("pat-error-new-001"), *RECORDS]))
    predicted = dry_run(open_project, Merge(ONE, THREE)).state
    assert predicted.pattern(THREE).id == ONE
    open_project.decide(Merge(ONE, THREE))
    assert open_project.view.pattern(ONE).recorded_counts == predicted.pattern(ONE).recorded_counts


def test_copy_replaces_an_archived_pattern(tmp_path: Path) -> None:
    open_project = opened(tmp_path, json.dumps(RECORDS))
    (open_project.project.patterns / "further.json").write_text(json.dumps([record(ONE, "another text")]))
    open_project.apply(None)
    predicted = dry_run(open_project, Archive(ONE, reason="old")).state
    assert predicted.pattern(ONE).description == "another text"
    open_project.decide(Archive(ONE, reason="old"))
    assert known(open_project.view) == known(predicted)


def test_dry_run_of_several_decisions_of_one_act(tmp_path: Path) -> None:
    open_project = opened(tmp_path, json.dumps(RECORDS))
    open_project.decide(Deprecate(ONE, reason="so"))
    before = open_project.project.ledger.read_bytes()
    predicted = dry_run(open_project, Promote(ONE, re_enable=True)).state
    assert predicted.assessment(ONE).state is Maturity.PROVEN
    assert open_project.project.ledger.read_bytes() == before
    open_project.decide(Promote(ONE, re_enable=True))
    assert known(open_project.view) == known(predicted)


def test_file_slice_preserves_the_bytes_of_its_records() -> None:
    data = b'{"version": 1, "pattern_registry": {"error_patterns": [{"a": 1.50}, {"b":2}], "anti_patterns": [{}]}}'
    found = slice_file(data, ["/pattern_registry/error_patterns/0"])
    assert found == b'{"pattern_registry":{"error_patterns":[{"a": 1.50}],"anti_patterns":[]}}'
    assert slice_file(data, ["/pattern_registry/error_patterns/7"]) is None
    assert slice_file(b'{"pat-error-x-001": {"fix_approach": "a"}}', ["/pat-error-x-001"]) is None
    assert slice_file(b"{", []) is None
