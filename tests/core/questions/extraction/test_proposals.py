"""Lessons that agents propose become patterns with masked texts."""

from __future__ import annotations

import pytest

from core.base.errors import BadInput
from core.questions.extraction.learnings import make_lesson
from core.records.extractions import Proposal
from core.records.patterns import Pattern, PatternType
from tests.factories import NOW, parse_pattern_record

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


def make(kind: PatternType, when: str, lesson: str, evidence: str = "Seen twice", loop_id: str = "") -> Proposal:
    return make_lesson(kind, when, lesson, evidence, loop_id=loop_id, at=NOW, by="mcp:codex")


def parse(proposal: Proposal) -> Pattern:
    return parse_pattern_record(proposal.type, proposal.slug, proposal.record)


def test_an_error_message_becomes_a_signature_with_its_fix() -> None:
    pattern = parse(make(PatternType.ERROR, "TypeError: Cannot read property 'id' of null", "Add a null check"))
    assert (pattern.error_type, pattern.description) == ("TypeError", "Add a null check")
    assert pattern.category == "add_null_check"
    assert "'id'" not in pattern.error_pattern and "Cannot read property" in pattern.error_pattern


def test_a_warning_becomes_an_anti_pattern_with_its_evidence() -> None:
    pattern = parse(make(PatternType.ANTI, "A type error in a test", "Never cast the fixture to Any", "Hid two bugs"))
    assert pattern.description == "Never cast the fixture to Any"
    assert (pattern.symptoms, pattern.why_it_fails) == (("A type error in a test",), "Hid two bugs")


def test_an_anti_pattern_keeps_what_to_do_instead() -> None:
    pattern = parse(
        make(PatternType.ANTI, "A test needs a date", "Don't mock the clock, inject it instead", "Hid a bug")
    )
    assert (pattern.description, pattern.better_alternative) == ("Don't mock the clock", "inject it")


def test_an_approach_has_its_situation_as_name_and_precondition() -> None:
    pattern = parse(make(PatternType.SUCCESS, "The migration touches two services", "Deploy the reader first"))
    assert (pattern.description, pattern.preconditions) == (
        "Deploy the reader first",
        ("The migration touches two services",),
    )


def test_the_loop_is_the_source() -> None:
    pattern = parse(make(PatternType.SUCCESS, "case", "Deploy the reader first", loop_id="ralph-a"))
    assert [(one.loop_id, one.contributed_by) for one in pattern.source_loops] == [("ralph-a", "mcp:codex")]
    assert parse(make(PatternType.SUCCESS, "case", "Deploy the reader first")).source_loops == ()


@pytest.mark.parametrize("kind", [PatternType.ERROR, PatternType.SUCCESS, PatternType.ANTI])
def test_secrets_are_masked_and_lines_joined(kind: PatternType) -> None:
    text = f"TypeError: one\ntwo {SECRET} three"
    record = str(make(kind, text, text, text).record)
    assert SECRET not in record and "\\n" not in record


@pytest.mark.parametrize(
    ("kind", "when", "lesson", "evidence", "why"),
    [
        (PatternType.SUCCESS, " ", "x", "y", "when is empty"),
        (PatternType.SUCCESS, "x", "\n", "y", "lesson is empty"),
        (PatternType.SUCCESS, "x", "y", "", "evidence is empty"),
        (PatternType.ERROR, "??", "x", "y", "must be the error message"),
    ],
)
def test_an_incomplete_lesson_is_refused(kind: PatternType, when: str, lesson: str, evidence: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        make(kind, when, lesson, evidence)
