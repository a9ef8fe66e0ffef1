"""The adapter of the Claude plugin ralph-loop, whose state file vanishes at the end."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.records.loops import Liveness, LoopStatus, StateSource
from core.sources.adapters.ralph_loop import TWO_SESSIONS, RalphLoopAdapter
from tests.core.sources.adapters.fixtures import NOW, Case, open_case

INFERRED, REPORTED = StateSource.INFERRED, StateSource.REPORTED
SESSION = "5b1d0c7e-0000-4000-8000-000000000001"
OTHER = "5b1d0c7e-0000-4000-8000-000000000002"
ID = "ralph-loop:20261120T110000-5b1d0c7e"
WORKING = datetime(2026, 11, 20, 11, 3, tzinfo=UTC)  # shortly after the last record of the sessions


def open_(case: str, tmp_path: Path, now: datetime = WORKING) -> Case:
    return open_case(RalphLoopAdapter(), f"ralph-loop/{case}", tmp_path / "case", now=now, modified_at=WORKING)


def state_file(case: Case) -> Path:
    return case.project / ".claude" / "ralph-loop.local.md"


def transcript(case: Case) -> Path:
    return next((case.home / ".claude" / "projects").rglob("*.jsonl"))


def change(case: Case, old: str, new: str) -> None:
    """Replace a line of the state file as the plugin does: in another file, which takes its place."""
    other = state_file(case).with_suffix(".tmp.1")
    other.write_text(state_file(case).read_text().replace(old, new))
    other.replace(state_file(case))
    os.utime(state_file(case), (WORKING.timestamp(), WORKING.timestamp()))


def test_a_loop_that_is_not_active_does_not_run(tmp_path: Path) -> None:
    case = open_("active", tmp_path)
    change(case, "active: true", "active: false")
    assert (case.loop().status, case.loop().end_reason) == (LoopStatus.UNKNOWN, "not active")


@pytest.mark.parametrize(
    ("iteration", "last", "commands", "expected"),
    [
        (20, "Two tests fail.", "", (LoopStatus.LIMIT, "iteration 20 of 20")),
        (20, "<promise>ALL GREEN</promise>", "", (LoopStatus.LIMIT, "iteration 20 of 20")),
        (7, "Done. <promise>ALL GREEN</promise>", "", (LoopStatus.COMPLETED, "promise")),
        (7, "<promise>ALL RED</promise>", "", (LoopStatus.UNKNOWN, "ended, and no file contains why")),
        (7, "Two tests fail.", "/cancel-ralph", (LoopStatus.ABORTED, "/cancel-ralph")),
        (7, "Two tests fail.", "", (LoopStatus.UNKNOWN, "ended, and no file contains why")),
    ],
)
def test_the_end_is_inferred_after_the_file_vanished(
    tmp_path: Path, iteration: int, last: str, commands: str, expected: tuple[LoopStatus, str]
) -> None:
    case = open_("max-reached", tmp_path)
    change(case, "iteration: 20\n", f"iteration: {iteration}\n")
    text = transcript(case).read_text().replace("Two tests fail.", last)
    if commands:
        line = text.split("\n")[0].replace("/ralph-loop:ralph-loop", commands).replace('"01-1"', '"01-99"')
        text += f"{line}\n"
    transcript(case).write_text(text)
    case.loops()
    state_file(case).unlink()
    loop = case.loop()
    assert (loop.status, loop.end_reason, loop.state_source) == (*expected, INFERRED)
    assert (loop.task, loop.files) == ("Make every test of the cart pass. Commit after each.", ())
    assert loop.progress.is_claimed is ("ALL GREEN" in last)
    assert loop.liveness is Liveness.ENDED


@pytest.mark.parametrize(
    ("case", "minutes", "status", "liveness"),
    [
        ("active", 9, LoopStatus.RUNNING, Liveness.FRESH),
        ("active", 11, LoopStatus.RUNNING, Liveness.STALE),
        ("max-reached", 1, LoopStatus.RUNNING, Liveness.FRESH),
        ("max-reached", 11, LoopStatus.UNKNOWN, Liveness.STALE),
    ],
)
def test_a_file_older_than_its_session_s_end_was_left_behind(
    tmp_path: Path, case: str, minutes: int, status: LoopStatus, liveness: Liveness
) -> None:
    opened = open_(case, tmp_path, WORKING + timedelta(minutes=minutes))
    loop = opened.loop()
    assert (loop.status, loop.liveness) == (status, liveness)
    found = [(finding.file, finding.code) for finding in opened.files.findings]
    is_left = status is LoopStatus.UNKNOWN
    assert found == ([(".claude/ralph-loop.local.md", "stale-state-file")] if is_left else [])
    assert ("delete" in loop.liveness_reason) is is_left
    assert ("stale" in loop.badges) is (liveness is Liveness.STALE)


def test_another_session_that_the_plugin_blocks_is_a_hazard(tmp_path: Path) -> None:
    case = open_("active", tmp_path)
    other = transcript(case).with_name(f"{OTHER}.jsonl")
    other.write_text(transcript(case).read_text().replace(SESSION, OTHER))
    assert case.loop().badges == (TWO_SESSIONS,)
    assert [finding.code for finding in case.files.findings] == ["shared-state-file"]
    assert case.loop().session_ids == (SESSION,)


def test_the_next_loop_is_another_one(tmp_path: Path) -> None:
    case = open_("active", tmp_path)
    case.loops()
    change(case, "2026-11-20T11:00:00Z", "2026-11-20T11:02:30Z")
    old, new = case.loops().values()
    assert (old.id, old.status) == (ID, LoopStatus.UNKNOWN)
    assert (new.id, new.status) == ("ralph-loop:20261120T110230-5b1d0c7e", LoopStatus.RUNNING)


@pytest.mark.parametrize("name", [".claude/ralph-loop-abc.local.md", ".sisyphus/ralph-loop.local.md"])
def test_other_names_of_the_file_are_read(tmp_path: Path, name: str) -> None:
    case = open_("active", tmp_path)
    path = case.project / name
    path.parent.mkdir(exist_ok=True)
    state_file(case).rename(path)
    path.write_text(path.read_text().replace(SESSION, "ses_7f").replace('"ALL GREEN"', "ALL GREEN"))
    loop = case.loop()
    assert (loop.owner, loop.criteria, loop.files) == ("opencode", ("ALL GREEN",), (name,))
    assert case.adapter.fingerprint(case.folders) == (name,)


def test_without_the_home_folder_the_file_alone_is_known(tmp_path: Path) -> None:
    case = open_("capped-at-8", tmp_path)
    case.set_folders(home=None)
    loop = case.loop()
    assert (loop.status, loop.iteration, loop.session_ids) == (LoopStatus.RUNNING, 9, (SESSION,))


FIELDS = ["active", "iteration", "session_id", "max_iterations", "completion_promise", "started_at", "stuck_count"]


@given(
    fields=st.dictionaries(st.sampled_from(FIELDS), st.text(max_size=15) | st.integers().map(str)),
    prompt=st.text(max_size=40),
)
def test_any_values_of_fields_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, fields: dict[str, str], prompt: str
) -> None:
    case = open_("active", tmp_path_factory.mktemp("types"), NOW)
    lines = "".join(f"{name}: {value}\n" for name, value in fields.items())
    state_file(case).write_text(f"---\n{lines}---\n{prompt}", errors="replace")
    case.use()
    state_file(case).unlink()
    case.use()
