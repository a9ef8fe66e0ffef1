"""`ralphdeck task show`: print, export or replay the attempts at a task."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from core.base.errors import UnknownRecord
from core.base.masking import mask_secrets
from core.base.settings import WatchSettings
from core.base.text import plural, visible_line
from core.cli.json import loops as loops_json
from core.cli.json import tasks as tasks_json
from core.cli.render.document import DIFF_COLOURS, print_document, print_reflections
from core.cli.render.output import end, json_bytes, line, percent, print_json, print_object, remark, wants_json
from core.cli.support.id_completion import complete_task
from core.cli.support.options import NumberRange, ReadingCommand, WholeNumber, choose_mode, words_option
from core.cli.support.project import chosen_project, now, read_configuration
from core.files.atomic_write import export_file, write_file
from core.records.episodes import Attempt, Task
from core.records.loops import Outcome
from core.show.pages.markdown import blocks_markdown, to_markdown
from core.tasks.attempts import MAX_PAUSE, AttemptCondition, Verdict, assess_attempt

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.cli.json.wire import Wire
    from core.records.findings import Finding
    from core.tasks.attempts import ReplayStep
    from core.tasks.history import AttemptDetail, TaskHistory, WholeHistory

_LIMIT: Final = 50
_MARKDOWN: Final = frozenset({".md", ".markdown"})


_MODES: Final = {
    "--replay": "task number speed first errors full",
    "": "task number only_reflections outcome export limit",
}


@click.command(cls=ReadingCommand, modes=_MODES)
@click.argument("task", shell_complete=complete_task)
@click.option("--attempt", "number", type=WholeNumber(min=0), metavar="N", help="Only this attempt and its actions.")
@click.option("--reflections", "only_reflections", is_flag=True, help="Only the reflections.")
@words_option(
    "--outcome",
    words=(outcome.value for outcome in Outcome),
    help="Only attempts with these outcomes, and their reflections; unknown: open attempts.",
)
@click.option(
    "--export",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write it to FILE: Markdown for .md, JSON for .json.",
)
@click.option(
    "--limit",
    type=WholeNumber(min=1),
    default=_LIMIT,
    show_default=True,
    metavar="N",
    help="Print the last N attempts, milestones and reflections. Exports and --json have all.",
)
@click.option("--replay", is_flag=True, help="Step through an attempt: each action with its reason, result and time.")
@click.option(
    "--speed",
    type=NumberRange(min=0),
    default=10.0,
    show_default=True,
    metavar="X",
    help=f"On a terminal: wait between the steps as long as the agent took (at most {MAX_PAUSE:.0f} "
    "seconds), divided by X; 0: do not wait.",
)
@click.option("--from", "first", type=WholeNumber(min=1), default=1, metavar="N", help="Replay from action N.")
@click.option("--errors", is_flag=True, help="Replay only failed actions.")
@click.option("--full", is_flag=True, help="Replay with all lines of the results.")
def show(
    task: str,
    number: int | None,
    only_reflections: bool,
    outcome: frozenset[str],
    export: Path | None,
    limit: int,
    replay: bool,
    speed: float,
    first: int,
    errors: bool,
    full: bool,
) -> None:
    """Print the attempts at TASK, with their outcomes and what was learned.

    TASK is the ID of a task or a part of it, or an attempt such as task-001.2. Only the files of this task are read. An
    open attempt counts as unfinished if it had no activity for 30 minutes (watch.stale_after_minutes), or if its
    task has ended.

    JSON has all attempts and their actions. Markdown has the last 500 actions of each attempt on one line each; with
    --attempt it has all actions in full.

    --replay steps through an attempt, the last one by default. Ctrl-C stops it. Long outputs are shortened to their
    first and last lines. The result of a failed action is its error, followed by its output.

    \b
    Examples:
      ralphdeck task show task-001
      ralphdeck task show task-001 --attempt 2
      ralphdeck task show task-001 --reflections --outcome failure,timeout
      ralphdeck task show task-001 --export task-001.md
      ralphdeck task show task-001.2 --replay --errors --speed 0
      ralphdeck task show task-001 --replay --attempt 2 --from 40 --json | jq '.steps[].verdict'
    """
    if choose_mode(_MODES):
        replay_attempt(task, number, speed, first, errors=errors, full=full)
        return
    from core.tasks.history import read_attempt
    from core.tasks.task_files import find_attempt

    if export is not None and export.suffix.lower() not in {*_MARKDOWN, ".json"}:
        raise click.UsageError(f"--export writes .md or .json, not {export.suffix or 'a file without a suffix'}")
    paths = chosen_project()
    file = export_file(str(export), paths) if export is not None else None
    task_id, attempt = find_attempt(paths, task, number)
    outcomes = frozenset(map(Outcome, outcome))
    if outcomes and attempt is not None:
        raise click.UsageError("--outcome filters all attempts; leave out the number of the attempt")
    if file is None and not wants_json():
        end(_print(paths, task_id, attempt, outcomes, only_reflections, limit))
        return
    found = _read_all(paths, task_id, outcomes) if attempt is None else read_attempt(paths, task_id, attempt)
    if file is not None:
        if file.suffix.lower() in _MARKDOWN:
            write_file(file, _markdown(found, only_reflections))
        else:
            write_file(file, json_bytes(_json(found, only_reflections), indent=2))
    if wants_json():
        print_json(_json(found, only_reflections))
    else:
        line(f"wrote {visible_line(str(file), 300)}")
    end(_findings(found))


def _print(
    paths: ProjectPaths,
    task_id: str,
    attempt: int | None,
    outcomes: Collection[Outcome],
    only_reflections: bool,
    limit: int,
) -> Sequence[Finding]:
    """Print a task or one attempt, and return the findings."""
    from core.show.pages.tasks import attempt_document, task_document
    from core.tasks.history import (
        COUNT_DIFFERS,
        AttemptDetail,
        TaskHistory,
        filter_history,
        read_attempt,
        read_history,
    )

    shown: TaskHistory | AttemptDetail
    if attempt is None:
        whole = read_history(paths, task_id)
        shown = filter_history(whole, lambda one: one.outcome in outcomes) if outcomes else whole
    else:
        shown = read_attempt(paths, task_id, attempt)
        # The state of an open attempt depends on the others.
        whole = read_history(paths, task_id) if shown.attempt.is_open else TaskHistory(Task(id=task_id))
    states = _AttemptStates(whole)
    if only_reflections:
        print_reflections(shown.reflections[-limit:])
        if not shown.reflections:
            remark("no reflections")
    elif isinstance(shown, AttemptDetail):
        print_document(attempt_document(shown, states.condition(shown.attempt)))
    else:
        print_document(task_document(shown, states.condition, limit))
        if whole.attempts and not shown.attempts:
            remark("no attempt has this outcome")
        for finding in shown.findings:
            if finding.code == COUNT_DIFFERS:
                remark(f"{finding.file} {finding.message}")
    return _findings(shown)


def _read_all(paths: ProjectPaths, task_id: str, outcomes: Collection[Outcome]) -> WholeHistory:
    """Read all attempts, or those with certain outcomes, with their actions."""
    from core.tasks.history import WholeHistory, filter_history, read_whole_history

    whole = read_whole_history(paths, task_id)
    if not outcomes:
        return whole
    chosen = tuple(detail for detail in whole.attempts if detail.attempt.outcome in outcomes)
    return WholeHistory(filter_history(whole.task, lambda one: one.outcome in outcomes), chosen)


def _findings(found: TaskHistory | WholeHistory | AttemptDetail) -> Sequence[Finding]:
    from core.tasks.history import AttemptDetail

    return (*found.findings, *found.actions.findings) if isinstance(found, AttemptDetail) else found.findings


def _json(found: WholeHistory | AttemptDetail, only_reflections: bool) -> Wire:
    from core.tasks.history import AttemptDetail

    findings = _findings(found)
    if only_reflections:
        return loops_json.ReflectionList.of(reflections=found.reflections, findings=findings)
    if isinstance(found, AttemptDetail):
        return tasks_json.AttemptDocument.of(found, findings=findings)
    attempts = [tasks_json.AttemptHistory.of(one.attempt, one, log=one.actions) for one in found.attempts]
    return tasks_json.HistoryDocument.of(found.task, attempts=attempts, findings=findings)


def _markdown(found: WholeHistory | AttemptDetail, only_reflections: bool) -> bytes:
    from core.show.pages.reflections import reflection_section
    from core.show.pages.tasks import attempt_document, whole_history_document
    from core.tasks.history import TaskHistory, WholeHistory

    if only_reflections:
        text = blocks_markdown(map(reflection_section, found.reflections), 2) + "\n"
    elif isinstance(found, WholeHistory):
        text = to_markdown(whole_history_document(found, _AttemptStates(found.task).condition))
    else:
        alone = TaskHistory(Task(id=found.attempt.task_id), (found.attempt,))
        text = to_markdown(attempt_document(found, _AttemptStates(alone).condition(found.attempt), full=True))
    return text.encode("utf-8", "replace")


class _AttemptStates:
    """Computes the states of attempts; reads the settings only for open attempts."""

    def __init__(self, history: TaskHistory) -> None:
        self._task: Final = history.task
        self._latest: Final = max((one.number for one in history.attempts), default=0)
        is_open = any(one.is_open for one in history.attempts)
        self._settings: Final = read_configuration().settings.watch if is_open else WatchSettings()

    def condition(self, attempt: Attempt) -> AttemptCondition:
        return assess_attempt(attempt, self._task, self._latest, now(), self._settings)


_COLOURS: Final = {Verdict.SUCCEEDED: "green", Verdict.FAILED: "red", Verdict.UNKNOWN: "yellow"}
_INDENT: Final = "      "
_LABEL: Final = len("expected: ")
_MAX_NAME: Final = 40
_MAX_ABOUT: Final = 200  # Characters of a command or the like that are printed.


def replay_attempt(task: str, number: int | None, speed: float, first: int, *, errors: bool, full: bool) -> None:
    """Print each action of an attempt; on a terminal with the pauses of the agent, divided by `speed`."""
    from core.tasks.attempts import ReplaySteps, pause_after
    from core.tasks.history import read_attempt

    paths = chosen_project()
    detail = read_attempt(paths, *_find(paths, task, number))
    all_steps = ReplaySteps(detail)
    places = [place for place in (detail.actions.errors if errors else range(len(all_steps))) if place >= first - 1]
    findings = (*detail.findings, *detail.actions.findings)

    if wants_json():
        print_object(
            tasks_json.ReplayDocument,
            findings=findings,
            attempt=detail.attempt,
            steps=(_step_json(all_steps[place]) for place in places),
        )
    else:
        line((detail.attempt.id, "bold"), f"  {plural(len(all_steps), 'action')}  {detail.attempt.plan}")
        is_watched = is_terminal()
        for place in places:
            step = all_steps[place]
            _print_step(step, full)
            if is_watched and place != places[-1]:
                time.sleep(pause_after(step, speed))
        if not all_steps:
            remark("no actions were logged")
        elif not places:
            remark(f"no {'failed action' if errors else 'action'}{f' from {first:,}' if first > 1 else ''}")
    end(findings)


def _step_json(step: ReplayStep) -> Wire:
    verdict = "not told" if step.verdict is Verdict.UNKNOWN else step.verdict  # the documented value
    return tasks_json.ReplayStep.of(step.action, step, verdict=verdict)


def is_terminal() -> bool:
    return sys.stdout.isatty()


def _find(paths: ProjectPaths, task: str, number: int | None) -> tuple[str, int]:
    from core.tasks.history import read_history
    from core.tasks.task_files import find_attempt

    task_id, number = find_attempt(paths, task, number)
    if number is None:
        attempts = read_history(paths, task_id).attempts
        if not attempts:
            raise UnknownRecord(f"{visible_line(task_id, 80)} has no attempts yet")
        number = attempts[-1].number
    return task_id, number


def _print_step(step: ReplayStep, full: bool) -> None:
    from core.tasks.attempts import shorten_output

    action = step.action
    if step.begins_iteration and action.iteration is not None:
        quality = f"  quality so far {percent(step.quality)}" if step.quality is not None else ""
        line((f"iteration {action.iteration}", "bold"), quality)
    tool = action.tool if action.tool.lower() != action.type else ""
    what = " ".join(filter(None, (action.type, tool, visible_line(action.about, _MAX_ABOUT))))
    verdict = "no result" if step.verdict is Verdict.UNKNOWN else step.verdict.value
    line(f"{action.number:>5} {_clock(step.elapsed)}  {what or 'action'}  ", (verdict, _COLOURS[step.verdict]))
    _print_text("why", action.reasoning)
    for name, text in step.params:
        _print_text(name, text if full else shorten_output(text))
    for row in step.diff:
        line(_INDENT, (row, DIFF_COLOURS.get(row[:1], "")))
    _print_text("expected", action.expected)
    real = step.result if full else step.real
    _print_text("real", real, _COLOURS[step.verdict] if step.verdict is Verdict.FAILED else "")
    _print_text("output", step.output if full else shorten_output(step.output))


def _print_text(name: str, text: str, colour: str = "") -> None:
    """Print a text after its name, padded to a common width."""
    # A secret may span lines, so mask before splitting.
    for number, row in enumerate(mask_secrets(text.strip("\n")).splitlines()):
        label = f"{visible_line(name, _MAX_NAME)}: " if number == 0 else ""
        line(f"{_INDENT}{label:<{_LABEL}}", (row, colour))


def _clock(seconds: float | None) -> str:
    """Format the time since the start: `+1:02:03`."""
    if seconds is None:
        return "        "
    minutes, rest = divmod(int(seconds), 60)
    return f"+{minutes // 60}:{minutes % 60:02}:{rest:02}"
