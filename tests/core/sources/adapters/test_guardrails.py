"""The adapter of iannuttall/ralph and agrimsingh/ralph-wiggum-cursor."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.prompt_text import Blocks
from core.records.loops import Liveness, LoopStatus, StateSource
from core.sources.adapters.guardrails import GuardrailsAdapter
from tests.core.sources.adapters.fixtures import NOW, Case, open_case

INFERRED, REPORTED = StateSource.INFERRED, StateSource.REPORTED


CONTEXT = (
    "## Cross-Loop Learning Context\n\nPatterns:\n\n"
    "### Success Patterns\n\n1. **Small steps** (90% success, 3 uses)\n\n"
    "### Anti-Patterns to Avoid\n\n1. **Mocking the clock globally** (70% failure rate)\n"
    "   - Tests leak into each other\n"
)


def open_(case: str, tmp_path: Path) -> Case:
    return open_case(GuardrailsAdapter(), f"guardrails/{case}", tmp_path / "case")


def end_session(case: Case, text: str) -> None:
    """Write how the newest session of the case ended."""
    with (case.project / ".ralph" / "progress.md").open("a") as file:
        file.write(f"\n### 2026-11-20 11:55:00\n{text}\n")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("**Session 2 ended** - ✅ TASK COMPLETE", LoopStatus.COMPLETED),
        ("**Session 2 ended** - ✅ TASK COMPLETE (agent signaled)", LoopStatus.COMPLETED),
        ("**Session 2 ended** - 🔄 Context rotation (token limit reached)", LoopStatus.RUNNING),
        ("**Session 2 ended** - 🚨 GUTTER (agent stuck)", LoopStatus.FAILED),
        ("**Session 2 ended** - ⏸️ DEFERRED (rate limit)", LoopStatus.WAITING),
        ("**Session 2 ended** - Agent finished naturally (1 criteria remaining)", LoopStatus.RUNNING),
        ("**Session 2 ended** - Agent signaled complete but criteria remain", LoopStatus.RUNNING),
        ("**Loop ended** - ⚠️ Max iterations (20) reached", LoopStatus.LIMIT),
    ],
)
def test_the_state_is_the_end_of_the_newest_session(tmp_path: Path, text: str, status: LoopStatus) -> None:
    case = open_("agrimsingh", tmp_path)
    end_session(case, text)
    loop = case.loops()["guardrails:20261120-114000"]
    is_running = status is LoopStatus.RUNNING
    reason = "" if is_running else text.partition("** - ")[2]
    assert (loop.status, loop.state_source, loop.end_reason) == (status, INFERRED if is_running else REPORTED, reason)
    assert (loop.ended_at is not None) is status.ended
    assert loop.progress.is_claimed is ("signaled complete" in text)


def test_a_running_session_is_inferred_from_its_age_or_known_by_its_process(tmp_path: Path) -> None:
    case = open_("agrimsingh", tmp_path)
    loop = case.loops()["guardrails:20261120-114000"]
    assert (loop.status, loop.state_source, loop.liveness) == (LoopStatus.RUNNING, INFERRED, Liveness.FRESH)
    case.now += timedelta(hours=1)
    loop = case.loops()["guardrails:20261120-114000"]
    assert (loop.liveness, loop.badges) == (Liveness.STALE, ("stale",))
    case.processes.programs["ralph-loop.sh", case.project] = 42
    loop = case.loops()["guardrails:20261120-114000"]
    assert (loop.state_source, loop.liveness, loop.pid) == (REPORTED, Liveness.ALIVE, 42)


@pytest.mark.parametrize(
    ("started", "status"),
    [
        (datetime(2026, 11, 20, 10, tzinfo=UTC), LoopStatus.RUNNING),
        (datetime(2026, 11, 20, 11, tzinfo=UTC), LoopStatus.UNKNOWN),
    ],
)
def test_the_pid_in_the_name_shows_a_run_unless_it_was_reused(
    tmp_path: Path, started: datetime, status: LoopStatus
) -> None:
    case = open_("iannuttall", tmp_path)
    case.processes.starts[4343] = started
    loop = case.loops()["guardrails:20261120-100000-4343"]
    assert (loop.status, loop.liveness is Liveness.ALIVE) == (status, status is LoopStatus.RUNNING)


def test_done_stories_complete_the_newest_run(tmp_path: Path) -> None:
    case = open_("iannuttall", tmp_path)
    prd = case.project / ".agents" / "tasks" / "prd-cart.json"
    prd.write_text(prd.read_text().replace('"in_progress"', '"done"'))
    old, new = case.loops().values()
    assert (new.status, new.state_source, new.end_reason) == (LoopStatus.COMPLETED, REPORTED, "all 2 stories are done")
    assert (old.status, new.success) == (LoopStatus.UNKNOWN, True)


@pytest.mark.parametrize("case", ["iannuttall", "agrimsingh", "no-op"])
def test_the_fingerprint_is_a_file_of_signs(tmp_path: Path, case: str) -> None:
    opened = open_(case, tmp_path)
    assert opened.adapter.fingerprint(opened.folders) == (".ralph/guardrails.md",)
    (opened.project / ".ralph" / "guardrails.md").write_text("# Our own notes\n")
    assert opened.adapter.fingerprint(opened.folders) == ()


def test_approved_anti_patterns_are_delivered_as_signs(tmp_path: Path) -> None:
    case = open_("iannuttall", tmp_path)
    loop = next(iter(case.loops().values()))
    delivery = case.adapter.deliver(loop, CONTEXT, case.files)
    assert delivery is not None
    subprocess.run(["git", "apply", "-"], input=delivery.diff, text=True, cwd=case.project, check=True)
    text = (case.project / ".ralph" / "guardrails.md").read_text()
    assert "### Sign: Mocking the clock globally\n" in text
    assert "- **Instruction**: Avoid this. Tests leak into each other\n" in text
    assert "Small steps" not in text
    assert len(case.lessons()) == 3, "it is not read back"
    assert case.adapter.deliver(loop, CONTEXT, case.files) is None, "it is there already"
    assert case.adapter.deliver(loop, "### Success Patterns\n\n1. **x** (1 use)\n", case.files) is None


def test_a_sign_names_a_review_only_if_there_was_one(tmp_path: Path) -> None:
    case = open_("iannuttall", tmp_path)
    loop = next(iter(case.loops().values()))
    for blocks, origin in (
        (Blocks(CONTEXT), "A review"),
        (Blocks(unreviewed=CONTEXT), "Earlier sessions, not reviewed"),
    ):
        delivery = case.adapter.deliver(loop, blocks.fenced(), case.files)
        assert delivery is not None and f"+- **Added after**: {origin}" in delivery.diff


@given(numbers=st.lists(st.integers(0, 10**12), min_size=4, max_size=4), word=st.text(max_size=10))
def test_lines_with_any_numbers_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], word: str
) -> None:
    case = open_("iannuttall", tmp_path_factory.mktemp("lines"))
    one, two, three, four = numbers
    run, folder = f"run=20261332-999999-{two}", case.project / ".ralph"
    line = f"- 2026-11-{one:02} 09:08:00 | {run} | iter={three} | mode=build | duration={four}s | status={word}"
    start = f"[2026-99-99 99:99:99] ITERATION {one} start (mode=x)"
    (folder / "activity.log").write_text(f"{line}\n{start}\n")
    (folder / "progress.md").write_text(f"### 2026-13-40 99:00:00\n**Session {one} started** ({word})\n")
    case.now = NOW
    case.use()
