from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from textual.widgets import Input

from core.base.errors import Refused
from core.base.settings import Settings
from core.base.text import plural
from core.decisions.commands import Deprecate, Promote
from core.index.contexts import prepare_task_injection
from core.project.project import Injected, Project
from core.records.loops import Loop, LoopStatus
from core.retrieval.injection import NOTHING_IN_COMMON
from core.retrieval.reflections import WEAK_MATCH, ReflectionSection
from core.show.contexts import MORE_PATTERNS, MORE_REFLECTIONS
from tests.agent_lessons import find_when_loaded
from tests.core.show.test_contexts import injection, preview
from tests.fence_token import FENCE_TOKEN
from tests.tui.user import NOW, User, open_dashboard
from tui.kit.bars import ItemLine
from tui.kit.drawing import TextPane
from tui.screens.context import (
    ContextScreen,
    context_lines,
    difference,
    difference_line,
    record_injection,
    recorded_toast,
)

TASK = "Fix TypeScript type errors in user validation"


def shown(user: User) -> str:
    return user.place.query_one("#context-text", TextPane).plain


def heading(user: User, which: str = "head") -> str:
    return "".join(segment.text for segment in user.place.query_one(f"#context-{which}", ItemLine).render_line(0))


def marked(user: User) -> list[str]:
    """The lines of the text as they are drawn, with their marks."""
    pane = user.place.query_one("#context-text", TextPane)
    return [line.plain for line in pane._lines]


def injected(user: User, loop_id: str) -> list[str]:
    """The patterns on a loop's record, as the files say."""
    events = Project(user.app.project.project, Settings(), by="", clock=lambda: NOW, cache=False).load().snapshot.events
    return [event.pattern_id for event in events if event.kind == "injected" and event.loop_id == loop_id]


async def at_task(user: User, task: str = TASK) -> ContextScreen:
    await user.go("context")
    place = user.place
    assert isinstance(place, ContextScreen)
    place.preview(task)
    await user.pilot.pause()
    await user.settled()
    return place


async def test_without_a_task_sessions_and_recent_tasks_are_offered_and_keys_work(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="context") as user:
        await user.sees("press esc and n for the task", "Running sessions and recent tasks", "Or choose a task below")
        assert isinstance(user.place.focused, Input), "a task can be typed at once"
        await user.press("question_mark")
        await user.sees("Help on Context")
        await user.press("escape", "4")
        assert user.place.place == "loops", "keys of screens act while nothing is typed"
        await user.press("6", "a", "4")
        assert user.place.query_one(Input).value == "a4"
        await user.press("ctrl+u", "escape")
        tasks = [loop.task for loop in user.app.view.snapshot.loops.values() if loop.status.active]
        for task in (*tasks, tasks[0]):
            await user.press("n")
            assert user.place.query_one(Input).value == task
        await user.settled()
        assert shown(user) == prepare_task_injection(user.app.view, tasks[0]).context
        await user.press("slash", "ctrl+u", "enter")
        await user.settled()
        await user.sees("Running sessions and recent tasks")
        await user.press("slash", "down", "j", "enter")
        await user.settled()
        assert user.app.user_state.get_here("context-task").startswith("Fix null customer crash")
        await user.sees("score", "why")
        assert "Running sessions and recent tasks" not in user.text()


async def test_the_text_equals_the_injected_text(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="context") as user:
        await user.press("slash")
        await user.paste(TASK)
        await user.settled()
        injection = prepare_task_injection(user.app.view, TASK)
        assert injection.context
        assert shown(user) == injection.context
        await user.sees(f"{injection.tokens:,} of 2,000 tokens", "found by word match")
        let_in = len(injection.chosen) + len(injection.reflections.chosen)
        unused_count = len(injection.left_out) + len(injection.reflections.left_out)
        assert f"{let_in} given, {unused_count} left out" in heading(user, "why")
        chosen, left_out = ([one.pattern_id for one in ones] for ones in (injection.chosen, injection.left_out))
        learned = [f"reflection/{one.id}" for one in injection.reflections.chosen]
        unused = [f"reflection/{one.id}" for one in injection.reflections.left_out]
        unfit = [one.pattern_id for one in injection.left_out if one.reason == NOTHING_IN_COMMON]
        weak = [f"reflection/{one.id}" for one in injection.reflections.left_out if one.reason.startswith(WEAK_MATCH)]
        rows = [*(key for key in left_out if key not in unfit), MORE_PATTERNS]
        rows += [*(key for key in unused if key not in weak), MORE_REFLECTIONS]
        assert len(unfit) > 1 and len(weak) > 1
        assert list(user.table.keys) == chosen + learned + rows
        first = injection.chosen[0]
        await user.sees(first.pattern_id, f"{first.score:.2f} = ", "category ")
        await user.press("enter")
        user.table.go_to(MORE_REFLECTIONS)
        await user.press("enter")
        assert set(weak) < set(user.table.keys), "enter lists what the row summarised"


