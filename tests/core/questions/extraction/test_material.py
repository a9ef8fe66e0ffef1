"""Material of loops, tasks and debug sessions, without the texts that control a loop."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from core.agents.hooks import answer
from core.base.errors import UnknownRecord
from core.base.paths import ProjectPaths
from core.base.settings import ExtractionSettings, Settings
from core.index.refresh import Index
from core.index.texts import Texts
from core.project.project import Project
from core.questions.extraction.engine import MAX_PROPOSALS, KnownPatterns, extract
from core.questions.extraction.learnings import extract_lesson
from core.questions.extraction.material import (
    MAX_ACTIONS,
    MAX_ATTEMPTS,
    MAX_FAILURES,
    Materials,
    clean_material,
    clean_record,
    remove_controls,
)
from core.records.debug_sessions import Failure, Fix
from core.records.extractions import ALL_TYPES, Extraction, Material
from core.records.loops import Iteration, Loop, LoopDetails, LoopStatus, Outcome
from core.records.patterns import PatternType
from core.records.reflections import JoinedLesson
from core.records.snapshot import Snapshot
from tests.agent_lessons import make_agent_lesson
from tests.core.agents.hooks.agents import SimulatedAgent, make_project
from tests.core.cli.conftest import home
from tests.factories import DEBUG_NOW, EXAMPLE_SESSION_FILE, make_known_patterns, make_step

__all__ = ["home"]  # a fixture

ROOT = Path(__file__).parents[4]
SAMPLE = ProjectPaths(ROOT / "sample_data")
UPSTREAM = ProjectPaths(ROOT / "tests/trees/upstream")
MAILER = "ralph-fix-null-customer-crash-in-the-644aee36"
SESSION = "f9b78063-aed0-4736-9e65-33eecba3295e"


def load(paths: ProjectPaths) -> Snapshot:
    return Index(paths, Settings(), clock=lambda: datetime(2026, 11, 22, tzinfo=UTC), is_kept=False).load()


@pytest.fixture(scope="module")
def sample() -> Snapshot:
    return load(SAMPLE)


def everything(paths: ProjectPaths, snapshot: Snapshot) -> Iterator[Extraction]:
    materials = Materials(paths, snapshot)
    known = KnownPatterns(snapshot, Texts(Snapshot(patterns=snapshot.patterns)).similarity)
    for loop_id in snapshot.loops:
        yield extract(materials.read(loop_id), known, Settings().extraction)


def test_a_loop_has_iterations_sessions_reflections_and_errors_and_a_session_only_itself(sample: Snapshot) -> None:
    materials = Materials(SAMPLE, sample)
    material = materials.read(MAILER)
    assert (material.loop_id, len(material.iterations)) == (MAILER, 3)
    assert [session.id for session in material.sessions] == [SESSION]
    assert material.reflections and len(material.errors) == 3 and len(material.resolved) == 1
    session = materials.read(SESSION)
    assert (session.source_id, session.loop_id, session.iterations) == (SESSION, MAILER, ())
    assert len(session.sessions) == 1
    with pytest.raises(UnknownRecord, match="no loop, task or debug session"):
        materials.read("../../etc/passwd\x1b[2J")


@pytest.fixture
def fixed(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectPaths:
    """A project in which an agent has fixed a failing test."""
    monkeypatch.setattr(answer, "start_background", lambda paths: None)
    agent = SimulatedAgent(make_project(tmp_path))
    agent.prompt("Fix the account page")
    agent.fix_and_stop()
    return agent.project


def test_a_session_made_from_an_attempt_is_read_as_that_attempt_unless_it_was_deleted(fixed: ProjectPaths) -> None:
    snapshot = load(fixed)
    [session_id] = snapshot.debug_sessions
    for source_id in ("task-001", session_id):
        material = Materials(fixed, snapshot).read(source_id)
        assert (len(material.attempts), material.sessions) == (1, ())
    shutil.rmtree(fixed.tasks)
    material = Materials(fixed, load(fixed)).read(session_id)
    assert (material.attempts, len(material.sessions)) == ((), 1)


def test_a_session_that_repeats_a_task_has_its_own_attempt(fixed: ProjectPaths) -> None:
    later = SimulatedAgent(fixed, "s2")
    later.prompt("Fix the account page")
    later.fix_and_stop()
    snapshot = load(fixed)
    numbers = [
        [one.attempt.number for one in Materials(fixed, snapshot).read(id).attempts]
        for id in ("claude:s1", "claude:s2", "task-001")
    ]
    assert numbers == [[1], [2], [1, 2]]

    sessions = {id: replace(loop, sources=("claude", "hooks")) for id, loop in snapshot.loops.items()}
    joined = Materials(fixed, snapshot.with_changes(loops=sessions), lambda loop: LoopDetails(loop_id=loop.id))
    for number, id in enumerate(("claude:s1", "claude:s2"), 1):
        found = joined.read(id)
        assert ([one.attempt.number for one in found.attempts], found.sessions) == ([number], ())
        assert "task-001" in found.own_ids


def test_every_kind_of_sample_loop_gives_its_patterns_unless_they_are_known_from_it(sample: Snapshot) -> None:
    extractions = list(everything(SAMPLE, sample))
    offered = {one.source_id: {(p.type, p.slug) for p in one.new} for one in extractions}
    assert (PatternType.ERROR, "null-check") in offered[MAILER]
    assert (PatternType.SUCCESS, "clean-up-lint-warnings") in offered["current-loop"]
    assert (PatternType.ERROR, "settlement-booked-twice") in offered["ralph-move-the-settlement-jobs-from--18be2e49"]
    assert (PatternType.ANTI, "raise-limit-pool-until") in offered["ralph-speed-up-the-monthly-report-qu-f0fec14d"]
    refused = [proposal.refused for one in extractions for proposal in one.refused]
    assert "already known from this loop as pat-error-null-check-015" in refused
    assert "already known from this loop as pat-error-type-mismatch-003" in refused


def test_the_reference_tree_gives_its_patterns() -> None:
    offered = {
        one.source_id: {(p.type, p.slug, p.trace) for p in one.new} for one in everything(UPSTREAM, load(UPSTREAM))
    }
    archived = offered["ralph-raise-coverage-of-payment-proc-a9e11129"]
    assert (PatternType.ERROR, "expected-equal", ("iteration 3 → 4",)) in archived
    assert offered["ralph-optimize-query-cache-3dc4df1f"] == {
        (PatternType.ANTI, "edit-re-run", ("iterations 1, 2, 3, 4",))
    }
    assert {kind for kind, *_ in offered["ralph-fix-all-failing-tests-059d030e"]} == {PatternType.SUCCESS}
    assert offered["ralph-moji-5cfda65c"] == set()


def test_only_the_newest_records_of_a_large_loop_are_read(tmp_path: Path) -> None:
    folder = tmp_path / ".aiwg/ralph/loops/ralph-huge-00000001"
    folder.mkdir(parents=True)
    steps = [
        {
            "number": n,
            "action": f"did {n}",
            "verified": n % 2 == 0,
            "errors": [f"broken part {n}-{m}" for m in range(30)],
        }
        for n in range(1000)
    ]
    (folder / "state.json").write_text(json.dumps({"task": "x", "status": "completed", "iterations": steps}))
    paths = ProjectPaths(tmp_path)
    material = Materials(paths, load(paths)).read("ralph-huge-00000001")
    assert [step.number for step in material.iterations] == list(range(500, 1000))
    assert {len(step.failures) for step in material.iterations} == {MAX_FAILURES}
    known = KnownPatterns(Snapshot(), Texts(Snapshot(patterns={})).similarity)
    assert len(extract(material, known, Settings().extraction, {PatternType.ERROR}).proposals) <= MAX_PROPOSALS


NOW = datetime(2026, 2, 3, tzinfo=UTC)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a loop, the task that records it, and a task without a loop."""
    write(tmp_path, "loops/ralph-a/state.json", {"task": "Fix it", "status": "completed"})
    write(tmp_path, "tasks/task-001/metadata.json", {"status": "completed", "loop_id": "ralph-a"})
    write(tmp_path, "tasks/task-002/metadata.json", {"status": "completed", "description": "Mend that"})
    attempt(tmp_path, "task-001", 1, actions=2)
    attempt(tmp_path, "task-002", 1, actions=1)
    return tmp_path


