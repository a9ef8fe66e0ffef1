"""`ralphdeck task init`, `start` and `pause`."""

from __future__ import annotations

from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

import click

from core.base.errors import ProjectNotFound, UnknownRecord
from core.base.text import visible_line
from core.cli.json import objects
from core.cli.json.tasks import attempt_lesson
from core.cli.render.output import line, remark, respond, warn
from core.cli.support.id_completion import complete_loop
from core.cli.support.options import Command, Count
from core.cli.support.project import chosen_project, now, read_configuration, read_snapshot
from core.config.paths import BEGIN_COMMAND, is_folder
from core.episodes.protocol import Episodes
from core.records.loops import Loop

if TYPE_CHECKING:
    from core.sources.configuration import Configuration


class _TaskId(click.types.StringParamType):
    """The id of a task."""

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """How to name a task."""
        return "Name the task, or set RALPHDECK_TASK."


class _TaskArgument(click.Argument):
    """An argument that the environment may replace."""

    def make_metavar(self, ctx: click.Context) -> str:
        """`[TASK]`, because it may be left out."""
        return "[TASK]"


task_argument: Final = click.argument("task_id", cls=_TaskArgument, type=_TaskId(), envvar="RALPHDECK_TASK")
"""The task; an agent may set it once for all of its hooks."""
_agent_option: Final = partial(click.option, "--agent", metavar="NAME", default="", envvar="RALPHDECK_AGENT")


def open_task_memory(*, may_create: bool = False) -> Episodes:
    """The task memory of the chosen project.

    Args:
        may_create: Whether it may be created in a folder without `.aiwg`, if `--project` names the folder.

    Raises:
        ProjectNotFound: There is no such project, or no task memory in it; the message says how to begin.
    """
    project = chosen_project()
    if not may_create and not is_folder(project.aiwg):
        raise ProjectNotFound(
            f"no .aiwg in {project.project}; begin with: {BEGIN_COMMAND} {quote(str(project.project))}"
        )
    return Episodes(project, clock=now, warn=warn)


@click.command(cls=Command)
@click.argument("description", required=False, default="")
@click.option("--criteria", metavar="TEXT", default="", help="When the task is done.")
@click.option("--tag", "tags", metavar="WORD", multiple=True, help="May be repeated.")
@click.option("--related", metavar="TASK", multiple=True, help="Another task; may be repeated.")
@_agent_option(help="The agent. Default: $RALPHDECK_AGENT.")
@click.option("--loop", metavar="ID", shell_complete=complete_loop, help="Use task, criteria and tags of this loop.")
@click.option("--id", "task_id", metavar="ID", help="Id of the task. Default: the next free task-NNN.")
def init(
    description: str,
    criteria: str,
    tags: tuple[str, ...],
    related: tuple[str, ...],
    agent: str,
    loop: str | None,
    task_id: str | None,
) -> None:
    """Create a task with this DESCRIPTION; prints its id.

    In a folder without .aiwg, name the folder with --project: .aiwg/ralph is created there, and nowhere else.

    \b
    Examples:
      id=$(ralphdeck task init "Add OAuth login" --criteria "npm test passes" --tag auth)
      id=$(ralphdeck task init --loop ralph-fix-auth-a1b2c3d4)
      id=$(ralphdeck task init "Add OAuth login" --project .)
    """
    memory = open_task_memory(may_create=True)
    source = _find_loop(loop) if loop is not None else None
    if source is not None:
        description, criteria = description or source.task, criteria or "; ".join(source.criteria)
        tags, agent = tags or source.tags, agent or source.owner
    if not description:
        raise click.UsageError("give a DESCRIPTION of the task, or a --loop that has one")
    made = memory.init_task(
        description,
        criteria=criteria,
        tags=tags,
        related=related,
        agent=agent,
        loop_id=source.id if source else "",
        task_id=task_id,
    )
    respond(lambda: objects.TaskCreated.of(id=made), lambda: line(made))


def _find_loop(name: str) -> Loop:
    loop = read_snapshot().loop_called(name)
    if loop is None:
        raise UnknownRecord(f"no loop {visible_line(name, 80)}; see: ralphdeck loop list")
    return loop


@click.command(cls=Command)
@task_argument
@_agent_option(help="The agent. Default: $RALPHDECK_AGENT, else that of the task.")
@click.option("--approach", metavar="TEXT", default="", help="What the attempt tries, in one line.")
@click.option("--step", "steps", metavar="TEXT", multiple=True, help="A step of the plan; may be repeated.")
@click.option("--estimate", "estimated_iterations", type=Count(), metavar="N", help="Estimated number of iterations.")
@click.option(
    "--similar/--no-similar",
    "with_similar",
    default=True,
    help="Add what similar tasks and loops learned, as loop inject does. Default: yes, which reads the whole project.",
)
@click.option("--resume", is_flag=True, help="Continue an open attempt, if there is one.")
@click.option("--abandon", is_flag=True, help="Close an open attempt as a timeout.")
@click.option("--reopen", is_flag=True, help="Also if the task is completed or failed.")
def start(task_id: str, with_similar: bool, **options: Any) -> None:
    """Start the next attempt at TASK, and print its plan with what earlier attempts and similar tasks learned.

    At a paused task, or with --resume, the open attempt continues, and its plan is printed unchanged. The plan is saved
    in plan.md.

    \b
    Examples:
      ralphdeck task start task-001 --approach "types first" --step "update the interface" --step "run tsc"
      ralphdeck task start task-001 --resume
      ralphdeck task start task-001 --abandon --json | jq -r .attempt
    """
    configuration = read_configuration()
    started = open_task_memory().start_attempt(
        task_id,
        similar=_similar(task_id, configuration) if with_similar else (),
        orders=configuration.settings.scan.holds_other_texts,
        **options,
    )

    def show() -> None:
        for text in started.plan.splitlines():
            line(text)
        if started.resumed:
            remark(f"attempt {started.number} continues")

    respond(
        lambda: objects.AttemptStarted.of(
            started, id=task_id, attempt=started.number, learnings=list(map(attempt_lesson, started.learnings))
        ),
        show,
    )


def _similar(task_id: str, configuration: Configuration) -> tuple[tuple[str, str], ...]:
    """Learnings of similar tasks and loops (ID and text), best first, by the rules for injected reflections."""
    settings = configuration.settings.injection
    if not (settings.enabled and settings.include_reflections):
        return ()
    from core.episodes.similar_tasks import collect_past_tasks
    from core.retrieval.embeddings import TASKS, Embeddings
    from core.retrieval.reflections import similar_reflections

    snapshot = read_snapshot(configuration)
    task = collect_past_tasks(snapshot).get(task_id)
    if task is None:
        return ()
    found = similar_reflections(task, snapshot, configuration.settings, now(), Embeddings(chosen_project(), TASKS))
    return tuple((one.sources[0], one.text) for one in found)


@click.command(cls=Command)
@task_argument
def pause(task_id: str) -> None:
    """Pause TASK. An open attempt stays open, and the next start resumes it.

    \b
    Example:
      ralphdeck task pause task-001
    """
    open_task_memory().pause_task(task_id)
    respond(
        lambda: objects.TaskPaused.of(id=task_id, status="paused"),
        lambda: line(f"{task_id} is paused; resume it with: ralphdeck task start {task_id}"),
    )
