"""After any edits, a view that took them one by one shows what new ones of the same files show."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from core.base.paths import TRUSTED_PATHS
from core.trust.projects import save_answer
from tests.core.project.edits import NOW, STEPS, ChangeRegistry, MoveLoop, Notice, Step, StepClock, Tear, Workspace
from tests.core.project.views import ReaderView, View
from tests.differ.comparison import plain_differences

PHASES = (Phase.explicit, Phase.generate)
"""Without making a failing example smaller, which takes minutes: its steps are few."""
RENAMED_SOURCE = [
    Step((MoveLoop(15, 1, True),), Notice.REOPEN),
    Step((ChangeRegistry(1, "failed", False),), Notice.SWEEP),
]
"""The source of a burst becomes a former name of a loop."""
TORN_ANCHOR = [Step((Tear(62, 92),), Notice.REOPEN)]
"""The anchor of the decision log, which is not a record, is incomplete for a while."""

CLOCK_SET_BACK = [Step((StepClock(minutes),), Notice.REOPEN) for minutes in (64_800, -64_800)]
"""Loops that were stale for a while."""


def follow(view: View, workspace: Workspace, steps: Sequence[Step]) -> None:
    """Make the edits, and let a view learn of them as each step says; at the end no file is incomplete."""
    for step in steps:
        changed = step.make(workspace)
        if step.notice is Notice.REOPEN:
            view.open()
        else:
            view.apply(notified(workspace, changed, step.notice))
    changed = frozenset(map(workspace.path, workspace.torn))
    workspace.complete_torn_files()
    view.apply(changed)
    workspace.clock.now += timedelta(minutes=2)


def notified(workspace: Workspace, changed: frozenset[Path], notice: Notice) -> frozenset[Path] | None:
    """What a watcher reports of changed files: each of them, the folders that contain them, or nothing."""
    if notice is Notice.SWEEP:
        return None
    return changed if notice is Notice.PATHS else frozenset(path.parent for path in changed)


@pytest.fixture(params=["trusted path", "trusted project"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a project whose decisions made elsewhere count, or do not."""
    for name in ("STATE", "CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path))
    if request.param == "trusted project":
        monkeypatch.delenv(TRUSTED_PATHS)
    return tmp_path


@pytest.mark.slow
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture], phases=PHASES)
@example(steps=RENAMED_SOURCE)
@example(steps=TORN_ANCHOR)
@example(steps=CLOCK_SET_BACK)
@given(steps=STEPS)
def test_any_edits_end_where_a_new_view_begins(folder: Path, steps: list[Step]) -> None:
    for one in folder.iterdir():
        shutil.rmtree(one)
    workspace = Workspace(folder / "project")
    save_answer(workspace.paths, "init", NOW)
    view = ReaderView(workspace.paths, workspace.clock, cache=True)
    view.open()
    view.plain()  # indexes that are built on first use are updated from here on
    follow(view, workspace, steps)
    shown = view.plain()
    anew = ReaderView(workspace.paths, workspace.clock, cache=False)
    anew.open()
    expected = anew.plain()
    assert list(plain_differences(expected, shown)) == []
    view.open()  # with the questions that the searches found before
    assert list(plain_differences(expected, view.plain())) == []