def write(project: Path, name: str, document: dict[str, Any]) -> None:
    file = project / ".aiwg/ralph" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document))


def attempt(project: Path, task: str, number: int, actions: int = 0) -> None:
    started = (NOW + timedelta(minutes=number)).isoformat()
    values = {"started": started, "plan": {"steps": ["one"]}, "outcome": {"status": "failure"}}
    write(project, f"tasks/{task}/attempts/{number:03}/attempt.json", values)
    log = project / f".aiwg/ralph/tasks/{task}/attempts/{number:03}/actions.jsonl"
    log.write_text('{"type": "bash", "success": true}\n' * actions)


def read(project: Path, source_id: str) -> Material:
    paths = ProjectPaths(project)
    snapshot = Index(paths, Settings(), clock=lambda: NOW, is_kept=False).load()
    return Materials(paths, snapshot).read(source_id)


def test_a_loop_includes_the_attempts_at_its_task_which_adds_only_these(project: Path) -> None:
    write(project, "debug-memory/sessions/s.json", {"session_id": "s", "metadata": {"task_id": "task-001"}})
    of_task, of_loop = read(project, "task-001"), read(project, "ralph-a")
    (logged,) = of_loop.attempts
    assert (logged.attempt.id, logged.steps, len(logged.actions)) == ("task-001.1", ("one",), 2)
    assert (of_task.source_id, of_task.loop_id) == ("task-001", "ralph-a")
    assert (len(of_task.attempts), of_task.sessions) == (1, ())
    assert [session.id for session in of_loop.sessions] == ["s"]
    assert read(project, "s").loop_id == "ralph-a"


