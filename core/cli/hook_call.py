"""Answers a hook event: `ralphdeck hook`, also without the command framework.

An agent waits for each event, and the framework takes a quarter of the time of the shortest answer to import.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from core.agents.agent_table import AGENTS, acting_agent
from core.agents.hooks.answer import HookAnswer
from core.agents.hooks.deadline import Deadline, record_give_up
from core.agents.hooks.events import MAX_EVENT, parse_event, project_folder
from core.base.errors import BadInput, DamagedError, ProjectNotFound, RalphdeckError
from core.base.paths import find_project, project_at
from core.base.text import visible_line
from core.cli.support.process import prepare_process, read_stdin

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths

SKIPPED: Final = "hook does nothing"
_RECORD_SECONDS: Final = 0.5  # to record that the hook gave up
_VALUES: Final = ("--agent", "--event", "--project")


def answer_call(words: Sequence[str]) -> None:
    """Answer the event on stdin and exit with 0, if `words` are an agent's call.

    Returns if the command framework must read them: an option in another form, a mistake, `--help`, or read-only.
    """
    options = _options(words)
    if options is None or sys.stdout is None or sys.stderr is None or "RALPHDECK_READONLY" in os.environ:
        return
    prepare_process()
    named = options.get("--project") or os.environ.get("RALPHDECK_PROJECT")
    try:
        answer_event(options["--agent"], options.get("--event", ""), Path(named) if named else None)
    except (BrokenPipeError, KeyboardInterrupt):
        pass
    except Exception as error:
        _complain(f"ralphdeck {SKIPPED}: {str(error) or type(error).__name__}")
    os._exit(0)  # without freeing all objects, which takes up to 0.01 s; all that is written is flushed


def _options(words: Sequence[str]) -> dict[str, str] | None:
    """Return the values of `hook --agent NAME ...` by option; None for anything else."""
    values = dict(zip(words[1::2], words[2::2], strict=False))
    is_plain = len(words) == 2 * len(values) + 1 and values.keys() <= {*_VALUES} and all(values.values())
    agent = AGENTS.get(values.get("--agent", ""))
    return values if words[0] == "hook" and is_plain and agent is not None and agent.events else None


def answer_event(agent: str, event: str, named: Path | None) -> None:
    """Answer the event on stdin.

    `named` is the project that the user named, `event` the name of the event if it has none. Raises RalphdeckError or
    OSError; an index that turns out to be damaged is deleted before that.
    """
    acting = acting_agent(agent, os.environ)
    work = _Work(acting, event)
    deadline = Deadline(work.give_up)
    deadline.start()
    data = read_stdin(MAX_EVENT + 1)
    if len(data) > MAX_EVENT:  # the deadline cannot end the parser, which would take seconds
        with suppress(ProjectNotFound):
            work.project = _project_of(Path(), named)
        reason = f"the event is longer than {MAX_EVENT >> 20} MiB"
        work.record(reason)
        raise BadInput(reason)
    parsed = parse_event(acting, data, event)
    if parsed is None:
        return
    deadline.set_moment(parsed.moment)
    try:
        project = _project_of(project_folder(parsed), named)
    except ProjectNotFound:
        return
    work.agent, work.event, work.project = parsed.agent, parsed.name, project
    answer = HookAnswer(
        project,
        parsed,
        clock=_now,
        warn=lambda text: _complain(f"ralphdeck hook: {text}"),
        begin_answer=deadline.begin_answer,
    )
    work.answer = answer
    try:
        answer.handle(_send)
    except (RalphdeckError, OSError) as error:
        work.record(str(error))
        if isinstance(error, DamagedError):
            from core.index.database import delete

            delete(project.project)
        raise


def _project_of(folder: Path, named: Path | None) -> ProjectPaths:
    """Return the named project, or that of a folder; raises ProjectNotFound."""
    return project_at(named) if named is not None else find_project(folder)


class _Work:
    """What the process works on, as far as known; recorded if the process gives up."""

    def __init__(self, agent: str, event: str) -> None:
        self.agent = agent
        self.event = event
        self.project: ProjectPaths | None = None
        self.answer: HookAnswer | None = None

    def record(self, reason: str) -> None:
        if self.project is not None:
            with suppress(OSError, RalphdeckError):
                record_give_up(self.project, self.agent, self.event, reason, _now())

    def _keep(self, reason: str) -> None:
        self.record(reason)
        if self.answer is not None:
            self.answer.spool()
        if self.project is not None:  # with an index, the next event has what this one could not give
            from core.agents.hooks.deadline import start_sweep

            start_sweep(self.project)

    def give_up(self, reason: str) -> NoReturn:
        """End the process; a disk that hangs does not delay that."""
        with suppress(OSError):
            os.write(2, f"ralphdeck hook: {reason}\n".encode())
        recording = threading.Thread(target=self._keep, args=(reason,), daemon=True)
        recording.start()
        recording.join(_RECORD_SECONDS)
        os._exit(0)


def _now() -> datetime:
    return datetime.now(UTC)


def _send(data: bytes) -> None:
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()


def _complain(text: str) -> None:
    """Print a line on stderr."""
    with suppress(OSError):
        os.write(2, visible_line(text).encode(errors="replace") + b"\n")
