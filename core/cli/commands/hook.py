"""`ralphdeck hook`: answers the hook events of coding agents."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import Final

import click

from core.agents.agent_table import AGENTS, acting_agent
from core.base.errors import ProjectNotFound
from core.cli.render.output import remark
from core.cli.support.hooks import HookCommand, read_stdin
from core.cli.support.options import Command
from core.cli.support.project import guarded, is_readonly, named_project, now
from core.config.paths import find_project, project_at
from core.hooks.answer import HookAnswer
from core.hooks.events import parse_event, project_folder

DEADLINE_SECONDS: Final = 2.0  # then the process ends, so that no agent waits longer


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
    after 2 seconds. Outside a project it does nothing. `ralphdeck connect` adds the command to the agents' settings.

    \b
    Example:
      echo '{"hook_event_name": "SessionStart", "session_id": "s1", "cwd": "."}' | ralphdeck hook --agent claude
    """
    watchdog = threading.Timer(DEADLINE_SECONDS, _give_up)
    watchdog.daemon = True
    watchdog.start()
    parsed = parse_event(acting_agent(agent, os.environ), read_stdin(), event)
    if parsed is None or is_readonly():
        return
    try:
        named = named_project()
        project = guarded(project_at(named) if named is not None else find_project(project_folder(parsed)))
    except ProjectNotFound:
        return
    HookAnswer(project, parsed, clock=now, warn=lambda text: remark(f"ralphdeck hook: {text}")).handle(_send)


def _give_up() -> None:
    with suppress(OSError):
        os.write(2, b"ralphdeck hook: not finished in time\n")
    os._exit(0)


def _send(data: bytes) -> None:
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()