def test_a_task_without_loop_has_sessions_reflections_and_errors(project: Path) -> None:
    write(project, "debug-memory/sessions/s.json", {"session_id": "s", "metadata": {"task_id": "task-002"}})
    reflection = {"attempt_id": 1, "learning": "Look first", "timestamp": NOW.isoformat()}
    (project / ".aiwg/ralph/tasks/task-002/reflections.jsonl").write_text(f"{json.dumps(reflection)}\n")
    error: dict[str, Any] = {"id": "e1", "at": NOW.isoformat(), "kind": "error", "loop_id": "task-002.1"}
    error |= {"error": {"error_type": "other", "message": "x broke"}}
    write(project, "shared/curation/events.jsonl", {})
    (project / ".aiwg/ralph/shared/curation/events.jsonl").write_text(f"{json.dumps(error)}\n")
    found = read(project, "task-002")
    assert (found.loop_id, found.goal) == ("task-002", "Mend that")
    assert [session.id for session in found.sessions] == ["s"]
    assert [one.learning for one in found.reflections] == ["Look first"]
    assert [event.id for event in found.errors] == ["e1"]
    assert read(project, "s").loop_id == "task-002"


def test_turns_with_a_logged_attempt_and_its_patterns_are_known_already(fixed: ProjectPaths) -> None:
    snapshot = load(fixed)
    (task,) = snapshot.tasks.values()
    row = snapshot.loops[task.loop_id]
    turns = tuple(make_step(n, at=row.started_at + timedelta(hours=n)) for n in (-1, 1) if row.started_at)
    session = replace(row, sources=("claude", "hooks"), iterations=turns)
    joined = snapshot.with_changes(loops={session.id: session})
    details = LoopDetails(loop_id=session.id, iterations=turns)
    material = Materials(fixed, joined, lambda _: details).read(session.id)
    assert [turn.number for turn in material.iterations] == [-1]
    assert {session.id, task.id} <= material.own_ids


