"""Extraction on request with indexes built in steps, and patterns on file that earlier versions extracted."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import Refused
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.base.steps import run_all
from core.cli.demo.sample import copy_sample
from core.decisions import commands, record_changes
from core.decisions.commands import Promote, RepairPatterns
from core.index.review_items import OFFER
from core.index.texts import Texts
from core.project.project import Project
from core.questions.extraction.engine import KnownPatterns
from core.questions.extraction.material import Materials
from core.records.extractions import Extraction, Proposal
from core.records.patterns import OldRecords, PatternType, Problem
from core.records.snapshot import Snapshot

SAMPLE_NOW = datetime(2026, 2, 4, tzinfo=UTC)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    copy_sample(folder, SAMPLE_NOW)
    return folder


def test_indexes_built_in_steps_are_those_built_at_once(sample: Path) -> None:
    paths = ProjectPaths(sample)
    view = Project(paths, Settings(), by="ada", clock=lambda: SAMPLE_NOW, cache=False).load()
    similar = Texts(Snapshot(patterns=view.snapshot.patterns)).similarity
    known, plain = (KnownPatterns(view.snapshot, similar) for _ in range(2))
    run_all(known.prepare_in_steps())
    assert known.messages == plain.messages and len(plain.messages) > 3
    assert (known.tasks, known.of_loop) == (plain.tasks, plain.of_loop)
    prepared, fresh = (Materials(paths, view.snapshot) for _ in range(2))
    run_all(prepared.prepare_in_steps())
    loop_ids = [loop.id for loop in view.snapshot.loops.values() if loop.status.ended]
    assert [prepared.read(id) for id in loop_ids] == [fresh.read(id) for id in loop_ids]


def test_a_pattern_that_was_archived_is_not_extracted_again_from_the_same_work(tmp_path: Path) -> None:
    copy_sample(tmp_path, SAMPLE_NOW)
    project = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: SAMPLE_NOW, cache=False)
    project.load()
    source = next(item for item in project.search_all().queue if item.kind == OFFER).subject
    pattern_id, *_ = project.decide(commands.Extract(source_id=source)).decision.after["patterns"]
    project.decide(commands.Archive(pattern_id, reason="rejected in review"))
    again = project.extraction(source)
    assert not again.new
    assert f"archived before as {pattern_id}: rejected in review" in again.why_nothing
    with pytest.raises(Refused):
        project.decide(commands.Extract(source_id=source))


NOW = datetime(2026, 5, 3, 12, 0, tzinfo=UTC)
FAILURE = """\
def test_total() -> None:
>       assert total([1, 2]) == 3
E       assert 2 == 3

