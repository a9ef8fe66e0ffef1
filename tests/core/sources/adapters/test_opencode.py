"""Sessions of opencode."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.records.loops import Liveness, LoopStatus, Outcome, StateSource, Usage
from core.sources.adapters.opencode import OpencodeAdapter
from tests.core.sources.adapters.fixtures import DAMAGES, Case, open_case

LOOP_ID = "opencode:ses_01"
START = datetime(2026, 11, 20, 10, tzinfo=UTC)
Open = Callable[[str], Case]


@pytest.fixture
def open_opencode(tmp_path: Path) -> Open:
    return lambda name: open_case(OpencodeAdapter(), f"opencode/{name}", tmp_path)


def database(case: Case) -> Path:
    return case.home / ".local/share/opencode/opencode.db"


def execute(case: Case, query: str, *values: object) -> None:
    with closing(sqlite3.connect(database(case))) as connection:
        connection.execute(query, values)
        connection.commit()


def set_last_message(case: Case, **data: Any) -> None:
    execute(case, "UPDATE message SET data = ? WHERE id = 'msg_04'", json.dumps(data))


# Contents


def test_a_session_has_the_tokens_and_cost_of_its_row(open_opencode: Open) -> None:
    loop = open_opencode("db").loops()[LOOP_ID]
    assert loop.usage == Usage(input=200, output=100, reasoning=20, cache_read=16000, cache_write=400, cost_usd=0.1)
    assert (loop.task, loop.model, loop.owner) == ("Make the tests of the cart pass, please.", "gpt-5.6", "opencode")
    assert (loop.started_at, loop.ended_at) == (START, START + timedelta(minutes=2))
    assert (loop.session_ids, loop.iteration, loop.last_result) == (("ses_01",), 2, "Cents are shown.")
    assert loop.files == ("~/.local/share/opencode/opencode.db",)


def test_progress_shows_the_last_test_and_the_changed_files(open_opencode: Open) -> None:
    progress = open_opencode("db").loops()[LOOP_ID].progress
    assert (progress.test_passed, progress.files_changed) == (True, 1)
    assert progress.changed_at == START + timedelta(minutes=1)


def test_messages_of_the_user_begin_iterations(open_opencode: Open) -> None:
    case = open_opencode("db")
    first, second = case.details(case.loops()[LOOP_ID]).iterations
    assert [one.message for one in first.failures] == ["AssertionError: 1.00 != 1.01", "oldString not found in file"]
    assert (first.outcome, first.files, first.tools) == (Outcome.SUCCESS, ("shop/money.py",), ("bash", "edit"))
    assert first.fix is not None and first.fix.description == "Totals are rounded once."
    assert first.fix.diff.splitlines()[-2:] == ["-a", "+b"]
    assert first.results is not None and first.results.passed == 31
    assert (second.action, second.outcome) == ("Cents are shown.", Outcome.UNKNOWN)


def test_details_are_read_without_a_look_at_the_lists(open_opencode: Open) -> None:
    case = open_opencode("db")
    loop = case.loops()[LOOP_ID]
    case.forget()
    assert len(OpencodeAdapter().details(loop, case.files).iterations) == 2


def test_a_subagent_belongs_to_its_parent_and_other_projects_are_not_read(open_opencode: Open) -> None:
    loops = open_opencode("db").loops()
    assert set(loops) == {LOOP_ID, "opencode:ses_02"}
    assert loops["opencode:ses_02"].parent == LOOP_ID


def test_a_session_in_both_layouts_is_read_from_the_newer_one(open_opencode: Open) -> None:
    case = open_opencode("v2")
    loop = case.loops()[LOOP_ID]
    assert (loop.usage.input, loop.usage.cost_usd, loop.status) == (500, 0.3, LoopStatus.COMPLETED)
    (turn,) = case.details(loop).iterations
    assert turn.failures[0].message == "KeyError: 'vat'"
    assert turn.failures[1].message == "Tool execution timed out"
    assert (turn.files, turn.outcome) == (("shop/vat.py",), Outcome.FAILURE)
    assert loop.progress.test_passed is False


def test_without_columns_of_tokens_the_messages_are_summed(open_opencode: Open) -> None:
    loop = open_opencode("old-columns").loop()
    assert loop.usage == Usage(input=200, output=100, reasoning=20, cache_read=16000, cache_write=400, cost_usd=0.1)
    assert (loop.task, loop.model, loop.parent, loop.archived) == ("Old work", "gpt-5.6", "", False)


def test_a_database_without_sessions_has_no_loops_and_no_finding(open_opencode: Open) -> None:
    case = open_opencode("db")
    execute(case, "DROP TABLE session")
    assert case.loops() == {}
    assert not case.files.findings


def test_sessions_without_messages_have_an_unknown_state(open_opencode: Open) -> None:
    case = open_opencode("db")
    execute(case, "DROP TABLE message")
    assert {loop.status for loop in case.loops().values()} == {LoopStatus.UNKNOWN}
    assert not case.files.findings


def test_an_ended_session_that_did_not_change_is_the_same_loop(open_opencode: Open) -> None:
    case = open_opencode("db")
    assert case.loops()[LOOP_ID] is case.loops()[LOOP_ID]


# States

DONE = int((START + timedelta(minutes=2)).timestamp() * 1000)


@pytest.mark.parametrize(
    ("data", "status", "reason"),
    [
        ({"time": {"completed": DONE}, "finish": "stop"}, LoopStatus.COMPLETED, "stop"),
        ({"time": {"completed": DONE}}, LoopStatus.COMPLETED, "completed"),
        ({"time": {"completed": DONE}, "finish": "length"}, LoopStatus.LIMIT, "length"),
        ({"error": {"name": "MessageOutputLengthError"}}, LoopStatus.LIMIT, "MessageOutputLengthError"),
        ({"error": {"name": "MessageAbortedError", "data": {}}}, LoopStatus.ABORTED, "MessageAbortedError"),
        ({"error": {"name": "ProviderAuthError", "data": {"message": "x"}}}, LoopStatus.FAILED, "ProviderAuthError"),
    ],
)
def test_the_last_message_shows_the_end(
    open_opencode: Open, data: dict[str, Any], status: LoopStatus, reason: str
) -> None:
    case = open_opencode("db")
    set_last_message(case, role="assistant", **data)
    loop = case.loops()[LOOP_ID]
    assert (loop.status, loop.end_reason, loop.state_source) == (status, reason, StateSource.REPORTED)
    assert loop.liveness is Liveness.ENDED


@pytest.mark.parametrize(
    "data",
    [
        {"role": "user"},
        {"role": "assistant", "time": {"created": 1}},
        {"role": "assistant", "time": {"completed": DONE}, "finish": "tool-calls"},
    ],
)
@pytest.mark.parametrize(
    ("quiet", "status", "liveness"),
    [
        (timedelta(minutes=1), LoopStatus.RUNNING, Liveness.FRESH),
        (timedelta(minutes=11), LoopStatus.RUNNING, Liveness.STALE),
        (timedelta(days=2), LoopStatus.UNKNOWN, Liveness.UNKNOWN),
    ],
)
def test_an_open_message_runs_until_nothing_is_known_about_it(
    open_opencode: Open, data: dict[str, Any], quiet: timedelta, status: LoopStatus, liveness: Liveness
) -> None:
    case = open_opencode("db")
    set_last_message(case, **data)
    case.now = START + timedelta(minutes=2) + quiet
    loop = case.loops()[LOOP_ID]
    assert (loop.status, loop.liveness, loop.state_source) == (status, liveness, StateSource.INFERRED)


def test_an_end_that_is_not_known_is_not_a_success(open_opencode: Open) -> None:
    case = open_opencode("db")
    set_last_message(case, role="assistant", time={"completed": DONE}, finish="content-filter")
    assert case.loops()[LOOP_ID].status is LoopStatus.UNKNOWN


# Damage


@pytest.mark.parametrize("table", ["message", "part", "session_message"])
def test_damaged_data_does_not_raise(open_opencode: Open, table: str) -> None:
    case = open_opencode("v2")
    with closing(sqlite3.connect(database(case))) as connection:
        if table != "session_message":
            connection.execute("DROP TABLE session_v2")
        good = connection.execute(f"SELECT id, data FROM {table}").fetchall()
        for name, damage in DAMAGES.items():
            damaged = [(damage(data.encode() + b"\n")[:100_000], id) for id, data in good]
            connection.executemany(f"UPDATE {table} SET data = ? WHERE id = ?", damaged)
            connection.commit()
            anew = case.anew()
            anew.use()
            assert not anew.files.findings, name


@pytest.mark.parametrize("column", ["parent_id", "title", "model", "cost", "tokens_input", "time_created", "agent"])
def test_values_of_any_type_in_any_column_do_not_raise(open_opencode: Open, column: str) -> None:
    case = open_opencode("db")
    with closing(sqlite3.connect(database(case))) as connection:
        connection.execute("CREATE TABLE other AS SELECT * FROM session")
        connection.execute("DROP TABLE session")
        connection.execute("ALTER TABLE other RENAME TO session")
        for value in (None, "x", -1, 1e300, b"\xff", "[" * 5000):
            connection.execute(f"UPDATE session SET {column} = ?", (value,))
            connection.commit()
            assert len(case.anew().use()[0]) == 2, value


def test_a_prompt_of_the_command_run_has_no_quotes_around_it(open_opencode: Open) -> None:
    case = open_opencode("db")
    part = json.dumps({"type": "text", "text": '"Fix the totals of the cart"'})
    execute(case, "UPDATE part SET data = ? WHERE message_id = 'msg_01'", part)
    assert case.loops()[LOOP_ID].task == "Fix the totals of the cart"
