"""Loops, reflections and findings of two real projects."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.refresh import Index
from core.records.findings import Severity
from core.records.loops import Liveness, Loop, LoopStatus, Outcome
from core.records.reflections import Reflection
from core.records.snapshot import Snapshot
from tests.factories import RunningProcesses

TREES = Path(__file__).parents[2] / "trees"
NOW = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
"""Some minutes after the upstream tree was written."""


def load(name: str) -> Index:
    index = Index(
        ProjectPaths(TREES / name), Settings(), clock=lambda: NOW, is_kept=False, processes=RunningProcesses()
    )
    index.load()
    return index


@pytest.fixture(scope="module")
def upstream_library() -> Index:
    return load("upstream")


@pytest.fixture(scope="module")
def upstream(upstream_library: Index) -> Snapshot:
    return upstream_library.snapshot


@pytest.fixture(scope="module")
def examples() -> Snapshot:
    return load("spec-examples").snapshot


def starting(snapshot: Snapshot, prefix: str) -> Loop:
    (loop,) = (loop for loop in snapshot.loops.values() if loop.id.startswith(prefix))
    return loop


def test_each_loop_directory_is_one_loop(upstream: Snapshot) -> None:
    aiwg = TREES / "upstream" / ".aiwg"
    states = [*aiwg.glob("ralph/loops/*/state.json"), *aiwg.glob("ralph/archive/*/state.json")]
    states += aiwg.glob("ralph-external/loops/*/session-state.json")
    states += aiwg.glob("ralph-external/archive/*/session-state.json")
    assert len(states) == 8 + 2 + 4 + 4
    assert set(upstream.loops) == {state.parent.name for state in states} | {"current-loop"}
    assert all(loop.id == loop_id for loop_id, loop in upstream.loops.items())


def test_each_loop_lists_its_files(upstream: Snapshot) -> None:
    sources = {loop.id: loop.sources for loop in upstream.loops.values()}
    assert sources["ralph-moji-5cfda65c"] == ("loops", "registry")
    assert sources["ralph-refused-by-the-four-loop-limit-2370cb66"] == ("loops",)
    assert sources["ralph-optimize-query-cache-3dc4df1f"] == ("archive",)
    assert sources["ralph-remove-legacy-api-eca5e7cf"] == ("external-archive",)
    assert sources["ralph-migrate-to-typescript-ea688753"] == ("external", "external-registry")
    assert sources["current-loop"] == ("current-loop",)
    for loop in upstream.loops.values():
        assert loop.files
        assert all((TREES / "upstream" / file).is_file() for file in loop.files)


def test_an_external_loop_with_three_ids_is_one_loop(upstream: Snapshot) -> None:
    loop = upstream.loops["ralph-upgrade-dependencies-bb65c3eb"]
    assert loop.sources == ("external", "external-registry", "external-state", "launcher")
    assert loop.aliases == ("5cf3819b-c984-477d-98c3-042bec4ecd22", "ralph-upgrade-dependencies-mwquuknsaqpc")
    finished = upstream.loops["ralph-fix-all-failing-tests-059d030e"]
    assert finished.aliases == ("f314cacf-fe09-49ac-91ed-56d8d456ffcb",)
    assert (finished.iteration, finished.quality) == (3, (0.25, 0.5, 1.0))


def test_a_loop_killed_by_sigkill_is_not_running(upstream: Snapshot) -> None:
    loop = upstream.loops["ralph-add-oauth-login-flow-f16ce85b"]
    assert loop.status is LoopStatus.CRASHED
    assert loop.raw_status == "running"
    assert loop.liveness is Liveness.DEAD
    assert "crashed" in loop.badges
    assert loop.crashes == 2
    assert loop.ended_at is not None and loop.ended_approximate
    assert "8635" in loop.liveness_reason


def test_the_loop_refused_at_the_four_loop_limit_is_an_orphan(upstream: Snapshot) -> None:
    orphans = [loop.id for loop in upstream.loops.values() if "orphan" in loop.badges]
    assert orphans == ["ralph-refused-by-the-four-loop-limit-2370cb66"]


def test_a_dead_process_in_the_internal_registry_is_ignored(upstream: Snapshot) -> None:
    loop = upstream.loops["ralph-moji-5cfda65c"]
    assert loop.pid is None
    assert loop.status is LoopStatus.RUNNING
    assert loop.liveness is Liveness.STALE


def test_raw_statuses_are_available(upstream: Snapshot) -> None:
    words = {loop.raw_status: loop.status for loop in upstream.loops.values()}
    assert words["success"] is LoopStatus.COMPLETED
    assert words["max_iterations"] is LoopStatus.LIMIT
    assert words["limit_reached"] is LoopStatus.LIMIT
    assert words["aborted"] is LoopStatus.ABORTED
    assert words["paused"] is LoopStatus.PAUSED


def test_elapsed_stops_when_a_loop_ends(upstream: Snapshot) -> None:
    for loop in upstream.loops.values():
        assert loop.started_at is not None
        if loop.status.ended:
            assert loop.ended_at is not None and loop.ended_at >= loop.started_at
        else:
            assert loop.ended_at is None
    documented = starting(upstream, "ralph-document-the-rest")
    assert documented.started_at and documented.ended_at and not documented.ended_approximate
    assert documented.ended_at - documented.started_at < timedelta(minutes=15)
    assert documented.duration_ms == 123_000


def test_text_beyond_ascii_is_unchanged(upstream: Snapshot) -> None:
    assert upstream.loops["ralph-moji-5cfda65c"].task == "修正 日本語 テスト — émoji ✅"


def test_newest_loop_comes_first(upstream: Snapshot) -> None:
    starts = [loop.started_at for loop in upstream.loops.values() if loop.started_at]
    assert starts == sorted(starts, reverse=True)


def test_each_reflection_is_listed_once(upstream: Snapshot) -> None:
    reflections = upstream.reflections.values()
    parsed = Counter(
        (one.loop_id, one.task_id, one.iteration, " ".join(one.text.split()).casefold()) for one in reflections
    )
    assert set(parsed.values()) == {1}
    assert len(parsed) == 37
    null_crash = [one for one in reflections if one.loop_id.startswith("ralph-fix-null")]
    spoken = {one.iteration: one.text for one in null_crash if one.shape == "memory-manager"}
    assert spoken == {
        1: "Type 'string | undefined' is not assignable to type 'string'",
        2: "Timeout of 5000ms exceeded",
        3: "expected 401 to equal 200",
    }
    assert all(len(one.also_in) == 3 for one in null_crash if one.shape == "memory-manager")


def test_reflections_of_the_external_tree_join_their_loop(upstream: Snapshot) -> None:
    found = {
        one.iteration: one.loop_id
        for one in upstream.reflections.values()
        if one.file.startswith(".aiwg/ralph-external/reflections/")
    }
    assert found == dict.fromkeys((1, 2, 3), "ralph-fix-all-failing-tests-059d030e")


def test_cross_task_memory_is_the_union_of_index_and_files(upstream: Snapshot) -> None:
    assert len(upstream.memory_tasks) == 9
    assert all(task.file.startswith(".aiwg/ralph/memory/tasks/") for task in upstream.memory_tasks.values())
    login = next(t for t in upstream.memory_tasks.values() if t.description.startswith("Fix null pointer"))
    assert (login.outcome, login.iterations, login.quality) == (Outcome.SUCCESS, 3, 0.92)
    assert login.indexed


def test_loop_details_add_files_beside_the_state(upstream_library: Index) -> None:
    story = upstream_library.story("ralph-fix-null-user-crash-in-auth-va-3fb529e7")
    assert [(one.number, one.quality, one.duration_ms) for one in story.iterations] == [
        (1, 0.45, 61_000),
        (2, 0.6, 62_000),
        (3, 0.75, 63_000),
    ]
    assert story.iterations[0].files == ("validate.ts",)
    assert {title for title, _ in story.notes} == {"selection report", "analytics report"}
    facts = dict(story.facts)
    assert (facts["best iteration"], facts["tokens"], facts["trajectory"]) == ("3", "12,822", "improving")
    assert "001-checkpoint.json" in story.checkpoints


def test_the_hook_loop_ignores_iterations_of_the_previous_one(upstream_library: Index) -> None:
    story = upstream_library.story("current-loop")
    assert [(one.number, one.action) for one in story.iterations] == [(1, "autofix"), (2, "manual")]
    assert [title for title, _ in story.notes] == ["completion-2026-11-21T20-22-59"]


def test_the_daemon_of_an_external_loop_is_found_under_its_launcher_id(upstream_library: Index) -> None:
    story = upstream_library.story("ralph-upgrade-dependencies-bb65c3eb")
    (output,) = (text for title, text in story.notes if title == "daemon output")
    assert output.rstrip().endswith('The "path" argument must be of type string. Received an instance of Object')


def test_real_trees_have_no_findings_about_loops(upstream: Snapshot, examples: Snapshot) -> None:
    assert upstream.findings == ()
    # The documented example has an ID that the schema does not allow.
    assert {(one.severity, one.pointer) for one in examples.findings if "/patterns/" not in one.file} == {
        (Severity.INFO, "/session_id")
    }


def test_the_other_registry_layout_is_read(examples: Snapshot) -> None:
    running = examples.loops["ralph-fix-validation-b2c3d4e5"]
    assert running.sources == ("loops", "registry")
    assert (running.iteration, running.max_iterations) == (5, 200)
    assert examples.loops["ralph-fix-api-d4e5f6a7"].badges == ("unregistered",)


def test_cross_loop_learning_is_read(examples: Snapshot) -> None:
    loop = examples.loops["ralph-fix-validation-b2c3d4e5"]
    used = {use.pattern_id: (use.applied, use.successful, use.iteration) for use in loop.injected}
    assert used == {
        "pat-error-null-check-015": (True, True, 2),
        "pat-error-type-mismatch-003": (True, True, 4),
    }
    assert [(one.pattern_id, one.new, one.rate) for one in loop.extracted] == [
        ("pat-error-optional-types-016", True, 1.0)
    ]
    (use,) = examples.loops["ralph-fix-api-d4e5f6a7"].injected
    assert use.at == datetime(2026, 2, 2, 21, 3, tzinfo=UTC)


def test_every_documented_reflection_format_is_read(examples: Snapshot) -> None:
    by_shape: dict[str, list[Reflection]] = {}
    for one in examples.reflections.values():
        by_shape.setdefault(one.shape, []).append(one)
    assert {shape: len(found) for shape, found in by_shape.items()} == {
        "episodic": 3,
        "hook": 1,
        "reflexion": 1,
    }
    (hook,) = by_shape["hook"]
    assert (hook.loop_id, hook.iteration, hook.outcome) == ("ralph-001", 3, Outcome.FAILURE)
    assert hook.learning == "Add token expiry check as first validation step"
    (reflexion,) = by_shape["reflexion"]
    assert reflexion.loop_id == "ralph-test-coverage-2026-01-25"
    assert reflexion.observation.startswith("In my previous attempt")
    assert len(reflexion.actions) == 3
    attempts = {one.attempt: (one.task_id, one.trigger, one.kind) for one in by_shape["episodic"]}
    assert attempts[1] == ("task-001", "timeout", "process_improvement")
    assert attempts[2] == ("task-001", "failure", "error_analysis")