async def test_a_changed_value_shows_its_effect_and_v_hides_it(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="context") as user:
        place = await at_task(user)
        before = prepare_task_injection(user.app.view, TASK)
        await user.press("full_stop", "2")
        await user.settled()
        after = prepare_task_injection(user.app.view, TASK, place.settings)
        assert len(after.chosen) == 2
        removed = before.context.count("\n") - after.context.count("\n")
        assert f"+0 -{removed} lines, {len(before.chosen) - 2} patterns removed" in heading(user)
        assert "- ### Error Patterns" in marked(user)
        assert "(5)" in user.text()
        await user.press("escape", "shift+tab", "G")
        user.place.catch_up(anew=True)
        await user.settled()
        assert user.place.query_one("#context-text", TextPane).scroll_offset.y > 0, (
            "a newer view leaves the reader there"
        )
        assert user.field("top_k_patterns").display and not user.field("order").display, "changed values stay"
        await user.press("v")
        assert shown(user) == after.context
        assert "agents' files" in user.key_line()
        await user.press("y")
        assert user.app.clipboard == after.context
        await user.press("escape", "r")
        assert "R restores all" in user.toasts()[-1]
        await user.press("R")
        await user.settled()
        assert place.settings == user.app.view.settings.injection
        assert shown(user) == before.context
        assert not place.knobs.display
        await user.press("R")
        assert "All values already equal the project's settings" in user.toasts()[-1]


async def test_a_focused_value_changes_the_footer_and_ignores_invalid_text(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 24), place="context") as user:
        place = await at_task(user)
        assert "digits are typed" not in user.key_line()
        await user.press("full_stop")
        assert "digits are typed  esc leave  ← less  → more  r restore" in user.key_line()
        await user.press("3", "enter")
        assert (place.settings.top_k_patterns, place.knobs.field) == (3, None)
        assert "digits are typed" not in user.key_line()
        await user.press("full_stop", "escape")
        left: object = place.knobs.field
        assert left is None, "digits go to screens again"
        await user.press("full_stop", "j", "j", "j", "j", "right")
        await user.sees("number 1 by lower bound")
        assert place.knobs.field is user.field("order") and "digits are typed" not in user.key_line()
        await user.press("home", "k", "k", "k", "k", "k", "1", "2")
        await user.settled()
        assert "! patterns must be from 1 to 10" in heading(user)
        assert place.settings.top_k_patterns == 1, "the last value"
        await user.press("j")
        assert user.field("top_k_patterns").text == "1"
        await user.type("40%")
        assert place.settings.min_success_rate == 0.4
        await user.press("backspace", "backspace", "backspace")
        assert place.settings.min_success_rate == 0.4
        await user.press("j", "j", "j", "3")
        await user.arrives("patterns")


async def test_tab_cycles_through_all_panes_and_embedding_progress_is_shown(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 24), place="context") as user:
        place = await at_task(user)
        stops = []
        for _ in range(3):
            await user.press("tab")
            stops.append(place.focused)
        assert isinstance(stops[0], Input) and stops[1:] == [place.text, user.table]
        await user.press("shift+tab", "pagedown")
        assert place.query_one("#context-text", TextPane).scroll_offset.y > 0
        place.embedding(120, 3400)
        await user.sees("embedding: ▯▯▯▯▯▯▯▯▯▯ 120 of 3,400 patterns")
        place.embedding(3400, 3400)
        await user.settled()
        assert "left out" in heading(user, "why")
        left_out = prepare_task_injection(user.app.view, TASK).left_out[0]
        await user.press("slash", "enter")
        assert user.in_focus(user.table), "so that down moves the list"
        assert user.place.label_for("open") is None
        await user.press(*["j"] * 8)  # behind five patterns and three reflections
        assert user.table.cursor_key == left_out.pattern_id
        await user.sees("left out: ")
        await user.press("enter")
        await user.arrives("patterns")


