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

from core.records.loops import Liveness, LoopStatus, StateSource
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
