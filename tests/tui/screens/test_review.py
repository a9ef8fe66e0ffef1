"""The way through the review queue, whatever is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.project.debug_hooks import on_escalation
from core.project.project import Project
from core.state.review_items import BURST, CONTRADICTED, ESCALATION, INVERSION
from tests.core.meaning import meaning
from tests.tui.screens.review_story import TWIN, at_question, desk, flat, front, pane, row, waiting
from tests.tui.story import NOW, Story, story
from tui.present.memory_tree import TASKS, session_key
from tui.widgets.text_pane import TextPane


def newest(told: Story) -> str:
    """What was decided last."""
    return told.app.view.snapshot.decisions[-1].verb.value


async def test_one_goes_around_without_deciding_and_what_was_opened_leads_back(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("review")
        queue = waiting(told)
        seen = [front(told)]
        await told.sees(f"1 of {len(queue)}", "an agent waits", told.app.view.queue[0].reason.split(";")[0][:40])
        for _ in queue[1:]:
            await told.press("n")
            seen.append(front(told))
        assert seen == queue
        await told.press("n")
        assert front(told) == queue[0]
        await told.press("N")
        assert front(told) == queue[-1]
        assert waiting(told) == queue
        second = queue[1]
        desk(told).go_to(told.app.view.queue[1].question_key)
        first = told.app.view.queue[0]
        told.app.decide(lambda deck: deck.dismiss(first.question_key, "seen elsewhere"))
        await told.settled()
        assert first.subject not in waiting(told)
        assert front(told) == second
        subject = await at_question(told, INVERSION)
        await told.press("w")
        await told.until(lambda: told.place.place == "patterns", "Patterns in front")
        await told.until(lambda: told.table.cursor_key == subject, "the pattern under the cursor")
        assert told.place._tab == "Why"  # type: ignore[attr-defined]
        await told.go("review")
        assert front(told) == subject


async def test_an_answered_question_leaves_at_once_and_comes_back_when_it_is_refused_or_undone(
    sample: Path, home: Path
) -> None:
    async with story(sample, home) as told:
        first = await at_question(told, INVERSION)
        questions = waiting(told)
        desk(told).do_accept()  # and before the engine has had a moment to carry it out:
        second = front(told)
        assert second != first
        desk(told).do_snooze()
        assert front(told) not in (first, second)
        await told.settled()
        await told.until(lambda: len(waiting(told)) == len(questions) - 2, "both answers on disk")
        await told.sees("2 decided")
        await told.decides("u")
        assert front(told) == second
        await told.decides("u")
        assert front(told) == first
        assert sorted(waiting(told)) == sorted(questions)
        assert "decided" not in told.text()
        desk(told).walk.give()
        assert front(told) != first
        desk(told).answered(decided=False)
        assert first in [item.subject for item in desk(told).walk.items]


async def test_to_leave_what_another_has_decided_alone_takes_nothing_off_this_sitting(sample: Path, home: Path) -> None:
    other = Project(ProjectPaths(sample), Settings(), by="bob", clock=lambda: NOW, cache=False)
    other.load()
    async with story(sample, home) as told:
        await at_question(told, INVERSION)
        await told.decides("s")
        other.note(TWIN, text="asked the authors")
        await told.until(lambda: told.app.view.snapshot.decisions[-1].by == "bob", "what bob wrote")
        inverted = front(told)
        await told.press("u")
        await told.press("n")
        await told.settled()
        assert front(told) == inverted
        await told.sees("1 decided")
        assert not [toast for toast in told.toasts() if "new question" in toast]


async def test_what_another_reviewer_has_answered_is_skipped_and_no_key_meant_for_it_acts(
    sample: Path, home: Path
) -> None:
    other = Project(ProjectPaths(sample), Settings(), by="bob", clock=lambda: NOW, cache=False)
    other.load()
    seconds = [0.0]
    async with story(sample, home, clock=lambda: seconds[0]) as told:
        subject = await at_question(told, CONTRADICTED)
        number = desk(told).walk.place
        seconds[0] += 60.0
        other.reset(subject, reason="four of six failed")
        await told.until(lambda: front(told) != subject, "the next question")
        following, known = front(told), len(told.app.view.snapshot.decisions)
        assert any("Skipped: bob has answered" in one and "reset “four of six failed”" in one for one in told.toasts())
        assert desk(told).walk.place == number + 1
        for key in ("a", "enter"):
            await told.press(key)
            assert f"{key} ignored" in told.toasts()[-1]
        assert (front(told), len(told.app.view.snapshot.decisions)) == (following, known)
        seconds[0] += 0.5
        await told.decides("s")
        assert front(told) != following


async def test_the_order_is_fixed_new_questions_are_appended_and_resolved_ones_are_passed(
    sample: Path, home: Path
) -> None:
    other = Project(ProjectPaths(sample), Settings(), by="bob", clock=lambda: NOW, cache=False)
    other.load()
    async with story(sample, home) as told:
        await told.go("review")
        queue = waiting(told)
        await told.sees(f"1 of {len(queue)}")
        await told.press("n", "n")
        await told.sees(f"3 of {len(queue)}")
        other.quarantine(TWIN, reason="who wrote this?")  # a new question, worth more than some that are listed
        await told.until(lambda: TWIN in waiting(told), "the new question")
        assert waiting(told)[-1] != TWIN
        await told.sees(f"3 of {len(queue) + 1}", "+1 new")
        fourth = told.app.view.queue[[item.subject for item in told.app.view.queue].index(queue[3])]
        other.dismiss(fourth.question_key, "seen elsewhere")
        await told.until(lambda: queue[3] not in waiting(told), "the fourth to be resolved")
        await told.sees(f"3 of {len(queue) + 1}")
        await told.press("n")
        assert front(told) == queue[4]
        await told.sees(f"5 of {len(queue) + 1}")
        assert told.toasts()[-1] == "Skipped 1 question: already resolved"
        seen = []
        while front(told) != TWIN:
            seen.append(desk(told).walk.place)
            await told.press("n")
        assert [*seen, desk(told).walk.place] == list(range(5, len(queue) + 2))
        assert "new" not in told.text().splitlines()[1]
        await told.decides("s")
        assert desk(told).walk.place == 1, "the end of the list leads to its beginning"


async def test_enter_gives_the_highlighted_answer_and_o_opens(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        subject = await at_question(told, INVERSION)
        await told.press("right")
        await told.sees("enter reject")
        await told.decides("enter")
        assert newest(told) == "reject_inversion"
        assert subject not in waiting(told)
        await told.decides("u")
        await told.press("o")
        await told.until(lambda: told.place.place == "patterns", "Patterns in front")
        await told.until(lambda: told.table.cursor_key == subject, "the pattern under the cursor")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_all_of_review_works_by_mouse(sample: Path, home: Path, size: tuple[int, int]) -> None:
    async with story(sample, home, size=size) as told:
        source = await at_question(told, BURST)

        async def click(text: str) -> None:
            row, line = next((n, line) for n, line in enumerate(told.text().splitlines()) if text in line)
            await told.pilot.click(offset=(line.index(text), row))
            await told.settled()

        known = len(told.app.view.snapshot.decisions)
        await click("a  discard")
        assert len(told.app.view.snapshot.decisions) == known, "a first click only looks"
        await click("x  count them")
        await told.sees("enter count them")
        await click("x  count them")
        assert newest(told) == "confirm"
        assert source not in waiting(told)
        await told.decides("u")
        await click("s  snooze")
        await click("s  snooze")
        assert newest(told) == "snooze"
        number = desk(told).walk.place
        await click("n next")
        assert desk(told).walk.place > number
        await click("o open")
        await told.until(lambda: told.place.place != "review", "what the question is about")


async def test_the_cursor_shows_what_each_key_would_change_and_decides_nothing(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_question(told, INVERSION)
        before = waiting(told)
        assert "of 19 tasks" in row(told, "a") or "/19 tasks" in row(told, "a")
        await told.sees("if you press a, accept")
        accepted = pane(told, "consequence")
        assert "- " in accepted
        await told.press("right")
        await told.sees("if you press x, reject")
        assert pane(told, "consequence") != accepted
        await told.press("left", "left")
        await told.sees("if you press W, wait for evidence")
        assert "changes nothing for the loops" in pane(told, "consequence")
        assert waiting(told) == before
        following = desk(told).walk.next
        assert following is not None
        await told.press("n")
        assert not row(told, "d").endswith("…")  # it was worked out while the question before was read


async def test_a_key_that_can_t_answer_says_why(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_question(told, BURST)
        await told.press("p")
        assert (
            "decided about one pattern alone: this question is about many patterns at once; here: a, x, s"
            in (told.toasts()[-1])
        )
        await told.press("m")
        assert "one question at a time is asked here" in told.toasts()[-1]
        await told.press("v")
        assert "only a proposed inversion" in told.toasts()[-1]
        subject = await at_question(told, INVERSION)
        await told.press("p")
        assert "reset it first" in told.toasts()[-1]
        assert front(told) == subject


async def test_a_small_screen_shows_one_pane_at_a_time_and_every_answer(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(80, 24)) as told:
        await at_question(told, INVERSION)
        shown = [name for name in ("subject", "proposal", "consequence") if _is_seen(desk(told), name)]
        assert shown == ["subject"]
        await told.sees("what changes", "a  accept", "s  snooze")
        for name in ("proposal", "consequence", "subject"):
            await told.press("tab")
            await told.settled()
            assert [one for one in ("subject", "proposal", "consequence") if _is_seen(desk(told), one)] == [name]


def _is_seen(place: object, name: str) -> bool:
    from tui.screens.review import ReviewScreen

    assert isinstance(place, ReviewScreen)
    return bool(place.query_one(f"#review-{name}", TextPane).size.height)


async def test_when_all_is_answered_it_says_so(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("review")
        for _ in range(len(waiting(told))):
            await told.decides("s")
        assert waiting(told) == []
        await told.sees("Nothing waits for a decision")
        await told.press("a")
        assert "nothing waits for a decision" in told.toasts()[-1]
        assert "Review·" not in told.text()
        await told.decides("u")
        await told.sees("1 of 1")


async def test_a_call_from_another_process_raises_a_notice_and_stands_first_in_memory(sample: Path, home: Path) -> None:
    deck = Project(ProjectPaths(sample), Settings(), by="ada", clock=lambda: NOW, cache=False)
    deck.load()
    session = next(one for one in deck.view.snapshot.debug_sessions.values() if one.status == "in_progress")
    async with story(sample, home, size=(200, 50)) as told:
        await told.go("memory")
        on_escalation(deck, session.id, reason="needs credentials")
        await told.until(lambda: session.id in waiting(told), "the question")
        notes = told.app._notifications
        await told.until(lambda: any("needs credentials" in note.message for note in notes), "the notice")
        told.place.go_to(session_key(session.id))
        await told.settled()
        assert told.table.keys.index(session_key(session.id)) < told.table.keys.index(TASKS)
        await told.sees("Wants a person: needs credentials", "called by ada", "context kept in")
        assert await at_question(told, ESCALATION)
        told.place.go_to(session.id)
        await told.settled()
        assert "needs credentials" in flat(told, "subject") and "context kept in" in flat(told, "subject")


async def test_what_is_foretold_by_words_says_so_until_vectors_are_there(
    sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.app.AFTER_SECONDS", 3600.0)
    with meaning():
        async with story(sample, home, size=(80, 24)) as told:
            await at_question(told, INVERSION)
            assert "~ 1/4 loops" in row(told, "a")
            assert pane(told, "consequence").startswith("~ by words yet: 0 of 40 texts have a vector\n")
            await asyncio.to_thread(told.app.project.embed_missing, told.app._vectors._tell)
            await told.until(lambda: "~" not in row(told, "a"), "the forecast by meaning")
            await told.settled()
            assert "by words" not in pane(told, "consequence")
