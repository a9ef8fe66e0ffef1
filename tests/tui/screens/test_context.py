from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.widgets import Input

from core.base.errors import Refused
from core.base.text import plural
from core.config.settings import Settings
from core.project.project import Project
from tests.tui.story import NOW, Story, story
from tui.screens import context
from tui.screens.context import ContextScreen
from tui.widgets.bars import ItemLine
from tui.widgets.text_pane import TextPane
from tui.widgets.value_field import ValueField

TASK = "Fix TypeScript type errors in user validation"


def shown(told: Story) -> str:
    return told.place.query_one("#context-text", TextPane).plain


def field(told: Story, name: str) -> ValueField:
    return next(found for found in told.place.query(ValueField) if found.name == name)


def heading(told: Story, which: str = "head") -> str:
    return "".join(segment.text for segment in told.place.query_one(f"#context-{which}", ItemLine).render_line(0))


def marked(told: Story) -> list[str]:
    """The lines of the text as they are drawn, with their marks."""
    pane = told.place.query_one("#context-text", TextPane)
    return [line.plain for line in pane._lines]


def injected(told: Story, loop_id: str) -> list[str]:
    """The patterns on a loop's record, as the files say."""
    events = Project(told.app.project.project, Settings(), by="", clock=lambda: NOW, cache=False).load().snapshot.events
    return [event.pattern_id for event in events if event.kind == "injected" and event.loop_id == loop_id]


async def at_task(told: Story, task: str = TASK) -> ContextScreen:
    await told.go("context")
    place = told.place
    assert isinstance(place, ContextScreen)
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
        await told.sees(f"{injection.tokens:,} of 2,000 tokens", f"{injection.bytes:,} bytes", "found by word match")
        let_in = len(injection.chosen) + len(injection.reflections.chosen)
        unused_count = len(injection.left_out) + len(injection.reflections.left_out)
        assert f"{let_in} in, {unused_count} left out" in heading(told, "why")
        chosen, left_out = ([one.pattern_id for one in ones] for ones in (injection.chosen, injection.left_out))
        learned = [f"reflection/{one.id}" for one in injection.reflections.chosen]
        unused = [f"reflection/{one.id}" for one in injection.reflections.left_out]
        assert list(told.table.keys) == chosen + learned + left_out + unused
        first = injection.chosen[0]
        await told.sees(first.pattern_id, f"{first.score:.2f} = ", "category ")


