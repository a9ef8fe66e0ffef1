"""Two reviewers at once: what a dialog was opened on is what it decides about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.decisions.case import Decided
from core.decisions.commands import Dismiss, Note, Promote
from core.index.review_items import BORDERLINE
from core.project.project import Project
from core.records.decisions import Decision, Verb
from tests.tui.screens.review_steps import at_question, desk
from tests.tui.user import NOW, User, open_dashboard

ONE = "pat-error-unique-violation-007"


async def meanwhile(user: User, decide: Callable[[Project], Decided]) -> Decision:
    """Bob decides at another dashboard, and this one notices."""
    bob = Project(ProjectPaths(user.app.project.project.project), Settings(), by="bob", clock=lambda: NOW, cache=False)
    bob.load()
    made = decide(bob).decisions[-1]
    await user.until(lambda: made in user.app.view.snapshot.decisions, "bob's decision")
    await user.settled()
    return made


def newest(user: User) -> Decision:
    return user.app.view.snapshot.decisions[-1]


@pytest.mark.slow
async def test_a_decision_made_while_a_reason_is_typed_is_not_overwritten(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await user.filter(ONE)
        await user.press("d")
        await user.paste("never held")
        made = await meanwhile(user, lambda bob: bob.decide(Promote(ONE)))
        await user.sees("bob decided just now: promote", "Press esc")
        await user.decides("enter")
        assert newest(user) == made
        assert "bob decided just now" in user.toasts()[-1]
        await user.press("c")
        await user.paste("beside it")
        noted = await meanwhile(user, lambda bob: bob.decide(Note(ONE, text="bob's own")))
        await user.decides("enter")
        assert (newest(user).verb, newest(user).by) == (Verb.NOTE, "ana") and newest(user) != noted


@pytest.mark.slow
async def test_a_bulk_decision_skips_a_pattern_decided_on_since_the_preview(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await user.filter("is:injectable state:established")
        await user.press("g", "m", "m")
        first, second = [key for key in user.table.keys if key in user.table.marked]
        await user.press("d")
        await user.sees("Deprecate 2 patterns?")
        await user.paste("obsolete")
        made = await meanwhile(user, lambda bob: bob.decide(Promote(first)))
        await user.decides("enter")
        after = user.app.view.snapshot.decisions
        assert [one.subject for one in after[after.index(made) + 1 :]] == [second]
        assert any("bob decided just now" in toast for toast in user.toasts())


@pytest.mark.slow
async def test_an_answer_with_a_reason_is_refused_after_another_answer(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="review") as user:
        await at_question(user, BORDERLINE)
        item = desk(user).item
        assert item is not None
        await user.press("d")
        await user.paste("fails too often")
        made = await meanwhile(
            user,
            lambda bob: bob.decide(Dismiss(key=item.question_key, summary="the evidence decides")),
        )
        await user.sees("bob decided just now")
        await user.decides("enter")
        assert newest(user) == made


@pytest.mark.slow
async def test_a_decision_made_while_undo_asks_is_not_undone(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await user.press("u")
        await user.sees("Undo imre's decision?")
        last = newest(user)
        made = await meanwhile(user, lambda bob: bob.decide(Promote(ONE)))
        await user.decides("y")
        assert (newest(user).verb, newest(user).subject) == (Verb.UNDO, last.id)
        assert made.id not in user.app.view.snapshot.curation.undone
        assert "by imre" in user.toasts()[-1]
