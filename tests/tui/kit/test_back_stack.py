"""Links from place to place, the way back, and the guard against keys that were typed for the place before."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.index.review_items import INVERSION, OFFER
from tests.tui.screens.review_steps import at_question, front
from tests.tui.user import NOW, User, open_dashboard
from tui.kit.actions import PLACES
from tui.kit.filter_line import FilterLine
from tui.screens.context import ContextScreen

NULL = "pat-error-null-check-015"
TYPED = "Fix the flaky login test"


async def at(user: User, place: str) -> None:
    """Wait until a place is in front and drawn."""
    await user.until(lambda: user.place.place == place, f"{place} in front")
    await user.settled()


def task(user: User) -> str:
    return user.place.query_one(FilterLine).text


@pytest.mark.slow
async def test_esc_returns_from_context_and_the_typed_task_is_kept(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="context") as user:
        await user.press("slash")
        await user.paste(TYPED)
        await user.press("enter")
        await user.settled()
        await user.go("patterns")
        assert user.table.go_to(NULL)
        await user.press("i")
        await at(user, "context")
        assert isinstance(user.place, ContextScreen) and task(user) != TYPED
        assert user.place.table.cursor_key == NULL, "the cursor is on the pattern that the link came from"
        await user.sees("esc back to Patterns")
        await user.press("escape")
        await at(user, "patterns")
        assert user.table.cursor_key == NULL
        await user.go("context")
        assert task(user) == TYPED
        await user.go("loops")
        key = user.table.cursor_key
        await user.press("i")
        await at(user, "context")
        assert task(user) != TYPED
        await user.press("escape")
        await at(user, "loops")
        assert user.table.cursor_key == key
        assert user.app.user_state.get_here("context-task") == TYPED


@pytest.mark.slow
async def test_a_task_typed_after_following_a_link_is_kept(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="loops") as user:
        await user.press("i")
        await at(user, "context")
        await user.press("slash", "ctrl+u")
        await user.paste(TYPED)
        await user.press("enter", "escape")
        await at(user, "loops")
        await user.go("context")
        assert task(user) == TYPED


@pytest.mark.slow
async def test_esc_returns_from_review_and_along_several_links(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, searches=True) as user:
        offered = next(item.subject for item in user.app.view.queue if item.kind == OFFER)
        await user.go("loops")
        assert user.table.go_to(offered)
        await user.press("e")
        await at(user, "review")
        assert front(user) == offered
        await user.press("escape")
        await at(user, "loops")
        assert user.table.cursor_key == offered
        subject = await at_question(user, INVERSION)
        await user.press("i")
        await at(user, "context")
        await user.press("enter")
        await at(user, "patterns")
        await user.press("escape")
        await at(user, "context")
        await user.press("escape")
        await at(user, "review")
        assert front(user) == subject


@pytest.mark.slow
async def test_a_deciding_key_typed_on_the_previous_screen_does_nothing(sample: Path, home: Path) -> None:
    seconds = [100.0]
    async with open_dashboard(sample, home, clock=lambda: seconds[0], place="loops") as user:
        known = len(user.app.view.snapshot.decisions)
        seconds[0] += 60.0
        await user.press("3", "p")
        await at(user, "patterns")
        assert len(user.app.view.snapshot.decisions) == known
        assert "p ignored" in user.toasts()[-1]
        seconds[0] += 0.49
        await user.decides("p")
        assert len(user.app.view.snapshot.decisions) == known
        await user.press("j", "k")
        seconds[0] += 0.01
        await user.decides("p")
        assert len(user.app.view.snapshot.decisions) == known + 1


@pytest.mark.slow
@pytest.mark.parametrize("key", ["a", "s", "x", "u"])
async def test_no_question_is_answered_right_after_going_to_review(sample: Path, home: Path, key: str) -> None:
    seconds = [100.0]
    async with open_dashboard(sample, home, clock=lambda: seconds[0]) as user:
        known = len(user.app.view.snapshot.decisions)
        await user.press("2", key)
        await user.settled()
        assert len(user.app.view.snapshot.decisions) == known
        assert user.place.place == "review"


@pytest.mark.slow
async def test_obvious_refusals_need_no_message(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, now=NOW) as user:
        for place in ("loops", "patterns", "review"):
            await user.go(place)
            number = PLACES[place][0]
            await user.press("escape", number)
            assert user.toasts() == []


async def test_a_dialog_replaces_the_keys_of_the_screen(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await user.press("d")
        assert "esc cancel" in user.key_line() and "enter" in user.key_line()
        assert "promote" not in user.key_line() and "filter" not in user.key_line()
        await user.pilot.click(offset=(user.key_line().index("esc cancel"), 39))
        await user.settled()
        assert user.place.place == "patterns" and "promote" in user.key_line()
