from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from pathlib import Path

import pytest

from core.base.errors import Refused
from core.base.paths import TRUSTED_PATHS, ProjectPaths
from core.base.settings import Settings
from core.decisions import commands
from core.decisions.commands import Promote, Quarantine
from core.index.contexts import prepare_task_injection
from core.index.project_state import ProjectState
from core.project.kept_project import SWEEP_AFTER, KeptProject, open_quick_state
from core.project.project import Project
from core.records.events import Event
from core.records.snapshot import UNCHECKED, Snapshot
from core.sources.events import append_events
from core.trust.own_records import own_records_path
from core.trust.projects import save_answer
from tests.conftest import WriteSample
from tests.core.project.views import plain_state

SETTINGS = Settings()
RECORDS = attrgetter(*(one.name for one in fields(Snapshot) if one.name not in ("number", "complete", "as_of")))
NOW = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def opened(project: Path) -> Project:
    return Project(ProjectPaths(project), SETTINGS, by="ana", clock=lambda: NOW)


@pytest.fixture
def project(tmp_path: Path, write_sample: WriteSample) -> Path:
    project = tmp_path / "project"
    write_sample(project, NOW)
    return project


@pytest.fixture
def kept(project: Path) -> Path:
    """A project of which a view is kept."""
    first = opened(project)
    first.load()
    first.keep_questions()
    return project


def reopened_as_kept(folder: Path) -> Project:
    """Return a project that shows the kept view, if there is one."""
    project = opened(folder)
    if (kept := KeptProject.open(project.project, SETTINGS, "ana", lambda: NOW)) is not None:
        project.show(kept.view)
    return project


def shown_while_loading(project: Path) -> tuple[list[ProjectState], ProjectState]:
    reopened = reopened_as_kept(project)
    states = [reopened.view] if reopened.view.snapshot.as_of is not None else []
    final = reopened.load(publish=states.append)
    return states, final


def files_of(project: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in project.rglob("*") if file.is_file()}


def promotion(project: Project) -> commands.Promote:
    return commands.Promote(pattern_id=next(iter(project.view.snapshot.patterns)))


def search(project: Project) -> None:
    """Search as the dashboard does, which judges all loops when idle."""
    project.load()
    while project.search_next() is not None:
        pass
    project.keep_questions()


def change(project: Path) -> None:
    """Add a file that cannot be read, which changes no question."""
    (project / ".aiwg" / "ralph" / "shared" / "patterns" / "new.json").write_text("3")


def test_what_was_saved_is_shown_first_with_its_time(project: Path) -> None:
    saved = opened(project)
    saved.load()
    saved.keep_questions()
    states, final = shown_while_loading(project)
    (kept,) = states
    assert kept.snapshot.as_of == NOW
    assert not kept.snapshot.complete
    assert RECORDS(kept.snapshot) == RECORDS(saved.view.snapshot)
    assert all(hasattr(kept, one.name) for one in fields(ProjectState))
    assert kept.board.score.tolist() == saved.view.board.score.tolist()
    assert kept.queue == saved.view.queue != ()
    assert final.snapshot.as_of is None
    assert final.snapshot.complete


