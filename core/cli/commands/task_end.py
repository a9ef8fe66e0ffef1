"""`ralphdeck task complete` and `reflect`."""

from __future__ import annotations

from typing import Any

import click

from core.base.text import plural, visible_line
from core.cli.commands.task_begin import episodes, task_argument
from core.cli.json.shapes import json_help
from core.cli.json.tasks import said_json
from core.cli.render.output import line, print_json, remark
from core.cli.support.options import Count, Fraction, OneOfAKind, json_option, project_option
from core.episodes.reflection_format import TRIGGERS, TYPES, render_reflection
from core.episodes.validation import MAX_PERCENT
from core.records.loops import Outcome
from core.records.reflections import Reflection


class _Spelled(click.Choice[str]):
    """Words with hyphens, which --json has with underscores."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word, however it was spelled."""
        return super().convert(str(value).replace("_", "-"), param, ctx)


@click.command(cls=OneOfAKind, epilog=json_help("task complete"))
@task_argument
@click.option("--success", "said", flag_value=Outcome.SUCCESS.value, help="It reached the goal.")
@click.option("--failure", "said", flag_value=Outcome.FAILURE.value, help="It did not.")
@click.option("--timeout", "said", flag_value=Outcome.TIMEOUT.value, help="It ran out of time or of iterations.")
@click.option("--reason", metavar="TEXT", default="", help="Why it came out so.")
@click.option("--quality", type=Fraction(), help="What the work is worth. Default: as logged last.")
@click.option("--percent", type=click.FloatRange(0, MAX_PERCENT), metavar="N", help="How much of the task is done.")
@click.option("--worked", metavar="TEXT", multiple=True, help="What worked; may be given several times.")
@click.option("--didnt-work", metavar="TEXT", multiple=True, help="What did not.")
@click.option("--suggest", metavar="TEXT", multiple=True, help="What to do differently next time.")
@click.option("--milestone", "milestones", metavar="TEXT", multiple=True, help="What was reached on the way.")
@click.option("--done", "done", flag_value=True, type=bool, default=None, help="The task is completed.")
@click.option("--give-up", "done", flag_value=False, type=bool, help="The task has failed.")
@click.option("--attempt", type=Count(), metavar="N", help="Default: the newest.")
@project_option
@json_option
def complete(
    task_id: str,
    said: str | None,
    reason: str,
    quality: float | None,
    percent: float | None,
    worked: tuple[str, ...],
    didnt_work: tuple[str, ...],
    suggest: tuple[str, ...],
    milestones: tuple[str, ...],
    done: bool | None,
    attempt: int | None,
    as_json: bool,
) -> None:
    """Say how the attempt at TASK came out, and draft the reflection on it.

    Without --success, --failure or --timeout the log decides: the last check (test, build, type check, linter), unless
    a file was changed after it; else a last action that failed. If it proves nothing, nothing is done.

    The task itself goes on until --done or --give-up says so, with this attempt or after it. Repeating a call does no
    harm, and makes up for what a crash left out; what was said of an attempt that has ended stays.

    \b
    Examples:
      ralphdeck task complete task-001 --failure --reason "types are missing" --suggest "interface first"
      ralphdeck task complete task-001 --success --reason "all green" --worked "types first"
      ralphdeck task complete task-001 --done
    """
    completed = episodes().complete_attempt(
        task_id,
        outcome=Outcome(said) if said is not None else None,
        reason=reason,
        final_quality=quality,
        completion_percent=percent,
        worked=worked,
        didnt_work=didnt_work,
        suggestions=suggest,
        attempt=attempt,
        task_done=done,
        milestones=[{"event": text} for text in milestones],
    )
    if as_json:
        print_json(
            {
                "id": task_id,
                "attempt": completed.number,
                "outcome": completed.outcome.value,
                "derived": completed.derived,
                "again": completed.again,
                "status": completed.status.value,
                "actions": completed.log.actions,
                "errors": completed.log.errors,
                "iterations": completed.log.iterations,
                "reflections": [said_json(one) for one in completed.reflections],
            }
        )
        return
    by_log = ", as the log tells" if completed.derived else ""
    counts = f"{plural(completed.log.actions, 'action')}, {plural(completed.log.errors, 'error')}"
    line(f"attempt {completed.number} at {task_id}: {completed.outcome.value}{by_log} ({counts})")
    line(f"{task_id} is {completed.status.value}")
    for one in completed.reflections:
        _print(one)
    if completed.again and any((reason, quality, percent, worked, didnt_work, suggest, milestones)):
        remark(f"attempt {completed.number} had ended before: what was said of it then stays")
    if completed.outcome is Outcome.SUCCESS and not completed.status.ended:
        remark(f"the task goes on; if this was all of it: ralphdeck task complete {task_id} --done")
    if any(one.draft for one in completed.reflections):
        remark(f"drafted from the log; say it better: ralphdeck task reflect {task_id} --learning TEXT")


@click.command(epilog=json_help("task reflect"))
@task_argument
@click.option("--observation", metavar="TEXT", default="", help="What happened.")
@click.option("--analysis", metavar="TEXT", default="", help="Why it happened.")
@click.option("--learning", metavar="TEXT", default="", help="What to do differently.")
@click.option("--action-item", "items", metavar="TEXT", multiple=True, help="May be given several times.")
@click.option("--trigger", type=click.Choice(TRIGGERS), default="manual", show_default=True)
@click.option("--type", "type_", type=_Spelled(TYPES), help="Default: by the outcome of the attempt.")
@click.option("--attempt", type=Count(), metavar="N", help="Default: the newest.")
@project_option
@json_option
def reflect(
    task_id: str,
    observation: str,
    analysis: str,
    learning: str,
    items: tuple[str, ...],
    trigger: str,
    type_: str | None,
    attempt: int | None,
    as_json: bool,
) -> None:
    """Put a reflection on an attempt at TASK into words; it takes the place of what was drafted from the log.

    Parts that are not given are taken over from the draft. The plan of the next attempt takes it in. Said again, what
    was learned last counts; the history keeps all.

    \b
    Examples:
      ralphdeck task reflect task-001 --observation "3 type errors" --analysis "the interface was not updated" \\
        --learning "types first" --action-item "update AuthConfig" --action-item "run tsc before the tests"
    """
    made = episodes().reflect(
        task_id,
        attempt,
        observation=observation,
        analysis=analysis,
        learning=learning,
        action_items=items,
        trigger=trigger,
        reflection_type=type_,
    )
    if as_json:
        print_json({"reflection": said_json(made)})
    else:
        _print(made)


def _print(reflection: Reflection) -> None:
    """In the document's layout; every text on a line of its own."""
    text = render_reflection(
        reflection.attempt or 0,
        visible_line(reflection.observation),
        visible_line(reflection.analysis),
        visible_line(reflection.learning),
        [visible_line(item) for item in reflection.actions],
    )
    for told in ("", *text.splitlines()):
        line(told)