async def test_a_knob_shows_at_once_what_it_changes_and_c_leaves_that_out(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        place = await at_task(told)
        await told.press("c")
        assert "turn a knob first" in told.toasts()[-1]
        before = told.app.view.injection(TASK)
        await told.press("n", "2")
        await told.settled()
        after = told.app.view.injection(TASK, place.settings)
        assert len(after.chosen) == 2
        gone = before.context.count("\n") - after.context.count("\n")
        assert f"+0 -{gone} lines, {len(before.chosen) - 2} patterns go" in heading(told)
        assert "- ### Error Patterns" in marked(told)
        assert "(5)" in told.text()
        await told.press("escape", "G")
        told.place.catch_up(anew=True)
        await told.settled()
        assert told.place.query_one("#context-text", TextPane).scroll_offset.y > 0, (
            "a newer view leaves the reader there"
        )
        await told.press("c")
        assert shown(told) == after.context
        assert "difference" in told.key_line()
        await told.press("y")
        assert told.app.clipboard == after.context
        await told.press("R")
        await told.settled()
        assert place.settings == told.app.view.settings.injection
        assert shown(told) == before.context


async def test_every_knob_turns_and_goes_back(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        place = await at_task(told)
        start = place.settings
        await told.press("plus", "f", "left", "b", "right", "right", "o", *"esat")
        await told.settled()
        assert place.settings == replace(
            start,
            top_k_patterns=6,
            min_success_rate=0.55,
            max_tokens=2200,
            order="lower-bound",
            include_error_patterns=False,
            include_success_patterns=False,
            include_anti_patterns=False,
            include_code_templates=False,
        )
        assert shown(told).startswith("## Cross-Loop"), "all that goes is shown"
        assert "of 2,200 tokens" in heading(told)
        await told.press("r")
        assert place.settings.max_tokens == 2000, "of the knob that has focus"
        await told.press("escape")
        await told.press("r")
        assert "R puts all of them back" in told.toasts()[-1]
        await told.press("R")
        await told.settled()
        assert place.settings == start
        await told.press("R")
        assert "as the project has them" in told.toasts()[-1]


async def test_while_a_knob_has_focus_the_key_line_says_so_and_enter_leaves_it(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(80, 24)) as told:
        place = await at_task(told)
        assert "type a value" not in told.key_line()
        await told.press("n")
        assert "type a value  esc leave  ← less  → more  r put back" in told.key_line()
        await told.press("3", "enter")
        assert (place.settings.top_k_patterns, place.knobs.field) == (3, None)
        assert "type a value" not in told.key_line()
        await told.press("o", "b", "j")
        await told.sees("lower pattern", "rank 1, by score")
        assert place.knobs.field is field(told, "order") and "type a value" not in told.key_line()
        await told.press("2")
        await told.until(lambda: told.place.place == "patterns", "Patterns in front: nothing is typed into words")


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_what_is_told_in_a_corner_covers_no_knob(sample: Path, home: Path, size: tuple[int, int]) -> None:
    async with story(sample, home, size=size) as told:
        place = await at_task(told)
        await told.press("c")
        await told.until(lambda: bool(place.query("Toast")), "a toast")
        await told.pilot.pause()
        assert place.query_one("Toast").region.bottom <= place.knobs.region.y


async def test_what_is_no_value_does_not_count_and_does_not_stay(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        place = await at_task(told)
        await told.press("n", "1", "2")
        await told.settled()
        assert "! patterns must be from 1 to 10" in heading(told)
        assert place.settings.top_k_patterns == 1, "the last value"
        await told.press("j")
        assert field(told, "top_k_patterns").text == "1"
        await told.type("40%")
        assert place.settings.min_success_rate == 0.4
        await told.press("backspace", "backspace", "backspace")
        assert place.settings.min_success_rate == 0.4
        await told.press("k", "k", "minus", "plus")
        assert place.settings.top_k_patterns == 2


async def test_the_patterns_are_a_pane_and_enter_opens_one(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_task(told)
        left_out = told.app.view.injection(TASK).left_out[0]
        await told.press("enter")
        assert told.in_focus(told.table)
        assert told.place.wording("open") is None
        await told.press(*["j"] * 8)  # behind five patterns and three reflections
        assert told.table.cursor_key == left_out.pattern_id
        await told.sees(f"left out: {left_out.reason}")
        await told.press("enter")
        await told.until(lambda: told.place.place == "patterns", "Patterns in front")
        await told.settled()
        assert told.table.cursor_key == left_out.pattern_id


async def test_tab_goes_round_all_panes_and_how_far_meaning_is_known_is_told(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(80, 24)) as told:
        place = await at_task(told)
        stops = []
        for _ in range(4):
            await told.press("tab")
            stops.append(place.focused)
        assert stops[0] is told.table
        assert place.query_one("#context-text") is stops[3]
        await told.press("shift+tab", "shift+tab")
        assert place.knobs.field is field(told, "top_k_patterns")
        await told.press("escape", "pagedown")
        assert place.query_one("#context-text", TextPane).scroll_offset.y > 0
        place.embedding(120, 3400)
        await told.sees("meaning: ▯▯▯▯▯▯▯▯▯▯ 120 of 3,400 patterns")
        place.embedding(3400, 3400)
        await told.settled()
        assert "left out" in heading(told, "why")


async def test_the_patterns_of_a_loops_task_go_on_its_record_once(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("context")
        await told.press("l")
        await told.settled()
        task = told.place.query_one(Input).value
        loop = next(loop for loop in told.app.view.snapshot.loops.values() if loop.status.active and loop.task == task)
        ids = [one.pattern_id for one in told.app.view.injection(task).chosen]
        before = injected(told, loop.id)
        assert f"record for {loop.id.removeprefix('ralph-')[:15]}" in told.key_line()
        await told.press("I")
        await told.until(lambda: bool(told.toasts()), "an answer")
        new = [id for id in ids if id not in before]
        assert f"{plural(len(new), 'pattern')} injected into {loop.id}" in told.toasts()[-1]
        assert injected(told, loop.id) == [*before, *new]
        assert shown(told) == told.app.view.injection(task).context
        await told.press("I")
        await told.until(lambda: "nothing new" in told.toasts()[-1], "the second answer")
        assert injected(told, loop.id) == [*before, *new]
        ended = next(loop for loop in told.app.view.snapshot.loops.values() if loop.status.ended)
        with pytest.raises(Refused, match="has ended"):
            context._recorded(told.app.project, ended.id, told.app.view.injection(task))


async def test_a_task_that_nothing_fits_and_a_project_without_loops_say_so(sample: Path, home: Path) -> None:
    for name in ("ralph/loops", "ralph/heartbeats", "ralph-external"):
        shutil.rmtree(sample / ".aiwg" / name)
    for name in ("current-loop.json", "registry.json"):
        (sample / ".aiwg" / "ralph" / name).unlink()
    async with story(sample, home) as told:
        place = await at_task(told, "zzzz qqqq")
        await told.sees("This task gets nothing injected.", "0 in, ", "nothing in common")
        await told.press("y")
        assert "no context to copy" in told.toasts()[-1]
        await told.press("I")
        assert "no pattern and no reflection to record" in told.toasts()[-1]
        place.preview(TASK)
        await told.settled()
        await told.press("I")
        assert "no loop with a task is running" in told.toasts()[-1]


async def test_the_patterns_of_another_task_go_to_the_loop_that_is_chosen(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_task(told)
        loops = [loop for loop in told.app.view.snapshot.loops.values() if loop.status.active]
        await told.press("I")
        await told.sees("Which loop got 5 patterns and 3 reflections?", "Recorded as a fact", loops[0].task)
        await told.press("escape", "I", "j", "enter")
        await told.until(lambda: bool(told.toasts()), "an answer")
        ids = [one.pattern_id for one in told.app.view.injection(TASK).chosen]
        assert set(ids) <= set(injected(told, loops[1].id))
        assert not set(ids) <= set(injected(told, loops[0].id))


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


async def test_the_copy_is_the_exact_context(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_task(told)
        await told.press("y")
        assert told.app.clipboard == told.app.view.injection(TASK).context


async def test_the_task_is_remembered(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_task(told)
        kept = told.app.user_state
    assert kept.get_here("context-task") == TASK


async def test_reflections_have_rows_with_their_parts_and_open_where_they_are_kept(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        place = await at_task(told)
        found = told.app.view.injection(TASK).reflections
        assert "### Reflections" in shown(told)
        await told.press("enter", *["j"] * 5)
        first = found.chosen[0]
        assert told.table.cursor_key == f"reflection/{first.id}"
        await told.sees("m1", "learned at", "task found by word", "relevance x ")
        await told.press("G")
        await told.sees("left out: ", found.left_out[-1].reason)
        await told.press("g", *["j"] * 5, "enter")
        assert told.app.current_mode == "reflections"
        await told.until(lambda: told.table.cursor_key == first.id, "the cursor on the reflection")
        await told.go("context")
        await told.press("m", "0", "enter")
        await told.settled()
        assert place.settings.max_reflections == 0
        assert "3 reflections go" in heading(told)


async def test_without_a_task_the_running_loops_and_last_tasks_are_there_to_be_taken(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("context")
        await told.sees("running loops and last tasks", "Add rate limiting to the login endpoint", "take this task")
        assert told.in_focus(told.table), "the cursor is where enter takes a task, not in a prompt that eats keys"
        await told.press("j", "enter")
        await told.settled()
        assert told.app.user_state.get_here("context-task").startswith("Fix null customer crash")
        await told.sees("by bound", "score")
        assert "running loops and last tasks" not in told.text()
        await told.press("slash", "ctrl+u", "enter")
        await told.settled()
        await told.sees("running loops and last tasks")
