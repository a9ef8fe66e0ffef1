from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.base.paths import ProjectPaths
from core.records.debug_sessions import Failure, Fix, Results
from core.records.loops import Iteration, Loop, Outcome
from core.sources.loops import MAX_NOTE, read_loop_details

HOME = ".aiwg/ralph/loops/a"
STATE = f"{HOME}/state.json"


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
    return Loop(**{"id": "a", "directory": HOME, "sources": ("loops",), "files": (STATE,), **known})


def test_a_loop_without_files_has_no_details(paths: ProjectPaths) -> None:
    story = read_loop_details(paths, loop())
    assert (story.loop_id, story.iterations, story.notes, story.facts, story.checkpoints) == (
        "a",
        (),
        (),
        (),
        (),
    )


def test_iterations_merge_by_number_and_the_state_wins(paths: ProjectPaths) -> None:
    write(paths, f"{HOME}/iterations/iteration-1.json", {"action": "other", "result": "from the file"})
    write(paths, f"{HOME}/iterations/iteration-010.json", {"number": 10, "action": "ten"})
    write(paths, f"{HOME}/iterations/iteration-002/src.ts", "artifact")
    measured = {"iterations": [{"iteration_number": 1, "quality_score": 45, "execution_time_ms": 7}]}
    analytics = write(paths, f"{HOME}/analytics/a.json", measured)
    known = (Iteration(number=1, action="mine", outcome=Outcome.FAILURE), Iteration(number=2))
    story = read_loop_details(paths, loop(iterations=known, files=(STATE, analytics)))
    first, second, tenth = story.iterations
    assert (first.action, first.result, first.outcome) == ("mine", "from the file", Outcome.FAILURE)
    assert (first.quality, first.duration_ms) == (0.45, 7)
    assert (second.number, second.files) == (2, ("src.ts",))
    assert (tenth.number, tenth.action) == (10, "ten")


def test_duplicate_numbers_of_the_state_stay(paths: ProjectPaths) -> None:
    known = (Iteration(number=1, action="ran"), Iteration(number=1, action="threw"), Iteration(action="?"))
    story = read_loop_details(paths, loop(iterations=known))
    assert [one.action for one in story.iterations] == ["ran", "threw", "?"]


def test_notes_have_titles_and_texts(paths: ProjectPaths) -> None:
    files = (
        STATE,
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
    notes = dict(read_loop_details(paths, loop(files=(STATE, log))).notes)
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
    story = read_loop_details(paths, loop(files=(STATE, tracking, f"{HOME}/crash.log")))
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
