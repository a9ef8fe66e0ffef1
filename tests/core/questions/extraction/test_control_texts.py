"""Texts that control a loop are kept out of patterns."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.base.settings import ExtractionSettings
from core.questions.extraction.engine import extract
from core.questions.extraction.learnings import extract_lesson
from core.questions.extraction.material import clean_material, remove_controls
from core.records.debug_sessions import Failure, Fix
from core.records.extractions import ALL_TYPES, Extraction, Material
from core.records.lessons import JoinedLesson
from core.records.loops import Iteration, Loop, LoopStatus, Outcome
from tests.agent_lessons import make_agent_lesson
from tests.factories import make_known_patterns

PROMPT = "Make every test of the cart pass."
STEP = "Rounded the totals of the cart once, in money.py, instead of each line"
STATUS = "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---"


@pytest.mark.parametrize(
    "text",
    [
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
    ],
)
def test_a_text_that_only_controls_a_loop_is_removed(text: str) -> None:
    assert remove_controls(text) == ""
    assert remove_controls(f"{STEP}\n{text}") == STEP


@pytest.mark.parametrize(
    "text",
    [
        STEP,
        "/usr/bin/python3 is old",
        "/tmp is full; clean it first",
        "Complete the form",
        "a < b and b > c",
        "x\n\ny ",
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert remove_controls(text) == text


def test_a_slash_command_leaves_its_task() -> None:
    assert remove_controls(f"/ralph-loop:ralph-loop {PROMPT}") == PROMPT
    assert remove_controls(f"/goal {PROMPT}") == PROMPT


def test_the_prompt_and_the_phrases_of_the_loop_are_removed() -> None:
    assert remove_controls("make every test of  the cart pass", (PROMPT,)) == ""
    assert remove_controls("Make every test of the ca\u2026", (PROMPT,)) == ""
    assert remove_controls(f"ALL GREEN\n{STEP}", (PROMPT, "ALL GREEN")) == STEP


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


@pytest.mark.parametrize("runner", ["ralph-loop", "claude", "open-ralph", "frankbria", "orchestrator"])
@pytest.mark.parametrize("last", ["<promise>ALL GREEN</promise>", "ALL GREEN", PROMPT, "LOOP_COMPLETE"])
def test_control_texts_become_no_fix_and_no_step(runner: str, last: str) -> None:
    fix = Fix(description=last, verified=True)
    offer = all_patterns(material_of(failing(PROMPT), passing(last, fix=fix), runner=runner))
    assert [one.headline for one in offer.new] == []


@pytest.mark.parametrize("status", [LoopStatus.COMPLETED, LoopStatus.FAILED])
def test_a_pattern_of_a_runner_has_neither_its_prompt_nor_its_phrases(status: LoopStatus) -> None:
    offer = all_patterns(material_of(failing(STEP), passing(f"{STEP}s\n<promise>ALL GREEN</promise>"), status=status))
    written = msgspec.json.encode([one.record for one in offer.proposals]).decode()
    assert offer.new
    assert not any(text in written for text in ("promise", "ALL GREEN", "ralph-loop:ralph-loop", PROMPT))


def test_a_prompt_without_an_answer_is_never_a_step() -> None:
    one = passing("Also mend the tests of the checkout, and all of the other ones", is_prompt=True)
    assert all_patterns(material_of(one)).new == ()


def test_a_lesson_that_only_controls_a_loop_is_refused() -> None:
    joined = JoinedLesson(places=(make_agent_lesson("<promise>COMPLETE</promise>"),))
    offer = extract_lesson(joined, make_known_patterns(), ExtractionSettings(), ALL_TYPES)
    assert offer.new == ()
    assert "only controls" in offer.why_nothing
