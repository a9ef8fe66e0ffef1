"""Simulates Claude Code: fixes a failing test, and calls the hooks in the settings of the project on the way.

It runs the hook commands as the agent does: from `.claude/settings.json`, with the event as JSON on standard input. It
prints one JSON object per event: its name, the context that the hooks added, and the milliseconds that they took.

Usage: python -m tests.e2e.simulated_agent FOLDER --session ID --prompt TEXT
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

BROKEN: Final = 'def title(user):\n    return user["name"].upper()\n'
FIXED: Final = 'def title(user):\n    return (user or {}).get("name", "").upper()\n'
TEST: Final = """import unittest
from account import title


class AccountTest(unittest.TestCase):
    def test_a_guest_has_no_title(self):
        self.assertEqual(title(None), "")
"""
COMMAND: Final = [sys.executable, "-m", "unittest"]
_TIMEOUT: Final = 30


def make_code(folder: Path) -> None:
    """Write a module with a failing test."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "account.py").write_text(BROKEN)
    (folder / "test_account.py").write_text(TEST)


class Agent:
    """One session of the agent in a folder."""

    def __init__(self, folder: Path, session: str) -> None:
        self._folder = folder
        self._session = session
        self._hooks = json.loads((folder / ".claude" / "settings.json").read_text())["hooks"]
        self._calls = 0

    def _handlers(self, event: str, tool: str) -> Iterator[list[str]]:
        for entry in self._hooks.get(event, []):
            if not tool or entry.get("matcher", "*") in ("", "*") or re.fullmatch(entry["matcher"], tool):
                for handler in entry["hooks"]:
                    yield (
                        [handler["command"], *handler["args"]]
                        if "args" in handler
                        else ["sh", "-c", handler["command"]]
                    )

    def fire(self, event: str, **fields: Any) -> str:
        """Call the hooks of an event; prints and returns the context that they added."""
        given = {"hook_event_name": event, "session_id": self._session, "cwd": str(self._folder), **fields}
        contexts = []
        start = time.perf_counter()
        for command in self._handlers(event, fields.get("tool_name", "")):
            done = subprocess.run(
                command,
                input=json.dumps(given).encode(),
                cwd=self._folder,
                capture_output=True,
                timeout=_TIMEOUT,
                check=True,
            )
            if done.stdout.strip():
                answer = json.loads(done.stdout)["hookSpecificOutput"]
                assert answer["hookEventName"] == event
                contexts.append(answer["additionalContext"])
        taken = round((time.perf_counter() - start) * 1000)
        context = "\n".join(contexts)
        sys.stdout.write(json.dumps({"event": event, "context": context, "ms": taken}) + "\n")
        return context

    def tool(self, name: str, given: dict[str, Any], response: dict[str, Any], error: str = "") -> None:
        """Report a tool call."""
        self._calls += 1
        fields = {"tool_name": name, "tool_input": given, "tool_use_id": f"{self._session}-{self._calls}"}
        if error:
            self.fire("PostToolUseFailure", **fields, error=error)
        else:
            self.fire("PostToolUse", **fields, tool_response=response)

    def run_tests(self) -> None:
        """Run the tests and report the result."""
        done = subprocess.run(COMMAND, cwd=self._folder, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
        printed = done.stderr + done.stdout
        response = {"stdout": printed, "stderr": "", "interrupted": False}
        error = f"Exit code {done.returncode}\n{printed}" if done.returncode else ""
        self.tool("Bash", {"command": shlex.join(COMMAND), "description": "Run the tests"}, response, error)

    def fix(self) -> None:
        """Edit the broken file and report the edit."""
        file = self._folder / "account.py"
        file.write_text(FIXED)
        given = {"file_path": str(file), "old_string": BROKEN, "new_string": FIXED}
        self.tool("Edit", given, {"filePath": str(file)})

    def work(self, prompt: str) -> None:
        """Work through one session."""
        self.fire("SessionStart", source="startup")
        self.fire("UserPromptSubmit", prompt=prompt)
        (self._folder / "account.py").write_text(BROKEN)
        self.run_tests()
        self.fix()
        self.run_tests()
        self.fire("Stop", stop_hook_active=False)
        self.fire("SessionEnd", reason="prompt_input_exit")


def main() -> None:
    """Run one session."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--session", required=True)
    parser.add_argument("--prompt", required=True)
    options = parser.parse_args()
    make_code(options.folder)
    Agent(options.folder.resolve(), options.session).work(options.prompt)


if __name__ == "__main__":
    main()
