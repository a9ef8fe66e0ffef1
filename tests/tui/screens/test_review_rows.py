"""Rows of Review: many questions of one kind, of which the best are asked when the user reads the row."""

from __future__ import annotations

from pathlib import Path

from core.index.review_items import FURTHER, OFFER, ReviewItem
from core.records.decisions import Verb
from tests.tui.screens.review_steps import desk, flat, front
from tests.tui.user import User, open_dashboard


def row_of(user: User) -> ReviewItem:
    """The only row of the sample: extraction offers."""
    (row,) = [item for item in user.app.view.agenda if item.kind == FURTHER]
    assert row.group is not None
    return row


async def at_row(user: User) -> list[str]:
    """Go to the row; returns the subjects of its questions."""
    row = row_of(user)
    desk(user).go_to(row.question_key)
    await user.settled()
    assert row.group is not None
    return [item.subject for item in row.group.items]


async def test_a_row_names_its_questions_and_asks_them_one_by_one(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, searches=True, place="review") as user:
        inside = await at_row(user)
        assert all(subject in flat(user) for subject in inside)
        decisions = len(user.app.view.snapshot.decisions)
        total = desk(user).questions.total
        await user.press("a")
        await user.settled()
        asked = [front(user)]
        for _ in inside[1:]:
            await user.press("n")
            await user.settled()
            asked.append(front(user))
        assert asked == inside
        assert len(user.app.view.snapshot.decisions) == decisions, "reading decides nothing"
        assert desk(user).questions.total == total + len(inside)
        assert not any("already resolved" in toast for toast in user.toasts())


async def test_a_question_of_a_row_is_answered_and_returns_after_undo(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, searches=True, place="review") as user:
        inside = await at_row(user)
        await user.press("a")
        await user.settled()
        await user.decides("x")
        assert user.app.view.snapshot.decisions[-1].verb is Verb.DISMISS
        assert front(user) == inside[1]
        await user.decides("u")
        assert front(user) == inside[0]


async def test_a_question_in_a_row_is_reached_by_its_key(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, searches=True, place="review") as user:
        group = row_of(user).group
        assert group is not None
        desk(user).go_to(group.items[3].question_key)
        await user.settled()
        assert front(user) == group.items[3].subject


async def test_a_row_is_read_but_not_put_off_in_a_project_that_is_read_only(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, searches=True, place="review", readonly=True) as user:
        inside = await at_row(user)
        await user.press("x")
        assert "Read-only" in user.toasts()[-1]
        await user.press("a")
        await user.settled()
        assert front(user) == inside[0]


async def test_a_row_that_is_put_off_is_not_shown_again(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, searches=True, place="review") as user:
        inside = await at_row(user)
        await user.decides("x")
        assert [item for item in user.app.view.agenda if item.kind == FURTHER] == []
        assert set(inside) <= {item.subject for item in user.app.view.queue if item.kind == OFFER}
