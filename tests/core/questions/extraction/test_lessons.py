"""Lessons that say the same are joined, and compared with patterns and with each other."""

from __future__ import annotations

from msgspec.structs import replace

from core.base.steps import run_all
from core.questions.extraction.learnings import compare_lessons_in_steps, judge_lessons_in_steps
from core.records.decisions import CurationState, Decision, Verb, lesson_question_id
from core.records.lessons import JoinedLesson, Lesson, LessonKind, LessonState
from core.records.loops import Outcome
from core.records.patterns import Pattern, PatternType
from core.records.snapshot import Snapshot
from tests.agent_lessons import CLOCK, NO_CLOCK, make_agent_lesson
from tests.factories import NOW, make_board, make_pattern

APPROVED = make_pattern("pat-success-clock-001", PatternType.SUCCESS, description=CLOCK)
AVOIDED = make_pattern("pat-anti-clock-001", PatternType.ANTI, description=f"AVOID: {CLOCK}")
BY_HAND = CurationState(approved={id: frozenset({"seen"}) for id in (APPROVED.id, AVOIDED.id)})


def joined(
    *lessons: Lesson,
    patterns: tuple[Pattern, ...] = (),
    curation: CurationState = BY_HAND,
    decisions: tuple[Decision, ...] = (),
) -> tuple[JoinedLesson, ...]:
    known = {pattern.id: pattern for pattern in patterns}
    snapshot = Snapshot(
        lessons={one.id: one for one in lessons}, patterns=known, curation=curation, decisions=decisions
    )
    compared = run_all(compare_lessons_in_steps(snapshot.lessons, known))
    return run_all(judge_lessons_in_steps(compared, snapshot, make_board(*patterns, curation=curation)))


def test_nearly_the_same_lesson_of_several_runners_is_one() -> None:
    one, other = make_agent_lesson(), make_agent_lesson(f"{CLOCK}.", "codex", uses=2)
    third = make_agent_lesson("Use the fake clock from tests/clock.ts in all cart tests", "snarktank")
    (found,) = joined(one, other, third, make_agent_lesson("Squash commits before the merge"))[:1]
    assert set(found.places) == {one, other, third}
    assert (found.runners[0], found.uses) == (found.lesson.runner, 2)


def test_short_lessons_are_joined_only_if_their_words_are_equal() -> None:
    assert len(joined(make_agent_lesson("tests failed"), make_agent_lesson("Tests failed!", "codex"))) == 1
    assert len(joined(make_agent_lesson("tests failed"), make_agent_lesson("tests passed", "codex"))) == 2


def test_of_equal_texts_the_one_that_worked_and_can_become_a_pattern_is_asked_about() -> None:
    fact = make_agent_lesson(kind=LessonKind.FACT, outcome=Outcome.SUCCESS, loaded=True)
    plain, loaded = make_agent_lesson(runner="codex"), make_agent_lesson(runner="opencode", loaded=True)
    worked = make_agent_lesson(runner="orchestrator", outcome=Outcome.SUCCESS)
    (found,) = joined(fact, plain, loaded, worked)
    assert found.places == (worked, loaded, plain, fact)
    assert found.is_loaded


def test_lessons_that_demand_the_opposite_disagree() -> None:
    one, other = joined(make_agent_lesson(), make_agent_lesson(NO_CLOCK, "codex"))
    assert (one.disagrees_with, other.disagrees_with) == ((other.id,), (one.id,))


def test_lessons_with_other_numbers_do_not_disagree() -> None:
    found = joined(*(make_agent_lesson(f"Wait {number} seconds for the staging server") for number in (30, 60)))
    assert [one.disagrees_with for one in found] == [(), ()]


def test_a_lesson_contradicts_an_approved_pattern() -> None:
    (found,) = joined(make_agent_lesson(NO_CLOCK), patterns=(APPROVED,))
    assert (found.state, found.contradicts) == (LessonState.OPEN, (APPROVED.id,))
    (found,) = joined(make_agent_lesson(CLOCK), patterns=(AVOIDED,))
    assert (found.state, found.contradicts) == (LessonState.OPEN, (AVOIDED.id,))


def test_a_lesson_does_not_contradict_a_pattern_that_nothing_confirmed() -> None:
    (found,) = joined(make_agent_lesson(NO_CLOCK), patterns=(APPROVED,), curation=CurationState())
    assert not found.contradicts


def test_a_lesson_that_a_pattern_contains_is_known() -> None:
    for lesson, pattern in ((CLOCK, APPROVED), (NO_CLOCK, AVOIDED)):
        (found,) = joined(make_agent_lesson(lesson), patterns=(pattern,))
        assert (found.state, found.patterns, found.contradicts) == (LessonState.KNOWN, (pattern.id,), ())


def test_a_lesson_from_which_a_person_extracted_is_accepted() -> None:
    lesson, other = make_agent_lesson(), make_agent_lesson(runner="codex")
    made = Decision(
        id="d1", at=NOW, by="ada", verb=Verb.EXTRACT, subject=other.id, after={"patterns": ["p"], "joined": "damaged"}
    )
    (found,) = joined(lesson, other, decisions=(made,))
    assert (found.state, found.patterns) == (LessonState.ACCEPTED, ("p",))
    (found,) = joined(lesson, other, decisions=(made,), curation=CurationState(undone=frozenset({"d1"})))
    assert found.state is LessonState.OPEN


def test_a_rejected_text_stays_rejected_in_other_files_and_spellings_but_not_if_it_changes() -> None:
    rejected = CurationState(dismissed=frozenset({lesson_question_id(CLOCK)}))
    for text in (CLOCK, f"  {CLOCK.upper()}\n"):
        (found,) = joined(make_agent_lesson(text, "codex", file="AGENTS.md"), curation=rejected)
        assert found.state is LessonState.REJECTED
    (found,) = joined(make_agent_lesson(f"{CLOCK} and mail test"), curation=rejected)
    assert found.state is LessonState.OPEN


def test_comparing_takes_one_step_a_text() -> None:
    lessons = {one.id: one for one in (make_agent_lesson(f"Keep rule {number} of {number}") for number in range(50))}
    patterns = {id: replace(APPROVED, id=id) for id in map(str, range(50))}
    steps = compare_lessons_in_steps(lessons, patterns)
    assert sum(1 for _ in steps) > len(lessons) + len(patterns)
