"""Write a session as Claude Code does: line by line, sometimes torn, with its registry, for tests with live runners.

Run `python -m tests.e2e.play_claude PROJECT --home HOME`; it ends after the goal is reached.
"""

from __future__ import annotations

import json
import os
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.e2e.play_runner import read_arguments

SESSION: Final = "5b1d0c7e-0000-4000-8000-0000000000aa"
CONDITION: Final = "npm test exits 0"
FAILURE: Final = "Exit code 1\n  FAIL cart.test.ts\nTypeError: clock.now is not a function\n2 failed, 31 passed"
Record = dict[str, Any]


class Records:
    """Makes the records of one session, in order; `now` gives the time of each."""

    def __init__(self, cwd: Path | str, session: str = SESSION, *, now: Any = None, **fields: Any) -> None:
        self.session = session
        self._fields = {"cwd": str(cwd), "sessionId": session, "version": "2.1.240", "gitBranch": "main"} | fields
        self._now = now or (lambda: datetime.now(UTC))
        self._count = 0
        self._last: str | None = None

    def record(self, type: str, **fields: Any) -> Record:
        """Return a record with the fields that all records have."""
        self._count += 1
        uuid = f"{self.session[-4:]}-{self._count}"
        at = self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        common = {"parentUuid": self._last, "isSidechain": False, "type": type, "uuid": uuid, "timestamp": at}
        self._last = uuid
        return {**common, **self._fields, **fields}

    def prompt(self, text: str, **fields: Any) -> Record:
        return self.record("user", message={"role": "user", "content": text}, **fields)

    def meta(self, text: str) -> Record:
        return self.prompt(text, isMeta=True)

    def command(self, name: str, arguments: str = "") -> Record:
        """Return a slash command that a person typed."""
        text = f"<command-name>/{name}</command-name>\n<command-message>{name}</command-message>\n"
        return self.prompt(f"{text}<command-args>{arguments}</command-args>")

    def answer(self, text: str, *, stop: str | None = "end_turn", tokens: int = 100) -> Record:
        return self._assistant([{"type": "text", "text": text}], stop, tokens)

    def tool(self, name: str, *, tokens: int = 100, **input: Any) -> Record:
        block = {"type": "tool_use", "id": f"toolu_{self.session[-4:]}_{self._count}", "name": name, "input": input}
        return self._assistant([block], "tool_use", tokens)

    def result(self, call: Record, text: str, *, failed: bool = False, **fields: Any) -> Record:
        block = {"type": "tool_result", "tool_use_id": call["message"]["content"][0]["id"], "content": text}
        message = {"role": "user", "content": [{**block, "is_error": True} if failed else block]}
        return self.record("user", message=message, **fields)

    def goal(self, met: bool, condition: str = CONDITION, **fields: Any) -> Record:
        return self.record(
            "attachment", attachment={"type": "goal_status", "met": met, "condition": condition} | fields
        )

    def system(self, subtype: str, **fields: Any) -> Record:
        return self.record("system", subtype=subtype, **fields)

    def api_error(self, word: str, text: str) -> Record:
        message: Record = {"id": f"err_{self._count}", "role": "assistant", "model": "<synthetic>"}
        message["content"] = [{"type": "text", "text": text}]
        return self.record("assistant", message=message, isApiErrorMessage=True, error=word)

    def _assistant(self, content: list[Record], stop: str | None, tokens: int) -> Record:
        usage = {"input_tokens": 10, "output_tokens": tokens}
        usage |= {"cache_creation_input_tokens": 400, "cache_read_input_tokens": 2000}
        message: Record = {"id": f"msg_{self.session[-4:]}_{self._count}", "model": "claude-sonnet-5"}
        message |= {"role": "assistant", "stop_reason": stop, "content": content, "usage": usage}
        return self.record("assistant", message=message, requestId=f"req_{self._count}")


def goal_session(records: Records) -> list[Record]:
    """Return a session whose goal is reached after a failed test run and a fix."""
    make = records
    return [
        make.prompt("Make the tests of the cart pass."),
        make.goal(met=False, sentinel=True),
        (first := make.tool("Bash", command="npm test")),
        make.result(first, FAILURE, failed=True),
        make.goal(met=False, reason="two tests of the cart still fail", iterations=1, tokens=25_100),
        make.answer("The clock is a function now; the cart must call it.", stop=None),
        (edit := make.tool("Edit", file_path="src/cart.ts", old_string="clock.now()", new_string="now()")),
        make.result(edit, "The file was updated."),
        (again := make.tool("Bash", command="npm test")),
        make.result(again, "33 passed"),
        make.answer("All tests of the cart pass."),
        make.goal(met=True, reason="the last run shows 0 failed", iterations=2, tokens=61_200),
        make.system("turn_duration", durationMs=279_900),
    ]


def lines(records: list[Record]) -> bytes:
    """Return records as the lines of a transcript."""
    return b"".join(json.dumps(one).encode() + b"\n" for one in records)


def slug(folder: Path) -> str:
    return re.sub(r"[^A-Za-z0-9]", "-", str(folder))


def play(project: Path, home: Path, pause: float) -> None:
    """Write a session with its registry; every third line is written in two parts."""
    folder = home / ".claude" / "projects" / slug(project)
    folder.mkdir(parents=True, exist_ok=True)
    registry = home / ".claude" / "sessions" / f"{os.getpid()}.json"
    registry.parent.mkdir(exist_ok=True)
    entry = {"pid": os.getpid(), "sessionId": SESSION, "cwd": str(project), "kind": "interactive", "status": "busy"}
    registry.write_text(json.dumps(entry | {"startedAt": int(time.time() * 1000)}))
    try:
        with (folder / f"{SESSION}.jsonl").open("ab", buffering=0) as file:
            for number, record in enumerate(goal_session(Records(project))):
                record["timestamp"] = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
                line = lines([record])
                cut = len(line) // 2 if number % 3 == 2 else len(line)
                file.write(line[:cut])
                time.sleep(pause)
                file.write(line[cut:])
    finally:
        registry.unlink()


if __name__ == "__main__":
    play(*read_arguments(__doc__ or ""))
