"""Links from place to place, the way back, and the guard against keys that were typed for the place before."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.state.review_items import INVERSION, OFFER
from tests.tui.screens.review_story import at_question, front
from tests.tui.story import NOW, Story, story
from tui.screens.context import ContextScreen
from tui.widgets.filter_line import FilterLine

NULL = "pat-error-null-check-015"
TYPED = "Fix the flaky login test"


async def at(told: Story, place: str) -> None:
    """Wait until a place is in front and drawn."""
    await told.until(lambda: told.place.place == place, f"{place} in front")
    await told.settled()


def task(told: Story) -> str:
    return told.place.query_one(FilterLine).text


async def test_esc_leads_back_from_context_which_keeps_the_typed_task(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("context")
        await told.press("slash")
        await told.paste(TYPED)
        await told.press("enter")
        await told.settled()
        await told.go("patterns")
        assert told.table.go_to(NULL)
        await told.press("i")
        await at(told, "context")
        assert isinstance(told.place, ContextScreen) and task(told) != TYPED
        assert told.place.table.cursor_key == NULL, "the cursor is on the pattern that the link came from"
        await told.sees("esc back to Patterns")
        await told.press("escape")
        await at(told, "patterns")
        assert told.table.cursor_key == NULL
        await told.go("context")
        assert task(told) == TYPED
        await told.go("loops")
        key = told.table.cursor_key
        await told.press("i")
        await at(told, "context")
        assert task(told) != TYPED
        await told.press("escape")
        await at(told, "loops")
        assert told.table.cursor_key == key
        assert told.app.user_state.get_here("context-task") == TYPED


async def test_a_task_that_is_typed_after_a_link_stays(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("loops")
        await told.press("i")
        await at(told, "context")
        await told.press("slash", "ctrl+u")
        await told.paste(TYPED)
        await told.press("enter", "escape")
        await at(told, "loops")
        await told.go("context")
        assert task(told) == TYPED


async def test_esc_leads_back_from_review_and_along_several_links(sample: Path, home: Path) -> None:
    async with story(sample, home, looks_further=True) as told:
        offered = next(item.subject for item in told.app.view.queue if item.kind == OFFER)
        await told.go("loops")
        assert told.table.go_to(offered)
        await told.press("e")
        await at(told, "review")
        assert front(told) == offered
        await told.press("escape")
        await at(told, "loops")
        assert told.table.cursor_key == offered
        subject = await at_question(told, INVERSION)
        await told.press("i")
        await at(told, "context")
        await told.press("enter")
        await at(told, "patterns")
        await told.press("escape")
        await at(told, "context")
        await told.press("escape")
        await at(told, "review")
        assert front(told) == subject


async def test_a_deciding_key_that_was_typed_for_the_place_before_does_nothing(sample: Path, home: Path) -> None:
    seconds = [100.0]
    async with story(sample, home, clock=lambda: seconds[0]) as told:
        await told.go("memory")
        key = next(
            key
            for key in told.table.keys
            if told.table.go_to(key) and told.place.why_not("to_patterns") is None and key.startswith("attempt")
        )
        assert told.table.go_to(key)
        known = len(told.app.view.snapshot.decisions)
        seconds[0] += 60.0
        await told.press("p", "p")
        await at(told, "patterns")
        assert len(told.app.view.snapshot.decisions) == known
        assert "p ignored" in told.toasts()[-1]
        seconds[0] += 0.49
        await told.decides("p")
        assert len(told.app.view.snapshot.decisions) == known
        await told.press("j", "k")
        seconds[0] += 0.01
        await told.decides("p")
        assert len(told.app.view.snapshot.decisions) == known + 1


@pytest.mark.parametrize("key", ["a", "s", "enter", "u"])
async def test_no_question_is_answered_right_after_the_way_to_review(sample: Path, home: Path, key: str) -> None:
    seconds = [100.0]
    async with story(sample, home, clock=lambda: seconds[0]) as told:
        known = len(told.app.view.snapshot.decisions)
        await told.press("3", key)
        await told.settled()
        assert len(told.app.view.snapshot.decisions) == known
        assert told.place.place == "review"


async def test_what_is_plain_to_see_needs_no_message(sample: Path, home: Path) -> None:
    async with story(sample, home, now=NOW) as told:
        for place in ("loops", "patterns", "review"):
            await told.go(place)
            number = {"loops": "1", "patterns": "2", "review": "3"}[place]
            await told.press("escape", number)
            assert told.toasts() == []


async def test_a_dialog_shows_its_own_keys_where_those_of_the_place_were(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        await told.press("d")
        assert "esc cancel" in told.key_line() and "enter" in told.key_line()
        assert "promote" not in told.key_line() and "filter" not in told.key_line()
        await told.pilot.click(offset=(told.key_line().index("esc cancel"), 39))
        await told.settled()
        assert told.place.place == "patterns" and "promote" in told.key_line()