async def test_the_patterns_of_a_task_go_on_the_record_of_its_loop_once_or_of_a_chosen_loop(
    sample: Path, home: Path
) -> None:
    async with open_dashboard(sample, home, place="context") as user:
        await user.press("escape", "n")
        await user.settled()
        task = user.place.query_one(Input).value
        loops = [loop for loop in user.app.view.snapshot.loops.values() if loop.status.active]
        loop = next(loop for loop in loops if loop.task == task)
        ids = [one.pattern_id for one in prepare_task_injection(user.app.view, task).chosen]
        before = injected(user, loop.id)
        assert f"record for {loop.id.removeprefix('ralph-')[:15]}" in user.key_line()
        await user.press("I")
        await user.until(lambda: bool(user.toasts()), "an answer")
        new = [id for id in ids if id not in before]
        assert f"{plural(len(new), 'pattern')} given to {loop.id}" in user.toasts()[-1]
        assert injected(user, loop.id) == [*before, *new]
        assert shown(user) == prepare_task_injection(user.app.view, task).context
        await user.press("I")
        await user.until(lambda: "already recorded" in user.toasts()[-1], "the second answer")
        assert injected(user, loop.id) == [*before, *new]
        ended = next(loop for loop in user.app.view.snapshot.loops.values() if loop.status.ended)
        with pytest.raises(Refused, match="has ended"):
            record_injection(user.app.project, ended.id, prepare_task_injection(user.app.view, task))

        await at_task(user)
        await user.press("I")
        await user.sees(
            "Which loop received 5 patterns and 3 reflections?", "used to measure the effect", loops[0].task
        )
        others = injected(user, loops[0].id)
        await user.press("escape", "I", "j", "enter")
        await user.until(lambda: loops[1].id in user.toasts()[-1], "an answer")
        ids = [one.pattern_id for one in prepare_task_injection(user.app.view, TASK).chosen]
        assert set(ids) <= set(injected(user, loops[1].id))
        assert injected(user, loops[0].id) == others


async def test_a_task_without_matches_and_a_project_without_loops_are_explained(sample: Path, home: Path) -> None:
    for name in ("ralph/loops", "ralph/heartbeats", "ralph-external"):
        shutil.rmtree(sample / ".aiwg" / name)
    for name in ("current-loop.json", "registry.json"):
        (sample / ".aiwg" / "ralph" / name).unlink()
    async with open_dashboard(sample, home, place="context") as user:
        place = await at_task(user, "zzzz qqqq")
        await user.sees("Nothing is given for this task.", "0 given, ", "nothing in common")
        await user.press("y")
        assert "no context to copy" in user.toasts()[-1]
        await user.press("I")
        assert "There is no pattern or reflection to record" in user.toasts()[-1]
        place.preview(TASK)
        await user.settled()
        await user.press("I")
        assert "No loop with a task is running" in user.toasts()[-1]


async def test_reflections_have_rows_and_open_in_their_screen(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="context") as user:
        place = await at_task(user)
        found = prepare_task_injection(user.app.view, TASK).reflections
        assert "### Reflections" in shown(user)
        await user.press(*["j"] * 5)
        first = found.chosen[0]
        assert user.table.cursor_key == f"reflection/{first.id}"
        await user.sees("m1", "task: ", "found by: word match", "relevance x ")
        await user.press("G", "enter", "G")
        await user.sees("left out: ", found.left_out[-1].reason)
        await user.press("g", *["j"] * 5, "enter")
        assert user.app.current_mode == "reflections"
        await user.until(lambda: user.table.cursor_key == first.id, "the cursor on the reflection")
        await user.go("context")
        await user.press("full_stop", "j", "j", "j", "0", "enter")
        await user.settled()
        assert place.settings.max_reflections == 0
        assert "3 reflections removed" in heading(user)


async def test_one_key_shows_what_agents_load_by_themselves(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="context") as user:
        place = await at_task(user)
        assert place._preview is not None
        patterns = user.app.view.snapshot.patterns
        chosen = next(key for key in place._preview.chosen if len(patterns[key].description.split()) > 3)
        text = patterns[chosen].description
        (sample / "CLAUDE.md").write_text(f"# Rules\n\n- {text}\nBe [@click=app.quit]brief[/].\n")
        place.preview(f"{TASK} now")
        await user.settled()
        await user.press("shift+tab", "v")
        files = place.query_one("#context-files", TextPane)
        assert "# Rules" in files.plain and "# Rules" not in shown(user)
        assert "Be [@click=app.quit]brief[/]." in files.plain
        assert "Claude Code, about" in files.plain
        assert f"also given: {chosen}" in files.plain
        assert place.focused is files, "they replace the text, which had focus"
        place.table.go_to(chosen)
        assert "repeats CLAUDE.md:3" in place._cells(chosen)["why"].plain
        assert place.table.width_of("why") >= len("repeats CLAUDE.md:3")
        await user.press("v")
        assert not place.files.display and place.focused is place.text


