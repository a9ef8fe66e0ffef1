from __future__ import annotations

from pathlib import Path

from textual.widgets import Input

from tests.tui.story import Story, story
from tui.screens.context import ContextPlace
from tui.widgets.text_pane import TextPane

TASK = "Fix TypeScript type errors in user validation"


def shown(told: Story) -> str:
    return told.place.query_one("#context-text", TextPane).plain


def why(told: Story) -> str:
    return told.place.query_one("#context-why", TextPane).plain


async def at_task(told: Story, task: str = TASK) -> ContextPlace:
    await told.go("context")
    place = told.place
    assert isinstance(place, ContextPlace)
    place.preview(task)
    await told.pilot.pause()
    await told.settled()
    return place


async def test_an_empty_place_says_what_to_do_and_its_keys_work(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("context")
        await told.sees("l for the task of a running loop")
        await told.press("l")
        await told.settled()
        task = next(loop.task for loop in told.app.view.snapshot.loops.values() if loop.status.active)
        assert told.place.query_one(Input).value == task
        assert shown(told) == told.app.view.injection(task).context


async def test_the_text_is_byte_for_byte_what_is_injected(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("context")
        await told.press("slash")
        await told.paste(TASK)
        await told.settled()
        injection = told.app.view.injection(TASK)
        assert injection.context
        assert shown(told) == injection.context
        await told.sees(f"{injection.tokens:,} of 2,000 tokens, {injection.bytes:,} bytes")
        for chosen in injection.chosen:
            assert f"{chosen.score:.2f} {chosen.pattern_id}" in why(told)
        for left in injection.left_out:
            assert left.pattern_id in why(told)
        assert f"{len(injection.left_out)} patterns left out" in why(told)


async def test_knobs_change_the_text_and_compare_shows_how(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        place = await at_task(told)
        await told.press("c")
        assert "turn a knob first" in told.toasts()[-1]
        before = shown(told)
        for _ in range(3):
            await told.press("minus")
        await told.settled()
        await told.sees("top 2")
        assert len(shown(told)) < len(before)
        await told.press("plus")
        await told.settled()
        await told.sees("top 3")
        assert shown(told) == told.app.view.injection(TASK, place.settings).context
        await told.press("c")
        await told.settled()
        lines = shown(told).splitlines()
        assert any(line.startswith("+") for line in lines)
        assert "whole text" in told.key_line()
        await told.press("c")
        assert shown(told) == told.app.view.injection(TASK, place.settings).context


async def test_every_knob_turns_and_comes_back(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        place = await at_task(told)
        start = place.settings
        rates = set()
        for _ in range(5):
            await told.press("f")
            rates.add(place.settings.min_success_rate)
        assert len(rates) == 5
        assert place.settings.min_success_rate == start.min_success_rate
        await told.press("b")
        await told.sees("order lower bound")
        await told.press("b")
        await told.press("v")
        await told.sees("types E ")
        assert not place.settings.include_success_patterns
        for _ in range(5):
            await told.press("v")
        await told.settled()
        assert place.settings == start
        await told.press(*["plus"] * 9)
        assert place.settings.top_k_patterns == place.settings.max_patterns_injected
        await told.press(*["minus"] * 12)
        assert place.settings.top_k_patterns == 1


async def test_l_goes_through_the_running_loops(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("context")
        tasks = [loop.task for loop in told.app.view.snapshot.loops.values() if loop.status.active]
        await told.press("escape")
        seen = []
        for _ in tasks:
            await told.press("l")
            seen.append(told.place.query_one(Input).value)
        assert seen == tasks
        await told.press("l")
        assert told.place.query_one(Input).value == tasks[0]


async def test_a_loops_context_is_one_key_away(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        key = told.table.cursor_key
        assert key is not None
        await told.press("i")
        await told.until(lambda: told.place.place == "context", "Context in front")
        await told.settled()
        assert shown(told) == told.app.view.injection(told.app.view.loop(key).task).context


async def test_a_decision_changes_what_is_shown(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_task(told)
        chosen = told.app.view.injection(TASK).chosen[0].pattern_id
        told.app.decide(lambda deck: deck.deprecate(chosen, reason="not any more"))
        await told.settled()
        await told.settled()
        assert shown(told) == told.app.view.injection(TASK).context
        assert chosen not in [c.pattern_id for c in told.app.view.injection(TASK).chosen]


async def test_a_task_that_nothing_fits_says_so(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_task(told, "zzzz qqqq")
        await told.sees("This task gets nothing injected.", "no pattern was let in")
        await told.press("y")
        assert "no context to copy" in told.toasts()[-1]


async def test_the_copy_is_the_exact_context(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_task(told)
        await told.press("y")
        assert told.app.clipboard == told.app.view.injection(TASK).context


async def test_the_task_is_remembered(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_task(told)
        kept = told.app.kept
    assert kept.get_here("context-task") == TASK
