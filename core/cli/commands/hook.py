"""`ralphdeck hook`: answers the hook events of coding agents."""

from __future__ import annotations

import click

from core.agents.agent_table import AGENTS
from core.cli.hook_call import SKIPPED, answer_event
from core.cli.support.hooks import HookCommand
from core.cli.support.options import Command, OneOf
from core.cli.support.process import read_stdin
from core.cli.support.project import is_readonly, named_project


class _AnswerCommand(Command, HookCommand):
    """A command that always answers a hook."""

    standard = ("--project",)


@click.command(cls=_AnswerCommand, skipped=SKIPPED, always=True)
@click.option(
    "--agent",
    type=OneOf([name for name, agent in AGENTS.items() if agent.events]),
    required=True,
    help="The agent that sends the event.",
)
@click.option("--event", metavar="NAME", default="", help="Name of the event, if the JSON does not contain it.")
def hook(agent: str, event: str) -> None:
    """Answer a hook event of an agent: read JSON on stdin, print what it expects.

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
    if is_readonly():
        read_stdin()  # else the writer of the event gets a broken pipe
    else:
        answer_event(agent, event, named_project())
