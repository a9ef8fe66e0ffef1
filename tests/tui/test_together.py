"""Two reviewers at once: what a dialog was opened on is what it decides about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.curation.curator import Decided
from core.project.project import Project
from core.records.decisions import Decision, Verb
from core.state.review_items import BORDERLINE
from tests.tui.screens.review_story import at_question, desk
from tests.tui.story import NOW, Story, story

ONE = "pat-error-unique-violation-007"


async def meanwhile(told: Story, decide: Callable[[Project], Decided]) -> Decision:
    """Bob decides at another dashboard, and this one notices."""
    bob = Project(ProjectPaths(told.app.project.project.project), Settings(), by="bob", clock=lambda: NOW, cache=False)
    bob.load()
    made = decide(bob).decisions[-1]
    await told.until(lambda: made in told.app.view.snapshot.decisions, "bob's decision")
    await told.settled()
    return made


def newest(told: Story) -> Decision:
    return told.app.view.snapshot.decisions[-1]


async def test_a_reason_is_not_written_over_what_somebody_decided_while_it_was_typed(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        await told.filter(ONE)
        await told.press("d")
        await told.paste("never held")
        made = await meanwhile(told, lambda bob: bob.promote(ONE))
        await told.sees("bob decided just now: promote", "esc, and look again")
        await told.decides("enter")
        assert newest(told) == made
        assert "bob decided just now" in told.toasts()[-1]
        await told.press("c")
        await told.paste("beside it")
        noted = await meanwhile(told, lambda bob: bob.note(ONE, text="bob's own"))
        await told.decides("enter")
        assert (newest(told).verb, newest(told).by) == (Verb.NOTE, "ana") and newest(told) != noted


async def test_of_many_the_one_is_refused_that_somebody_decided_on_since_the_preview(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        await told.filter("is:injectable state:established")
        await told.press("g", "m", "m")
        first, second = [key for key in told.table.keys if key in told.table.marked]
        await told.press("d")
        await told.sees("Deprecate 2 patterns?")
        await told.paste("obsolete")
        made = await meanwhile(told, lambda bob: bob.promote(first))
        await told.decides("enter")
        after = told.app.view.snapshot.decisions
        assert [one.subject for one in after[after.index(made) + 1 :]] == [second]
        assert any("bob decided just now" in toast for toast in told.toasts())


async def test_an_answer_with_a_reason_is_refused_once_somebody_has_answered(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("review")
        await at_question(told, BORDERLINE)
        item = desk(told).item
        assert item is not None
        await told.press("d")
        await told.paste("fails too often")
        made = await meanwhile(told, lambda bob: bob.dismiss(item.question_key, "the evidence decides"))
        await told.sees("bob decided just now")
        await told.decides("enter")
        assert newest(told) == made


async def test_what_somebody_decides_while_undo_asks_is_not_taken_back(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        await told.press("u")
        await told.sees("Undo imre's decision?")
        last = newest(told)
        made = await meanwhile(told, lambda bob: bob.promote(ONE))
        await told.decides("y")
        assert (newest(told).verb, newest(told).subject) == (Verb.UNDO, last.id)
        assert made.id not in told.app.view.snapshot.curation.undone
        assert "took back imre's deprecation" in told.toasts()[-1]
