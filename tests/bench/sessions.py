"""Generated sessions of an agent, to measure how runners' files are read."""

from __future__ import annotations

import json
import re
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2026, 10, 1, tzinfo=UTC)


def write_sessions(home: Path, project: Path, count: int, size: int) -> Path:
    """Write transcripts of about `size` bytes each; returns their folder."""
    folder = home / ".claude/projects" / re.sub(r"[^A-Za-z0-9]", "-", str(project))
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        id = str(uuid.UUID(int=number))
        lines = [*_lines(id, str(project), START + timedelta(minutes=5 * number), size)]
        (folder / f"{id}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def _lines(id: str, project: str, start: datetime, size: int) -> list[str]:
    """Turns of a session: a prompt, and tool calls with results."""
    lines: list[str] = []
    written = 0
    while written < size:
        number = len(lines)
        common = {
            "uuid": f"{id}-{number}",
            "sessionId": id,
            "cwd": project,
            "timestamp": (start + timedelta(seconds=number)).isoformat().replace("+00:00", "Z"),
            "version": "2.1.240",
        }
        if number == 0:
            line = {"type": "user", **common, "message": {"role": "user", "content": f"Make test {id[-4:]} pass."}}
        elif number % 2:
            usage = {"input_tokens": 12, "output_tokens": 80, "cache_read_input_tokens": 21_000}
            call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "npm test"}}
            content = [{"type": "text", "text": "word " * 40}, call]
            message = {"id": f"m{number}", "role": "assistant", "model": "claude-sonnet-5", "usage": usage}
            line = {
                "type": "assistant",
                "requestId": f"r{number}",
                **common,
                "message": {**message, "content": content},
            }
        else:
            result = {"type": "tool_result", "tool_use_id": f"t{number - 1}", "content": "passed " * 250}
            line = {"type": "user", **common, "message": {"role": "user", "content": [result]}}
        lines.append(json.dumps(line))
        written += len(lines[-1])
    return lines
