"""The records of the last run are shown until the files are checked, and never believed."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path

import msgspec
import pytest
from core.project.kept_view import KeptState, KeptView
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.base.errors import Refused
from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.curation import commands
from core.index.refresh import Index
from core.learning.scoreboard import SavedScores
from core.project.kept_project import KeptProject, KeptProjectState
from core.project.project import Project
from core.records.events import Event
from core.records.snapshot import UNCHECKED, Snapshot
from core.state.contexts import prepare_task_injection
from core.state.project_state import ProjectState
from core.storage.user_cache import parse_cache_file
from tests.conftest import WriteSample
from tests.factories import leave_draft, record_calls

TREES = Path(__file__).parents[2] / "trees"
SETTINGS = Settings()
RECORDS = attrgetter(*(one.name for one in fields(Snapshot) if one.name not in ("number", "complete", "as_of")))
NOW = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def opened(project: Path) -> Project:
    return Project(ProjectPaths(project), SETTINGS, by="ana", clock=lambda: NOW)


def from_nothing(project: Path) -> Snapshot:
    return replace(Index(ProjectPaths(project), Settings(), clock=lambda: NOW, is_kept=False).load(), number=0)


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
    first.keep_view()
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


def test_what_was_saved_is_shown_first_with_its_time(project: Path) -> None:
    saved = opened(project)
    saved.load()
    saved.keep_view()
    states, final = shown_while_loading(project)
    (kept,) = states
    assert kept.snapshot.as_of == NOW
    assert not kept.snapshot.complete
    assert RECORDS(kept.snapshot) == RECORDS(saved.view.snapshot)
    assert all(hasattr(kept, one.name) for one in fields(ProjectState))
    assert kept.board.saved() == saved.view.board.saved()
    assert kept.queue == saved.view.queue != ()
    assert final.snapshot.as_of is None
    assert final.snapshot.complete


def test_reading_from_nothing_shows_partial_states(project: Path) -> None:
    states, _ = shown_while_loading(project)
    assert all(state.snapshot.as_of is None for state in states)


def test_commands_never_get_unchecked_records(project: Path) -> None:
    first = opened(project)
    first.load()
    first.keep_view()
    shutil.rmtree(project / ".aiwg")
    assert opened(project).load().snapshot.loops == {}


def test_a_view_is_saved_once_for_each_state(project: Path) -> None:
    first = opened(project)
    first.load()
    first.keep_view()
    view = next(parse_cache_file(project).parent.glob("*.view"))
    view.unlink()
    first.keep_view()
    assert not view.exists()


def test_a_load_that_fails_leaves_nothing_unchecked(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = opened(project)
    first.load()
    first.keep_view()
    second = reopened_as_kept(project)

    def fail(*_: object) -> None:
        raise OSError("no more files")

    monkeypatch.setattr(second.index, "load", fail)
    with pytest.raises(OSError, match="no more files"):
        second.load(publish=lambda _: None)
    assert second.view.snapshot == Snapshot()


@pytest.mark.parametrize(
    "write",
    [
        lambda project: project.decide(promotion(project)),
        lambda project: project.record(
            Event(id="e-1", at=NOW, kind="applied", pattern_id=next(iter(project.view.snapshot.patterns)), loop_id="a")
        ),
        lambda project: project.inject("a", prepare_task_injection(project.view, "Fix the tests")),
        lambda project: project.learn_strategies("a"),
    ],
)
def test_nothing_is_decided_or_recorded_on_unchecked_records(kept: Path, write: Callable[[Project], object]) -> None:
    project = reopened_as_kept(kept)
    before = files_of(kept)
    with pytest.raises(Refused, match=UNCHECKED):
        write(project)
    assert files_of(kept) == before


def test_a_decision_on_unchecked_records_is_refused_after_the_check(kept: Path) -> None:
    project = reopened_as_kept(kept)
    seen = project.view
    project.load()
    with pytest.raises(Refused, match=UNCHECKED):
        project.decide(promotion(project), expected_state=seen)
    project.decide(promotion(project), expected_state=project.view)


def promotion(project: Project) -> commands.Promote:
    return commands.Promote(pattern_id=next(iter(project.view.snapshot.patterns)))


def search(project: Project) -> None:
    project.load()
    project.search_all()
    project.keep_view()


def test_the_number_of_questions_stays_until_the_searches_have_ended(project: Path) -> None:
    first = opened(project)
    search(first)
    count = len(first.view.agenda)
    again = reopened_as_kept(project)
    assert (again.view.pending_count, again.view.is_count_open) == (count, False)
    again.load()
    assert len(again.view.agenda) < count
    while again.view.is_count_open:
        assert again.view.pending_count == count
        assert again.search_next() is not None
    assert again.view.pending_count == len(again.view.agenda) == count


def test_a_view_that_is_saved_during_the_searches_is_marked(project: Path) -> None:
    search(first := opened(project))
    again = reopened_as_kept(project)
    again.load()
    again.keep_view()
    early = reopened_as_kept(project).view
    assert early.is_count_open
    assert early.pending_count == first.view.pending_count > len(early.queue)


def test_a_removed_question_counts_until_the_searches_have_ended(project: Path) -> None:
    search(opened(project))
    shutil.rmtree(project / ".aiwg")
    again = reopened_as_kept(project)
    again.load()
    assert again.view.is_count_open
    assert again.search_all().pending_count == 0
    assert not again.view.is_count_open


def files_of(project: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in project.rglob("*") if file.is_file()}


def flip(content: bytes, at: int) -> bytes:
    place = at % len(content)
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: content + b"x",
        lambda content: b"\xff" * 40,
        lambda content: content[12:],
        *(lambda content, at=at: flip(content, at) for at in (0, 9, 13, 40, 60)),
    ],
)
def test_a_damaged_file_is_ignored(project: Path, damage: Callable[[bytes], bytes]) -> None:
    first = opened(project)
    first.load()
    first.keep_view()
    file = next(parse_cache_file(project).parent.glob("*.view"))
    file.write_bytes(damage(file.read_bytes()))
    assert KeptView(project, SETTINGS).load() is None


@pytest.mark.parametrize(
    "more",
    [
        lambda content: bytes(1 << 20),
        lambda content: content + (bytes([0] * 7 + [1] + [0] * 4) + b"x") * 10_000,
        lambda content: content + bytes(1 << 20),
    ],
)
def test_no_more_blocks_are_looked_for_than_the_header_states(
    kept: Path, monkeypatch: pytest.MonkeyPatch, more: Callable[[bytes], bytes]
) -> None:
    file = next(parse_cache_file(kept).parent.glob("*.view"))
    file.write_bytes(more(file.read_bytes()))
    reads = record_calls(monkeypatch, os, "pread")
    assert KeptView(kept, SETTINGS).load() is None
    assert len(reads) < 50


def test_wrong_scores_are_shown_at_most_until_the_check(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = KeptState.scores

    def wrong(state: KeptState) -> SavedScores | None:
        saved = scores(state)
        assert saved is not None
        none = bytes(len(saved.interval[0]))
        return msgspec.structs.replace(saved, interval=(none, none))

    monkeypatch.setattr(KeptState, "scores", wrong)
    (state,), final = shown_while_loading(kept)
    right = opened(kept).load()
    ids = tuple(right.snapshot.patterns)
    assert {state.assessment(id).interval for id in ids} == {(0.0, 0.0)}
    assert [final.assessment(id) for id in ids] == [right.assessment(id) for id in ids]


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 1 << 20))
def test_a_damaged_part_changes_nothing_that_was_checked(kept: Path, at: int) -> None:
    project, file = kept, next(parse_cache_file(kept).parent.glob("*.view"))
    content = file.read_bytes()
    file.write_bytes(flip(content, at))
    states, final = shown_while_loading(project)
    file.write_bytes(content)
    for state in states:
        assert RECORDS(state.snapshot)
        assert all(state.assessment(id) for id in state.snapshot.patterns)
    assert replace(final.snapshot, number=0) == from_nothing(project)


def test_a_view_with_values_that_cannot_be_used_is_ignored(project: Path) -> None:
    first = opened(project)
    state = first.load()
    events = tuple(msgspec.structs.replace(one, at=datetime(2026, 1, 1)) for one in state.snapshot.events)  # noqa: DTZ001
    forged = replace(state, snapshot=replace(state.snapshot, events=(*state.snapshot.events, *events)))
    KeptView(project, SETTINGS).save(forged, NOW)
    assert KeptView(project, SETTINGS).load() is not None
    assert KeptProject.open(ProjectPaths(project), SETTINGS, "ana", lambda: NOW) is None


def test_the_view_of_another_project_or_a_link_is_ignored(project: Path, tmp_path: Path) -> None:
    first = opened(project)
    first.load()
    first.keep_view()
    file = next(parse_cache_file(project).parent.glob("*.view"))
    other = parse_cache_file(tmp_path / "other").with_suffix(".view")
    shutil.copy(file, other)
    assert KeptView(tmp_path / "other", SETTINGS).load() is None
    moved = file.rename(file.with_name("elsewhere"))
    file.symlink_to(moved)
    assert KeptView(project, SETTINGS).load() is None


def test_nothing_of_the_view_stays_in_memory_after_the_check(kept: Path) -> None:
    project = reopened_as_kept(kept)
    view = project.view
    assert view.queue and view.board and view.index and isinstance(view, KeptProjectState)
    shown = weakref.ref(view._kept)
    del view
    gc.disable()  # the dashboard excludes what is loaded at the start from collections
    try:
        project.load()
        assert shown() is None
    finally:
        gc.enable()


def kill_while_saving(project: Path, blocks: int) -> None:
    """Save a view in another process, which is killed after this number of blocks."""
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from core.project import kept_view\n"
        "from tests.core.project.test_kept_view import opened\n"
        "blocks, left = kept_view.KeptView._blocks, int(sys.argv[2])\n"
        "def cut(self, *rest):\n"
        "    for number, block in enumerate(blocks(self, *rest)):\n"
        "        if number == left: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        yield block\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "kept_view.KeptView._blocks = cut\n"
        "project = opened(Path(sys.argv[1]))\n"
        "project.load()\n"
        "project.keep_view()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(project), str(blocks)], check=False)
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [1, 1000])
def test_a_process_that_is_killed_while_it_saves_leaves_the_older_view(kept: Path, blocks: int) -> None:
    states, _ = shown_while_loading(kept)
    shutil.rmtree(next((kept / ".aiwg/ralph/loops").iterdir()))
    kill_while_saving(kept, blocks)
    again, final = shown_while_loading(kept)
    assert RECORDS(again[0].snapshot) == RECORDS(states[0].snapshot)
    assert replace(final.snapshot, number=0) == from_nothing(kept)


def test_a_process_that_is_killed_while_it_saves_the_first_view_leaves_none(project: Path) -> None:
    kill_while_saving(project, 3)
    _, final = shown_while_loading(project)
    assert KeptView(project, SETTINGS).load() is None
    assert replace(final.snapshot, number=0) == from_nothing(project)


def test_other_settings_or_another_program_have_no_view(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert KeptView(kept, SETTINGS).load() is not None
    assert KeptView(kept, Settings(interval_level=0.8)).load() is None
    monkeypatch.setattr("core.project.kept_view.code_digest", lambda packages: b"newer")
    assert KeptView(kept, SETTINGS).load() is None


def test_the_view_of_loops_needs_neither_scores_nor_the_program(kept: Path) -> None:
    code = (
        "import sys\n"
        "from datetime import UTC, datetime\n"
        "from pathlib import Path\n"
        "from core.config.paths import ProjectPaths\n"
        "from core.config.settings import Settings\n"
        "from core.project.kept_project import KeptProject\n"
        "view = KeptProject.open(ProjectPaths(Path(sys.argv[1])), Settings(), '', lambda: datetime.now(UTC)).view\n"
        "assert view.snapshot.loops and view.pending_count\n"
        "for id in view.snapshot.loops: view.outcome(id), view.loop_patterns(id)\n"
        "import tui.screens.loops\n"
        "print(*({'numpy', 'core.project.project', 'core.curation', 'core.learning.scoreboard'} & {*sys.modules}))\n"
    )
    found = subprocess.run([sys.executable, "-c", code, str(kept)], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


def test_the_file_is_private_and_drafts_of_killed_processes_go(project: Path) -> None:
    first = opened(project)
    first.load()
    first.keep_view()
    file = next(parse_cache_file(project).parent.glob("*.view"))
    assert file.stat().st_mode & 0o077 == 0
    draft = leave_draft(file)
    KeptView(project, SETTINGS).save(first.view, NOW)
    assert not draft.exists()


def test_a_folder_that_cannot_be_written_changes_nothing(project: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    first = opened(project)
    first.load()
    first.keep_view()
    assert KeptView(project, SETTINGS).load() is None


FILES = sorted(file.relative_to(TREES) for file in TREES.rglob("*") if file.is_file())


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=st.sets(st.sampled_from(FILES), max_size=40), new=st.sets(st.sampled_from(FILES), max_size=40))
def test_any_old_view_gives_what_a_load_from_nothing_gives(tmp_path: Path, old: set[Path], new: set[Path]) -> None:
    project = tmp_path / "random"
    for files in (old, new):
        shutil.rmtree(project, ignore_errors=True)
        for file in files:
            place = project.joinpath(*file.parts[1:])
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TREES / file, place)
        project.mkdir(exist_ok=True)
        if files is old:
            first = opened(project)
            first.load()
            first.keep_view()
    _, final = shown_while_loading(project)
    scored = Project(ProjectPaths(project), SETTINGS, by="ana", clock=lambda: NOW, cache=False).load()
    assert replace(final.snapshot, number=0) == replace(scored.snapshot, number=0)
    assert final.queue == scored.queue
    assert [final.assessment(id) for id in final.snapshot.patterns] == [
        scored.assessment(id) for id in scored.snapshot.patterns
    ]
    assert all(final.outcome(id) == scored.outcome(id) for id in final.snapshot.loops)
