"""The way through the review queue, whatever is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.base.text import plural
from core.decisions.commands import Dismiss, Note, Quarantine, Reset
from core.index.review_items import BROAD, BURST, CONTRADICTED, ESCALATION, INVERSION
from tests.core.meaning import meaning
from tests.tui.screens.review_steps import (
    TWIN,
    at_question,
    choose_more,
    desk,
    front,
    newest,
    preview,
    row,
    waiting,
)
from tests.tui.user import User, open_dashboard, open_project


def asked(user: User) -> list[str]:
    """What the questions are about that are worth reading."""
    return [item.subject for item in user.app.view.worth_reading]


async def test_putting_off_decides_nothing_and_the_questions_have_an_end(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="review") as user:
        queue, before = asked(user), waiting(user)
        seen = []
        await user.sees(f"Review·{len(queue)}", f"1 of {len(queue)} · about ")
        for _ in queue:
            seen.append(front(user))
            await user.press("n")
        assert seen == queue
        assert desk(user).item is None
        hardly = len(user.app.view.agenda) - len(queue)
        await user.sees(f"n reads on: {len(queue)} put off, {plural(hardly, 'question')} hardly worth the time")
        await user.press("N")
        assert front(user) == queue[-1]
        await user.press("n", "n")
        assert front(user) == queue[0]
        assert waiting(user) == before
        assert len(desk(user).questions.items) == len(user.app.view.agenda), "reading on asks all"


async def test_yes_is_followed_by_no_question_about_the_same_lesson(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, searches=True, place="review") as user:
        for kind in (CONTRADICTED, BROAD):
            subject = await at_question(user, kind)
            await user.decides("a")
            await user.searched()
            assert subject not in waiting(user)


async def test_the_end_lists_what_was_kept_and_removed_and_which_prompts_change(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="review") as user:
        await at_question(user, CONTRADICTED)
        await user.decides("a")
        await at_question(user, INVERSION)
        await user.until(lambda: "…" not in row(user, "a"), "the forecast")
        await user.decides("a")
        while desk(user).item is not None:
            await user.press("n")
        await user.sees("Done.", "You answered 2 questions: 1 lesson removed.")
        await user.decides("u")
        while desk(user).item is not None:
            await user.press("n")
        await user.sees("You answered 1 question.")


async def test_links_and_enter_lead_to_the_record(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="review") as user:
        subject = await at_question(user, INVERSION)
        await user.press("w")
        await user.arrives("patterns", subject)
        assert user.place._tab == "Why"  # type: ignore[attr-defined]
        await user.go("review")
        assert front(user) == subject
        known = len(user.app.view.snapshot.decisions)
        await user.press("enter")
        await user.arrives("patterns", subject)
        assert len(user.app.view.snapshot.decisions) == known


async def test_an_answered_question_returns_if_refused_or_undone(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="review") as user:
        first = await at_question(user, INVERSION)
        questions = waiting(user)
        desk(user).action_accept()  # and before the engine has had a moment to carry it out:
        second = front(user)
        assert second != first
        desk(user).action_snooze()
        assert front(user) not in (first, second)
        await user.settled()
        await user.until(lambda: len(waiting(user)) == len(questions) - 2, "both answers on disk")
        assert len(desk(user).session.answers) == 2
        await user.decides("u")
        assert front(user) == second
        await user.decides("u")
        assert front(user) == first
        assert sorted(waiting(user)) == sorted(questions)
        assert desk(user).session.answers == {}
        desk(user).questions.give()
        assert front(user) != first
        desk(user).answered(decided=False)
        assert first in [item.subject for item in desk(user).questions.items]


async def test_undo_of_another_persons_decision_keeps_the_session_count(sample: Path, home: Path) -> None:
    other = open_project(sample, "bob")
    async with open_dashboard(sample, home, place="review") as user:
        await at_question(user, INVERSION)
        await user.decides("s")
        other.decide(Note(TWIN, text="asked the authors"))
        await user.until(lambda: user.app.view.snapshot.decisions[-1].by == "bob", "what bob wrote")
        inverted = front(user)
        await user.press("u")
        await user.press("n")
        await user.settled()
        assert front(user) == inverted
        assert len(desk(user).session.answers) == 1
        assert not [toast for toast in user.toasts() if "new question" in toast]


async def test_a_question_answered_by_another_reviewer_is_skipped(sample: Path, home: Path) -> None:
    other = open_project(sample, "bob")
    seconds = [0.0]
    async with open_dashboard(sample, home, clock=lambda: seconds[0], place="review") as user:
        subject = await at_question(user, CONTRADICTED)
        number = desk(user).questions.place
        seconds[0] += 60.0
        other.decide(Reset(subject, reason="four of six failed"))
        await user.until(lambda: front(user) != subject, "the next question")
        following, known = front(user), len(user.app.view.snapshot.decisions)
        assert any("Skipped: bob has answered" in one and "reset “four of six failed”" in one for one in user.toasts())
        assert desk(user).questions.place == number + 1
        for key in ("a", "x"):
            await user.press(key)
            assert f"{key} ignored" in user.toasts()[-1]
        assert (front(user), len(user.app.view.snapshot.decisions)) == (following, known)
        seconds[0] += 0.5
        await user.decides("s")
        assert front(user) != following


async def test_the_order_is_fixed_new_questions_are_appended_and_resolved_ones_skipped(
    sample: Path, home: Path
) -> None:
    other = open_project(sample, "bob")
    async with open_dashboard(sample, home, place="review") as user:
        queue = asked(user)
        await user.sees(f"1 of {len(queue)}")
        await user.press("n", "n")
        await user.sees(f"3 of {len(queue)}")
        other.decide(Quarantine(TWIN, reason="who wrote this?"))  # a new question, worth more than some that are listed
        await user.until(lambda: TWIN in waiting(user), "the new question")
        assert asked(user)[-1] != TWIN
        await user.sees(f"3 of {len(queue)}", "+1 new")
        fourth = user.app.view.queue[waiting(user).index(queue[3])]
        other.decide(Dismiss(key=fourth.question_key, summary="seen elsewhere"))
        await user.until(lambda: queue[3] not in waiting(user), "the fourth to be resolved")
        await user.sees(f"3 of {len(queue)}")
        await user.press("n")
        assert front(user) == queue[4]
        await user.sees(f"5 of {len(queue)}")
        assert user.toasts()[-1] == "Skipped 1 question: already resolved"
        seen = []
        while front(user) != TWIN:
            seen.append(desk(user).questions.place)
            await user.press("n")
        assert [*seen, desk(user).questions.place] == list(range(5, len(queue) + 2))
        assert "new" not in user.text().splitlines()[1]
        await user.decides("s")
        assert desk(user).item is None, "the end comes after the new question"


async def test_a_card_is_copied_and_its_menu_lists_the_other_answers(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="review") as user:
        subject = await at_question(user, CONTRADICTED)
        await user.press("Y")
        copied = user.app.clipboard
        assert copied.startswith("# dana promoted it") and "deadlock detected" in copied
        assert "Yes:" in copied and "No:" in copied
        await user.press("full_stop")
        await user.sees("deprecate", "no agent gets it until reset", "snooze", "asked again in 7 days", "Add a note")
        await user.press("escape")
        await choose_more(user, "asked again after 3 more results")
        assert newest(user) == "snooze"
        assert subject not in waiting(user)


async def test_every_review_action_works_with_the_mouse(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 24), place="review") as user:
        source = await at_question(user, BURST)

        async def click(text: str) -> None:
            user.app.clear_notifications()  # a notice may cover the keys
            await user.settled()
            row, line = next((n, line) for n, line in enumerate(user.text().splitlines()) if text in line)
            await user.pilot.click(offset=(line.index(text), row))
            await user.settled()

        known = len(user.app.view.snapshot.decisions)
        await click("a  yes")
        assert len(user.app.view.snapshot.decisions) == known, "a first click only looks"
        await click("x  no")
        await click("x  no")
        assert newest(user) == "confirm"
        assert source not in waiting(user)
        await user.decides("u")
        await click(". more")
        await click("asked again in 7 days")
        assert newest(user) == "snooze"
        number = desk(user).questions.place
        await click("n later")
        assert desk(user).questions.place > number
        await click("enter open")
        await user.until(lambda: user.place.place != "review", "what the question is about")


@pytest.mark.usefixtures("all_tasks")
async def test_the_cursor_shows_the_effect_of_each_answer_and_decides_nothing(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="review") as user:
        await at_question(user, INVERSION)
        before = waiting(user)
        assert "1 of 20 prompts changes" in row(user, "a")
        accepted = preview(user)
        assert "Yes changes the prompt of" in accepted and "- " in accepted
        await user.press("right")
        assert preview(user) != accepted
        await user.press("left")
        assert preview(user) == accepted
        assert waiting(user) == before
        assert desk(user).questions.next is not None
        await user.press("n")
        assert not row(user, "x").endswith("…")  # it was computed while the question before was read


async def test_a_key_that_cannot_answer_gives_a_reason(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="review") as user:
        await at_question(user, BURST)
        await user.press("p")
        assert "this question is about many lessons at once; . lists all answers" in user.toasts()[-1]
        await user.press("m")
        assert "Select several lessons in Patterns" in user.toasts()[-1]
        subject = await at_question(user, INVERSION)
        await user.press("p")
        assert "reset it first" in user.toasts()[-1]
        assert front(user) == subject


@pytest.mark.usefixtures("all_tasks")
async def test_the_preview_takes_only_the_lines_that_it_needs(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 24), place="review") as user:
        await at_question(user, INVERSION)
        long = desk(user).preview.size.height
        assert 1 < long < desk(user).card.size.height
        await at_question(user, ESCALATION)
        assert not desk(user).preview.display
        assert desk(user).card.size.height > 24 - 8
        await user.sees("a  yes", "x  no")


async def test_an_empty_queue_is_reported(sample: Path, home: Path) -> None:
    opened = open_project(sample, "ada")
    first = {item.kind: item for item in reversed(opened.view.queue)}
    kept = [first.pop(CONTRADICTED), *list(first.values())[:2]]
    rest = [item for item in opened.view.queue if item not in kept]
    for item in rest:
        opened.decide(Dismiss(key=item.question_key, summary="not here"))
    async with open_dashboard(sample, home, place="review") as user:
        assert len(waiting(user)) == len(kept)
        count = len(asked(user))
        for _ in range(count):
            await user.decides("s")
        await user.sees("Done.", f"You put off {count} question")
        assert asked(user) == [] and "Review·" not in user.text()
        await user.press("a")
        assert "No open questions" in user.toasts()[-1]
        await user.press("n")
        for _ in waiting(user):
            await user.decides("s")
        assert waiting(user) == []
        await user.decides("u")
        assert desk(user).item is not None


@pytest.mark.usefixtures("all_tasks")
async def test_forecasts_without_embeddings_are_marked_until_these_exist(
    sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.app.AFTER_SECONDS", 3600.0)
    with meaning():
        async with open_dashboard(sample, home, size=(80, 24), place="review") as user:
            await at_question(user, INVERSION)
            assert "~1 of 20 prompts changes" in row(user, "a")
            assert "~ compared by words: 0 of 40 texts have a vector\n" in preview(user)
            await asyncio.to_thread(user.app.project.embed_missing, user.app._vectors._report)
            await user.until(lambda: "~" not in row(user, "a"), "the forecast by meaning")
            await user.settled()
            assert "by words" not in preview(user)
