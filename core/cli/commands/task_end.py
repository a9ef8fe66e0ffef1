"""`ralphdeck task complete` and `reflect`."""

from __future__ import annotations

from typing import Any

import click

from core.base.text import plural, visible_line
from core.cli.commands.task_begin import open_task_memory, task_argument
from core.cli.json import objects
from core.cli.render.output import line, remark, respond
from core.cli.support.options import Command, Count, ExclusiveFlags, Fraction
from core.episodes.reflections import TRIGGERS, TYPES, render_reflection
from core.episodes.validation import MAX_PERCENT
from core.records.loops import Outcome
from core.records.reflections import Reflection


class _Choice(click.Choice[str]):
    """Words with hyphens; underscores, as in --json, are accepted too."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(str(value).replace("_", "-"), param, ctx)


class _CompleteCommand(Command, ExclusiveFlags):
    """A command whose flags exclude each other."""


@click.command(cls=_CompleteCommand)
@task_argument
@click.option("--success", "outcome", flag_value=Outcome.SUCCESS.value, help="It reached the goal.")
@click.option("--failure", "outcome", flag_value=Outcome.FAILURE.value, help="It did not.")
@click.option("--timeout", "outcome", flag_value=Outcome.TIMEOUT.value, help="It ran out of time or of iterations.")
@click.option("--reason", metavar="TEXT", default="", help="Reason for the outcome.")
@click.option("--quality", type=Fraction(), help="Quality of the work. Default: the last logged one.")
@click.option("--percent", type=click.FloatRange(0, MAX_PERCENT), metavar="N", help="Percentage of the task done.")
@click.option("--worked", metavar="TEXT", multiple=True, help="What worked; may be repeated.")
@click.option("--didnt-work", metavar="TEXT", multiple=True, help="What did not work; may be repeated.")
@click.option("--suggest", metavar="TEXT", multiple=True, help="What to do differently next time; may be repeated.")
@click.option("--milestone", "milestones", metavar="TEXT", multiple=True, help="A milestone; may be repeated.")
@click.option("--done", "done", flag_value=True, type=bool, default=None, help="The task is completed.")
@click.option("--give-up", "done", flag_value=False, type=bool, help="The task has failed.")
@click.option("--attempt", type=Count(), metavar="N", help="Default: the newest.")
def complete(
    task_id: str,
    outcome: str | None,
    reason: str,
    quality: float | None,
    percent: float | None,
    worked: tuple[str, ...],
    didnt_work: tuple[str, ...],
    suggest: tuple[str, ...],
    milestones: tuple[str, ...],
    done: bool | None,
    attempt: int | None,
) -> None:
    """Close the attempt at TASK with its outcome, and draft the reflection on it.

    Without --success, --failure or --timeout the log decides: the last check (test, build, type check, linter), unless
    a file was changed after it; else a last action that failed. Without such evidence nothing is changed.

    The task itself ends only with --done or --give-up, with this attempt or later. Repeating a call is safe, and
    completes what a crash left out; the outcome of a closed attempt does not change.

    \b
    Examples:
      ralphdeck task complete task-001 --failure --reason "types are missing" --suggest "interface first"
      ralphdeck task complete task-001 --success --reason "all green" --worked "types first"
      ralphdeck task complete task-001 --done
    """
    completed = open_task_memory().complete_attempt(
        task_id,
        outcome=Outcome(outcome) if outcome is not None else None,
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

    def show() -> None:
        by_log = ", derived from the log" if completed.derived else ""
        counts = f"{plural(completed.log.actions, 'action')}, {plural(completed.log.errors, 'error')}"
        line(f"attempt {completed.number} at {task_id}: {completed.outcome.value}{by_log} ({counts})")
        line(f"{task_id} is {completed.status.value}")
        for one in completed.reflections:
            _print(one)
        given = {
            "--reason": reason, "--quality": quality, "--percent": percent, "--worked": worked,
            "--didnt-work": didnt_work, "--suggest": suggest, "--milestone": milestones,
        }  # fmt: skip
        ignored = [option for option, value in given.items() if value]
        if completed.again and ignored:
            remark(f"attempt {completed.number} is already closed; {' and '.join(ignored)} ignored")
        if completed.outcome is Outcome.SUCCESS and not completed.status.ended:
            remark(f"the task is still open; to complete it: ralphdeck task complete {task_id} --done")
        if any(one.draft for one in completed.reflections):
            remark(f"drafted from the log; to improve it: ralphdeck task reflect {task_id} --learning TEXT")

    respond(
        lambda: objects.AttemptCompleted.of(
            completed,
            id=task_id,
            attempt=completed.number,
            actions=completed.log.actions,
            errors=completed.log.errors,
            iterations=completed.log.iterations,
        ),
        show,
    )


@click.command(cls=Command)
@task_argument
@click.option("--observation", metavar="TEXT", default="", help="What happened.")
@click.option("--analysis", metavar="TEXT", default="", help="Why it happened.")
@click.option("--learning", metavar="TEXT", default="", help="What to do differently.")
@click.option("--action-item", "action_items", metavar="TEXT", multiple=True, help="May be repeated.")
@click.option("--trigger", type=click.Choice(TRIGGERS), default="manual", show_default=True)
@click.option("--type", "reflection_type", type=_Choice(TYPES), help="Default: by the outcome of the attempt.")
@click.option("--attempt", type=Count(), metavar="N", help="Default: the newest.")
def reflect(task_id: str, attempt: int | None, **parts: Any) -> None:
    """Write the reflection on an attempt at TASK; it replaces the draft from the log.

    Missing parts are taken from the draft. The plan of the next attempt includes it. After several calls the last
    learning counts; the history has all.

    \b
    Examples:
      ralphdeck task reflect task-001 --observation "3 type errors" --analysis "the interface was not updated" \\
        --learning "types first" --action-item "update AuthConfig" --action-item "run tsc before the tests"
    """
    made = open_task_memory().reflect(task_id, attempt, **parts)
    respond(lambda: objects.ReflectionWritten.of(reflection=made), lambda: _print(made))


def _print(reflection: Reflection) -> None:
    """Print a reflection; each text on one line."""
    text = render_reflection(
        reflection.attempt or 0,
        visible_line(reflection.observation),
        visible_line(reflection.analysis),
        visible_line(reflection.learning),
        [visible_line(item) for item in reflection.actions],
    )
    for row in ("", *text.splitlines()):
        line(row)
