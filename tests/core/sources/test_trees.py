"""All records of two projects, as they were recorded: `upstream` was written by the loops, `spec-examples` by hand.

`recorded_trees.jsonl` has a line for each record, with all fields that are not the default. To record it, then read the
diff:

    python -m tests.core.sources.test_trees
"""

from __future__ import annotations

import json
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.refresh import Index
from core.records.reflections import Reflection
from tests.copying import copy_folder
from tests.core.sources.adapters.fixtures import plain
from tests.factories import RunningProcesses

TREES = Path(__file__).parents[2] / "trees"
NAMES = ("upstream", "spec-examples")
RECORDED = Path(__file__).with_name("recorded_trees.jsonl")
KINDS = ("patterns", "loops", "reflections", "memory_tasks", "tasks", "attempts", "debug_sessions")
NOW = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
"""Some minutes after the upstream tree was written."""


def open_tree(name: str, folder: Path) -> Index:
    copy_folder(TREES / name, folder)
    for path in folder.rglob("*"):
        os.utime(path, (NOW.timestamp() - 600,) * 2)
    index = Index(ProjectPaths(folder), Settings(), clock=lambda: NOW, is_kept=False, processes=RunningProcesses())
    index.load()
    return index


def record(name: str, folder: Path) -> list[str]:
    index = open_tree(name, folder)
    found: list[tuple[str, Any]] = []
    for kind in KINDS:
        found += [(kind, plain(one)) for one in getattr(index.snapshot, kind).values()]
    found += [("details", plain(index.story(id))) for id in index.snapshot.loops]
    found += [("findings", plain(one)) for one in index.snapshot.findings]
    return [json.dumps({"tree": name, kind: value}, ensure_ascii=False) for kind, value in found]


@pytest.mark.parametrize("name", NAMES)
def test_the_records_of_a_tree_are_what_was_recorded(name: str, tmp_path: Path) -> None:
    expected = [line for line in RECORDED.read_text("utf-8").splitlines() if json.loads(line)["tree"] == name]
    assert record(name, tmp_path / "tree") == expected


def test_each_loop_and_each_reflection_is_one_record(tmp_path: Path) -> None:
    snapshot = open_tree("upstream", tmp_path / "tree").snapshot
    ralph = (tmp_path / "tree" / ".aiwg").glob("ralph/[la]*/*/state.json")
    external = (tmp_path / "tree" / ".aiwg").glob("ralph-external/[la]*/*/session-state.json")
    assert set(snapshot.loops) == {state.parent.name for state in (*ralph, *external)} | {"current-loop"}

    def text(one: Reflection) -> tuple[object, ...]:
        return one.loop_id, one.task_id, one.iteration, " ".join(one.text.split()).casefold()

    assert len({text(one) for one in snapshot.reflections.values()}) == len(snapshot.reflections) == 37


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        lines = [line for name in NAMES for line in record(name, Path(scratch) / name)]
    RECORDED.write_text("".join(f"{line}\n" for line in lines), "utf-8")
