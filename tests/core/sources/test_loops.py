"""Reading loops of every spelling, and the details of one loop."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.base.paths import ProjectPaths
from core.records.debug_sessions import Failure, Fix, Results
from core.records.findings import Finding
from core.records.loops import Iteration, Loop, LoopDetails, LoopStatus, Outcome
from core.sources.loop_join import LoopFact, directory_fact
from core.sources.loops import MAX_NOTE, read_crash_log, read_loop_details, read_loops
from tests.core.sources.test_sweep import STATE

MTIME = datetime(2026, 5, 1, 12, tzinfo=UTC)


def only(file: str, value: Any) -> tuple[LoopFact, tuple[Finding, ...]]:
    records = read_loops(file, value, MTIME)
    (fact,) = records.facts
    return fact, records.findings


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 4, 30, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    "state",
    [
        {
            "task": "t",
            "completion": "c",
            "currentIteration": 2,
            "maxIterations": 9,
            "status": "success",
            "startTime": "2026-04-30T10:00:00Z",
            "endTime": "2026-04-30T11:00:00.000Z",
            "lastResult": "r",
        },
        {
            "objective": "t",
            "completionCriteria": ["c"],
            "current_iteration": "2",
            "max_iterations": 9.0,
            "startTimeMs": 1777543200000,
            "completedAt": "2026-04-30T12:00:00+01:00",
            "status": "Completed",
            "last_result": "r",
        },
        {
            "task_description": "t",
            "completion_criteria": "c",
            "iteration": 2,
            "status": "SUCCESS",
            "started_at": "2026-04-30T10:00:00",
            "completed_at": "2026-04-30T11:00:00Z",
            "last_result": "r",
            "configuration": {"max_iterations": 9},
        },
    ],
)
def test_every_spelling_of_a_state_reads_the_same(state: dict[str, Any]) -> None:
    fact, findings = only(STATE, state)
    assert findings == ()
    assert (fact.task, fact.criteria, fact.iteration, fact.max_iterations) == ("t", ("c",), 2, 9)
    assert (fact.started_at, fact.ended_at) == (at(10), at(11))
    assert (fact.status, fact.raw_status) == (LoopStatus.COMPLETED, state["status"])
    assert fact.last_result == "r"


def test_the_directory_wins_over_the_inner_id() -> None:
    fact, _ = only(STATE, {"loopId": "another", "status": "running"})
    assert (fact.loop_id, fact.inner_id) == ("ralph-a-00000001", "another")
    fact, _ = only(".aiwg/ralph/current-loop.json", {"id": "ralph-research-2026-01-25"})
    assert (fact.loop_id, fact.inner_id) == ("ralph-research-2026-01-25", "")
    fact, _ = only(".aiwg/ralph/loop-state.json", {})
    assert fact.loop_id == "loop-state"


def test_status_keeps_the_raw_word_and_falls_back_on_flags() -> None:
    rows: list[tuple[dict[str, Any], LoopStatus]] = [
        ({"status": "in-progress"}, LoopStatus.RUNNING),
        ({"status": "Limit Reached"}, LoopStatus.LIMIT),
        ({"status": "gave up", "finalResult": {"success": False}}, LoopStatus.FAILED),
        ({"status": "gave up"}, LoopStatus.UNKNOWN),
        ({"completed": True, "active": False}, LoopStatus.COMPLETED),
        ({"active": True}, LoopStatus.RUNNING),
        ({"status": {"no": "word"}}, LoopStatus.UNKNOWN),
        ({}, LoopStatus.UNKNOWN),
    ]
    for state, status in rows:
        fact, _ = only(STATE, state)
        assert fact.status is status, state
        assert fact.raw_status == (state["status"] if isinstance(state.get("status"), str) else ""), state


def test_a_wrong_field_is_a_finding_and_others_load() -> None:
    state = {
        "task": ["no"],
        "startTime": "yesterday",
        "currentIteration": -1,
        "maxIterations": 5,
        "iterations": [{"number": 1, "timestamp": "2026-04-30T10:00:00Z"}, "two", {"number": {}}],
        "cross_loop_learning": {"injected_patterns": [{"applied": True}, "pat-error-x-001"]},
    }
    fact, findings = only(STATE, state)
    assert {finding.pointer: finding.code for finding in findings} == {
        "/task": "wrong-type",
        "/startTime": "bad-time",
        "/currentIteration": "wrong-type",
        "/iterations/1": "wrong-type",
        "/iterations/2/number": "wrong-type",
        "/cross_loop_learning/injected_patterns/0": "missing-id",
    }
    assert {finding.file for finding in findings} == {STATE}
    assert fact.max_iterations == 5
    assert [one.number for one in fact.iterations] == [1, None]
    assert [use.pattern_id for use in fact.injected] == ["pat-error-x-001"]


def test_a_document_or_entry_of_another_form_is_a_finding() -> None:
    values: list[Any] = [None, [], "running", 7, True]
    for value in values:
        records = read_loops(STATE, value, MTIME)
        assert (records.facts, [(one.code, one.pointer) for one in records.findings]) == ((), [("wrong-type", "")])
    records = read_loops(".aiwg/ralph/registry.json", {"active_loops": [{"task": "t"}]}, MTIME)
    assert [fact.loop_id for fact in records.facts] == [""]
    assert [(one.code, one.pointer) for one in records.findings] == [("missing-id", "/active_loops/0")]


def test_iterations_of_every_kind_of_loop_read_the_same_way() -> None:
    state = {
        "iterations": [
            {"number": 1, "timestamp": "2026-04-30T10:00:00Z", "action": "a", "result": "r", "verified": False},
            {"iteration": 2, "completed_at": "2026-04-30T10:05:00Z", "status": "partial_success", "notes": "n"},
            {"number": 2, "status": "error", "duration": 16, "filesModified": ["src/a.ts"], "learnings": ["l"]},
            {"iteration_number": 4, "quality_score": 85, "verification_status": "passed"},
        ]
    }
    fact, _ = only(STATE, state)
    assert [one.number for one in fact.iterations] == [1, 2, 2, 4]
    assert [one.outcome for one in fact.iterations] == [
        Outcome.FAILURE,
        Outcome.PARTIAL,
        Outcome.FAILURE,
        Outcome.SUCCESS,
    ]
    assert fact.iterations[2].files == ("src/a.ts",)
    assert fact.iterations[2].duration_ms == 16
    assert fact.quality == (0.85,)
    assert fact.last_activity_at == at(10, 5)


def test_injected_applied_and_successful_are_three_facts() -> None:
    entries = [
        {"pattern_id": "a"},
        {"pattern_id": "b", "applied": True},
        {"pattern_id": "c", "applied": True, "successful": False, "iteration_used": 2},
        {"pattern_id": "d", "applied": False, "successful": None},
    ]
    iterations = [{"number": 2, "timestamp": "2026-04-30T10:00:00Z"}]
    fact, _ = only(STATE, {"iterations": iterations, "cross_loop_learning": {"injected_patterns": entries}})
    assert [(use.pattern_id, use.applied, use.successful, use.at) for use in fact.injected] == [
        ("a", False, None, None),
        ("b", True, None, None),
        ("c", True, False, at(10)),
        ("d", False, None, None),
    ]


@pytest.mark.parametrize(
    "registry",
    [
        {"active_loops": [{"loop_id": "x", "task_summary": "t", "pid": 7}]},
        {"active_loops": {"x": {"task": "t", "pid": 7}}},
        {"loops": {"x": {"loopId": "x", "objective": "t", "pid": 7}}},
        [{"loop_id": "x", "task": "t", "pid": 7}],
    ],
)
def test_every_registry_layout_is_read(registry: Any) -> None:
    for file in (".aiwg/ralph/registry.json", ".aiwg/ralph-external/registry.json"):
        records = read_loops(file, registry, MTIME)
        (itself, entry), findings = records.facts, records.findings
        assert findings == ()
        assert itself.loop_id == ""
        assert (entry.loop_id, entry.task) == ("x", "t")
        assert entry.pid == (7 if "external" in file else None)


def test_directories_heartbeats_crash_logs_and_analytics_are_facts() -> None:
    folder = directory_fact(".aiwg/ralph/loops/x/", MTIME)
    assert folder is not None
    assert (folder.loop_id, folder.directory, folder.file) == ("x", ".aiwg/ralph/loops/x", ".aiwg/ralph/loops/x/")
    for other in (".aiwg/ralph/loops", ".aiwg/ralph/loops/x/iterations", ".aiwg/ralph/memory/tasks"):
        assert directory_fact(other) is None
    fact, _ = only(".aiwg/ralph/heartbeats/x.json", {"timestamp": 1777543200000, "iteration": 2})
    assert (fact.loop_id, fact.last_activity_at, fact.iteration) == ("x", at(10), 2)
    data = b"[2026-04-30T10:00:00Z] boom\nError: \xff[2026]\n\n[2026-04-30T09:00:00Z] old\n[no time] x\n"
    fact = read_crash_log(".aiwg/ralph/loops/x/crash.log", data, MTIME)
    assert (fact.loop_id, fact.crashes, fact.crashed_at) == ("x", 2, at(10))
    iterations = [{"quality_score": 60, "timestamp": "2026-04-30T10:00:00Z"}, {"quality_score": 250}]
    value = {"loop_id": "x", "end_time": "2026-04-30T09:00:00Z", "iterations": iterations, "total_time_ms": 186000}
    fact, _ = only(".aiwg/ralph/analytics/x.json", value)
    assert (fact.ended_at, fact.last_activity_at) == (None, at(10)), "the end time of analytics is not the end"
    assert (fact.quality, fact.duration_ms) == ((0.6,), 186_000)


def test_an_estimated_improvement_is_read() -> None:
    rows: list[tuple[dict[str, object], str | None]] = [
        ({"baseline_iterations": 6, "actual_iterations": 4, "improvement": "33.3%"}, "6 | 4 with: 33 % fewer"),
        ({"baseline_iterations": 4, "actual_iterations": 5}, "4 | 5 with: 25 % more"),
        ({"improvement": 33.3}, "33 % fewer"),
        ({}, None),
    ]
    for estimate, text in rows:
        fact, _ = only(STATE, {"cross_loop_learning": {"improvement_estimate": estimate}})
        expected = text and text.replace("|", "iterations estimated without patterns,")
        assert (fact.improvement.text if fact.improvement else None) == expected


def test_a_state_inside_loop_state_and_iterations_under_their_own_keys_are_read() -> None:
    fact, findings = only(STATE, {"loop_state": {"status": "completed", "task": "Fix it", "current_iteration": "x"}})
    assert (fact.status, fact.task) == (LoopStatus.COMPLETED, "Fix it")
    assert [one.pointer for one in findings] == ["/loop_state/current_iteration"]
    fix = {"fix_applied": {"description": "Added null check"}, "test_results": {"passed": 12, "failed": 0}}
    error = {"error": {"type": "TypeError", "message": "m"}}
    fact, findings = only(STATE, {"loop_state": {"status": "done"}, "iteration_10": fix, "iteration_2": error})
    assert findings == ()
    assert [(one.number, one.outcome) for one in fact.iterations] == [(2, Outcome.UNKNOWN), (10, Outcome.SUCCESS)]
    assert fact.iterations[0].failures[0].error_type == "TypeError"


def test_errors_of_test_results_and_plain_messages_are_failures() -> None:
    plain = {"error_type": "TypeError", "error_message": "x is null"}
    fact, _ = only(STATE, {"iterations": [plain, {"test_results": {"failed": 1, "failures": [plain]}}]})
    for iteration in fact.iterations:
        assert [(one.error_type, one.message) for one in iteration.failures] == [("TypeError", "x is null")]


HOME = ".aiwg/ralph/loops/a"
OWN_STATE = f"{HOME}/state.json"


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    (tmp_path / HOME).mkdir(parents=True)
    return ProjectPaths(tmp_path)


def write(paths: ProjectPaths, file: str, content: Any) -> str:
    path = paths.project / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def loop(**known: Any) -> Loop:
    return Loop(**{"id": "a", "directory": HOME, "sources": ("loops",), "files": (OWN_STATE,), **known})


def test_duplicate_numbers_of_the_state_stay(paths: ProjectPaths) -> None:
    assert read_loop_details(paths, loop()) == LoopDetails(loop_id="a"), "a loop without files"
    known = (Iteration(number=1, action="ran"), Iteration(number=1, action="threw"), Iteration(action="?"))
    story = read_loop_details(paths, loop(iterations=known))
    assert [one.action for one in story.iterations] == ["ran", "threw", "?"]


def test_iterations_merge_by_number_and_the_state_wins(paths: ProjectPaths) -> None:
    write(paths, f"{HOME}/iterations/iteration-1.json", {"action": "other", "result": "from the file"})
    write(paths, f"{HOME}/iterations/iteration-010.json", {"number": 10, "action": "ten"})
    write(paths, f"{HOME}/iterations/iteration-002/src.ts", "artifact")
    measured = {"iterations": [{"iteration_number": 1, "quality_score": 45, "execution_time_ms": 7}]}
    analytics = write(paths, f"{HOME}/analytics/a.json", measured)
    known = (Iteration(number=1, action="mine", outcome=Outcome.FAILURE), Iteration(number=2))
    story = read_loop_details(paths, loop(iterations=known, files=(OWN_STATE, analytics)))
    first, second, tenth = story.iterations
    assert (first.action, first.result, first.outcome) == ("mine", "from the file", Outcome.FAILURE)
    assert (first.quality, first.duration_ms) == (0.45, 7)
    assert (second.number, second.files) == (2, ("src.ts",))
    assert (tenth.number, tenth.action) == (10, "ten")


def test_notes_have_titles_and_texts(paths: ProjectPaths) -> None:
    files = (
        OWN_STATE,
        write(paths, f"{HOME}/crash.log", "[2026-05-01T10:00:00Z] boom\n"),
        write(paths, f"{HOME}/best-output-tracking.json", {"best_iteration_number": 3}),
        write(paths, f"{HOME}/analytics/a.json", {"total_tokens": 12822, "quality_trajectory": "improving"}),
    )
    write(paths, f"{HOME}/selection-report.md", "selected")
    write(paths, f"{HOME}/analytics/a-report.md", "analysed")
    write(paths, f"{HOME}/iterations/iteration-001.md", "noted")
    write(paths, f"{HOME}/checkpoints/checkpoint-10.json.gz", "")
    write(paths, f"{HOME}/checkpoints/checkpoint-2.json.gz", "")
    story = read_loop_details(paths, loop(files=files))
    assert dict(story.notes) == {
        "crash.log": "[2026-05-01T10:00:00Z] boom\n",
        "selection report": "selected",
        "analytics report": "analysed",
        "iteration 1": "noted",
    }
    assert dict(story.facts) == {"best iteration": "3", "tokens": "12,822", "trajectory": "improving"}
    assert story.checkpoints == ("checkpoint-2.json.gz", "checkpoint-10.json.gz")


def test_long_logs_keep_the_end_and_long_notes_the_start(paths: ProjectPaths) -> None:
    line = "x" * 99 + "\n"
    write(paths, f"{HOME}/daemon-output.log", line * 1000 + "the end\n")
    log = write(paths, f"{HOME}/crash.log", "the start\n" + line * 1000)
    notes = dict(read_loop_details(paths, loop(files=(OWN_STATE, log))).notes)
    assert notes["daemon output"].startswith("… x") and notes["daemon output"].endswith("the end\n")
    assert notes["crash.log"].startswith("the start") and notes["crash.log"].endswith("\n…")
    assert all(len(text) <= MAX_NOTE + 2 for text in notes.values())


def test_the_hook_loop_has_only_its_own_iterations_and_reports(paths: ProjectPaths) -> None:
    for number in (1, 2, 3):
        write(paths, f".aiwg/ralph/iterations/iteration-{number}.json", {"action": f"a{number}"})
    write(paths, ".aiwg/ralph/completion-2026-05-01T10-00-00.md", "| **Task** | Lint |")
    write(paths, ".aiwg/ralph/completion-2026-05-01T09-00-00.md", "| **Task** | Test |")
    known = loop(id="current-loop", directory="", sources=("current-loop",), iteration=2, task="Lint", files=())
    story = read_loop_details(paths, known)
    assert [one.action for one in story.iterations] == ["a1", "a2"]
    assert story.notes == (("completion-2026-05-01T10-00-00", "| **Task** | Lint |"),)


def test_the_report_of_the_external_tree_belongs_to_the_loop_it_names(paths: ProjectPaths) -> None:
    write(paths, ".aiwg/ralph-external/completion-report.md", "| Loop ID | the-uuid |")
    known = loop(directory="", sources=("external-archive",), aliases=("the-uuid",), files=())
    assert read_loop_details(paths, known).notes == (("completion report", "| Loop ID | the-uuid |"),)
    assert read_loop_details(paths, loop(directory="", sources=("external",), files=())).notes == ()


@pytest.mark.parametrize("name", ["../../outside", "..", "/etc", "a/../../../outside", "\x00", "x" * 300])
def test_an_id_that_would_leave_the_tree_reads_nothing(paths: ProjectPaths, name: str) -> None:
    write(paths, "outside/daemon-output.log", "secret")
    write(paths, ".aiwg/outside/daemon-output.log", "secret")
    known = loop(id=name, aliases=(name,), directory="", sources=("launcher",), files=())
    assert read_loop_details(paths, known).notes == ()


def test_links_out_of_the_tree_pipes_and_folders_are_not_read(paths: ProjectPaths, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "iteration-1.json").write_text('{"action": "secret"}')
    (tmp_path / "secret" / "note.md").write_text("secret")
    home = paths.project / HOME
    (home / "iterations").symlink_to(tmp_path / "secret")
    (home / "daemon-output.log").symlink_to(tmp_path / "secret" / "note.md")
    os.mkfifo(home / "crash.log")
    (home / "selection-report.md").mkdir()
    tracking = write(paths, f"{HOME}/best-output-tracking.json", {})
    story = read_loop_details(paths, loop(files=(OWN_STATE, tracking, f"{HOME}/crash.log")))
    assert (story.iterations, story.notes) == ((), ())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["iterations", "metrics", "cross_loop_learning", "total_tokens", "branch", "number"]),
                inner,
                max_size=5,
            )
        ),
        max_leaves=15,
    )
)
def test_any_json_beside_a_loop_gives_details(paths: ProjectPaths, value: Any) -> None:
    files = [f"{HOME}/{name}" for name in ("state.json", "best-output-tracking.json", "analytics/a.json")]
    for file in (*files, f"{HOME}/iterations/iteration-1.json"):
        write(paths, file, value)
    story = read_loop_details(paths, loop(files=tuple(files)))
    assert all(isinstance(value, str) for fact in story.facts for value in fact)


def test_errors_fixes_and_test_results_of_iterations(paths: ProjectPaths) -> None:
    error = {"type": "TypeError", "message": "x is null", "location": "src/a.ts:42"}
    fix = {"description": "Checked x", "diff": "+ if (x)", "verification": "passed"}
    write(paths, f"{HOME}/iterations/iteration-1.json", {"error": error, "errors": ["deadlock detected", 7, {}]})
    results = {"passed": 12, "failed": 0}
    write(
        paths, f"{HOME}/iterations/iteration-2.json", {"fix_applied": fix, "test_results": results, "tools": ["Edit"]}
    )
    write(paths, f"{HOME}/iterations/iteration-3.json", {"error": " ", "fix_applied": "by hand", "test_results": None})
    first, second, third = read_loop_details(paths, loop(iterations=(Iteration(number=1, action="mine"),))).iterations
    located = Failure(error_type="TypeError", message="x is null", file="src/a.ts", line=42)
    assert (first.action, first.failures) == ("mine", (located, Failure(message="deadlock detected")))
    assert second.fix == Fix(description="Checked x", diff="+ if (x)", verified=True)
    assert (second.results, second.outcome) == (Results(passed=12, failed=0), Outcome.SUCCESS)
    assert second.tools == ("Edit",)
    assert (third.failures, third.fix, third.results) == ((), Fix(description="by hand"), None)