def test_only_the_newest_attempts_and_actions_are_read(project: Path) -> None:
    for number in range(2, MAX_ATTEMPTS + 3):
        attempt(project, "task-002", number, actions=MAX_ACTIONS // 2 - 1 if number > MAX_ATTEMPTS else 0)
    found = read(project, "task-002").attempts
    assert [logged.attempt.number for logged in found] == list(range(3, MAX_ATTEMPTS + 3))
    assert sum(len(logged.actions) for logged in found) == MAX_ACTIONS - 2
    attempt(project, "task-002", MAX_ATTEMPTS + 3, actions=MAX_ACTIONS + 5)
    *older, newest = read(project, "task-002").attempts
    assert (len(newest.actions), newest.actions[0].number) == (MAX_ACTIONS, 6)
    assert not any(logged.actions for logged in older)


PROMPT = "Make every test of the cart pass."
STEP = "Rounded the totals of the cart once, in money.py, instead of each line"
STATUS = "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---"


def test_a_text_that_only_controls_a_loop_is_removed() -> None:
    for text in [
        "<promise>ALL GREEN</promise>",
        "<promise>ALL GREEN",
        "<promise> COMPLETE </promise >",
        "<ralph>GUTTER</ralph>",
        "LOOP_COMPLETE",
        "**COMPLETE**",
        "EXIT_SIGNAL: true",
        STATUS,
        "completion promise detected",
        "/ralph-loop:cancel-ralph",
        "/compact",
        "<command-name>/goal</command-name>\n<command-message>goal</command-message>",
    ]:
        assert remove_controls(text) == "", text
        assert remove_controls(f"{STEP}\n{text}") == STEP, text


def test_the_prompt_and_the_phrases_of_the_loop_are_removed_and_other_texts_stay() -> None:
    for text in (
        STEP,
        "/usr/bin/python3 is old",
        "/tmp is full; clean it first",
        "Complete the form",
        "a < b and b > c",
    ):
        assert remove_controls(text) == text, text
    assert remove_controls("x\n\ny ") == "x\n\ny "
    assert remove_controls(f"/ralph-loop:ralph-loop {PROMPT}") == PROMPT, "a slash command leaves its task"
    assert remove_controls(f"/goal {PROMPT}") == PROMPT
    assert remove_controls("make every test of  the cart pass", (PROMPT,)) == ""
    assert remove_controls("Make every test of the ca\u2026", (PROMPT,)) == ""
    assert remove_controls(f"ALL GREEN\n{STEP}", (PROMPT, "ALL GREEN")) == STEP
    cleaned = clean_record({"steps": ["<promise>ALL GREEN</promise>", STEP, 3, None], "diff_pattern": "LOOP_COMPLETE"})
    assert cleaned == {"steps": [STEP, 3, None], "diff_pattern": "LOOP_COMPLETE"}, "code stays as it is"


def material_of(*iterations: Iteration, runner: str = "ralph-loop", **fields: Any) -> Material:
    known: dict[str, Any] = {"status": LoopStatus.COMPLETED, "criteria": ("ALL GREEN",)}
    loop = Loop(id=f"{runner}:1", runner=runner, task=f"/ralph-loop:ralph-loop {PROMPT}", **(known | fields))
    return clean_material(Material(source_id=loop.id, loop=loop, iterations=iterations))


def all_patterns(material: Material) -> Extraction:
    return extract(material, make_known_patterns(), ExtractionSettings(), ALL_TYPES)


def failing(action: str, **fields: Any) -> Iteration:
    failures = (Failure(message="TypeError: total is null"),)
    return Iteration(number=1, action=action, outcome=Outcome.FAILURE, failures=failures, **fields)


def passing(action: str, **fields: Any) -> Iteration:
    return Iteration(number=2, action=action, outcome=Outcome.SUCCESS, **fields)


def test_control_texts_become_no_fix_no_step_and_no_lesson() -> None:
    for runner in ["ralph-loop", "claude", "open-ralph", "frankbria", "orchestrator"]:
        for last in ["<promise>ALL GREEN</promise>", "ALL GREEN", PROMPT, "LOOP_COMPLETE"]:
            fix = Fix(description=last, verified=True)
            offer = all_patterns(material_of(failing(PROMPT), passing(last, fix=fix), runner=runner))
            assert [one.headline for one in offer.new] == [], (runner, last)
    one = passing("Also mend the tests of the checkout, and all of the other ones", is_prompt=True)
    assert all_patterns(material_of(one)).new == (), "a prompt without an answer"
    joined = JoinedLesson(places=(make_agent_lesson("<promise>COMPLETE</promise>"),))
    offer = extract_lesson(joined, make_known_patterns(), ExtractionSettings(), ALL_TYPES)
    assert offer.new == ()
    assert "only controls" in offer.why_nothing


def test_a_pattern_of_a_runner_has_neither_its_prompt_nor_its_phrases() -> None:
    for status in [LoopStatus.COMPLETED, LoopStatus.FAILED]:
        offer = all_patterns(
            material_of(failing(STEP), passing(f"{STEP}s\n<promise>ALL GREEN</promise>"), status=status)
        )
        written = msgspec.json.encode([one.record for one in offer.proposals]).decode()
        assert offer.new, status
        assert not any(text in written for text in ("promise", "ALL GREEN", "ralph-loop:ralph-loop", PROMPT)), status


LOOP = "ralph-fix-auth-a1b2c3d4"
OWNER = "software-implementer"
DIFF = """\
+ if (user == null) {
+   throw new ValidationError("User is required");
+ }
"""
TEMPLATE = """\
if ({{variable}} == null) {
  throw new ValidationError("{{message}}");
}
"""
ERROR_PATTERN = {
    "type": "error_pattern",
    "error_signature": {
        "error_type": "TypeError",
        "error_pattern": "Cannot read property '.*' of null",
        "error_location_hints": ["*.ts:validate*"],
    },
    "fix_approach": {
        "description": "Add null check before property access",
        "fix_category": "add_null_check",
        "code_template": TEMPLATE,
        "code_template_language": "typescript",
    },
    "source_loops": [{"loop_id": LOOP, "timestamp": "2026-02-02T15:00:00Z", "contributed_by": OWNER}],
    "success_rate": 1.0,
    "usage_count": 1,
    "first_discovered": "2026-02-02T15:00:00Z",
    "last_used": "2026-02-02T15:00:00Z",
    "tags": ["typescript", "null-safety", "validation"],
}
ITERATION_2 = {
    "error": {
        "type": "TypeError",
        "message": "Cannot read property 'email' of null",
        "location": "src/auth/validate.ts:42",
    }
}
ITERATION_3 = {
    "timestamp": "2026-02-02T15:00:00Z",
    "fix_applied": {"description": "Added null check for user object", "diff": DIFF},
    "test_results": {"passed": 12, "failed": 0},
}


def test_the_example_loop_gives_its_patterns(tmp_path: Path) -> None:
    write_example(tmp_path, "state.json", {"loopId": LOOP, "task": "Fix auth", "status": "completed", "owner": OWNER})
    write_example(tmp_path, "iterations/iteration-1.json", {"action": "Ran the tests", "result": "no network"})
    write_example(tmp_path, "iterations/iteration-2.json", ITERATION_2)
    write_example(tmp_path, "iterations/iteration-3.json", ITERATION_3)
    paths = ProjectPaths(tmp_path)
    snapshot = Index(paths, Settings(), clock=lambda: datetime(2026, 2, 3, tzinfo=UTC), is_kept=False).load()
    known = KnownPatterns(snapshot, Texts(Snapshot(patterns={})).similarity)
    extraction = extract(Materials(paths, snapshot).read(LOOP), known, ExtractionSettings())
    errors = [proposal for proposal in extraction.proposals if proposal.type is PatternType.ERROR]
    assert [(proposal.slug, proposal.record) for proposal in errors] == [("null-check", ERROR_PATTERN)]
    assert list(errors[0].record) == list(ERROR_PATTERN)
    assert errors[0].trace == ("iteration 2 → 3",)
    assert [proposal.type for proposal in extraction.new] == [PatternType.ERROR], "the template is a field of it"
    (template,) = extract(
        Materials(paths, snapshot).read(LOOP), known, ExtractionSettings(), {PatternType.TEMPLATE}
    ).new
    assert template.record["template_code"] == TEMPLATE
    assert set(template.record["placeholders"]) == {"variable", "message"}
    assert template.record["source_loops"] == [LOOP]


def write_example(project: Path, name: str, content: Any) -> None:
    file = project / ".aiwg/ralph/loops" / LOOP / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


def open_example(project: Path) -> Project:
    opened = Project(ProjectPaths(project), Settings(), by="ada", clock=lambda: DEBUG_NOW, cache=False)
    opened.load()
    return opened


def test_a_session_alone_gives_its_error_pattern(tmp_path: Path) -> None:
    folder = tmp_path / ".aiwg/ralph/debug-memory/sessions"
    folder.mkdir(parents=True)
    shutil.copy(EXAMPLE_SESSION_FILE, folder)
    (proposal,) = open_example(tmp_path).extraction("dm-001-example").proposals
    assert proposal.refused == ""
    record = proposal.record
    assert record["error_signature"] == {
        "error_type": "TypeError",
        "error_pattern": r"Cannot read property 'length' of null\b",
        "error_message": "TypeError: Cannot read property 'length' of null",
        "error_location_hints": ["*.ts:validateInput"],
    }
    assert record["fix_approach"]["fix_category"] == "add_null_check"
    assert record["fix_approach"]["description"] == (
        "validateInput() accesses input.length without null check. Added early return for null/undefined input."
    )
    assert (record["success_rate"], record["usage_count"]) == (1.0, 1)
    assert record["source_loops"][0]["loop_id"] == "dm-001-example"
