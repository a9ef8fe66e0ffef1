"""Recurring learnings as cells and paragraphs."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from core.questions.extraction.learnings import KNOWN, Cluster
from core.records.reflections import Reflection
from core.show.reflections import cluster_blocks, cluster_cells, reflection_cells, renamed_clusters
from tests.factories import cluster_reflections
from tests.tui.user import NOW, copy_tree, open_dashboard
from tui.kit.drawing import TextPane
from tui.kit.looks import ASCII, DRAWN
from tui.screens.dialogs import PreviewDialog
from tui.screens.document import document_lines, draw_cells


async def test_reflections_are_filtered_sorted_read_and_lead_to_their_loop(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="loops") as user:
        await user.filter("status:nothing-like-this")
        await user.go("reflections")
        everything = len(user.table.keys)
        reflections = user.app.view.snapshot.reflections
        assert everything == len(reflections) > 10
        for _ in range(4):
            reflection = reflections[user.table.cursor_key or ""]
            text = user.place.query_one(TextPane).plain
            assert reflection.text.split("\n")[0][:40] in text and reflection.file in text
            await user.press("j")
        await user.filter("kind:error")
        assert 0 < len(user.table.keys) < everything
        assert {reflections[key].kind for key in user.table.keys} == {"error_analysis"}
        await user.press("escape")
        assert len(user.table.keys) == everything
        await user.press("S")
        kinds = [reflections[key].kind for key in user.table.keys]
        assert kinds == sorted(kinds)
        await user.filter("loop:ralph")
        loop = reflections[user.table.cursor_key or ""].loop_id
        await user.press("enter")
        await user.arrives("loops", user.app.view.loop(loop).id)


async def test_a_reflection_opens_its_attempt_or_the_patterns_of_its_session_or_gives_a_reason(
    sample: Path, home: Path
) -> None:
    memory = sample / ".aiwg/ralph/memory/tasks/lost.json"
    reflection = {"iteration": 1, "content": "Without a session"}
    memory.write_text(json.dumps({"task_id": "lost", "reflections": [reflection]}))
    async with open_dashboard(sample, home, place="reflections") as user:
        view = user.app.view
        reflections = view.snapshot.reflections
        user.place.go_to(next(key for key, one in reflections.items() if one.task_id == "lost"))
        await user.pilot.pause()
        await user.press("enter")
        assert "Its loop is unknown" in user.toasts()[-1]
        user.place.go_to(
            next(key for key, one in reflections.items() if one.task_id == "task-001" and one.attempt == 1)
        )
        await user.sees("enter show attempt")
        await user.press("enter")
        await user.arrives("loops", "attempt/task-001.1")
        await user.go("reflections")
        of_loop = {key: view.snapshot.find_loop(one.loop_id) for key, one in reflections.items()}
        key, loop = next((k, one) for k, one in of_loop.items() if one and view.loop_patterns(one.id).extracted)
        user.place.go_to(key)
        await user.place.run_id("to_patterns")
        await user.settled()
        await user.arrives("patterns")
        assert user.table.cursor_key in {one.pattern_id for one in view.loop_patterns(loop.id).extracted}


async def test_recurring_learnings_unfold_and_give_a_pattern_that_can_be_undone(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="reflections") as user:
        await user.press("e")
        assert "Press v to group by learning" in user.toasts()[-1]
        assert "v group" in user.key_line()
        await user.press("v")
        await user.settled()
        clusters = user.app.project.recurring()
        most = clusters[0]
        assert list(user.table.keys) == [cluster.id for cluster in clusters]
        assert user.row(most.id).split()[1:6] == ["3", "▸", "Reset", "the", "shared"]
        assert "when ↓" not in user.text()
        user.place.go_to(most.id)
        await user.sees("3 reflections from 2 loops and 1 task", "Reported by", "task-002")
        assert user.place.effect("draft") == "draft → candidate of 2 loops and 1 task"
        await user.press("S")
        assert "ordered by their number of loops" in user.toasts()[-1]
        await user.press("enter")
        below = [member.reflection.id for member in reversed(most.members)]
        assert list(user.table.keys)[:4] == [most.id, *below]
        await user.press("j", "e")
        assert "Go up to a learning" in user.toasts()[-1]
        await user.press("k", "enter", "e")
        await user.until(lambda: isinstance(user.app.screen, PreviewDialog), "the preview")
        await user.sees("1 lesson to extract", "+ new", "a extract 1")
        await user.decides("a")
        (made,) = (
            p for p in user.app.view.snapshot.patterns.values() if len(p.source_loops) == 3 and "fixtures" in p.title
        )
        assert {source.loop_id for source in made.source_loops} == set(most.sources)
        assert "extracted 1 pattern from recurring-" in user.toasts()[-1]
        await user.settled()
        assert "has a pattern" in user.row(most.id) and user.table.keys[-1] == most.id
        user.place.go_to(most.id)
        await user.press("e")
        assert "No pattern to draft: already known from all of these loops" in user.toasts()[-1]
        await user.sees(f"Has a pattern: {made.id}")
        assert user.place.why_not("draft")
        await user.decides("u")
        assert made.id not in user.app.view.snapshot.patterns


async def test_learnings_without_a_pattern_are_last(tmp_path: Path, home: Path) -> None:
    async with open_dashboard(
        copy_tree("upstream", tmp_path / "upstream"), home, size=(80, 24), place="reflections"
    ) as user:
        await user.press("v")
        await user.settled()
        rows = [user.row(key) for key in user.table.keys]
        unfit = ["⊘ no pattern" in row for row in rows]
        assert unfit == sorted(unfit) and True in unfit
        assert "success pattern  " in rows[0] and "Guard clauses at function entry" in rows[0]
        await user.press("G", "e")
        assert "it is an error message" in user.toasts()[-1]
        assert user.place.why_not("draft")


async def test_grouping_is_filtered_saved_and_left_for_a_single_reflection(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="reflections") as user:
        one = user.table.keys[0]
        await user.press("v")
        await user.settled()
        await user.filter("nothing is like this")
        assert list(user.table.keys) == []
        await user.filter("fixtures kind:success")
        assert len(user.table.keys) == 1
        assert user.app.user_state.get_here("reflections-grouped") == "yes"
        user.place.go_to(one)
        await user.pilot.pause()
        assert user.table.cursor_key == one and "when ↓" in user.text()
        assert user.app.user_state.get_here("reflections-grouped") == ""


async def test_drafts_are_labelled_and_those_that_only_count_actions_are_not_listed(sample: Path, home: Path) -> None:
    drafts = (
        {"attempt_id": 9, "learning": "The approach carried at once.", "timestamp": "2026-11-21T20:59:00Z"},
        {"attempt_id": 99, "observation": "It took 3 actions, of which 1 failed."},
    )
    with (sample / ".aiwg/ralph/tasks/task-001/reflections.jsonl").open("a") as file:
        file.write("".join(f"{json.dumps(draft | {'draft': True})}\n" for draft in drafts))
    async with open_dashboard(sample, home, place="reflections") as user:
        reflections = user.app.view.snapshot.reflections
        counting = {key for key, one in reflections.items() if not one.has_learning}
        assert counting and counting.isdisjoint(user.table.keys)
        assert len(user.table.keys) == len(reflections) - len(counting)
        user.place.go_to(next(key for key, one in reflections.items() if one.draft and one.attempt == 9))
        await user.sees("draft  The approach carried", "draft, not reviewed yet")


WILD = "\x1b]0;title\x07 [/] [@click=app.quit]lock first[/]\u202e the\nrest \ud800"


def cluster(learning: str, count: int) -> Cluster:
    """A learning that this number of loops with hostile names reported."""
    reflections = [
        Reflection(
            id=f"r{n}", shape="state", file="f", loop_id=f"loop-{n}{WILD}", iteration=n, learning=learning, kind=WILD,
            at=NOW - timedelta(hours=n),
        )
        for n in range(count)
    ]  # fmt: skip
    (found,) = cluster_reflections(reflections, {})
    return found


def test_a_hostile_learning_is_shown_as_plain_text() -> None:
    found = cluster(WILD, 3)
    drawn = [
        *draw_cells(cluster_cells(found, folded=True, unfit=WILD), NOW, DRAWN).values(),
        *document_lines(cluster_blocks(found, WILD), NOW, DRAWN),
    ]
    drawn += draw_cells(reflection_cells(found.central, below=True), NOW, DRAWN).values()
    text = "".join(content.plain for content in drawn)
    assert "lock first" in text
    assert not any(char in text for char in "\x1b\x07\u202e\ud800")


def test_a_learning_names_its_pattern_and_counts_only_loops() -> None:
    reflections = [Reflection(id=n, shape="s", file="f", task_id=n, learning="Lock the carts in order") for n in "ab"]
    (found,) = cluster_reflections(reflections, {"a": "loop-a"})
    row = draw_cells(cluster_cells(found, folded=True, unfit=f"{KNOWN}pat-x"), NOW, ASCII)["text"].plain
    assert "has a pattern  Lock" in row and "no pattern" not in row
    lines = [line.plain for line in document_lines(cluster_blocks(found, f"{KNOWN}pat-x"), NOW, DRAWN)]
    assert lines[1].startswith("2 reflections from 1 loop and 1 task; first")
    assert lines[2] == "Has a pattern: pat-x"


def test_a_learning_is_found_again_after_an_older_reflection_joins_it() -> None:
    reflections = [
        Reflection(id=n, shape="s", file="f", loop_id=n, learning="Lock the carts in order", at=NOW - timedelta(days=d))
        for n, d in (("a", 1), ("b", 2), ("c", 3))
    ]
    before, after = (
        {found.id: found for found in cluster_reflections(some, {})} for some in (reflections[:2], reflections)
    )
    assert renamed_clusters(before, after) == dict(zip(before, after, strict=True))
    assert renamed_clusters(after, after) == {} and renamed_clusters(before, {}) == {}


def test_a_learning_shows_its_count_and_its_reflections() -> None:
    found = cluster("Lock the carts in the order of their ids", 250)
    folded, open_ = (draw_cells(cluster_cells(found, folded=folded, unfit=""), NOW, ASCII) for folded in (True, False))
    assert (folded["text"].plain[0], open_["text"].plain[0]) == (ASCII.folded, ASCII.unfolded)
    assert folded["loops"].plain == "250" and "Lock the carts" in folded["text"].plain
    lines = [line.plain for line in document_lines(cluster_blocks(found, ""), NOW, DRAWN)]
    assert lines[1].startswith("250 reflections from 250 loops")
    assert lines[-1] == "and 50 more reflections" and len(lines) < 215
