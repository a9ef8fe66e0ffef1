"""`ralphdeck hook`: answers the hook events of coding agents."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import click

from core.agents.agent_table import AGENTS, acting_agent
from core.base.errors import BadInput, ProjectNotFound, RalphdeckError
from core.cli.render.output import remark
from core.cli.support.hooks import HookCommand, read_stdin
from core.cli.support.options import Command
from core.cli.support.project import guarded, is_readonly, named_project, now
from core.config.paths import find_project, project_at
from core.hooks.answer import HookAnswer
from core.hooks.deadline import Deadline, record_give_up
from core.hooks.events import MAX_EVENT, parse_event, project_folder

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths

_RECORD_SECONDS: Final = 0.5  # to record that the hook gave up


class _AnswerCommand(Command, HookCommand):
    """A command that always answers a hook."""

    standard = ("--project",)


@click.command(cls=_AnswerCommand, skipped="hook does nothing", always=True)
@click.option(
    "--agent",
    type=click.Choice([name for name, agent in AGENTS.items() if agent.events]),
    required=True,
    help="The agent that sends the event.",
)
@click.option("--event", metavar="NAME", default="", help="Name of the event, if the JSON does not contain it.")
def hook(agent: str, event: str) -> None:
    """Answer one hook event of a coding agent: reads its JSON on stdin, prints what the agent expects.

    A prompt gets the context for its text. Tool calls become actions of a task, one task per piece of work of a
    session. A failed tool call gets the known fix. The end of a turn or session closes the attempt with what the log
    proves, and patterns are extracted in the background for Review.

    Nothing is printed if nothing is known. Errors are reported on stderr only, the exit code is 0, and the command ends
    after 2 seconds of processor time, or 6 seconds at a prompt and 4 at other events. A context that was not ready
    then is given at the next event. An event longer than 8 MiB is not parsed. Outside a project it does nothing.
    `ralphdeck connect` adds the command to the agents' settings.

    \b
    Example:
      echo '{"hook_event_name": "SessionStart", "session_id": "s1", "cwd": "."}' | ralphdeck hook --agent claude
    """
    acting = acting_agent(agent, os.environ)
    work = _Work(acting, event)
    deadline = Deadline(work.give_up)
    deadline.start()
    data = read_stdin(MAX_EVENT + 1)
    if len(data) > MAX_EVENT:  # the deadline cannot end the parser, which would take seconds
        with suppress(ProjectNotFound):
            work.project = None if is_readonly() else _project_of(Path())
        reason = f"the event is longer than {MAX_EVENT >> 20} MiB"
        work.record(reason)
        raise BadInput(reason)
    parsed = parse_event(acting, data, event)
    if parsed is None or is_readonly():
        return
    deadline.set_moment(parsed.moment)
    try:
        project = _project_of(project_folder(parsed))
    except ProjectNotFound:
        return
    work.agent, work.event, work.project = parsed.agent, parsed.name, project
    answer = HookAnswer(
        project,
        parsed,
        clock=now,
        warn=lambda text: remark(f"ralphdeck hook: {text}"),
        begin_answer=deadline.begin_answer,
    )
    work.answer = answer
    try:
        answer.handle(_send)
    except (RalphdeckError, OSError) as error:
        work.record(str(error))
        raise


def _project_of(folder: Path) -> ProjectPaths:
    """Return the project that the user named, or that of a folder."""
    named = named_project()
    return guarded(project_at(named) if named is not None else find_project(folder))


class _Work:
    """What the process works on, as far as it is known; recorded if the process gives up."""

    def __init__(self, agent: str, event: str) -> None:
        self.agent = agent
        self.event = event
        self.project: ProjectPaths | None = None
        self.answer: HookAnswer | None = None

    def record(self, reason: str) -> None:
        if self.project is not None:
            with suppress(OSError, RalphdeckError):
                record_give_up(self.project, self.agent, self.event, reason, now())

    def _keep(self, reason: str) -> None:
        self.record(reason)
        if self.answer is not None:
            self.answer.spool()
        if self.project is not None:  # with an index, the next event has what this one could not give
            from core.hooks.sweep import start_sweep

            start_sweep(self.project)

    def give_up(self, reason: str) -> NoReturn:
        """End the process; a disk that hangs does not delay that."""
        with suppress(OSError):
            os.write(2, f"ralphdeck hook: {reason}\n".encode())
        recording = threading.Thread(target=self._keep, args=(reason,), daemon=True)
        recording.start()
        recording.join(_RECORD_SECONDS)
        os._exit(0)


def _send(data: bytes) -> None:
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()
