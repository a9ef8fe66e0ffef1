"""The fold of Claude Code's transcripts."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.files.file_reader import Stamp
from core.sources.adapters.claude import Signs, build_loop
from core.sources.adapters.claude_session import Session, find_message, iteration_of
from core.sources.adapters.claude_transcript import SessionFold
from core.sources.adapters.runner_files import Folded
from tests.core.sources.adapters.fixtures import NOW
from tests.e2e.play_claude import Records, goal_session

DAMAGE = (msgspec.MsgspecError, RecursionError, ValueError, TypeError, KeyError, AttributeError, OverflowError)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(min_value=10**300, max_value=10**310),
        st.floats(allow_nan=False),
        st.text(max_size=8),
        st.sampled_from(["", "user", "tool_result", "tool_use", "goal_status", "Goal set: x", "2026-11-20T09:00:00Z"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=4,
)


class Clock:
    def __init__(self) -> None:
        self.at = datetime(2026, 11, 20, 9, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.at += timedelta(seconds=9)
        return self.at


def make() -> Records:
    return Records("/home/ana/shop", now=Clock())


def rich_session() -> list[dict[str, Any]]:
    """Return a session with records of each type that is read."""
    records = make()
    cron = records.tool("CronCreate", cron="* * * * *", prompt="Look.")
    return [
        *goal_session(records),
        cron,
        records.result(cron, "ok", toolUseResult={"id": "c1", "humanSchedule": "every minute"}),
        records.system("stop_hook_summary", preventedContinuation=True, hookErrors=["no"]),
        records.meta("Stop hook feedback:\n- no"),
        records.system("api_error", error={"status": 429}),
        records.command("goal", "clear"),
        records.api_error("rate_limit", "You've hit your session limit"),
        {"type": "queue-operation", "content": "Goal set: x"},
        {"type": "ai-title", "aiTitle": "Cart"},
        {"type": "cost-state", "totalCostUSD": 1.5},
        {"type": "result", "subtype": "error_max_turns", "is_error": True},
        records.prompt("Once more.", forkedFrom={"sessionId": "other"}),
    ]


def fold(records: list[dict[str, Any]]) -> Session:
    reader, state = SessionFold(), Session()
    for record in records:
        try:
            reader.add(state, json.dumps(record).encode())
        except DAMAGE:
            continue
    return state


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a record."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for name, one in inner for found in [(*path, name), *places(one, (*path, name))]]


PLACES = [(number, path) for number, record in enumerate(rich_session()) for path in places(record)]


@given(changes=st.lists(st.tuples(st.integers(0, 10_000), VALUES), min_size=1, max_size=12))
def test_wrong_types_give_a_state_that_can_be_kept_and_shown(changes: list[tuple[int, Any]]) -> None:
    records = rich_session()
    for place, value in changes:
        number, path = PLACES[place % len(PLACES)]
        target: Any = records[number]
        try:
            for name in path[:-1]:
                target = target[name]
            target[path[-1]] = value
        except (KeyError, IndexError, TypeError):  # an earlier change replaced what is around it
            continue
    state = fold(records)
    kept = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=Session)
    stamp = Stamp(1, 1, 0, 0)
    folded = Folded(stamp, offset=1, state=kept)
    loop = build_loop(Path("/x/s.jsonl"), "s.jsonl", folded, Signs(NOW))
    assert len(loop.task) <= 4_000
    assert all(iteration_of(turn) is not None for turn in kept.turns)


def test_a_state_stays_small_however_long_the_session_is() -> None:
    records = make()
    reader, state = SessionFold(), Session()
    for _ in range(300):
        for record in goal_session(records):
            reader.add(state, json.dumps(record).encode())
    assert len(msgspec.msgpack.encode(state)) < 100_000
    assert state.turn_count == 600


def test_the_kept_state_goes_on_where_it_was() -> None:
    records = rich_session()
    whole = fold(records)
    reader, state = SessionFold(), Session()
    for record in records:
        state = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=Session)
        reader.add(state, json.dumps(record).encode())
    assert state == whole


@pytest.mark.parametrize("start", [b'{"type":"progress"', b'{"type":"file-history-snapshot"'])
def test_records_without_use_are_not_decoded(start: bytes) -> None:
    SessionFold().add(Session(), start + b" this is not JSON")


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("Exit code 1\nTypeError: x is null", "TypeError: x is null"),
        ("<tool_use_error>File does not exist.</tool_use_error>", "File does not exist."),
        ("Exit code 127", "Exit code 127"),
        ("Error: Exit code 2\n/home/ana/shop/a.ts: error: no such name", "a.ts: error: no such name"),
        ("", ""),
    ],
)
def test_a_message_has_neither_codes_nor_the_path_of_the_project(output: str, message: str) -> None:
    assert find_message(output, "/home/ana/shop") == message


def test_an_error_that_a_later_turn_fixes_is_fixed_there() -> None:
    records = make()
    fail = records.tool("Bash", command="npm test")
    state = fold(
        [
            records.prompt("Test."),
            fail,
            records.result(fail, "TypeError: x is null", failed=True),
            records.system("turn_duration", durationMs=5),
            records.prompt("Fix it."),
            edit := records.tool("Write", file_path="/home/ana/shop/a.ts", content="x = 1"),
            records.result(edit, "written"),
            again := records.tool("Bash", command="npm  test"),
            records.result(again, "ok"),
            records.system("turn_duration", durationMs=5),
        ]
    )
    first, second = map(iteration_of, state.turns)
    assert first.fix is None
    assert second.fix is not None
    assert (second.fix.description, second.fix.files) == ("", ("a.ts",))
    assert second.fix.diff.endswith("+x = 1")


def test_a_test_that_passes_after_an_edit_was_fixed_although_another_one_still_fails() -> None:
    records = make()
    comma, count = "ValueError: could not convert string to float: '1,5'", "KeyError: 'count'"
    done: list[Any] = [records.prompt("Test.")]
    for errors in ({"test_price": comma, "test_total": count}, {"test_total": count}):
        body = "".join(f"E       {error}\n" for error in errors.values())
        named = "".join(f"FAILED test_cart.py::{test} - {error[:30]}...\n" for test, error in errors.items())
        run = records.tool("Bash", command="pytest")
        done += [run, records.result(run, f"Exit code 1\n{body}{named}{len(errors)} failed, 1 passed", failed=True)]
        if len(errors) == 2:
            edit = records.tool("Edit", file_path="/home/ana/shop/cart.py", old_string="x", new_string="parse(x)")
            done += [records.answer("The price has a comma.", stop=None), edit, records.result(edit, "written")]
    again = records.tool("Bash", command="pytest")
    price_only = f"Exit code 1\nE       {comma}\nFAILED test_cart.py::test_price - {comma}\n1 failed, 2 passed"
    for more, expected in (([], comma), ([again, records.result(again, price_only, failed=True)], None)):
        (turn,) = fold([*done, *more, records.system("turn_duration", durationMs=5)]).turns
        fix = iteration_of(turn).fix
        assert (fix.error if fix is not None else None) == expected
        assert fix is None or (fix.description, fix.files) == ("The price has a comma.", ("cart.py",))


def test_a_number_that_is_too_large_is_limited() -> None:
    records = make()
    answer = records.answer("x", tokens=10**30)
    state = fold([records.prompt("x"), answer])
    assert state.totals is not None
    assert state.totals[1] == 1 << 53
