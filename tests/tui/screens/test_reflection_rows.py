"""Recurring learnings as cells and paragraphs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from core.questions.extraction.learnings import KNOWN, Cluster
from core.records.reflections import Reflection
from core.show.reflections import cluster_blocks, cluster_cells, reflection_cells, renamed_clusters
from tests.factories import cluster_reflections
from tui.kit.glyphs import ASCII, DRAWN
from tui.screens.document import document_lines, draw_cells

NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
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