async def test_the_files_of_the_agent_of_the_loop_come_first_and_beside_the_text_on_a_wide_screen(
    sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AGENTS.md", "CLAUDE.md"):
        (sample / name).write_text(f"# Rules of {name}\n")
    loop = Loop(id="claude:1", runner="claude", owner="claude", task=TASK, status=LoopStatus.RUNNING)
    find_when_loaded(monkeypatch, loops=[loop])
    async with open_dashboard(sample, home, size=(150, 40), place="context") as user:
        place = await at_task(user)
        before = shown(user)
        await user.press("shift+tab", "v")
        assert "v show text" in user.key_line()
        files = place.query_one("#context-files", TextPane)
        assert files.plain.index("Rules of CLAUDE.md") < files.plain.index("Rules of AGENTS.md")
        assert shown(user) == before and place.focused is place.text
        await user.sees("# Rules of CLAUDE.md", before.splitlines()[0])
        await user.press("tab")
        assert place.focused is files
        await user.press("v")
        assert place.focused is place.text


async def test_decisions_change_the_blocks_and_the_patterns_of_the_context(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="context", size=(200, 50)) as user:
        place = await at_task(user)
        chosen = prepare_task_injection(user.app.view, TASK).chosen[0].pattern_id
        user.app.decide(Promote(chosen, reason="read"))
        await user.settled()
        await user.settled()
        assert f"<approved-{FENCE_TOKEN}>" in shown(user) and f"<unreviewed-{FENCE_TOKEN}>" in shown(user)
        cells = {key: place._cells(key)["voice"].plain for key in place.table.keys if "voice" in place._cells(key)}
        assert cells[chosen] == "approved" and set(cells.values()) == {"approved", "unreviewed"}
        place.table.go_to(chosen)
        await user.sees("block: approved")
        user.app.decide(Deprecate(chosen, reason="not any more"))
        await user.settled()
        await user.settled()
        context = prepare_task_injection(user.app.view, TASK, token=FENCE_TOKEN).context
        assert chosen not in place.table.keys[:3] and shown(user) == context


async def test_a_shown_context_keeps_its_token(sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count()
    monkeypatch.setattr("core.base.prompt_text.draw_token", lambda: f"{next(numbers):016x}")
    async with open_dashboard(sample, home, place="context") as user:
        await at_task(user)
        before = shown(user)
        user.place.catch_up(anew=True)
        await user.settled()
        assert "<unreviewed-" in before and shown(user) == before
        await user.press("full_stop", "1")
        await user.settled()
        assert any(line.startswith("- ") for line in marked(user))
        assert not [line for line in marked(user) if "unreviewed-" in line and line[0] in "+-"]


# What is drawn


def test_each_line_is_marked_as_added_or_removed() -> None:
    found = preview(injection("one\ntwo\nfour\n", "a", "b"), injection("one\nthree\nfour\n", "a", "c"))
    assert found.lines == ((" ", "one"), ("-", "three"), ("+", "two"), (" ", "four"))
    lines, marks = difference(found)
    assert [mark.plain + line.plain for mark, line in zip(marks, lines, strict=True)] == [
        "  one",
        "- three",
        "+ two",
        "  four",
    ]
    assert difference_line(found).plain == "+1 -1 lines, 1 pattern added, 1 removed"
    assert [found.change_sign(id) for id in "abc"] == ["", "+", "-"]


def test_differences_are_counted() -> None:
    for new, expected in (
        (injection("x\ny\n", "a", "b", "c"), "+1 -0 lines, 2 patterns added"),
        (injection("y\n"), "+1 -1 lines, 1 pattern removed"),
        (injection("y\n", "a"), "+1 -1 lines"),
        (injection("x\n", "a"), "the text stays the same"),
    ):
        assert difference_line(preview(new, injection("x\n", "a"))).plain == expected


def test_an_empty_context_is_explained() -> None:
    for left_out, reason in (
        ((), "There are no patterns yet."),
        (("c",), "The list shows the reason for each pattern."),
    ):
        found = injection("", left_out=left_out)
        assert "\n".join(line.plain for line in context_lines(found)) == f"Nothing is given for this task.\n{reason}"


def test_a_record_of_an_injection_names_what_is_new() -> None:
    learned: Any = None
    sections = replace(injection("x", "pat-a", "pat-b"), reflections=ReflectionSection(chosen=(learned,)))
    for patterns, reflections, expected in (
        (2, 1, "recorded: 2 patterns and 1 reflection given to loop-1. y copies the text"),
        (1, 0, "recorded: 1 pattern given to loop-1; 2 already recorded. y copies the text"),
        (0, 0, "already recorded: 2 patterns and 1 reflection given to loop-1"),
    ):
        new = Injected(("x",) * patterns, ("y",) * reflections)
        assert recorded_toast(new, sections, "loop-1") == expected