test_cart.py:7: AssertionError
FAILED test_cart.py::test_total - assert 2 == 3
"""
FIXED = "In cart.py: `return len(prices)` → `return sum(prices)`"


def error_record(pattern: str, text: str, source: str = "task-001", **fix: Any) -> dict[str, Any]:
    return {
        "type": "error_pattern",
        "error_signature": {"error_type": "AssertionError", "error_pattern": pattern},
        "fix_approach": {"description": text, "fix_category": "other", **fix},
        "source_loops": [{"loop_id": source, "timestamp": "2026-05-01T10:00:00Z"}],
        "success_rate": 1.0,
        "usage_count": 1,
    }


OLD = error_record("assert '.*' == '.*'", "Settle the error: Change cart.py", code_template="return sum(prices)\n")
SOUND = "Sum the prices instead of counting them"


def template_record(code: str, text: str) -> dict[str, Any]:
    return {
        "type": "code_template",
        "language": "python",
        "template_code": code,
        "description": text,
        "source_loops": ["task-001"],
        "usage_count": 1,
    }


def record_fix(project: Path, task: str = "task-001", file: str = "cart", new: str = "return sum(prices)") -> None:
    """Write the log of an attempt in which `cart.py`, or another file, was fixed."""
    folder = project / ".aiwg/ralph/tasks" / task
    (folder / "attempts/001").mkdir(parents=True)
    (folder / "metadata.json").write_text(
        json.dumps({"id": task, "description": "Fix the cart", "status": "completed"})
    )
    (folder / "attempts/001/attempt.json").write_text(json.dumps({"id": 1, "outcome": {"status": "success"}}))
    run = {"type": "bash", "tool": "Bash", "params": {"command": "pytest"}}
    edit = {"file_path": f"{file}.py", "old_string": "return len(prices)", "new_string": new}
    actions = [
        run | {"success": False, "error": FAILURE.replace("cart", file)},
        {"type": "edit", "tool": "Edit", "params": edit, "success": True},
        run | {"success": True, "output": "1 passed"},
    ]
    (folder / "attempts/001/actions.jsonl").write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def opened(folder: Path) -> Project:
    project = Project(ProjectPaths(folder), Settings(), by="ada", clock=lambda: NOW, cache=False)
    project.load()
    return project


def extracted(folder: Path, *records: dict[str, Any], kind: PatternType = PatternType.ERROR) -> Project:
    """A project in which these records were extracted without a person."""
    project = opened(folder)
    proposals = tuple(Proposal(type=kind, slug=f"old-{number}", record=one) for number, one in enumerate(records, 1))
    patterns = project.view.snapshot.patterns
    extraction = Extraction(source_id="task-001", proposals=proposals)
    with project.curator.transaction(NOW, len(project.view.snapshot.decisions)) as act:
        act.add(record_changes.extract(act.batch(""), extraction, patterns, unattended=True))
    project.apply(None)
    return project


def problems(found: OldRecords) -> dict[str, set[Problem]]:
    return {repair.pattern.id: set(repair.problems) for repair in found.repairs}


def test_a_lesson_becomes_what_is_extracted_from_its_work_today(tmp_path: Path) -> None:
    record_fix(tmp_path)
    (repair,) = extracted(tmp_path, OLD).repairs().repairs
    assert set(repair.problems) == {Problem.TRIGGER, Problem.TEXT}
    after = {change.part: change.after for change in repair.text_changes}
    assert (after["text"], after["places"], after["template"]) == (FIXED, "test_cart.py::test_total", "")
    assert after["diff"] == "@@ cart.py @@\n-return len(prices)\n+return sum(prices)"


def test_a_lesson_of_a_debug_session_becomes_what_is_extracted_from_it_today(tmp_path: Path) -> None:
    folder = tmp_path / ".aiwg/ralph/debug-memory"
    folder.mkdir(parents=True)
    run = {
        "attempt": 1,
        "failures": [
            {
                "test_name": "test_gift",
                "error_type": "TypeError",
                "error_message": "unsupported operand type(s) for +: 'int' and 'NoneType'",
                "source_location": {"file": "cart.py", "function": "total"},
            }
        ],
        "analysis": {"root_cause": "total() reads line.vat, which is None", "fix_strategy": "Count a missing VAT as 0"},
        "fix_applied": {"description": "Count a missing VAT as 0", "verification": "passed"},
    }
    session = {"session_id": "s", "file_path": "cart.py", "status": "passed", "executions": [run]}
    (folder / "s.json").write_text(json.dumps(session))
    old = error_record(r"unsupported operand type\(s\) for \+: '.*' and '.*'", "Count a missing VAT as 0", "s")
    (repair,) = extracted(tmp_path, old).repairs().repairs
    after = {change.part: change.after for change in repair.text_changes}
    assert after["places"] == "cart.py::total" and after["text"].startswith("total() reads line.vat, which is None.")


def test_a_source_with_another_fix_is_named_and_gives_a_pattern_of_its_own(tmp_path: Path) -> None:
    record_fix(tmp_path)
    record_fix(tmp_path, "task-002", "invoice", "items = read_items(path)\nreturn len({item.number for item in items})")
    joined = {"source_loops": [{"loop_id": "task-001"}, {"loop_id": "task-002"}], "usage_count": 2}
    project = extracted(tmp_path, OLD | joined)
    (repair,) = project.repairs().repairs
    assert repair.other_sources == ("task-002",)
    project.decide(RepairPatterns((repair,)))
    assert len(project.extraction("task-002", frozenset({PatternType.ERROR})).new) == 1


def test_a_second_lesson_of_the_same_fix_is_archived_also_without_its_work(tmp_path: Path) -> None:
    record_fix(tmp_path / "work")
    other = error_record("ld returned \\d+ exit status", "Change cart.py")
    first, second = extracted(tmp_path / "work", OLD, other).repairs().repairs
    assert (first.is_archived, second.is_archived) == (False, True)
    assert Problem.REPEATED in second.problems
    sound = error_record("cart has \\d+ loose coupons", SOUND)
    (repair,) = extracted(tmp_path / "a", sound, error_record("assert '.*' == '.*'", SOUND)).repairs().repairs
    assert (repair.pattern.id, repair.is_archived) == ("pat-error-old-2-001", True)
    assert repair.reason.endswith("see pat-error-old-1-001")
    broad = [error_record(f"assert '.*' {sign} '.*'", SOUND) for sign in ("==", "!=", "is")]
    found = extracted(tmp_path / "b", *broad).repairs().repairs
    assert [repair.is_archived for repair in found] == [False, True, True], "one of them stays"


def test_without_the_work_the_bad_part_is_removed_or_the_lesson_archived(tmp_path: Path) -> None:
    partial = {"code_template": "return {{name}}(prices)\n", "code_template_language": "python"}
    records = (
        OLD,
        error_record("assert '.*' == '.*'", "Count each price once"),
        error_record("cart has \\d+ loose coupons", SOUND, **partial),
    )
    found = {repair.pattern.id: repair for repair in extracted(tmp_path, *records).repairs().repairs}
    no_text, no_trigger, no_template = (found[f"pat-error-old-{number}-001"] for number in (1, 2, 3))
    assert no_text.is_archived
    assert [tuple(change) for change in no_trigger.text_changes] == [("trigger", "assert '.*' == '.*'", "")]
    assert [tuple(change) for change in no_template.text_changes] == [("template", partial["code_template"], "")]


@pytest.mark.parametrize(
    ("kind", "record", "problem"),
    [
        (PatternType.TEMPLATE, template_record("return sum(prices)\n", SOUND), Problem.REPEATED),
        (PatternType.TEMPLATE, template_record("return '{{message}}'\n", "A total in words"), Problem.TEMPLATE),
        (
            PatternType.SUCCESS,
            {
                "type": "success_pattern",
                "task_category": "debugging",
                "approach": {"description": "Fix the cart", "steps": [SOUND]},
                "source_loops": [{"loop_id": "task-001"}],
                "average_iterations": 1.0,
            },
            Problem.REPEATED,
        ),
        (
            PatternType.ANTI,
            {
                "type": "anti_pattern",
                "approach_description": "Avoid: Change cart.py, again and again, though the error stays the same",
                "failure_mode": "repeated_same_error",
                "source_loops": [{"loop_id": "task-001"}],
            },
            Problem.TEXT,
        ),
    ],
)
def test_other_patterns_that_add_nothing_to_a_fix_are_archived(
    tmp_path: Path, kind: PatternType, record: dict[str, Any], problem: Problem
) -> None:
    extracted(tmp_path, error_record("cart has \\d+ loose coupons", SOUND, code_template="return sum(prices)\n"))
    (repair,) = extracted(tmp_path, record, kind=kind).repairs().repairs
    assert repair.is_archived and problem in repair.problems


def test_a_lesson_that_a_person_approved_or_edited_is_left_and_records_of_other_tools_are_not_judged(
    tmp_path: Path,
) -> None:
    project = extracted(tmp_path, OLD, error_record("assert '.*' is '.*'", "Change a.py"))
    approved, edited = "pat-error-old-1-001", "pat-error-old-2-001"
    assert set(problems(project.repairs([edited]))) == {edited}, "only the named patterns"
    project.decide(Promote(approved, reason="holds"))
    file = project.project.pattern_file("error")
    content = json.loads(file.read_text().replace("Change a.py", "Change b.py"))
    content["pattern_registry"]["error_patterns"].append({"pattern_id": "pat-error-own-001", **OLD})
    file.write_text(json.dumps(content))
    found = opened(tmp_path).repairs()
    assert (found.repairs, set(found.left)) == ((), {approved, edited})
    sound = extracted(tmp_path / "sound", error_record("cart has \\d+ loose coupons", SOUND))
    assert sound.repairs() == OldRecords((), ())


def test_a_damaged_decision_log_and_hostile_texts_are_tolerated(tmp_path: Path) -> None:
    hostile = error_record("(" * 5_000, f"Change {'a' * 5_000}; \x1b[31m", code_template="{{" * 900)
    extracted(tmp_path, hostile, error_record("assert '.*' == '.*'", SOUND) | {"source_loops": []})
    log = ProjectPaths(tmp_path).ledger
    damaged = log.read_text().replace('"source_loops":[{', '"source_loops":[7,{"loop_id":[1]},{', 1)
    log.write_text(damaged.replace('"fix_approach":{', '"error_signature":[],"fix_approach":{', 1))
    found = opened(tmp_path).repairs()
    assert {repair.pattern.id for repair in found.repairs} | set(found.left) == {
        "pat-error-old-1-001",
        "pat-error-old-2-001",
    }
