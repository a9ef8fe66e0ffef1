from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from core.config.settings import ExtractionSettings
from core.extraction.engine import extract
from core.extraction.selection import link_alternatives
from core.records.episodes import Action, Attempt
from core.records.extractions import Extraction, LoggedAttempt
from core.records.loops import Outcome
from core.records.patterns import Pattern, PatternType
from tests.factories import failed_step, make_known_patterns, make_material, parse_pattern_record, passed_step

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


def test_equal_triggers_with_other_places_are_two_lessons() -> None:
    def fix(file: str, old: str, new: str) -> list[Action]:
        output = FAILURE.format(file=file)
        run: dict[str, Any] = {"type": "bash", "tool": "Bash", "params": (("command", f"pytest {file}_test.py"),)}
        params = (("file_path", f"{file}.py"), ("old_string", old), ("new_string", new))
        edit = Action(number=0, type="edit", tool="Edit", params=params, success=True)
        return [
            Action(number=0, **run, success=False, error=output),
            edit,
            Action(number=0, **run, success=True, output="1 passed"),
        ]

    actions = [*fix("cart", "len(prices)", "sum(prices)"), *fix("queue", "last = first", "last = items[-1] or None")]
    attempt = Attempt(task_id="task-001", number=1, outcome=Outcome.SUCCESS)
    numbered = tuple(replace(action, number=number) for number, action in enumerate(actions, 1))
    material = make_material(attempts=(LoggedAttempt(attempt=attempt, actions=numbered),))
    found = extract(material, make_known_patterns(), ExtractionSettings(), {PatternType.ERROR}).proposals
    signatures = [proposal.record["error_signature"] for proposal in found]
    assert [signature["error_places"] for signature in signatures] == [
        ["cart_test.py::test_cart"],
        ["queue_test.py::test_queue"],
    ]
    assert signatures[0]["error_pattern"] == signatures[1]["error_pattern"]
