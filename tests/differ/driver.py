"""Run all commands that read a project, in one process of one revision, with a fixed clock.

`python -P driver.py SPEC`, with the code of the revision on `PYTHONPATH`. It imports only the standard library and what
each revision has, so that it also runs with older code. SPEC is a JSON file:

    {"project": folder, "root": folder whose path is masked, "now": ISO-8601, "tasks": [text], "part": name,
     "moments": [days after now at which lists are printed]}

The parts are "commands" and "hooks".

Prints one JSON object a line: {command, moment, code, output, errors}. `moment` is the number of days after `now`.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from types import ModuleType
from typing import Any, Final

LATER_TASKS: Final = 4
"""One context in this number is also printed at later moments."""
LISTS: Final = (
    "pattern list",
    "pattern list --type error,anti --sort uses",
    "pattern list --state held,quarantine",
    "pattern invert",
    "doctor --repair",
    "review",
    "review --suspicious",
    "loop list",
    "loop score",
    "task list",
    "debug list",
    "debug list --escalated",
    "lesson --reflections",
    "lesson",
    "log",
    "metrics",
    "check",
    "doctor",
)
"""Printed at each moment."""
SUMMARIES: Final = (
    "pattern list --as-of 7d",
    "pattern list --as-of 60d",
    "pattern merge --threshold 0.6",
    "pattern prune --dry-run --max-age-days 1",
    "pattern list --archived",
    "review --minutes 12",
    "loop list --archived",
    "loop list --status running,paused",
    "cost --by day",
    "loop score --criteria",
    "loop extract --all --dry-run",
    "task list --open",
    "metrics --tasks",
    "debug list --causes",
    "debug list --archived",
    "debug archive --dry-run",
    "lesson --recurring",
    "lesson --state open",
    "log --verify",
    "log --head",
    "metrics --reviewer",
    "changes --since 30d --all",
    "changes maturity.half_life_days=30",
    "trust --show",
)
SEARCHES: Final = ("test", "fix type", "error --in errors", "null --in reflections", "flaky", "zebra", "src --limit 3")
DETAILS: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "pattern list": ("patterns", "id", ("pattern show", "pattern show --why")),
    "loop list": (
        "loops",
        "id",
        ("loop show", "loop score --errors --all", "loop inject --no-record", "loop inject --deliver"),
    ),
    "task list": ("tasks", "id", ("task show", "task show --replay", "task list --similar=")),
    "debug list": ("sessions", "id", ("debug show",)),
    "lesson": ("lessons", "id", ("lesson",)),
}
"""By list: its key, the key of an ID, and the commands that take such an ID."""
MOST_DETAILS: Final = 24
"""Records of a list whose details are printed, at equal distances."""
VARYING: Final = frozenset({"median_ms", "slowest_ms", "slowest_task", "project_id"})
"""Keys of times that reading took, and of random values."""
_CLOCKS: Final = ("core.cli", "core.agents.hooks")
"""Packages that read the clock for all others."""


class Clock(datetime):
    """A clock that always reads `moment`."""

    moment: datetime

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return cls.moment.astimezone(tz)


class Session:
    """Runs commands on one project and prints what they print."""

    def __init__(self, spec: dict[str, Any], run: Callable[[list[str]], int]) -> None:
        self._project = spec["project"]
        self._root = spec["root"]
        self._now = datetime.fromisoformat(spec["now"])
        self._tasks: list[str] = spec["tasks"]
        self._moments: list[int] = spec["moments"]
        self._run = run
        self._moment = 0

    def set_moment(self, days: int) -> None:
        """Set the clock to a number of days after `now`."""
        self._moment = days
        Clock.moment = self._now + timedelta(days=days)

    def print_all(self) -> None:
        """Run all commands that only read."""
        for days in self._moments:
            self.set_moment(days)
            for command in LISTS:
                listed = self.print_one(command)
                if days == 0 and command in DETAILS:
                    self._print_details(command, listed)
            for task in self._tasks[:: 1 if days == 0 else LATER_TASKS]:
                self.print_one("loop inject", f"--task={task}")
        self.set_moment(0)
        for command in SUMMARIES:
            self.print_one(command)
        for query in SEARCHES:
            self.print_one(f"search {query}")

    def print_hooks(self) -> None:
        """Send the prompts of one new session for each task to the hook of an agent, which records them."""
        for number, task in enumerate(self._tasks):
            for event in ({"hook_event_name": "SessionStart", "source": "startup"}, {"prompt": task}):
                name = event.setdefault("hook_event_name", "UserPromptSubmit")
                given = {"session_id": f"session-{number}", "cwd": self._project, **event}
                with tempfile.TemporaryFile() as file:
                    file.write(json.dumps(given).encode())
                    file.seek(0)
                    os.dup2(file.fileno(), 0)
                code, text, errors = self._captured(["hook", "--agent", "claude"])
                self._emit(f"hook {name} {task}", code, json.loads(text) if text else text, errors)

    def _print_details(self, command: str, listed: Any) -> None:
        key, id_key, details = DETAILS[command]
        records = listed.get(key, []) if isinstance(listed, dict) else []
        step = max(1, len(records) // MOST_DETAILS)
        for record in records[::step][:MOST_DETAILS]:
            for detail in details:
                name, _, option = detail.rpartition(" ") if detail.endswith("=") else (detail, "", "")
                self.print_one(name, *((f"{option}{record[id_key]}",) if option else ("--", record[id_key])))

    def print_one(self, command: str, *arguments: str) -> Any:
        """Run one command and print its line; returns the JSON that it printed, or its text."""
        code, text, errors = self._captured([*command.split(), "--json", "--project", self._project, *arguments])
        with contextlib.suppress(ValueError):
            document = json.loads(text)
            self._emit(" ".join((command, *arguments)), code, document, errors)
            return document
        self._emit(" ".join((command, *arguments)), code, text, errors)
        return text

    def _emit(self, command: str, code: int, output: Any, errors: str) -> None:
        found = {"command": command, "moment": self._moment, "code": code, "output": output, "errors": errors}
        print(json.dumps(self._masked(found)), file=sys.__stdout__, flush=True)

    def _captured(self, words: list[str]) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a command; an exception is its name and message."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors="surrogateescape") for _ in range(2))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = self._run(words)
            except (Exception, SystemExit) as error:
                code = -1
                err.write(f"{type(error).__name__}: {error}")
        for stream in (out, err):
            stream.flush()
        texts = [stream.buffer.getvalue().decode("utf-8", "replace") for stream in (out, err)]
        return code, texts[0], texts[1]

    def _masked(self, value: Any, key: str = "") -> Any:
        """A JSON value without times that reading took, random values and the temporary folder; findings are sorted."""
        if key in VARYING:
            return type(value).__name__
        if isinstance(value, dict):
            return {name: self._masked(item, name) for name, item in value.items()}
        if isinstance(value, list):
            found = [self._masked(item, key) for item in value]
            return sorted(found, key=json.dumps) if key == "findings" else found
        return value.replace(self._root, "ROOT") if isinstance(value, str) else value


def prepare() -> None:
    """Fix the clock, the token of fences, who decides, and the limits of time; start no process in the background."""
    for module in _import_all(_CLOCKS):
        if getattr(module, "datetime", None) is datetime and "datetime.now(" in inspect.getsource(module):
            _replace(module.__name__, "datetime", Clock)
    _replace("core.base.prompt_text", "draw_token", lambda: "0123456789abcdef")
    _replace("core.cli.support.signature", "find_acting_agent", lambda _: "")
    _replace("core.cli.support.signature", "is_at_terminal", lambda: True)
    _replace("core.cli.support.signature", "own_names", lambda: ("ada",))
    _replace("core.agents.hooks.deadline", "Deadline.start", lambda _: None)  # it would end this process
    _replace("subprocess", "Popen.__init__", _start)


def _start(process: Any, arguments: Any, *rest: Any, **options: Any) -> None:
    """Start a process, but nothing in place of those that work on after a command has ended."""
    is_background = options.get("start_new_session") and sys.executable in arguments
    _POPEN(process, [sys.executable, "-c", ""] if is_background else arguments, *rest, **options)


_POPEN: Final = subprocess.Popen.__init__


def _import_all(packages: Sequence[str]) -> Iterator[ModuleType]:
    for package in packages:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                yield importlib.import_module(module.name)


def _replace(module: str, path: str, value: Any) -> None:
    """Replace an attribute of a module or of one of its classes, if this revision has it."""
    *owners, name = path.split(".")
    with contextlib.suppress(ImportError, AttributeError):
        owner: Any = importlib.import_module(module)
        for one in owners:
            owner = getattr(owner, one)
        getattr(owner, name)
        setattr(owner, name, value)


def main(spec: dict[str, Any]) -> None:
    """Print the outputs of all commands for a project."""
    prepare()
    program = importlib.import_module("core.cli.program")
    session = Session(spec, program.run)
    session.set_moment(0)
    if spec["part"] == "hooks":
        session.print_hooks()
    else:
        session.print_all()


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text("utf-8")))
