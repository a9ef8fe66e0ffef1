"""Search over tasks, actions, reflections and errors."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadInput
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.search import search
from core.index.search_words import MAX_QUERY, SearchFilters, SearchHit, SearchPlace, SearchWords
from core.project.project import Project
from core.records.episodes import TaskStatus
from core.records.events import ErrorNote, ErrorType
from core.records.loops import Outcome
from core.sources.events import append_events
from tests.copying import copy_folder
from tests.core.cli.conftest import TREES
from tests.factories import make_event


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    """A copy of the documented examples."""
    return ProjectPaths(copy_folder(TREES / "spec-examples", tmp_path / "project"))


def log(paths: ProjectPaths, *actions: dict[str, Any], ascii_only: bool = True) -> None:
    """Append actions to the log of the third attempt."""
    with (paths.tasks / "task-001/attempts/003/actions.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(action, ensure_ascii=ascii_only) + "\n" for action in actions)


def hits(paths: ProjectPaths, query: str, **filters: Any) -> list[SearchHit]:
    return list(search(paths, SearchWords(query), SearchFilters(**filters)).hits)


def places(paths: ProjectPaths, query: str, **filters: Any) -> list[tuple[str, int | None, int | None]]:
    return [(hit.place.value, hit.attempt, hit.action) for hit in hits(paths, query, **filters)]


def test_search_finds_every_kind_of_record_newest_first(paths: ProjectPaths) -> None:
    assert places(paths, "oauth AuthConfig") == [("tasks", None, None), ("reflections", 2, None)]
    assert places(paths, "smaller STEPS limit") == [("reflections", 1, None)]
    assert places(paths, "exit 1 bash", places={SearchPlace.ERRORS}) == [
        ("errors", 3, 3),
        ("errors", 2, 3),
        ("errors", 1, 3),
    ]
    assert places(paths, "exit 1 bash", places={SearchPlace.ACTIONS}) == [
        ("actions", 3, 3),
        ("actions", 2, 3),
        ("actions", 1, 3),
    ]
    assert places(paths, "tsc exits") == [("tasks", None, None)]
    assert places(paths, "big bang") == [("tasks", 1, None)]
    found = hits(paths, "exit 1 bash")[0]
    assert (found.task_id, found.pointer, found.at) == ("task-001", "line 3", datetime(2026, 2, 1, 11, 2, tzinfo=UTC))


def test_all_words_must_be_in_one_record_and_a_limit_keeps_the_newest_hits(paths: ProjectPaths) -> None:
    assert places(paths, "oauth bang") == []
    assert places(paths, "timestamp") == []  # field names are not searched
    found = search(paths, SearchWords("green"), limit=2)
    assert [(hit.attempt, hit.action) for hit in found.hits] == [(3, 4), (3, 3)]
    assert found.total == 13
    assert search(paths, SearchWords("green"), limit=0).total == 13
    log(paths, {"type": "bash", "output": "alpha"}, {"type": "bash", "output": "beta"})
    assert places(paths, "alpha beta") == []


def test_search_covers_every_field_of_a_task_and_its_attempts(paths: ProjectPaths) -> None:
    files: dict[str, dict[str, Any] | str] = {
        "metadata.json": {"related_tasks": ["related"], "completion_criteria": "criterion"},
        "summary.json": {"digest": ["a short story"]},
        "trajectory.json": {"attempts": [{"attempt_id": 1, "plan": "told", "milestones": [{"event": "m-1"}]}]},
        "attempts/001/attempt.json": {"plan": {"approach": "way", "steps": ["first step"]}, "started": "2026-03-01"},
        "attempts/001/outcome.json": {"reason": "why so"},
        "attempts/001/plan.md": "A written plan",
        "attempts/001/results/iter-002/run.json": {"log": {"tail": "7 broken\ntests"}, "ended": "2026-03-02T09:00:00Z"},
        "attempts/001/results/notes.txt": "plain \u00fc notes",
    }
    for name, recorded in files.items():
        file = paths.tasks / "task-x" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(recorded if isinstance(recorded, str) else json.dumps(recorded))
    for query, attempt, end in (
        ("related criterion task-x", None, "metadata.json"),
        ("m-1", 1, "trajectory.json"),
        ("told", 1, "trajectory.json"),
        ('way "first step" why written task-x.1', 1, "001/attempt.json"),  # one record in three files
        ('"7 broken tests"', 1, "iter-002/run.json"),
        ("notes.txt Ü", 1, "results/notes.txt"),
        ("short story", None, "summary.json"),
    ):
        [hit] = hits(paths, query, task_id="task-x")
        assert (hit.attempt, hit.file.endswith(end)) == (attempt, True), query
    assert hits(paths, "broken")[0].at == datetime(2026, 3, 2, 9, tzinfo=UTC)
    assert hits(paths, "notes.txt")[0].at == datetime(2026, 3, 1, tzinfo=UTC)  # of its attempt
    assert hits(paths, "m-1", task_id="task-001") == hits(paths, "m-1", task_id="task-x", attempt=2) == []


def test_search_covers_nested_texts_but_not_parameter_names(paths: ProjectPaths) -> None:
    deep: Any = "needle in C:\\new"
    for _ in range(300):
        deep = [deep]
    edits = {"edits": [{"old_string": "a", "new_string": 'say "hi"\nthere'}], "line": 1234}
    log(paths, {"type": "edit", "tool": "Edit", "params": edits}, {"type": "x", "params": {"p": {"q": "C:\\new\\x"}}})
    log(paths, {"type": "x", "params": deep})
    for query in ('say "hi" there', "1234 there"):
        assert places(paths, query) == [("actions", 3, 5)]
    assert places(paths, "c:\\new\\x") == [("actions", 3, 6)]
    assert places(paths, "needle") == places(paths, "new_string") == []


def test_quoted_words_are_a_phrase() -> None:
    for query, text, found in (
        ('"exit 1"', "an EXIT\n 1", True),
        ('"exit 1"', "exit with 1", False),
        ("exit 1", "1 exit", True),
        ('b "exit 1" a', "a exit 1 b", True),
        ('say"hi there"', 'say"hi and there"', True),
        ('"', 'a "', True),
        ('""', "a", False),
    ):
        words = SearchWords(query)
        assert words.are_in(text) is found, query
        assert words.may_be_in(json.dumps(text).encode()) or not found, query


@pytest.mark.parametrize("ascii_only", [True, False])
def test_json_escapes_do_not_hide_a_word(paths: ProjectPaths, ascii_only: bool) -> None:
    log(paths, {"type": "bash", "output": 'Übung MÜSSIG 日本語 say"hi" A\\b src/x.ts 🎉 12μs'}, ascii_only=ascii_only)
    for query in ("übung", "ÜBUNG", "müßig", "日本", 'say"hi"', "a\\b", "src/x.ts", "🎉", "µs"):
        assert places(paths, query) == [("actions", 3, 5)], query
    with (paths.tasks / "task-001/attempts/003/actions.jsonl").open("ab") as file:
        file.write(b'{"type": "bash", "output": "\\u004eeedle src\\/x.ts"}\n')
    assert places(paths, "needle src/x.ts") == [("actions", 3, 6)]


@given(text=st.text(max_size=30), query=st.text(max_size=8), ascii_only=st.booleans())
def test_ruled_out_bytes_never_match(text: str, query: str, ascii_only: bool) -> None:
    if query.split():
        words = SearchWords(query)
        encoded = json.dumps({"output": text}, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        assert words.may_be_in(encoded) or not words.are_in(text)
        assert len(words.snippet(text, 20)) <= 20


def test_search_filters(paths: ProjectPaths) -> None:
    only_failed = places(paths, "exit 1 bash", outcomes={Outcome.FAILURE, Outcome.TIMEOUT})
    assert only_failed == [("errors", 2, 3), ("errors", 1, 3)]
    assert len(hits(paths, "exit 1 bash", agent="Software-Implementer")) == 3
    assert hits(paths, "exit 1 bash", agent="nobody") == []
    assert [hit.task_id for hit in hits(paths, "running", statuses={TaskStatus.RUNNING})] == ["task-002"]
    assert hits(paths, "oauth", statuses={TaskStatus.FAILED}) == []
    assert places(paths, "oauth", outcomes={Outcome.SUCCESS}) == [("tasks", None, None)]  # of its last attempt
    at = datetime(2026, 2, 1, 10, 2, tzinfo=UTC)
    assert places(paths, "exit 1 bash", since=at, until=at) == [("errors", 2, 3)]
    log(paths, {"type": "bash", "output": "alpha"})
    assert places(paths, "alpha", since=at) == []


def test_search_in_error_log_and_debug_sessions(paths: ProjectPaths) -> None:
    error = {"error_type": "timeout", "message": "registry unreachable"}
    event = {"id": "e1", "at": "2026-02-01T10:05:00Z", "kind": "error", "loop_id": "task-001.2", "error": error}
    paths.events.parent.mkdir(parents=True, exist_ok=True)
    paths.events.write_text(json.dumps(event) + "\n" + json.dumps({**event, "id": "e2", "loop_id": "ralph-x"}) + "\n")
    found = hits(paths, "REGISTRY unreachable")
    assert [(hit.task_id, hit.attempt, hit.subject) for hit in found] == [
        ("", None, "ralph-x"),
        ("task-001", 2, "task-001.2"),
    ]
    session = (
        "session_id: s-1\nmetadata: {agent: debugger, task_id: task-001}\nexecutions:\n- attempt: 1\n"
        '  failures:\n  - {test_name: t, error_type: TypeError, error_message: "\\x51uetzal broke"}\n'
    )
    folder = paths.ralph / "debug-memory/sessions"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "s-1.yaml").write_text(session)
    [hit] = hits(paths, "quetzal", agent="debugger", statuses={TaskStatus.COMPLETED})
    assert (hit.place, hit.subject, hit.task_id) == (SearchPlace.ERRORS, "s-1", "task-001")
    assert hits(paths, "quetzal", places={SearchPlace.TASKS, SearchPlace.ACTIONS, SearchPlace.REFLECTIONS}) == []
    copy = paths.ralph / "loops/ralph-fix-api-d4e5f6a7/debug-memory/s-1.yaml"
    copy.parent.mkdir()
    copy.write_text(f"updated_at: 2026-03-01T10:00:00Z\n{session}")
    [hit] = hits(paths, "quetzal")
    assert hit.file == paths.relative(copy)


def test_hostile_files_are_findings(paths: ProjectPaths, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text('{"description": "secret"}')
    (paths.tasks / "task-002/trajectory.json").symlink_to(outside)
    os.mkfifo(paths.tasks / "task-002/reflections.jsonl")
    log(paths, {"output": "needle"})
    with (paths.tasks / "task-001/attempts/003/actions.jsonl").open("ab") as file:
        file.write(
            b'{"output": "needle' + b"[" * 900 + b'\nnull\n{"output": NaN, "error": "needle"}\n{"output": "needle'
        )
    found = search(paths, SearchWords("needle"))
    assert [(hit.place.value, hit.action) for hit in found.hits] == [("actions", 5), ("errors", 7)]
    assert {finding.code for finding in found.findings} == {"link-outside", "not-a-file"}
    assert hits(paths, "secret") == []


def test_query_must_not_be_empty_or_too_long_and_its_snippet_shows_the_match() -> None:
    for query in ("", " \t", "x" * (MAX_QUERY + 1)):
        with pytest.raises(BadInput):
            SearchWords(query)
    words = SearchWords("needle")
    assert words.snippet("a needle\n\nhere", 50) == "a needle · here"
    shown = words.snippet("x" * 500 + " Needle " + "y" * 500, 60)
    assert len(shown) == 60
    assert "Needle" in shown
    assert words.snippet("x" * 100 + " needle", 60).endswith("needle")


def test_errors_in_memory_are_found_as_in_the_files(paths: ProjectPaths) -> None:
    paths.events.parent.mkdir(parents=True, exist_ok=True)
    error = ErrorNote(error_type=ErrorType.VALIDATION, message="TypeError in quetzal.ts")
    append_events(paths, make_event(1, "error", datetime(2026, 2, 1, tzinfo=UTC), error=error))
    project = Project(paths, Settings(), by="ana", cache=False, clock=lambda: datetime(2026, 11, 21, tzinfo=UTC))
    project.load()
    for query in ("quetzal", "TypeError", "cannot read", "e"):
        words, filters = SearchWords(query), SearchFilters(places=frozenset({SearchPlace.ERRORS}))
        files, memory = (search(paths, words, filters, snapshot=one) for one in (None, project.view.snapshot))
        assert files.total
        assert [hit._replace(pointer="") for hit in files.hits] == [hit._replace(pointer="") for hit in memory.hits]
