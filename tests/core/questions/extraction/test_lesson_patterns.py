"""A lesson of an agent becomes a candidate pattern that names where it comes from."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import pytest

from core.base.settings import ExtractionSettings
from core.questions.extraction.learnings import extract_lesson, pattern_type
from core.records.extractions import ALL_TYPES, Extraction
from core.records.lessons import JoinedLesson, Lesson, LessonKind, LessonState
from core.records.patterns import Pattern, PatternType
from tests.agent_lessons import CLOCK, NO_CLOCK, drafted, make_agent_lesson
from tests.factories import NOW, make_known_patterns, make_pattern, make_source

SIGN = "First check that the import is not there already"


def extracted(
    *places: Lesson,
    known: tuple[Pattern, ...] = (),
    types: Set[PatternType] = ALL_TYPES,
    **fields: Any,
) -> Extraction:
    joined = JoinedLesson(places=places, **fields)
    return extract_lesson(joined, make_known_patterns(*known), ExtractionSettings(), types)


@pytest.mark.parametrize(
    ("kind", "text", "trigger", "made"),
    [
        (LessonKind.APPROACH, CLOCK, "", PatternType.SUCCESS),
        (LessonKind.APPROACH, NO_CLOCK, "", PatternType.ANTI),
        (LessonKind.WARNING, NO_CLOCK, "", PatternType.ANTI),
        (LessonKind.WARNING, SIGN, "", PatternType.SUCCESS),
        (LessonKind.FIX, CLOCK, "TypeError: clock is null", PatternType.ERROR),
        (LessonKind.FIX, CLOCK, "", PatternType.SUCCESS),
        (LessonKind.FACT, CLOCK, "", None),
    ],
)
def test_the_kind_decides_the_type(kind: LessonKind, text: str, trigger: str, made: PatternType | None) -> None:
    lesson = make_agent_lesson(text, kind=kind, trigger=trigger)
    assert pattern_type(lesson) is made
    assert [one.type for one in extracted(lesson).proposals] == ([made] if made else [])


def test_the_record_has_runner_session_file_and_line_of_each_place() -> None:
    one = make_agent_lesson(at=NOW, loop_id="claude:1", title="Cart tests", why="It failed at midnight")
    other = make_agent_lesson(runner="snarktank", file="progress.txt", line=9)
    offer = extracted(one, other)
    assert (offer.source_id, offer.about) == (one.id, f"the lesson “{CLOCK}”")
    assert drafted(offer)["source_loops"] == [
        {
            "loop_id": "claude:1",
            "file": "~/.claude/memory/notes.md",
            "line": 3,
            "timestamp": "2026-02-03T00:00:00Z",
            "contributed_by": "claude",
        },
        {"loop_id": other.id, "file": "progress.txt", "line": 9, "contributed_by": "snarktank"},
    ]
    (proposal,) = offer.new
    assert proposal.trace == ("claude ~/.claude/memory/notes.md:3", "snarktank progress.txt:9")


def test_the_situation_of_an_approach_is_its_precondition() -> None:
    lesson = make_agent_lesson(trigger="when a test touches dates", title="cart-clock")
    assert drafted(extracted(lesson))["preconditions"] == ["when a test touches dates"]
    assert "preconditions" not in drafted(extracted(make_agent_lesson(title="US-001")))


def test_a_prohibition_names_what_to_avoid() -> None:
    record = drafted(extracted(make_agent_lesson(NO_CLOCK, kind=LessonKind.WARNING, why="It hides the hour")))
    assert record["approach_description"] == NO_CLOCK
    assert record["why_it_fails"] == "It hides the hour"


def test_a_sign_with_advice_is_not_turned_into_its_opposite() -> None:
    sign = make_agent_lesson(SIGN, kind=LessonKind.WARNING, trigger="Adding an import")
    record = drafted(extracted(sign))
    assert record["approach"]["description"] == SIGN
    assert record["preconditions"] == ["Adding an import"]


@pytest.mark.parametrize("text", [SIGN, CLOCK, NO_CLOCK, "Never push to main; open a pull request."])
def test_a_pattern_is_named_by_the_sentence_and_has_no_use(text: str) -> None:
    record = drafted(extracted(make_agent_lesson(text, trigger="TypeError: x is null", at=NOW)))
    assert record["name"] == text
    counts = {key: record.get(key) for key in ("usage_count", "occurrence_count", "success_rate", "failure_rate")}
    assert not any(counts.values())
    assert "last_used" not in record


def test_only_what_a_warning_forbids_is_avoided() -> None:
    record = drafted(extracted(make_agent_lesson("Never push to main; open a pull request.")))
    assert record["approach_description"] == "Never push to main"
    assert record["better_alternative"] == {"description": "open a pull request"}


def test_a_fact_becomes_a_pattern_only_of_a_named_type() -> None:
    fact = make_agent_lesson(kind=LessonKind.FACT)
    assert "it is a fact, not advice" in extracted(fact).why_nothing
    (proposal,) = extracted(fact, types={PatternType.SUCCESS}).new
    assert proposal.type is PatternType.SUCCESS


@pytest.mark.parametrize(
    ("kind", "why"), [(PatternType.ERROR, "does not name the error"), (PatternType.TEMPLATE, "has no code")]
)
def test_a_type_that_does_not_fit_is_refused(kind: PatternType, why: str) -> None:
    assert why in extracted(make_agent_lesson(), types={kind}).why_nothing


def test_a_similar_pattern_gets_a_further_use() -> None:
    twin = make_pattern("pat-success-clock-001", PatternType.SUCCESS, description=CLOCK, category="testing")
    (proposal,) = extracted(make_agent_lesson(), known=(twin,)).merges
    assert proposal.duplicate_of == twin.id


def test_a_pattern_of_the_same_session_or_lesson_is_not_made_again() -> None:
    lesson = make_agent_lesson(loop_id="claude:1")
    fields: dict[str, Any] = {"description": CLOCK, "category": "testing", "source_loops": (make_source("claude:1"),)}
    twin = make_pattern("pat-success-clock-001", PatternType.SUCCESS, **fields)
    assert extracted(lesson, known=(twin,)).why_nothing == f"already known from its session as {twin.id}"
    other = extracted(make_agent_lesson(), known=(twin,), state=LessonState.ACCEPTED, patterns=(twin.id,))
    assert other.why_nothing == f"already accepted as {twin.id}"
