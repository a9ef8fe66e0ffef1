"""`ralphdeck task init`, `start` and `pause`."""

from __future__ import annotations

from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Final

import click

from core.base.errors import ProjectNotFound, UnknownRecord
from core.base.text import visible_line
from core.cli.json.shapes import json_help
from core.cli.json.tasks import lesson_json
from core.cli.render.output import line, print_json, remark, warn
from core.cli.support.id_completion import complete_loop
from core.cli.support.options import Count, json_option, project_option
from core.cli.support.project import chosen_project, named_project, now, read_configuration, read_snapshot
from core.config.paths import is_folder
from core.episodes.protocol import Episodes
from core.records.loops import Loop

if TYPE_CHECKING:
    from core.sources.configuration import Configuration

_BEGIN: Final = 'ralphdeck task init "what it is to do" --project'


class _TaskId(click.types.StringParamType):
    """The id of a task."""

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """How to name one."""
        return "Name the task, or set RALPHDECK_TASK."


task_argument: Final = click.argument("task_id", metavar="TASK", type=_TaskId(), envvar="RALPHDECK_TASK")
"""Which task; an agent may name it once for all of its hooks."""
_agent_option: Final = partial(click.option, "--agent", metavar="NAME", default="", envvar="RALPHDECK_AGENT")


def episodes(*, begins: bool = False) -> Episodes:
    """The episodic memory of the chosen project.

    Args:
        begins: Whether it may begin in a named folder that has no `.aiwg` yet; one that nobody named stays as it is.

    Raises:
        ProjectNotFound: There is no such project, or nothing in it yet; the message says how to begin.
    """
    try:
        project = chosen_project()
    except ProjectNotFound as error:
        if named_project() is not None:
            raise
        raise ProjectNotFound(f"{error}; to begin in this folder: {_BEGIN} .") from None
    if not begins and not is_folder(project.aiwg):
        raise ProjectNotFound(f"no .aiwg in {project.project}; begin with: {_BEGIN} {quote(str(project.project))}")
    return Episodes(project, clock=now, warn=warn)


@click.command(epilog=json_help("task init"))
@click.argument("description", required=False, default="")
@click.option("--criteria", metavar="TEXT", default="", help="When it is done.")
@click.option("--tag", "tags", metavar="WORD", multiple=True, help="May be given several times.")
@click.option("--related", metavar="TASK", multiple=True, help="Another task; may be given several times.")
@_agent_option(help="Who works at it. Default: $RALPHDECK_AGENT.")
@click.option("--loop", metavar="ID", shell_complete=complete_loop, help="Take over what this loop is to do.")
@click.option("--id", "task_id", metavar="ID", help="Its id. Default: the next free task-NNN.")
@project_option
@json_option
def init(
    description: str,
    criteria: str,
    tags: tuple[str, ...],
    related: tuple[str, ...],
    agent: str,
    loop: str | None,
    task_id: str | None,
    as_json: bool,
) -> None:
    """Begin a task that does what DESCRIPTION says; prints its id.

    In a folder that has no .aiwg yet, name it with --project: .aiwg/ralph is made there, and nowhere else.

    \b
    Examples:
      id=$(ralphdeck task init "Add OAuth login" --criteria "npm test passes" --tag auth)
      id=$(ralphdeck task init --loop ralph-fix-auth-a1b2c3d4)
      id=$(ralphdeck task init "Add OAuth login" --project .)
    """
    memory = episodes(begins=True)
    of = _loop(loop) if loop is not None else None
    if of is not None:
        description, criteria = description or of.task, criteria or "; ".join(of.criteria)
        tags, agent = tags or of.tags, agent or of.owner
    if not description:
        raise click.UsageError("say in DESCRIPTION what the task is, or name a --loop that does")
    made = memory.init_task(
        description,
        criteria=criteria,
        tags=tags,
        related=related,
        agent=agent,
        loop_id=of.id if of else "",
        task_id=task_id,
    )
    if as_json:
        print_json({"id": made})
    else:
        line(made)


def _loop(name: str) -> Loop:
    loop = read_snapshot().loop_called(name)
    if loop is None:
        raise UnknownRecord(f"no loop {visible_line(name, 80)}; see: ralphdeck loops")
    return loop


@click.command(epilog=json_help("task start"))
@task_argument
@_agent_option(help="Who works at it. Default: $RALPHDECK_AGENT, else as at task init.")
@click.option("--approach", metavar="TEXT", default="", help="What is to be tried, in a line.")
@click.option("--step", "steps", metavar="TEXT", multiple=True, help="May be given several times.")
@click.option("--estimate", type=Count(), metavar="N", help="Iterations that it may take.")
@click.option(
    "--similar/--no-similar",
    default=True,
    help="Take in what similar tasks and loops learned, as inject does. Default: yes, which reads the whole project.",
)
@click.option("--resume", is_flag=True, help="Go on with an attempt that was left open, if there is one.")
@click.option("--abandon", is_flag=True, help="Close an attempt that was left open, as a timeout.")
@click.option("--reopen", is_flag=True, help="Also if the task is completed or failed.")
@project_option
@json_option
def start(
    task_id: str,
    agent: str,
    approach: str,
    steps: tuple[str, ...],
    estimate: int | None,
    similar: bool,
    resume: bool,
    abandon: bool,
    reopen: bool,
    as_json: bool,
) -> None:
    """Start the next attempt at TASK, and print its plan with what earlier attempts and similar tasks have taught.

    At a paused task, or with --resume, the attempt that was open goes on; its plan is printed as it is. The plan is
    kept in plan.md.

    \b
    Examples:
      ralphdeck task start task-001 --approach "types first" --step "update the interface" --step "run tsc"
      ralphdeck task start task-001 --resume
      ralphdeck task start task-001 --abandon --json | jq -r .attempt
    """
    configuration = read_configuration()
    started = episodes().start_attempt(
        task_id,
        agent=agent,
        approach=approach,
        steps=steps,
        estimated_iterations=estimate,
        similar=_similar(task_id, configuration) if similar else (),
        orders=configuration.settings.scan.holds_other_texts,
        abandon=abandon,
        resume=resume,
        reopen=reopen,
    )
    if as_json:
        print_json(
            {
                "id": task_id,
                "attempt": started.number,
                "resumed": started.resumed,
                "plan_path": started.plan_path,
                "plan": started.plan,
                "learnings": [lesson_json(lesson) for lesson in started.learnings],
            }
        )
        return
    for text in started.plan.splitlines():
        line(text)
    if started.resumed:
        remark(f"attempt {started.number} goes on")


def _similar(task_id: str, configuration: Configuration) -> tuple[tuple[str, str], ...]:
    """What similar tasks and loops learned: ID and learning, best first, by the rules of the injected reflections."""
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


@click.command(epilog=json_help("task pause"))
@task_argument
@project_option
@json_option
def pause(task_id: str, as_json: bool) -> None:
    """Put TASK aside. An attempt that is open stays open, and the next start resumes it.

    \b
    Examples:
      ralphdeck task pause task-001
    """
    episodes().pause_task(task_id)
    if as_json:
        print_json({"id": task_id, "status": "paused"})
    else:
        line(f"{task_id} is paused; it goes on with: ralphdeck task start {task_id}")
