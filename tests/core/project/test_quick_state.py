"""What a hook gets from the index without a sweep is what a reader of all files gets."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.base.paths import TRUSTED_PATHS, ProjectPaths
from core.base.settings import Settings
from core.decisions.commands import Promote, Quarantine
from core.project.project import Project
from core.project.quick_state import SWEEP_AFTER, open_quick_state
from core.records.events import Event
from core.sources.events import append_events
from core.trust.own_records import own_records_path
from core.trust.projects import save_answer
from tests.conftest import WriteSample
from tests.core.project.views import plain_state

NOW = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
PATTERN = "pat-error-type-mismatch-003"


@pytest.fixture
def paths(tmp_path: Path, write_sample: WriteSample, monkeypatch: pytest.MonkeyPatch) -> ProjectPaths:
    """A project that the user trusts, with an index."""
    for name in ("STATE", "CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.delenv(TRUSTED_PATHS, raising=False)
    write_sample(tmp_path / "shop", NOW)
    paths = ProjectPaths(tmp_path / "shop")
    save_answer(paths, "init", NOW)
    opened(paths).load()
    return paths


def opened(paths: ProjectPaths, *, cache: bool = True) -> Project:
    return Project(paths, Settings(), by="ana", clock=lambda: NOW, cache=cache, asks=False)


def rewrite(file: Path, change: Callable[[dict[str, object]], object]) -> None:
    """Change a document in place, which changes no folder."""
    document = json.loads(file.read_bytes())
    change(document)
    file.write_text(json.dumps(document))


def decide_without_index(paths: ProjectPaths, command: Promote | Quarantine) -> None:
    """Decide in a process that leaves the index as it is."""
    project = opened(paths, cache=False)
    project.load()
    project.decide(command)


def forget_own_decisions(paths: ProjectPaths) -> None:
    decide_without_index(paths, Promote(PATTERN))
    open_quick_state(paths, Settings(), lambda: NOW)
    own_records_path(paths.project, "decisions").unlink()


def add_event(paths: ProjectPaths) -> None:
    append_events(paths, Event(id="new", at=NOW, kind="applied", pattern_id=PATTERN, loop_id="job", success=False))


def add_loop(paths: ProjectPaths) -> None:
    state = {"loopId": "ralph-new-00000001", "task": "x", "status": "completed", "startTime": "2026-11-21T20:00:00Z"}
    folder = paths.ralph / "loops" / "ralph-new-00000001"
    folder.mkdir()
    (folder / "state.json").write_text(json.dumps(state))


CHANGES: dict[str, Callable[[ProjectPaths], object]] = {
    "nothing": lambda _: None,
    "a promotion": lambda paths: decide_without_index(paths, Promote(PATTERN)),
    "a quarantine": lambda paths: decide_without_index(paths, Quarantine(PATTERN, reason="looks odd")),
    "own decisions that are not own ones any more": forget_own_decisions,
    "an event": add_event,
    "a pattern file in place": lambda paths: rewrite(paths.pattern_file("error"), lambda one: one.update(version="9")),
    "a removed pattern file": lambda paths: paths.pattern_file("template").unlink(),
    "a new loop": add_loop,
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_decides_is_never_old(paths: ProjectPaths, name: str) -> None:
    CHANGES[name](paths)
    state, _ = open_quick_state(paths, Settings(), lambda: NOW)
    assert plain_state(state) == plain_state(opened(paths, cache=False).load())


def test_a_project_without_an_index_is_read(
    paths: ProjectPaths, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    state, is_sweep_due = open_quick_state(paths, Settings(), lambda: NOW)
    assert state.snapshot.patterns and not is_sweep_due


@pytest.mark.parametrize(("age", "is_due"), [(SWEEP_AFTER - timedelta(seconds=1), False), (SWEEP_AFTER, True)])
def test_all_files_should_be_compared_after_a_minute(paths: ProjectPaths, age: timedelta, is_due: bool) -> None:
    assert open_quick_state(paths, Settings(), lambda: NOW + age)[1] is is_due
