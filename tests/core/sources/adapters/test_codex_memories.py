"""Memories of Codex as lessons."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.records.lessons import Lesson, LessonKind
from core.records.loops import Outcome
from core.sources.adapters.codex import CodexAdapter
from core.sources.adapters.codex_memories import parse_outcome
from tests.core.sources.adapters.fixtures import Case, open_case

ID = "codex:019fa000-0000-7000-8000-000000000001"
OTHER_ID = "codex:019fa000-0000-7000-8000-000000000002"

Open = Callable[[str], Case]


@pytest.fixture
def open_memories(tmp_path: Path) -> Open:
    return lambda case: open_case(CodexAdapter(), f"codex-memories/{case}", tmp_path)


def by_text(case: Case) -> dict[str, Lesson]:
    return {one.text: one for one in case.lessons()}


def test_the_bullets_of_raw_memories_are_lessons(open_memories: Open) -> None:
    found = by_text(open_memories("ascending"))
    assert {text: one.kind for text, one in found.items()} == {
        "the user asked for one commit per change": LessonKind.FACT,
        "totals are rounded once, in money.py, not in the templates": LessonKind.APPROACH,
        "never format a total in a template; templates get texts": LessonKind.WARNING,
        "pin the seed first": LessonKind.APPROACH,
        "pass a Decimal to quantize": LessonKind.FIX,
        "the cart template gets its totals as texts": LessonKind.APPROACH,
    }


def test_a_lesson_has_its_session_task_place_and_uses(open_memories: Open) -> None:
    case = open_memories("ascending")
    lesson = by_text(case)["totals are rounded once, in money.py, not in the templates"]
    assert (lesson.loop_id, lesson.title, lesson.outcome, lesson.uses) == (ID, "Fix the rounding", Outcome.SUCCESS, 3)
    assert lesson.at == datetime(2026, 11, 20, 10, 2, 5, tzinfo=UTC)
    assert lesson.file == "~/.codex/memories/raw_memories.md"
    text = (case.home / ".codex/memories/raw_memories.md").read_text().splitlines()
    assert text[lesson.line - 1] == f"- {lesson.text}"
    assert not lesson.loaded


def test_the_outcome_is_that_of_the_task(open_memories: Open) -> None:
    lesson = by_text(open_memories("ascending"))["the cart template gets its totals as texts"]
    assert (lesson.title, lesson.outcome) == ("Show cents", Outcome.PARTIAL)


def test_a_failure_names_when_the_lesson_applies(open_memories: Open) -> None:
    found = by_text(open_memories("ascending"))
    assert found["pin the seed first"].trigger == "pytest without -p no:randomly gave other failures each time"
    fix = found["pass a Decimal to quantize"]
    assert fix.trigger == "decimal.InvalidOperation in tests/test_cart.py."
    assert fix.why == "quantize with a float."


def test_the_other_order_without_rollout_paths_is_read(open_memories: Open) -> None:
    found = by_text(open_memories("latest-first"))
    web = found["run the web tests with npm test -- --run"]
    assert (web.loop_id, web.outcome, web.title) == (OTHER_ID, Outcome.UNKNOWN, "fix the rounding of the cart")
    assert found["pin the seed first"].loop_id == ID
    assert found["pin the seed first"].uses is None


def test_spaces_before_an_outcome_and_headings_in_other_languages_are_accepted(open_memories: Open) -> None:
    (lesson,) = open_memories("leading-space").lessons()
    assert (lesson.text, lesson.outcome) == ("总额只在 money.py 中四舍五入一次", Outcome.FAILURE)


def test_without_raw_memories_the_handbook_and_the_summaries_are_read(open_memories: Open) -> None:
    found = by_text(open_memories("no-raw"))
    assert {text: (one.kind, one.loop_id, one.outcome) for text, one in found.items()} == {
        "change money.py": (LessonKind.APPROACH, ID, Outcome.SUCCESS),
        "totals are rounded once, in money.py": (LessonKind.APPROACH, ID, Outcome.SUCCESS),
        'when a change is done, the user asked: "one commit, please" -> commit each change alone': (
            *(LessonKind.FACT, ID, Outcome.SUCCESS),
        ),
        "Money is Decimal; quantize once, in money.py": (LessonKind.APPROACH, ID, Outcome.SUCCESS),
        "The cart shows cents only with locale data": (LessonKind.APPROACH, OTHER_ID, Outcome.FAILURE),
        "load the rates first": (LessonKind.FIX, OTHER_ID, Outcome.FAILURE),
    }


def test_the_handbook_of_old_versions_belongs_to_the_project_of_its_summaries(open_memories: Open) -> None:
    found = by_text(open_memories("old-handbook"))
    assert "Use yarn" not in found
    lesson = found["Round totals in money.py only"]
    assert (lesson.loop_id, lesson.file) == (ID, "~/.codex/memories/MEMORY.md")


def test_the_uses_of_an_older_table_are_unknown(open_memories: Open) -> None:
    case = open_memories("ascending")
    with closing(sqlite3.connect(case.home / ".codex" / "memories_1.sqlite")) as database:
        database.execute("ALTER TABLE stage1_outputs DROP COLUMN usage_count")
        database.commit()
    assert {one.uses for one in case.lessons()} == {None}
    assert not case.files.findings


def test_memories_that_did_not_change_are_parsed_once(open_memories: Open) -> None:
    case = open_memories("ascending")
    first, second = case.lessons()[0], case.lessons()[0]
    assert first is second
    path = case.home / ".codex/memories/raw_memories.md"
    path.write_text(path.read_text().replace("one commit per change", "two commits per change"))
    assert case.lessons()[0].text == "the user asked for two commits per change"


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("success", Outcome.SUCCESS),
        ("Show cents, partial", Outcome.PARTIAL),
        ("failed", Outcome.FAILURE),
        ("fail", Outcome.FAILURE),
        ("uncertain", Outcome.UNKNOWN),
        ("", Outcome.UNKNOWN),
    ],
)
def test_the_words_for_outcomes_are_known(text: str, outcome: Outcome) -> None:
    assert parse_outcome(text) is outcome
