"""Overview of a loop of another runner."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from core.documents.document import Fields, Moment
from core.documents.loops import overview
from core.records.loops import Loop, Progress
from tests.factories import NOW, days_ago


def rows(loop: Loop) -> dict[str, Any]:
    state: Any = SimpleNamespace(now=NOW, outcome=lambda id: None)
    blocks = list(overview(state, loop, None))
    return dict(row for block in blocks if isinstance(block, Fields) for row in block.rows)


def test_stories_and_the_last_change_of_a_runner_are_in_the_overview() -> None:
    progress = Progress(stories=5, stories_done=3, changed_at=days_ago(1))
    found = rows(Loop(id="ralph-tui:a", runner="ralph-tui", progress=progress))
    assert "3 of 5 done" in str(found["Stories"])
    (moment,) = found["Last change"]
    assert isinstance(moment, Moment) and moment.at == days_ago(1)


def test_a_loop_of_the_project_has_neither() -> None:
    assert not {"Stories", "Last change"} & rows(Loop(id="a", updated_at=NOW)).keys()
