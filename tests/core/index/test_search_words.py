"""Filters inside the text of a search."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from core.base.errors import BadInput, UnknownRecord
from core.base.paths import ProjectPaths
from core.index.search import search
from core.index.search_words import SearchFilters, SearchPlace, parse_search
from core.records.episodes import TaskStatus
from core.records.loops import Outcome
from tests.core.cli.conftest import TREES

PATHS = ProjectPaths(TREES / "spec-examples")
NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("oauth", {}),
        ("in:errors oauth", {"places": {SearchPlace.ERRORS}}),
        ("oauth in:err,act", {"places": {SearchPlace.ERRORS, SearchPlace.ACTIONS}}),
        ("task:task-001.2 oauth", {"task_id": "task-001", "attempt": 2}),
        ("status:completed oauth", {"statuses": {TaskStatus.COMPLETED}}),
        ("outcome:fail oauth", {"outcomes": {Outcome.FAILURE}}),
        ('agent:"software implementer" oauth', {"agent": "software implementer"}),
        ("tool:Bash oauth", {"tool": "Bash"}),
        ("since:2026-02-01 oauth", {"since": datetime(2026, 2, 1, tzinfo=UTC)}),
        ("in: oauth", {}),
    ],
)
def test_filters_are_taken_out_of_the_words(text: str, filters: dict[str, Any]) -> None:
    words, found = parse_search(text, PATHS, NOW)
    assert (words.folded, found) == (("oauth",), SearchFilters(**filters))


@pytest.mark.parametrize("text", ["http://in:errors", '"in:errors"', "-in:errors", "login:errors", "colour:red"])
def test_what_is_not_a_filter_is_a_word(text: str) -> None:
    words, found = parse_search(text, PATHS, NOW)
    assert (words.folded, found) == ((text.strip('"'),), SearchFilters())


@pytest.mark.parametrize("text", ["in:nowhere x", "since:soon x", "status:xyz x", "task:unknown x", "in:errors", ""])
def test_an_invalid_filter_is_refused(text: str) -> None:
    with pytest.raises((BadInput, UnknownRecord)):
        parse_search(text, PATHS, NOW)


@pytest.mark.parametrize("text", ["in:errors", " tool:bash since:7d ", "in:"])
def test_filters_alone_need_a_word(text: str) -> None:
    with pytest.raises(BadInput, match="add a word: filters alone find nothing"):
        parse_search(text, PATHS, NOW)


def test_a_tool_selects_its_actions() -> None:
    every, of_tool = (search(PATHS, *parse_search(text, PATHS, NOW)) for text in ("green", "tool:BASH green"))
    assert {hit.tool for hit in of_tool.hits} == {"Bash"}
    assert set(of_tool.hits) == {hit for hit in every.hits if hit.tool.lower() == "bash"}
