"""Write a session as Codex does: line by line, sometimes torn, with its goal in a database that stays open.

Run `python -m tests.e2e.play_codex PROJECT --home HOME`; it ends after the goal is complete.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.e2e.play_runner import read_arguments

SESSION: Final = "019fa000-0000-7000-8000-0000000000aa"
OBJECTIVE: Final = "pytest exits with 0"
_TABLE: Final = """CREATE TABLE IF NOT EXISTS thread_goals (thread_id TEXT PRIMARY KEY, goal_id TEXT, objective TEXT,
    status TEXT, token_budget INTEGER, tokens_used INTEGER, time_used_seconds INTEGER, created_at_ms INTEGER,
    updated_at_ms INTEGER)"""
Line = dict[str, Any]


def play(project: Path, home: Path, pause: float) -> None:
    """Write a session with its goal; every third line is written in two parts."""
    folder = home / ".codex"
    started = datetime.now(UTC)
    day = folder / "sessions" / f"{started:%Y/%m/%d}"
    day.mkdir(parents=True, exist_ok=True)
    with (
        closing(sqlite3.connect(folder / "goals_1.sqlite", isolation_level=None)) as database,
        (day / f"rollout-{started:%Y-%m-%dT%H-%M-%S}-{SESSION}.jsonl").open("ab", buffering=0) as file,
    ):
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(_TABLE)
        for number, (kind, payload) in enumerate(_session(project, started)):
            if kind == "goal":
                _write_goal(database, payload["status"], payload["tokens"])
                continue
            line = _line({"timestamp": _now(), "type": kind, "payload": payload})
            cut = len(line) // 2 if number % 3 == 2 else len(line)
            file.write(line[:cut])
            time.sleep(pause)
            file.write(line[cut:])


def _session(project: Path, started: datetime) -> Iterator[tuple[str, Line]]:
    """Yield the lines of a session with two turns, and the changes of its goal."""
    meta = {"id": SESSION, "timestamp": _iso(started), "cwd": str(project), "originator": "codex-tui"}
    yield "session_meta", meta | {"cli_version": "0.140.0", "source": "cli", "git": {"branch": "main"}}
    yield "goal", {"status": "active", "tokens": 0}
    yield "turn_context", {"cwd": str(project), "model": "gpt-5.6-codex", "approval_policy": "never"}
    yield "event_msg", {"type": "task_started", "turn_id": "t-1"}
    yield "event_msg", {"type": "user_message", "message": "Make the tests of the cart pass."}
    yield from _command(
        "c-1", "pytest -q", 1, "E   AssertionError: Decimal('1.00') != Decimal('1.01')\n1 failed, 30 passed"
    )
    yield "event_msg", {"type": "token_count", "info": None}
    yield _tokens(41_000, 30_000, 900)
    yield "event_msg", {"type": "task_complete", "turn_id": "t-1", "last_agent_message": "One test of the cart fails."}
    yield "goal", {"status": "active", "tokens": 41_900}
    yield "event_msg", {"type": "task_started", "turn_id": "t-2"}
    text = (
        "*** Begin Patch\n*** Update File: shop/money.py\n@@\n-return total\n+return round_once(total)\n*** End Patch\n"
    )
    yield "response_item", {"type": "custom_tool_call", "name": "apply_patch", "call_id": "c-2", "input": text}
    changes = {str(project / "shop/money.py"): {"type": "update"}}
    yield "event_msg", {"type": "patch_apply_end", "call_id": "c-2", "success": True, "changes": changes}
    yield "response_item", {"type": "custom_tool_call_output", "call_id": "c-2", "output": "Success."}
    yield from _command("c-3", "pytest -q", 0, "31 passed in 1.10s")
    yield _tokens(52_000, 39_000, 1_400)
    last = "Totals are rounded once, in money.py."
    yield "event_msg", {"type": "task_complete", "turn_id": "t-2", "last_agent_message": last}
    yield "goal", {"status": "complete", "tokens": 53_400}


def _command(id: str, command: str, exit_code: int, output: str) -> Iterator[tuple[str, Line]]:
    call = {"type": "function_call", "name": "exec_command", "call_id": id, "arguments": json.dumps({"cmd": command})}
    yield "response_item", call
    text = f"Chunk ID: 1a2b3c\nWall time: 1.2000 seconds\nProcess exited with code {exit_code}\nOutput:\n{output}"
    yield "response_item", {"type": "function_call_output", "call_id": id, "output": text}


def _tokens(input: int, cached: int, output: int) -> tuple[str, Line]:
    usage = {
        "input_tokens": input,
        "cached_input_tokens": cached,
        "output_tokens": output,
        "reasoning_output_tokens": 0,
    }
    return "event_msg", {"type": "token_count", "info": {"total_token_usage": usage}}


def _write_goal(database: sqlite3.Connection, status: str, tokens: int) -> None:
    now = int(time.time() * 1000)
    row = (SESSION, "g-1", OBJECTIVE, status, 200_000, tokens, 0, now, now)
    database.execute("INSERT OR REPLACE INTO thread_goals VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def _line(line: Line) -> bytes:
    return json.dumps(line).encode() + b"\n"


def _now() -> str:
    return _iso(datetime.now(UTC))


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


if __name__ == "__main__":
    play(*read_arguments(__doc__ or ""))
