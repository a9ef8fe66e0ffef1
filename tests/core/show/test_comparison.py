"""The page that compares two moments."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.cli.demo.sample import copy_sample
from core.index.project_state import ProjectState
from core.project.as_of import build_past_state
from core.project.project import Project
from core.show.comparison import (
    NEW,
    RATE,
    STATE,
    PatternChange,
    StateComparison,
    change_cells,
    compare_states,
    comparison_document,
    list_changes,
)
from core.show.pages.markdown import plain_text, to_markdown
from tests.tui.user import NOW


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> ProjectState:
    folder: Path = tmp_path_factory.mktemp("sample")
    copy_sample(folder, NOW)
    return Project(ProjectPaths(folder), Settings(), by="ana", clock=lambda: NOW, cache=False).load()


@pytest.fixture(scope="module")
def found(view: ProjectState) -> StateComparison:
    return compare_states(build_past_state(view, NOW - timedelta(days=9)), view)


def words(found: StateComparison, kind: str, view: ProjectState) -> dict[str, str]:
    change = next(one for one in found.patterns if one.kind == kind)
    return {id: plain_text(cell) for id, cell in change_cells(change, view).items()}


def test_a_pattern_has_its_title_both_states_and_the_reason(found: StateComparison, view: ProjectState) -> None:
    first = found.patterns[0]
    row = {id: plain_text(cell) for id, cell in change_cells(first, view).items()}
    assert row["title"] == "Object of type Decimal is not JSON serializable"
    assert row["change"] == "candidate → proven" and "more helped" in row["why"] and row["id"] == first.pattern_id
    assert " % → " in words(found, RATE, view)["change"]


def test_a_new_pattern_names_the_session_that_it_was_found_in(found: StateComparison, view: ProjectState) -> None:
    row = words(found, NEW, view)
    assert row["change"].startswith("new → ")
    assert row["why"].startswith(("found in “", "extract by hook"))


def test_every_change_has_a_row_with_a_title(found: StateComparison, view: ProjectState) -> None:
    changes = list_changes(found)
    assert {key.split()[0] for key in changes} == {"pattern", "question", "decision", "loop"}
    for change in changes.values():
        cells = change_cells(change, view)
        assert plain_text(cells["title"]) and plain_text(cells["change"])
    assert sum(isinstance(change, PatternChange) for change in changes.values()) == len(found.patterns)


def test_the_page_counts_and_lists_what_changed(found: StateComparison, view: ProjectState) -> None:
    page = to_markdown(comparison_document(found, view, 2))
    assert f"{found.count(STATE)} patterns changed state" in page and "1 decided by hook" in page
    assert f"and {len(found.patterns) - 2} more patterns" in page
    for heading in ("## Patterns", "## Questions", "## Decisions", "## Sessions"):
        assert heading in page
    assert "| state | then | now | change |" in page
