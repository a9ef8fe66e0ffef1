from __future__ import annotations

from typing import Any

from core.base.settings import ExtractionSettings
from core.decisions.record_changes import link_alternatives
from core.questions.extraction.engine import extract
from core.records.episodes import Action, Attempt
from core.records.extractions import Extraction, LoggedAttempt, Proposal
from core.records.loops import Outcome
from core.records.patterns import Pattern, PatternType
from tests.factories import (
    failed_step,
    make_known_patterns,
    make_material,
    make_pattern,
    parse_pattern_record,
    passed_step,
)

LOCKED = ("1 failing: row 7 locked by 'ann'", "1 failing: row 8 locked by 'bob'", "1 failing: row 9 locked by 'cy'")
GIVEN = make_material(
    *(failed_step(number, "Retried the query", text) for number, text in enumerate(LOCKED, 1)),
    failed_step(4, "Read the lock table", "1 failing"),
    passed_step(5, "Sorted the locks before they are taken"),
    task="Stop the deadlocks of the order service",
)
FAILURE = """\
    def test_{file}() -> None:
>       assert total([1, 2]) == 3
E       assert 2 == 3

{file}_test.py:7: AssertionError
FAILED {file}_test.py::test_{file} - assert 2 == 3
"""
TYPES = {PatternType.SUCCESS, PatternType.ANTI}


def offered(*patterns: Pattern) -> Extraction:
    return extract(GIVEN, make_known_patterns(*patterns), ExtractionSettings(), TYPES)


def test_an_anti_pattern_without_an_alternative_gets_the_steps_of_the_approach() -> None:
    success, anti = offered().proposals
    assert success.record["approach"]["steps"] == ["Read the lock table", "Sorted the locks before they are taken"]
    assert anti.record["better_alternative"]["description"] == "; ".join(success.record["approach"]["steps"])


def test_new_patterns_of_one_loop_are_linked_both_ways() -> None:
    success, anti = offered().proposals
    records = {"pat-success-a-001": success.record, "pat-anti-b-001": anti.record}
    types = {"pat-success-a-001": PatternType.SUCCESS, "pat-anti-b-001": PatternType.ANTI}
    found = link_alternatives(records, types)
    assert found["pat-anti-b-001"]["better_alternative"]["success_pattern_id"] == "pat-success-a-001"
    assert found["pat-success-a-001"]["related_patterns"] == ["pat-anti-b-001"]
    assert "success_pattern_id" not in anti.record["better_alternative"], "the proposal itself is left alone"


def test_an_anti_pattern_is_linked_to_a_success_pattern_that_the_registry_has() -> None:
    success, _ = offered().proposals
    own = parse_pattern_record(PatternType.SUCCESS, "a", success.record)
    _, anti = offered(own).proposals
    assert anti.record["better_alternative"]["success_pattern_id"] == own.id


def test_without_a_success_pattern_nothing_is_linked() -> None:
    _, anti = offered().proposals
    assert link_alternatives({"pat-anti-b-001": anti.record}, {"pat-anti-b-001": PatternType.ANTI}) == {
        "pat-anti-b-001": anti.record
    }


def fix_in(file: str, old: str, new: str, output: str) -> LoggedAttempt:
    run: dict[str, Any] = {"type": "bash", "tool": "Bash", "params": (("command", f"pytest {file}_test.py"),)}
    params = (("file_path", f"{file}.py"), ("old_string", old), ("new_string", new))
    actions = (
        Action(number=1, **run, success=False, error=output),
        Action(number=2, type="edit", tool="Edit", params=params, success=True),
        Action(number=3, **run, success=True, output="1 passed"),
    )
    return LoggedAttempt(attempt=Attempt(task_id="task-001", number=1, outcome=Outcome.SUCCESS), actions=actions)


def offered_fixes(*attempts: LoggedAttempt, known: tuple[Pattern, ...] = ()) -> tuple[Proposal, ...]:
    material = make_material(attempts=attempts)
    return extract(material, make_known_patterns(*known), ExtractionSettings(), {PatternType.ERROR}).proposals


def test_the_same_replacement_after_the_same_error_in_other_code_is_a_use_of_the_known_fix() -> None:
    known = make_pattern(error_message="KeyError: 'count'", diff_pattern='-a["count"] * 2\n+a.get("count", 1) * 2')
    for new, output, expected in (
        ('sum(line.get("count", 1) for line in lines)', "KeyError: 'count'", known.id),
        ('sum(line.get("count", 0) for line in lines)', "KeyError: 'count'", ""),
        ('sum(line.get("count", 1) for line in lines)', "KeyError: 'total'", ""),
    ):
        fix = fix_in("cart", 'sum(line["count"] for line in lines)', new, f"    total(lines)\n{output}")
        (proposal,) = offered_fixes(fix, known=(known,))
        assert proposal.duplicate_of == expected, (new, output)


def test_equal_triggers_with_other_places_are_two_lessons() -> None:
    fixes = (("cart", "len(prices)", "sum(prices)"), ("queue", "last = first", "last = items[-1] or None"))
    found = offered_fixes(
        *(fix_in(*one, FAILURE.format(file=one[0])) for one in reversed(fixes))
    )  # the newest is first
    signatures = [proposal.record["error_signature"] for proposal in found]
    assert [signature["error_places"] for signature in signatures] == [
        ["cart_test.py::test_cart"],
        ["queue_test.py::test_queue"],
    ]
    assert signatures[0]["error_pattern"] == signatures[1]["error_pattern"]
