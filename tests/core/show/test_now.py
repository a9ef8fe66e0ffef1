"""The page Now, from records."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from core.index.project_state import ProjectState
from core.index.review_items import BORDERLINE, ESCALATION, EXTRACTED, ReviewItem
from core.records.episodes import Attempt, Task
from core.records.events import Event
from core.records.loops import Loop, LoopStatus, Outcome, Usage
from core.records.snapshot import Snapshot
from core.show.now import FIRST_SPAN, Now, NowSection, Setup, Target, describe_since, make_page, page_document
from core.show.pages.document import Section, Table
from core.show.pages.markdown import to_markdown
from tests.factories import NOW, SETTINGS, make_event

HOUR = timedelta(hours=1)
CONNECTED = Setup(connected=("Claude Code",))


def page_of(*loops: Loop, since: Any = NOW - 24 * HOUR, setup: Setup = CONNECTED, **records: Any) -> Now:
    return make_page(state_of(*loops, **records), since, setup)


def state_of(*loops: Loop, as_of: datetime | None = NOW, **records: Any) -> ProjectState:
    return ProjectState.open(Snapshot(loops={loop.id: loop for loop in loops}, as_of=as_of, **records), SETTINGS, NOW)


def section(page: Now, id: str) -> NowSection:
    return next(one for one in page.sections if one.id == id)


def ended(id: str, status: LoopStatus, ago: timedelta, **fields: Any) -> Loop:
    at = NOW - ago
    return Loop(id=id, task=f"Task {id}", status=status, started_at=at - HOUR, ended_at=at, **fields)


def test_sessions_since_the_last_visit_are_counted_by_result() -> None:
    found = section(
        page_of(
            ended("a", LoopStatus.COMPLETED, HOUR, usage=Usage(input=1000, output=500, cost_usd=0.5)),
            ended("b", LoopStatus.FAILED, 2 * HOUR, usage=Usage(input=500)),
            ended("c", LoopStatus.ABORTED, 3 * HOUR),
            ended("d", LoopStatus.CRASHED, 3 * HOUR),
            Loop(id="e", task="Task e", status=LoopStatus.RUNNING, started_at=NOW - HOUR),
            ended("old", LoopStatus.COMPLETED, 25 * HOUR),
        ),
        "sessions",
    )
    assert found.note == "5 sessions: 1 worked, 1 failed, 2 unclear, 1 open · 2.0 k tokens · $0.50"
    assert {line.title for line in found.lines} == {f"Task {id}" for id in "abcde"}


def test_the_newest_session_is_first_and_leads_to_its_loop() -> None:
    page = page_of(ended("a", LoopStatus.COMPLETED, 2 * HOUR), ended("b", LoopStatus.COMPLETED, HOUR))
    first, second = section(page, "sessions").lines
    assert (first.title, second.title) == ("Task b", "Task a")
    assert first.target == Target("loops", "b") and first.facts[-1] == "1 h"
    at_work = Loop(id="a", task="Long", status=LoopStatus.RUNNING, started_at=NOW - 100 * HOUR)
    assert [line.title for line in section(page_of(at_work), "sessions").lines] == ["Long"], "it began before the visit"
    state = state_of(replace(at_work, started_at=NOW - HOUR))
    page = make_page(state, NOW - 24 * HOUR, CONNECTED, now=NOW + HOUR)
    assert section(page, "sessions").lines[0].facts[-1] == "2 h", "it takes longer while its files are the same"
    week = [ended(id, LoopStatus.COMPLETED, days * 24 * HOUR) for id, days in (("a", 6), ("b", 8))]
    page = page_of(*week, since=None)
    assert page.since == NOW - FIRST_SPAN and len(section(page, "sessions").lines) == 1, "without an earlier visit"


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (HOUR, "since 20:00"),
        (22 * HOUR, "since yesterday 23:00"),
        (3 * 24 * HOUR, "since Wednesday 21:00"),
        (30 * 24 * HOUR, "since 22 October 21:00"),
    ],
)
def test_the_last_visit_is_described(ago: timedelta, words: str) -> None:
    now = datetime(2026, 11, 21, 21, 0).astimezone()  # the time zone of this machine
    assert describe_since(now - ago, now) == words


def test_lessons_given_to_a_session_and_followed_are_shown() -> None:
    events: list[Event] = [
        make_event(1, "injected", NOW - HOUR, pattern_id="pat-a", loop_id="a"),
        make_event(2, "injected", NOW - HOUR, pattern_id="pat-b", loop_id="a"),
        make_event(3, "applied", NOW - HOUR, pattern_id="pat-a", loop_id="a", success=True),
    ]
    page = page_of(ended("a", LoopStatus.COMPLETED, HOUR), events=events)
    assert section(page, "sessions").lines[0].text == "given 2 lessons, 1 followed"
    page = page_of(ended("a", LoopStatus.COMPLETED, HOUR), events=events[:1])
    assert section(page, "sessions").lines[0].text == "given 1 lesson, can't tell"


def test_sessions_that_attempted_one_task_are_one_line() -> None:
    known = {"runner": "claude", "owner": "claude"}
    first, second = ended("1", LoopStatus.FAILED, 2 * HOUR, **known), ended("2", LoopStatus.COMPLETED, HOUR, **known)
    outcomes = enumerate((Outcome.FAILURE, Outcome.SUCCESS), 1)
    attempts = [Attempt(task_id="t", number=n, loop_id=str(n), outcome=outcome) for n, outcome in outcomes]
    page = page_of(first, second, tasks={"t": Task(id="t")}, attempts={one.id: one for one in attempts})
    found = section(page, "sessions")
    (line,) = found.lines
    assert line.target == Target("loops", "2") and line.facts[0] == "2 attempts"
    assert found.note.startswith("1 session:") and found.total == 1


def test_new_lessons_are_listed_and_other_questions_counted() -> None:
    def found(*kinds: str) -> tuple[NowSection, ProjectState]:
        items = [
            ReviewItem(
                kind=kind, subject=f"s{n}", question="?", reason="new", priority=0.5, is_urgent=kind == ESCALATION
            )
            for n, kind in enumerate(kinds)
        ]
        state = state_of(ended("a", LoopStatus.COMPLETED, HOUR), as_of=None, complete=True)
        object.__setattr__(state, "queue", tuple(items))
        return section(make_page(state, None, CONNECTED), "lessons"), state

    lessons, state = found(ESCALATION, EXTRACTED, BORDERLINE, BORDERLINE)
    assert [line.target for line in lessons.lines] == [Target("review", "s1")]
    assert lessons.total == state.pending_count == 4 and lessons.rest_text(1) == "3 other questions"
    (line,) = found(BORDERLINE)[0].lines
    assert line.target == Target("review", "s0"), "without a new lesson the first questions"


def test_what_needs_a_person_comes_first_and_texts_of_records_are_visible_and_masked() -> None:
    asks = Loop(
        id="x:1", runner="x", task="Migrate", status=LoopStatus.WAITING, question="Which side?", last_activity=NOW
    )
    page = page_of(asks, ended("a", LoopStatus.COMPLETED, HOUR))
    assert page.sections[0].id == "needs"
    (line,) = page.sections[0].lines
    assert line.title == "Migrate" and "Which side?" in line.text and line.target == Target("loops", "x:1")
    document = page_document(page, "shop")
    tables = [block for one in document.blocks if isinstance(one, Section) for block in one.blocks]
    assert all(len(row) == len(one.titles) for one in tables if isinstance(one, Table) for row in one.rows)
    text = to_markdown(document)
    assert "shop" in text and "Task a" in text and "worked" in text
    task = "\x1b[31mred ghp_" + "a1B2c3D4" * 5
    hostile = page_of(Loop(id="a", task=task, status=LoopStatus.RUNNING, started_at=NOW))
    title = section(hostile, "sessions").lines[0].title
    assert "\x1b" not in title and "a1B2c3D4" not in title


def test_an_empty_project_names_the_next_step() -> None:
    for setup, title in (
        (Setup(has_folder=False), "Not set up here"),
        (Setup(agent="claude", writes=((".mcp.json", "the MCP server"),)), "No agent is connected"),
        (
            Setup(connected=("Claude Code",), hooks="hooks answer in 0.1 s"),
            "Connected to Claude Code (hooks answer in 0.1 s)",
        ),
        (Setup(is_trusted=False), "Not trusted"),
    ):
        assert [one.title for one in page_of(setup=setup).sections] == [title]
    broken = Setup(connected=("Codex",), hooks="the hook of Codex exits with 1", has_hook_problem=True)
    (found,) = page_of(setup=broken).sections
    assert found.title == "Connected to Codex" and found.lines[0].title == "the hook of Codex exits with 1"
    session = Loop(
        id="claude:1", runner="claude", owner="claude", task="Fix", status=LoopStatus.RUNNING, started_at=NOW
    )
    page = page_of(session, setup=Setup(agent="claude"))
    assert "ralphdeck connect claude" in section(page, "connect").note
