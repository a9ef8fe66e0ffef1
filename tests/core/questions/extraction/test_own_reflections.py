from __future__ import annotations

from typing import Any

from core.base.settings import ExtractionSettings
from core.questions.extraction.engine import extract
from core.records.extractions import Material, Proposal
from core.records.loops import LoopStatus
from core.records.patterns import PatternType
from core.records.reflections import Reflection
from tests.factories import LOOP_ID, failed_step, make_known_patterns, make_material, make_step, passed_step

ERROR = "TypeError: Cannot read property 'email' of null at src/auth/validate.ts:42"
LEARNING = "Check the user before its e-mail is read"


def reflection(number: int = 2, **fields: Any) -> Reflection:
    return Reflection(
        **{"id": f"r-{number}", "shape": "hook", "file": "r.yaml", "loop_id": LOOP_ID, "iteration": number, **fields}
    )


def of(given: Material, kind: PatternType) -> tuple[Proposal, ...]:
    return extract(given, make_known_patterns(), ExtractionSettings(), {kind}).proposals


def test_an_error_in_a_reflection_with_its_action_is_an_error_pattern() -> None:
    one = reflection(kind="error_analysis", observation=ERROR, learning=LEARNING)
    (proposal,) = of(make_material(passed_step(3, "Done"), reflections=(one,)), PatternType.ERROR)
    assert proposal.record["fix_approach"]["description"] == LEARNING
    assert proposal.record["error_signature"]["error_pattern"] == "Cannot read property '.*' of null"
    assert proposal.trace == ("reflection on iteration 2",)


def test_the_advice_of_a_failed_loop_is_not_a_fix() -> None:
    one = reflection(observation=ERROR, learning=LEARNING)
    assert not of(
        make_material(failed_step(3, "Gave up"), reflections=(one,), status=LoopStatus.FAILED), PatternType.ERROR
    )


def test_a_warning_is_an_anti_pattern_with_its_reason_and_alternative() -> None:
    one = reflection(
        kind="error_analysis",
        learning="Avoid raising the timeout of the pool",
        analysis="The connections leak, so a longer wait only hides it",
        actions=("Close the client in finally",),
    )
    (proposal,) = of(make_material(passed_step(3, "Done"), reflections=(one,)), PatternType.ANTI)
    record = proposal.record
    assert record["approach_description"] == "Avoid raising the timeout of the pool"
    assert record["why_it_fails"] == "The connections leak, so a longer wait only hides it"
    assert record["better_alternative"] == {"description": "Close the client in finally"}
    assert record["source_loops"][0]["failure_iteration"] == 2


def test_the_alternative_in_a_warning_comes_before_the_action_items() -> None:
    learning = "Never edit generated files by hand; change the template and regenerate"
    one = reflection(learning=learning, actions=("Ask for a review",))
    (proposal,) = of(make_material(passed_step(3, "Done"), reflections=(one,)), PatternType.ANTI)
    assert proposal.record["approach_description"] == "Never edit generated files by hand"
    assert proposal.record["better_alternative"] == {"description": "change the template and regenerate"}


def test_the_reflection_on_an_iteration_explains_the_failure() -> None:
    marks = (0.5, 0.45, 0.4, 0.7)
    steps = [failed_step(n, f"Change {n}", quality=mark) for n, mark in enumerate(marks, 1)]
    one = reflection(3, analysis="The cache was never cleared")
    (proposal,) = of(make_material(*steps, reflections=(one,)), PatternType.ANTI)
    assert proposal.record["why_it_fails"] == "The cache was never cleared"


def test_reflections_on_success_give_the_steps_that_iterations_do_not_name() -> None:
    newest = reflection(2, kind="success_pattern", actions=("Run the type checker again",))
    oldest = reflection(1, kind="success_pattern", actions=("List the errors", "Fix the interfaces first"))
    given = make_material(make_step(1), passed_step(2, "", ""), reflections=(newest, oldest))
    (proposal,) = of(given, PatternType.SUCCESS)
    assert proposal.record["approach"]["steps"] == [
        "List the errors",
        "Fix the interfaces first",
        "Run the type checker again",
    ]
    assert proposal.trace == ("3 steps of its reflections",)


def test_unhelpful_reflections_and_empty_drafts_are_ignored() -> None:
    warning = "Avoid raising the timeout of the pool"
    for fields in ({"effectiveness": "unhelpful", "learning": warning}, {"draft": True, "learning": ""}):
        assert not of(make_material(passed_step(3, "Done"), reflections=(reflection(**fields),)), PatternType.ANTI)
