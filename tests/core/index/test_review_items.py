"""Review questions, and results of the searches for them that are stored."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.files.user_files import cache_path
from core.index import verdicts
from core.index.refresh import Index
from core.index.review_items import (
    BEST,
    DUPLICATE,
    ESCALATION,
    FURTHER,
    INVERSION,
    KINDS,
    MOST_OF_KIND,
    MOST_OPTIONAL,
    OFFER,
    UNRECONCILED,
    ReviewItem,
    make_agenda,
)
from core.index.verdicts import IndexVerdicts
from core.records.decisions import CurationState, InversionVerdict
from core.records.extractions import Extraction, Proposal
from core.records.patterns import PatternType
from tests.factories import CURATION_NOW

NOTHING_DECIDED = CurationState()


def question(kind: str, number: int, **more: Any) -> ReviewItem:
    """A question that is less important than those with a lower number."""
    subject, priority = f"{kind}-{number:03}", 1 / (1 + number)
    return ReviewItem(kind=kind, subject=subject, question="?", reason="", priority=priority, **more)


def questions(kind: str, count: int) -> list[ReviewItem]:
    return [question(kind, number) for number in range(count)]


def offer(number: int, *, diff: str = "", others: int = 0) -> ReviewItem:
    record = {
        "error_signature": {"error_type": "E", "error_pattern": f"error {number}"},
        "fix_approach": {"description": "fix", "diff_pattern": diff},
    }
    found = Extraction(source_id="l", proposals=(Proposal(type=PatternType.ERROR, slug="a", record=record),))
    sources = tuple(f"loop-{number}-{other}" for other in range(others + 1))
    return question(OFFER, number, offer=found, sources=sources)


def agenda(*queue: ReviewItem, curation: CurationState = NOTHING_DECIDED, **more: Any) -> list[ReviewItem]:
    return list(make_agenda(queue, curation, CURATION_NOW, **more))


def rows(found: list[ReviewItem]) -> dict[str, list[str]]:
    """The subjects of the questions in each row, by kind."""
    return {item.group.kind: [one.subject for one in item.group.items] for item in found if item.group is not None}


def test_a_short_queue_is_asked_one_by_one() -> None:
    queue = [*questions(INVERSION, MOST_OF_KIND), *questions(DUPLICATE, MOST_OPTIONAL)]
    assert agenda(*queue) == queue
    one_more = questions(INVERSION, MOST_OF_KIND + 1)
    assert agenda(*one_more) == one_more, "instead of a row with one question"


def test_the_most_important_questions_of_a_kind_are_asked_and_the_others_have_one_row() -> None:
    queue = questions(INVERSION, MOST_OF_KIND + 3)
    found = agenda(*queue)
    assert found[:-1] == queue[:MOST_OF_KIND]
    assert rows(found) == {INVERSION: [item.subject for item in queue[MOST_OF_KIND:]]}
    assert (found[-1].kind, found[-1].question) == (FURTHER, "3 more lessons fail often. Answer them?")


def test_many_optional_questions_are_only_a_row_that_names_the_best() -> None:
    queue = questions(DUPLICATE, 40)
    (row,) = agenda(*queue)
    assert row.question == "40 pairs of lessons are similar. Answer the top 5?"
    assert [item.subject in row.reason for item in queue] == [True] * BEST + [False] * (40 - BEST)
    assert row.evidence == 40 and row.priority == queue[0].priority


def test_a_row_has_the_place_of_its_best_question() -> None:
    first, *others = questions(UNRECONCILED, 9)
    kept = questions(INVERSION, 2)
    found = agenda(kept[0], first, kept[1], *others)
    assert [item.kind for item in found] == [INVERSION, FURTHER, INVERSION]


def test_offers_without_a_strong_lesson_are_one_row() -> None:
    weak = [offer(number) for number in range(29)]
    several, checked = offer(40, others=2), offer(41, diff="+ if cart:")
    found = agenda(*weak, several, checked)
    assert [item.kind for item in found] == [FURTHER, OFFER, OFFER]
    assert found[0].question == "29 more recent sessions may hold lessons. Answer the top 5?"
    assert found[0].reason.startswith("best: E: error 0 → fix; E: error 1 → fix")
    assert found[1:] == [several, checked]
    assert agenda(*weak)[0].question == "29 recent sessions may hold lessons. Answer the top 5?"


def test_only_some_strong_offers_are_asked_at_a_time() -> None:
    found = agenda(*(offer(number, diff="+ x") for number in range(12)))
    assert [item.kind for item in found] == [OFFER] * MOST_OPTIONAL + [FURTHER]


def test_a_blocked_agent_is_never_in_a_row() -> None:
    urgent = [question(ESCALATION, number, is_urgent=True) for number in range(50)]
    assert agenda(*urgent) == urgent


def test_what_was_asked_stays_asked_and_what_was_answered_is_not_replaced_in_the_same_session() -> None:
    queue = questions(DUPLICATE, 40)
    chosen = queue[7]
    found = agenda(*queue, asked={(DUPLICATE, chosen.question_key)})
    assert chosen in found
    assert chosen.subject not in rows(found)[DUPLICATE] and len(rows(found)[DUPLICATE]) == 39
    queue = questions(INVERSION, MOST_OF_KIND + 30)
    session = {(item.kind, item.question_key) for item in agenda(*queue)}
    left = agenda(*queue[3:], asked=session)
    assert left[:-1] == queue[3:MOST_OF_KIND]
    assert len(rows(left)[INVERSION]) == 30


def test_a_snoozed_row_returns_with_more_questions() -> None:
    verdict = InversionVerdict(verdict="snoozed", at=CURATION_NOW, until=None, beyond=12)
    curation = CurationState(inversions={"further duplicate": verdict})
    assert agenda(*questions(DUPLICATE, 11), curation=curation) == []
    assert len(agenda(*questions(DUPLICATE, 12), curation=curation)) == 1
    later = InversionVerdict(verdict="snoozed", at=CURATION_NOW, until=CURATION_NOW + timedelta(days=1))
    assert agenda(*questions(DUPLICATE, 40), curation=CurationState(inversions={"further duplicate": later})) == []


@given(st.lists(st.sampled_from(list(KINDS)), max_size=120))
def test_each_question_is_asked_or_in_a_row_once(kinds: list[str]) -> None:
    queue = [question(kind, number) for number, kind in enumerate(kinds)]
    found = agenda(*queue)
    subjects = [item.subject for item in found if item.group is None]
    subjects += [subject for row in rows(found).values() for subject in row]
    assert sorted(subjects) == sorted(item.subject for item in queue)


def opened(project: Path, settings: bytes = b"") -> IndexVerdicts:
    index = Index(ProjectPaths(project), Settings(), clock=lambda: CURATION_NOW)
    return IndexVerdicts(index, ("questions",), settings)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.usefixtures("cache")
def test_verdicts_are_kept_for_the_next_run_with_the_same_settings(tmp_path: Path) -> None:
    many = {f"key-{number}": b"%d" % number for number in range(1200)}
    opened(tmp_path).put("offer", many)
    again = opened(tmp_path)
    assert again.get("offer", [*many, "unknown"]) == many
    assert again.get("broad", many) == {}
    again.put("offer", {"key-0": b"new"})
    assert again.get("offer", ["key-0", "key-1"]) == {"key-0": b"new", "key-1": b"1"}
    other = opened(tmp_path, b"other")
    assert other.get("offer", ["key-0"]) == {}
    other.put("offer", {"b": b"2"})
    assert opened(tmp_path).get("offer", ["key-0"]) == {}


@pytest.mark.usefixtures("cache")
def test_a_damaged_verdict_counts_as_not_stored(tmp_path: Path) -> None:
    opened(tmp_path).put("offer", {"a": b"text", "b": b"text"})
    connection = sqlite3.connect(cache_path(tmp_path, "index"))
    connection.execute("UPDATE verdict SET data = x'0000000074657374' WHERE key = 'a'")
    connection.commit()
    connection.close()
    assert opened(tmp_path).get("offer", ["a", "b"]) == {"b": b"text"}


@pytest.mark.usefixtures("cache")
def test_too_many_verdicts_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "_MOST", 3)
    stored = opened(tmp_path)
    stored.put("offer", dict.fromkeys("abcd", b"old"))
    stored.put("broad", {"a": b"other"})
    stored.put("offer", {"e": b"new"})
    assert stored.get("offer", "abcde") == {"e": b"new"}
    assert stored.get("broad", ["a"]) == {"a": b"other"}
