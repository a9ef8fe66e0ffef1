"""After any edits, a view that took them one by one shows what new ones of the same files show."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from core.base.paths import TRUSTED_PATHS
from core.trust.projects import save_answer
from tests.core.project.edits import NOW, STEPS, ChangeRegistry, MoveLoop, Notice, Step, StepClock, Tear, Workspace
from tests.core.project.views import ReaderView
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


def follow(view: ReaderView, workspace: Workspace, steps: Sequence[Step]) -> None:
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


@pytest.mark.slow
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture], phases=PHASES)
@example(steps=RENAMED_SOURCE, trusts_project=False)
@example(steps=TORN_ANCHOR, trusts_project=True)
@example(steps=CLOCK_SET_BACK, trusts_project=False)
@given(steps=STEPS, trusts_project=st.booleans())
def test_any_edits_end_where_a_new_view_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[Step], trusts_project: bool
) -> None:
    """Decisions made elsewhere count in a trusted path; in a project that the user trusts, they do not."""
    for one in tmp_path.iterdir():
        shutil.rmtree(one)
    with monkeypatch.context() as patch:
        for name in ("STATE", "CONFIG", "CACHE", "DATA"):
            patch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
        patch.setenv("HOME", str(tmp_path))
        if trusts_project:
            patch.delenv(TRUSTED_PATHS)
        workspace = Workspace(tmp_path / "project")
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
