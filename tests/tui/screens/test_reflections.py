from __future__ import annotations

import json
from pathlib import Path

from tests.tui.story import copy_tree, story
from tui.screens.dialogs import Preview
from tui.widgets.text_pane import TextPane


async def test_reflections_are_filtered_and_sorted(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("reflections")
        everything = len(told.table.keys)
        assert everything == len(told.app.view.snapshot.reflections) > 10
        await told.filter("kind:error")
        reflections = told.app.view.snapshot.reflections
        assert 0 < len(told.table.keys) < everything
        assert {reflections[key].kind for key in told.table.keys} == {"error_analysis"}
        await told.press("escape")
        assert len(told.table.keys) == everything
        await told.press("S")
        kinds = [reflections[key].kind for key in told.table.keys]
        assert kinds == sorted(kinds)


async def test_the_whole_reflection_stands_below(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("reflections")
        for _ in range(8):
            key = told.table.cursor_key
            assert key is not None
            reflection = told.app.view.snapshot.reflections[key]
            text = told.place.query_one(TextPane).plain
            assert reflection.text.split("\n")[0][:40] in text
            assert reflection.file in text
            await told.press("j")


async def test_enter_leads_to_the_loop(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("loops")
        await told.filter("status:nothing-like-this")
        await told.go("reflections")
        await told.filter("loop:ralph")
        reflections = told.app.view.snapshot.reflections
        loop = reflections[told.table.cursor_key or ""].loop_id
        await told.press("enter")
        await told.until(lambda: told.place.place == "loops", "Loops in front")
        await told.until(lambda: told.table.cursor_key == told.app.view.loop(loop).id, "the loop under the cursor")


async def test_a_reflection_without_a_loop_leads_to_its_attempt_and_else_says_why_not(sample: Path, home: Path) -> None:
    memory = sample / ".aiwg/ralph/memory/tasks/lost.json"
    reflection = {"iteration": 1, "content": "Nobody knows where this was"}
    memory.write_text(json.dumps({"task_id": "lost", "reflections": [reflection]}))
    async with story(sample, home) as told:
        await told.go("reflections")
        reflections = told.app.view.snapshot.reflections
        lost = next(key for key, reflection in reflections.items() if reflection.task_id == "lost")
        told.place.go_to(lost)
        await told.pilot.pause()
        await told.press("enter")
        assert "loop of this reflection is not known" in told.toasts()[-1]
        attempted = next(key for key, one in reflections.items() if one.task_id == "task-001" and one.attempt == 1)
        told.place.go_to(attempted)
        await told.sees("enter to the task")
        await told.press("enter")
        await told.until(lambda: told.place.place == "memory", "Memory in front")
        await told.until(lambda: told.table.cursor_key == "attempt/task-001.1", "the attempt under the cursor")


async def test_learnings_that_recur_unfold_and_give_a_pattern_that_undo_takes_back(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("reflections")
        await told.press("e")
        assert "one reflection is no pattern: v shows" in told.toasts()[-1]
        assert "v by learning" in told.key_line()
        await told.press("v")
        await told.settled()
        clusters = told.app.project.recurring()
        most = clusters[0]
        assert list(told.table.keys) == [cluster.id for cluster in clusters]
        assert told.row(most.id).split()[1:6] == ["3", "▸", "Reset", "the", "shared"]
        assert "when ↓" not in told.text()
        told.place.go_to(most.id)
        await told.sees("3 reflections from 2 loops and 1 task", "Told by", "task-002")
        assert "e draft → candidate of 2 loops and 1 task" in told.key_line()
        await told.press("S")
        assert "how many loops told them" in told.toasts()[-1]
        await told.press("enter")
        below = [member.reflection.id for member in reversed(most.members)]
        assert list(told.table.keys)[:4] == [most.id, *below]
        await told.press("j", "e")
        assert "go up to its line" in told.toasts()[-1]
        await told.press("k", "enter", "e")
        await told.until(lambda: isinstance(told.app.screen, Preview), "the preview")
        await told.sees("1 pattern to extract", "+ new", "a extract 1")
        await told.decides("a")
        (made,) = (
            p for p in told.app.view.snapshot.patterns.values() if len(p.source_loops) == 3 and "fixtures" in p.title
        )
        assert {source.loop_id for source in made.source_loops} == set(most.sources)
        assert "extracted 1 pattern from recurring-" in told.toasts()[-1]
        await told.settled()
        assert "has a pattern" in told.row(most.id) and told.table.keys[-1] == most.id
        told.place.go_to(most.id)
        await told.press("e")
        assert "no pattern to draft: already known from all of these loops" in told.toasts()[-1]
        await told.sees(f"Has a pattern: {made.id}")
        assert "not now: e draft" in told.key_line()
        await told.decides("u")
        assert made.id not in told.app.view.snapshot.patterns


async def test_what_gives_no_pattern_stands_last_and_learnings_have_room(tmp_path: Path, home: Path) -> None:
    async with story(copy_tree("upstream", tmp_path / "upstream"), home, size=(80, 24)) as told:
        await told.go("reflections")
        await told.press("v")
        await told.settled()
        rows = [told.row(key) for key in told.table.keys]
        unfit = ["⊘ no pattern" in row for row in rows]
        assert unfit == sorted(unfit) and True in unfit
        assert "success pattern  " in rows[0] and "Guard clauses at function entry" in rows[0]
        await told.press("G", "e")
        assert "it is an error message" in told.toasts()[-1]
        assert "not now: e draft" in told.key_line()


async def test_grouping_is_filtered_kept_and_left_for_a_single_reflection(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("reflections")
        one = told.table.keys[0]
        await told.press("v")
        await told.settled()
        await told.filter("nothing is like this")
        assert list(told.table.keys) == []
        await told.filter("fixtures kind:success")
        assert len(told.table.keys) == 1
        assert told.app.user_state.get_here("reflections-grouped") == "yes"
        told.place.go_to(one)
        await told.pilot.pause()
        assert told.table.cursor_key == one and "when ↓" in told.text()
        assert told.app.user_state.get_here("reflections-grouped") == ""


async def test_a_draft_is_called_one(sample: Path, home: Path) -> None:
    draft = {
        "attempt_id": 9,
        "learning": "The approach carried at once.",
        "draft": True,
        "timestamp": "2026-11-21T20:59:00Z",
    }
    with (sample / ".aiwg/ralph/tasks/task-001/reflections.jsonl").open("a") as file:
        file.write(json.dumps(draft) + "\n")
    async with story(sample, home) as told:
        await told.go("reflections")
        key = next(key for key, one in told.app.view.snapshot.reflections.items() if one.draft and one.attempt == 9)
        told.place.go_to(key)
        await told.sees("draft  The approach carried", "draft: nobody has put it into words yet")
