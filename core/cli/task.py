"""`ralphdeck task`: the agent protocol on the command line (1); each command is loaded when it is called."""

from __future__ import annotations

from typing import Final

import click

from core.cli.lazy import LazyCommands
from core.cli.options import project_option

COMMANDS: Final = {
    "init": ("core.cli.task_begin:init", "Begin a task; prints its id."),
    "start": ("core.cli.task_begin:start", "Start an attempt, or resume a paused one; prints its plan."),
    "log": ("core.cli.task_log:log", "Log what was done in an attempt."),
    "complete": ("core.cli.task_end:complete", "Say how an attempt came out; drafts the reflection on it."),
    "reflect": ("core.cli.task_end:reflect", "Put a reflection on an attempt into words."),
    "pause": ("core.cli.task_begin:pause", "Put a task aside; the next start resumes it."),
    "list": ("core.cli.task_list:list_tasks", "List the tasks with their attempts."),
    "report": ("core.cli.task_report:report", "Print how retries with reflections do, and the success metrics."),
    "similar": ("core.cli.task_similar:similar", "List past tasks like one, and what was learned in them."),
}
"""Where each command is, and its one line of help."""


@click.group(cls=LazyCommands, places=COMMANDS)
@project_option
def task() -> None:
    """Keep the memory of tasks: what was tried, how it came out, what was learned.

    An agent calls these as it works; each call is on the disk when it returns, and may be repeated after a crash.
    Where TASK or --agent is left out, $RALPHDECK_TASK and $RALPHDECK_AGENT tell it, as for the hooks of an agent.

    \b
    Examples:
      id=$(ralphdeck task init "Add OAuth login" --criteria "npm test passes")
      ralphdeck task start $id --approach "types first"
      ralphdeck task log $id --type bash --tool Bash --param command="npm test" \\
        --failure --error "3 failing" --reasoning "see what is left" --expected "green"
      ralphdeck task complete $id --failure --reason "types are missing" --suggest "interface first"
    """
