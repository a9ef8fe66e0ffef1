"""Transcripts that an agent leaves in a person's home folder before anything is set up."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from core.sources.adapters.agent_files import project_slug
from tests.fix_sessions.payloads import CONVERSATIONS
from tests.fix_sessions.sessions import read_sessions

_STEP = timedelta(seconds=20)


def leave_transcripts(project: Path, home: Path, now: datetime, count: int) -> None:
    """Let Claude Code fix `count` failing checks in a project, one a day up to yesterday."""
    sessions = islice((one for one in read_sessions() if one.agent == "claude"), count)
    for number, session in enumerate(sessions):
        id = f"5b1d0c7e-0000-4000-8000-{number:012}"
        transcript = home / ".claude" / "projects" / project_slug(project) / f"{id}.jsonl"
        for name, content in session.files.items():
            file = project / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        CONVERSATIONS["claude"](id, project, transcript, lambda event: None).play(session)
        _date(transcript, now - timedelta(days=count - number))


def _date(transcript: Path, begin: datetime) -> None:
    """Give each line a time, an ID and the fields that the agent adds to its messages."""
    lines: list[str] = []
    for number, line in enumerate(transcript.read_text().splitlines()):
        entry = json.loads(line)
        at = (begin + number * _STEP).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        entry |= {"timestamp": at, "uuid": f"{transcript.stem}-{number}", "version": "2.1.240"}
        entry["parentUuid"] = f"{transcript.stem}-{number - 1}" if number else None
        if entry["type"] == "assistant":
            uses_tool = any(block["type"] == "tool_use" for block in entry["message"]["content"])
            usage = {"input_tokens": 1000, "output_tokens": 200}
            entry["message"] |= {"id": f"message-{number}", "model": "claude-sonnet-5", "usage": usage}
            entry["message"]["stop_reason"] = "tool_use" if uses_tool else "end_turn"
        lines.append(json.dumps(entry))
    transcript.write_text("\n".join(lines) + "\n")
    end = (begin + len(lines) * _STEP).timestamp()
    os.utime(transcript, (end, end))
