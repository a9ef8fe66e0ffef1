"""Lessons that agents wrote down, in Review and in Reflections."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.index.review_items import LESSON
from core.records.decisions import Verb
from core.records.loops import Loop, LoopStatus, Outcome
from core.records.reflections import LessonKind, LessonState
from tests.agent_lessons import CLOCK, NO_CLOCK, find_joined, find_when_loaded, make_agent_lesson
from tests.hostile.payloads import PAYLOADS
from tests.tui.screens.review_steps import at_question, flat, front, newest, row, waiting
from tests.tui.user import NOW, open_dashboard
from tui.screens.dialogs import PreviewDialog
from tui.screens.reflections import ReflectionsScreen

SESSION = Loop(id="claude:1", runner="claude", owner="claude", task="Fix the cart", status=LoopStatus.COMPLETED)
OURS = make_agent_lesson(loaded=True, uses=2, loop_id=SESSION.id, at=NOW, outcome=Outcome.SUCCESS, why="It failed")
TWIN = make_agent_lesson(f"{CLOCK}.", "snarktank", file="progress.txt", line=9)
OPPOSITE = make_agent_lesson(NO_CLOCK, "codex")
FACT = make_agent_lesson("The staging server is in Oslo", kind=LessonKind.FACT)


@pytest.fixture(autouse=True)
def _lessons(monkeypatch: pytest.MonkeyPatch) -> None:
    find_when_loaded(monkeypatch, OURS, TWIN, OPPOSITE, FACT, loops=[SESSION])


async def test_a_lesson_is_accepted_opened_and_rejected_in_review_and_undo_asks_again(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, searches=True) as user:
        await user.searched()
        await at_question(user, LESSON)
        assert front(user) == OURS.id
        about = flat(user)
        for text in (
            CLOCK,
            "loaded by the agent",
            "~/.claude/memory/notes.md:3",
            "progress.txt:9",
            SESSION.id,
            NO_CLOCK,
        ):
            assert text in about, text
        assert "contradicts 1 other lesson" in user.text()
        assert "success pattern + new" in flat(user)
        await user.decides("a")
        assert newest(user) is Verb.EXTRACT
        assert f"extracted 1 pattern from the lesson “{CLOCK}”" in user.toasts()[-1]
        made = find_joined(user.app.project, OURS)
        assert made.state is LessonState.ACCEPTED
        assert user.app.view.pattern(made.patterns[0]).description == CLOCK
        await user.searched()
        assert OURS.id not in waiting(user)
        await user.decides("u")
        assert f"Undone: extract the lesson “{CLOCK}”" in user.toasts()[-1]
        await user.searched()
        assert OURS.id in waiting(user) and front(user) == OURS.id

        await user.press("l")
        await user.arrives("loops", SESSION.id)
        await user.press("escape")
        await user.arrives("review")
        await user.press("enter")
        await user.arrives("reflections", OURS.id)
        await user.press("escape")
        await user.arrives("review")
        assert "nothing is added" in row(user, "x")
        await user.decides("x")
        assert newest(user) is Verb.DISMISS
        await user.searched()
        assert OURS.id not in waiting(user)
        await user.go("log")
        await user.sees("reject", f"the lesson “{CLOCK[:14]}")
        await user.decides("u")
        await user.searched()
        assert OURS.id in waiting(user)


async def test_reflections_list_what_agents_believe_with_a_filter(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="reflections") as user:
        await user.press("v")
        assert "v agents' lessons" in user.key_line()
        await user.press("v")
        await user.settled()
        assert user.table.keys[0] == OURS.id, "the newest is first"
        assert set(user.table.keys) == {OURS.id, OPPOSITE.id, FACT.id}
        assert "! contradicted" in user.row(OURS.id) and "claude +1" in user.row(OURS.id)
        for text, keys in {
            "runner:snark": {OURS.id},
            "is:loaded": {OURS.id},
            "is:contra": {OURS.id, OPPOSITE.id},
            "state:open -kind:fact codex": set(),
            "never": {OPPOSITE.id},
            "kind:fact": {FACT.id},
            "outcome:success file:memory": {OURS.id},
        }.items():
            await user.filter(text)
            assert set(user.table.keys) == keys, text
        await user.press("escape", "S")
        assert "ordered by the time" in user.toasts()[-1]
        user.place.go_to(FACT.id)
        await user.press("e")
        assert "A fact becomes a pattern only with a type" in user.toasts()[-1]
        await user.press("o")
        assert "It is a file of the agent: ~/.claude/memory/notes.md:3" in user.toasts()[-1]
        await user.press("enter")
        assert "Its session is unknown" in user.toasts()[-1]
        user.place.go_to(OURS.id)
        await user.press("enter")
        await user.arrives("loops")


async def test_a_lesson_is_accepted_or_rejected_in_the_list_and_undo_opens_it_again(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="reflections") as user:
        assert "no" not in user.key_line().split()
        await user.press("x")
        assert "Only lessons of agents can be rejected" in user.toasts()[-1]
        user.place.go_to(TWIN.id)
        await user.settled()
        assert user.table.cursor_key == OURS.id, "the row that contains it"
        await user.press("e")
        await user.until(lambda: isinstance(user.app.screen, PreviewDialog), "the preview")
        await user.sees("1 lesson to extract", "claude ~/.claude/memory/notes.md:3")
        await user.decides("a")
        await user.settled()
        assert "accepted" in user.row(OURS.id)
        await user.press("e")
        assert "Already accepted as pat-success-" in user.toasts()[-1]
        await user.decides("u")
        await user.settled()
        assert "open" in user.row(OURS.id) and "x reject" in user.key_line()
        await user.press("x")
        await user.sees("why?", CLOCK[:20], "The reason is")
        await user.type("true before 2025")
        await user.decides("enter")
        await user.settled()
        decision = user.app.view.snapshot.decisions[-1]
        assert (decision.verb, decision.reason) == (Verb.DISMISS, "true before 2025")
        assert "rejected" in user.row(OURS.id)
        await user.press("x")
        assert "Already rejected" in user.toasts()[-1]
        await user.press("v")
        assert user.app.user_state.get_here("reflections-grouped") == ""


async def test_reflections_open_on_the_lessons_if_there_are_no_reflections(tmp_path: Path, home: Path) -> None:
    (tmp_path / ".aiwg/ralph").mkdir(parents=True)
    async with open_dashboard(tmp_path, home, place="reflections") as user:
        await user.settled()
        assert set(user.table.keys) == {OURS.id, OPPOSITE.id, FACT.id}
        place = user.place
        assert isinstance(place, ReflectionsScreen)
        await user.press("v")
        assert "v v shows 3 lessons" in place.empty().plain
        await user.press("v")
        assert place.empty().plain.endswith("; v shows 3 lessons")


async def test_hostile_lessons_are_drawn_visibly(sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lessons = [
        make_agent_lesson(f"{one.text[:500]} {number}", one.text[:40], file=one.text[:80], title=one.text[:80])
        for number, one in enumerate(PAYLOADS)
    ]
    find_when_loaded(monkeypatch, *lessons)
    async with open_dashboard(sample, home, searches=True) as user:
        await user.searched()
        await user.go("reflections")
        await user.press("v", "v")
        await user.settled()
        for _ in range(min(len(user.table.keys), 40)):
            assert "\x1b" not in user.text()
            await user.press("j")
        await at_question(user, LESSON)
        assert "\x1b" not in user.text()
