"""Lessons of debug sessions, and escalations."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from core.base.errors import Conflict, Refused
from core.base.paths import ProjectPaths
from core.files.file_reader import decode_yaml
from core.index.texts import Texts
from core.records.debug_sessions import Analysis, DebugSession, Escalation, Execution, Failure, Fix, Lesson, Results
from core.records.decisions import CurationState
from core.records.episodes import Attempt
from core.records.loops import Iteration, Loop, LoopStatus, Outcome
from core.records.snapshot import Snapshot
from core.sources.debug_sessions import read_sessions
from core.tasks.escalations import EscalatedSession, find_escalation, find_recent_escalations
from core.tasks.known_fixes import check_success, collect_lessons, write_lessons
from tests.factories import (
    DEBUG_NOW,
    index_sessions,
    make_lesson,
    make_run,
    make_session,
    read_example_session,
    sessions_by_id,
)

NULL = "null_undefined_access"
GREEN = Execution(results=Results(total=1, passed=1, failed=0))
LESSON = Lesson(pattern="p", category=NULL, frequency=2, fix_template="Guard it", effectiveness=0.5)


def taught(one: DebugSession, *others: DebugSession) -> tuple[Lesson, ...]:
    return collect_lessons(one, index_sessions(one, *others))


def test_a_lesson_without_a_named_pattern_has_the_fix_and_the_results_of_its_own_session() -> None:
    cart = make_session("cart", make_run(category=NULL, fix=Fix(description="Count a missing VAT as 0", verified=True)))
    known = replace(cart, lessons=taught(cart))
    greet = make_session(
        "greet",
        make_run(category=NULL, fix=Fix(description="Greet a guest", verified=False)),
        make_run(category=NULL, fix=Fix(description="Greet without a name", verified=True)),
    )
    (lesson,) = taught(greet, known)
    assert (lesson.fix_template, lesson.frequency, lesson.effectiveness) == ("Greet without a name", 1, 1.0)
    (unchanged,) = taught(known, greet)
    assert (unchanged.fix_template, unchanged.effectiveness) == ("Count a missing VAT as 0", 1.0)


def test_new_lesson_gets_the_usual_pattern_and_template() -> None:
    new = make_session("new", make_run(category=NULL, fixed=True), make_run(category="api_misuse"))
    assert taught(read_example_session()) == read_example_session().lessons
    assert taught(new) == (
        Lesson(pattern=NULL, category=NULL, frequency=1, fix_template="Guard the access", effectiveness=1.0),
    )
    others = [
        make_session(f"o{n}", make_run(category=NULL, fixed=n > 0), lessons=(make_lesson("unguarded"),))
        for n in range(3)
    ]
    (found,) = taught(new, *others, make_session("rare", lessons=(make_lesson("rare"),)))
    assert found == Lesson(pattern="unguarded", category=NULL, frequency=4, fix_template="Guard it", effectiveness=0.75)


@pytest.mark.parametrize(
    ("status", "runs", "fails"),
    [
        ("passed", (make_run(),), False),
        ("in_progress", (make_run(), GREEN), False),
        ("in_progress", (make_run(),), True),
        ("failed", (GREEN,), True),
        ("escalated", (GREEN,), True),
    ],
)
def test_only_successful_sessions_have_lessons(status: str, runs: tuple[Execution, ...], fails: bool) -> None:
    found = make_session("s", *runs, status=status)
    if fails:
        with pytest.raises(Refused, match="no success to learn from"):
            check_success(found)
    else:
        check_success(found)


class File:
    """A session file in an empty project."""

    def __init__(self, project: Path, text: str, name: str = "s.json") -> None:
        self.paths = ProjectPaths(project)
        self.session = make_session("s", file=f".aiwg/ralph/debug-memory/{name}")
        self.path = project / self.session.file
        self.path.parent.mkdir(parents=True)
        self.path.write_text(text)

    def write(self, *found: Lesson) -> str:
        """Write the lessons; return the problem, or ""."""
        result = write_lessons(self.paths, self.session, found, ())
        assert result.written is not bool(result.problem)
        return result.problem


ENTRY = {"pattern": "p", "category": NULL, "frequency": 2, "fix_template": "Guard it", "effectiveness": 0.5}


@pytest.mark.parametrize("learnings", [None, {}, {"patterns_identified": None}, {"patterns_identified": []}])
def test_lessons_are_added_to_a_session_without_any(learnings: Any, tmp_path: Path) -> None:
    file = File(tmp_path, json.dumps({"session_id": "s", "n": 1, "learnings": learnings}))
    assert file.write(LESSON) == ""
    assert json.loads(file.path.read_text()) == {
        "session_id": "s",
        "n": 1,
        "learnings": {"patterns_identified": [ENTRY]},
    }


def test_known_lessons_are_merged_by_pattern(tmp_path: Path) -> None:
    text = (
        '{ "session_id":"s", "big": 1e400,\n  "learnings": {"patterns_identified": [\n'
        '    {"pattern": "other", "frequency": 1.0},\n    {"pattern": "p", "frequency": 1, "mine": "\\u00e4"}\n  ]}}\n'
    )
    file = File(tmp_path, text)
    assert file.write(LESSON) == ""
    first, second = text.split('{"pattern": "p"')
    after = file.path.read_text()
    assert after.startswith(f'{first}{{"pattern": "p", "frequency": 2, "mine": "\\u00e4"')
    assert after.endswith("\n  ]}}\n")
    file.write(LESSON)
    assert file.path.read_text() == after
    assert second


def test_session_is_found_among_json_lines(tmp_path: Path) -> None:
    lines = '{"session_id": "a"}\n{"session_id": "s"}\n'
    file = File(tmp_path, lines, "all.jsonl")
    assert file.write(LESSON) == ""
    first, second = file.path.read_text().splitlines()
    assert first == '{"session_id": "a"}'
    assert json.loads(second)["learnings"]["patterns_identified"] == [ENTRY]


def test_winning_copy_of_a_session_gets_the_lessons(tmp_path: Path) -> None:
    records = [{"session_id": "s", "executions": [], "updated_at": f"2026-11-0{day}"} for day in (2, 3, 1)]
    file = File(tmp_path, json.dumps({"sessions": records}))
    assert file.write(LESSON) == ""
    after = json.loads(file.path.read_text())["sessions"]
    assert ["learnings" in record for record in after] == [False, True, False]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"session_id": "other"}', "no longer in its file"),
        ('{"session_id": "s", "learnings": [1]}', "unknown structure"),
        ('{"session_id": "s", "learnings": {"patterns_identified": "x"}}', "unknown structure"),
        ("[1, null]", "no longer in its file"),
    ],
)
def test_file_of_an_unknown_shape_is_not_changed(text: str, problem: str, tmp_path: Path) -> None:
    file = File(tmp_path, text)
    assert problem in file.write(LESSON)
    assert file.path.read_text() == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("session_id: s\n# mine\nstatus: passed", ""),
        ("---\r\nsession_id: s\r\nnote: |\r\n  text\r\n", ""),
        ("session_id: s\nlearnings:\n  recommendations: [x]\n", ""),
        ("session_id: s\nlearnings:\n  patterns_identified:\n  - pattern: q\n    frequency: 1\n", ""),
        ("session_id: s\nlearnings:\nstatus: passed\n", ""),
        ("session_id: s\nlearnings: {recommendations: [x]}\n", ""),
        ("session_id: s\nlearnings: {patterns_identified: [{pattern: q}]} # mine\n", ""),
        ("session_id: s\nexecutions: []\n...\n", ""),
        ("{session_id: s}\n", ""),
        ("session_id: s\n---\nsession_id: t\n", ""),
        ("session_id: t\n---\nsession_id: s\nstatus: passed\n", ""),
        ("sessions:\n  - {session_id: s, executions: []}\n", ""),
        ("sessions:\n  - session_id: s\n    executions: []\n  - session_id: t\n    executions: []\n", ""),
        ("session_id: s\nlearnings: none\n", "unknown structure"),
        ("session_id: t\n", "no longer in its file"),
        ("session_id: s\nlearnings:\t\n  patterns_identified: []\n", "cannot be edited"),
    ],
)
def test_yaml_edit_keeps_everything_else(text: str, problem: str, tmp_path: Path) -> None:
    hostile = replace(LESSON, fix_template="a: b # c\n\u2028'\"{{x}}\x1b \U0001f600")
    file = File(tmp_path, "", "s.yaml")
    file.path.write_bytes(text.encode())
    assert problem in file.write(LESSON)
    after = file.path.read_bytes().decode()
    assert (after == text) is bool(problem)
    if problem:
        return
    (session,) = (
        one for one in read_sessions("s.yaml", decode_yaml(after.encode(), every=True).value)[0] if one.id == "s"
    )
    assert LESSON in session.lessons
    kept = [line for line in text.splitlines() if "learnings" not in line and "{" not in line]
    assert [line for line in kept if line.strip() and line not in after] == []
    assert ("\r\n" in text) is ("\r\n" in after)
    assert ENTRY in [entry for one in yaml.safe_load_all(after) for entry in found_in(one)]
    assert file.write(LESSON) == ""
    assert file.path.read_bytes().decode() == after
    file.path.write_bytes(text.encode())
    assert file.write(hostile) == ""
    (session,) = (
        one
        for one in read_sessions("s.yaml", decode_yaml(file.path.read_bytes(), every=True).value)[0]
        if one.id == "s"
    )
    assert hostile.fix_template in [lesson.fix_template for lesson in session.lessons]


def found_in(value: Any) -> list[Any]:
    """Find the identified patterns anywhere in a document."""
    if isinstance(value, list):
        return [entry for item in value for entry in found_in(item)]
    if not isinstance(value, dict):
        return []
    own = value.get("patterns_identified") or []
    return [*own, *(entry for item in value.values() for entry in found_in(item))]


def test_yaml_in_another_encoding_is_not_changed(tmp_path: Path) -> None:
    file = File(tmp_path, "", "s.yaml")
    data = "session_id: s\nfile_path: größe.ts\n".encode("latin-1")
    file.path.write_bytes(data)
    with pytest.raises(Conflict):
        file.write(LESSON)
    assert file.path.read_bytes() == data


def test_known_lesson_in_yaml_is_updated_in_place(tmp_path: Path) -> None:
    text = (
        "session_id: s  # mine\n"
        "learnings:\n"
        "  patterns_identified:\n"
        "    - pattern: p   # seen often\n"
        "      category: null_undefined_access\n"
        "      frequency: 1\n"
        "      effectiveness: 1.0\n"
        "    - {pattern: q, frequency: 3}\n"
        "  recommendations:\n"
        "    - Use strict checks\n"
        "status: passed\n"
    )
    file = File(tmp_path, "", "s.yaml")
    file.path.write_text(text)
    assert file.write(LESSON) == ""
    assert file.path.read_text() == text.replace("frequency: 1\n", "frequency: 2\n").replace(
        "effectiveness: 1.0\n", 'effectiveness: 0.5\n      fix_template: "Guard it"\n'
    )


def test_torn_and_linked_files_are_not_changed(tmp_path: Path) -> None:
    file = File(tmp_path, '{"session_id": "s"')
    with pytest.raises(Conflict):
        file.write(LESSON)
    file.session = replace(file.session, file=file.session.file.replace(".json", ".yaml"))
    file.path.rename(file.path.with_suffix(".yaml"))
    with pytest.raises(Conflict):
        file.write(LESSON)
    file.path = file.path.with_suffix(".yaml")
    target = tmp_path / ".aiwg/ralph/state.json"
    target.write_text('{"session_id": "s"}')
    file.path.unlink()
    file.path.symlink_to(target)
    assert "through a link" in file.write(LESSON)
    assert target.read_text() == '{"session_id": "s"}'


HOUR = timedelta(hours=1)


def call(id: str, at: datetime = DEBUG_NOW) -> dict[str, Escalation]:
    return {id: Escalation(session_id=id, at=at, reason="why", file="f")}


def recent(since: datetime | None = None, calls: dict[str, Escalation] | None = None) -> list[str]:
    sessions = sessions_by_id(
        *(make_session(f"s{d}", days=d, status="escalated") for d in (3, 1, 2)), make_session("failed", days=9)
    )
    found = find_recent_escalations(
        Texts(Snapshot(debug_sessions=sessions)).debug, Snapshot(escalations=calls or {}), since
    )
    return [one.session.id for one in found]


def test_call_escalates_a_session_and_unknown_sessions_are_ignored() -> None:
    assert recent() == ["s1", "s2", "s3"], "newest first"
    assert recent(DEBUG_NOW - timedelta(days=2)) == ["s1"]
    assert recent(calls=call("failed", DEBUG_NOW - 36 * HOUR) | call("gone")) == ["s1", "failed", "s2", "s3"]
    assert recent(DEBUG_NOW - HOUR, call("s3")) == ["s3"]


@pytest.mark.parametrize(
    ("status", "called", "at"),
    [
        ("escalated", None, DEBUG_NOW),
        ("failed", DEBUG_NOW - HOUR, DEBUG_NOW - HOUR),
        ("escalated", DEBUG_NOW + HOUR, DEBUG_NOW + HOUR),
    ],
)
def test_each_escalation_has_its_own_question(status: str, called: datetime | None, at: datetime) -> None:
    known: dict[str, Any] = {"escalations": call("s", called) if called else {}}
    found = find_escalation(make_session("s", status=status), Snapshot(**known))
    assert found is not None and found.at == at
    dismissed = CurationState(dismissed=frozenset({found.question}))
    answered = find_escalation(make_session("s", status=status), Snapshot(**known, curation=dismissed))
    assert (answered is None) is (status != "escalated")


def going_on(succeeded_at: datetime) -> Loop:
    step = Iteration(number=1, at=succeeded_at, outcome=Outcome.SUCCESS)
    return Loop(id="loop-1", status=LoopStatus.RUNNING, iterations=(step,))


def test_an_escalation_ends_with_its_loop_or_attempt_or_with_a_later_success() -> None:
    session = make_session("s", status="escalated", loop_id="loop-1")
    attempt = Attempt(task_id="task-001", number=1, outcome=Outcome.FAILURE)
    of_attempt = make_session("s", status="escalated", task_id="task-001", attempt=1)
    for one, records, has_ended in (
        (session, {"loops": {"loop-1": Loop(id="loop-1", status=LoopStatus.RUNNING)}}, False),
        (session, {"loops": {"loop-1": Loop(id="loop-1", status=LoopStatus.FAILED)}}, True),
        (session, {"loops": {"loop-1": going_on(DEBUG_NOW - HOUR)}}, False),
        (session, {"loops": {"loop-1": going_on(DEBUG_NOW + HOUR)}}, True),
        (of_attempt, {"attempts": {attempt.id: attempt}}, True),
        (session, {}, False),
    ):
        found = find_escalation(one, Snapshot(**records))
        assert found is not None and found.has_ended is has_ended


def test_reason_is_from_the_call_else_the_last_cause_else_the_failure() -> None:
    failed = Execution(failures=(Failure(error_type="TypeError", message="boom"),))
    analysed = Execution(analysis=Analysis(root_cause="no right to the database"))
    alone = DebugSession(id="s", executions=(failed,))
    assert EscalatedSession(session=alone).reason == "TypeError: boom"
    known = DebugSession(id="s", executions=(failed, analysed))
    assert EscalatedSession(session=known).reason == "no right to the database"
    assert EscalatedSession(session=known, call=call("s")["s"]).reason == "why"
    assert EscalatedSession(session=DebugSession(id="s")).reason == "the agent gave up"