def test_a_load_that_fails_leaves_nothing_unchecked(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = opened(project)
    first.load()
    first.keep_questions()
    second = reopened_as_kept(project)

    def fail(*_: object) -> None:
        raise OSError("no more files")

    monkeypatch.setattr(second.index, "load", fail)
    with pytest.raises(OSError, match="no more files"):
        second.load(publish=lambda _: None)
    assert second.view.snapshot == Snapshot()


def test_nothing_is_decided_or_recorded_on_unchecked_records(kept: Path) -> None:
    writes: tuple[Callable[[Project], object], ...] = (
        lambda project: project.decide(promotion(project)),
        lambda project: project.record(Event(id="e-1", at=NOW, kind="applied", pattern_id=PATTERN, loop_id="a")),
        lambda project: project.inject("a", prepare_task_injection(project.view, "Fix the tests")),
        lambda project: project.learn_strategies("a"),
    )
    project = reopened_as_kept(kept)
    seen, before = project.view, files_of(kept)
    for write in writes:
        with pytest.raises(Refused, match=UNCHECKED):
            write(project)
    assert files_of(kept) == before
    project.load()
    with pytest.raises(Refused, match=UNCHECKED):
        project.decide(promotion(project), expected_state=seen)
    project.decide(promotion(project), expected_state=project.view)


def test_the_number_of_questions_stays_until_the_searches_have_ended(project: Path) -> None:
    first = opened(project)
    search(first)
    count = first.view.pending_count
    change(project)
    again = reopened_as_kept(project)
    assert (again.view.pending_count, again.view.is_count_open) == (count, False)
    again.load()
    assert len(again.view.worth_reading) < count
    again.keep_questions()  # in the middle of the searches
    early = reopened_as_kept(project).view
    assert early.is_count_open
    assert early.pending_count == count > len(early.queue)
    while again.view.is_count_open:
        assert again.view.pending_count == count
        assert again.search_next() is not None
    assert again.view.pending_count == len(again.view.worth_reading) == count
    again.keep_questions()
    shutil.rmtree(project / ".aiwg")
    empty = reopened_as_kept(project)
    assert empty.load().snapshot.loops == {} and empty.view.is_count_open
    assert empty.search_all().pending_count == 0
    assert not empty.view.is_count_open


def test_the_view_of_loops_needs_neither_scores_nor_the_program(kept: Path) -> None:
    code = (
        "import sys\n"
        "from datetime import UTC, datetime\n"
        "from pathlib import Path\n"
        "from core.base.paths import ProjectPaths\n"
        "from core.base.settings import Settings\n"
        "from core.project.kept_project import KeptProject\n"
        "view = KeptProject.open(ProjectPaths(Path(sys.argv[1])), Settings(), '', lambda: datetime.now(UTC)).view\n"
        "assert view.snapshot.loops and view.pending_count\n"
        "for id in view.snapshot.loops: view.outcome(id), view.loop_patterns(id)\n"
        "import tui.screens.loops\n"
        "print(*({'numpy', 'core.project.project', 'core.decisions', 'core.learning.scoreboard'} & {*sys.modules}))\n"
    )
    found = subprocess.run([sys.executable, "-c", code, str(kept)], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


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
    open_paths(paths).load()
    return paths


def open_paths(paths: ProjectPaths, *, cache: bool = True) -> Project:
    return Project(paths, Settings(), by="ana", clock=lambda: NOW, cache=cache, asks=False)


def rewrite(file: Path, change: Callable[[dict[str, object]], object]) -> None:
    """Change a document in place, which changes no folder."""
    document = json.loads(file.read_bytes())
    change(document)
    file.write_text(json.dumps(document))


def decide_without_index(paths: ProjectPaths, command: Promote | Quarantine) -> None:
    """Decide in a process that leaves the index as it is."""
    project = open_paths(paths, cache=False)
    project.load()
    project.decide(command)


def add_loop(paths: ProjectPaths) -> None:
    state = {"loopId": "ralph-new-00000001", "task": "x", "status": "completed", "startTime": "2026-11-21T20:00:00Z"}
    folder = paths.ralph / "loops" / "ralph-new-00000001"
    folder.mkdir()
    (folder / "state.json").write_text(json.dumps(state))


def test_what_decides_is_never_old(paths: ProjectPaths) -> None:
    changes: tuple[Callable[[], object], ...] = (
        lambda: None,
        lambda: decide_without_index(paths, Promote(PATTERN)),
        own_records_path(paths.project, "decisions").unlink,  # own decisions that are not own ones any more
        lambda: decide_without_index(paths, Quarantine(PATTERN, reason="looks odd")),
        lambda: append_events(
            paths, Event(id="new", at=NOW, kind="applied", pattern_id=PATTERN, loop_id="job", success=False)
        ),
        lambda: rewrite(paths.pattern_file("error"), lambda one: one.update(version="9")),
        lambda: paths.pattern_file("template").unlink(),
        lambda: add_loop(paths),
    )
    for number, change in enumerate(changes):
        change()
        state, is_sweep_due = open_quick_state(paths, Settings(), lambda: NOW)
        assert plain_state(state) == plain_state(open_paths(paths, cache=False).load()), number
        assert not is_sweep_due
    for age, is_due in ((SWEEP_AFTER - timedelta(seconds=1), False), (SWEEP_AFTER, True)):
        assert open_quick_state(paths, Settings(), lambda age=age: NOW + age)[1] is is_due  # type: ignore[misc]


def test_a_project_without_an_index_is_read(
    paths: ProjectPaths, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    state, is_sweep_due = open_quick_state(paths, Settings(), lambda: NOW)
    assert state.snapshot.patterns and not is_sweep_due
