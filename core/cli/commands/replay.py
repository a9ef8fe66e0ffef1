"""`ralphdeck task show --replay`: step through an attempt."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

from core.base.errors import UnknownRecord
from core.base.masking import mask_secrets
from core.base.text import plural, visible_line
from core.cli.json import tasks as tasks_json
from core.cli.render.document import DIFF_COLOURS
from core.cli.render.output import end, line, percent, print_object, remark, wants_json
from core.cli.support.project import chosen_project
from core.tasks.attempts import Verdict

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.cli.json.wire import Wire
    from core.tasks.attempts import ReplayStep

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
            _print(step, full)
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


def _print(step: ReplayStep, full: bool) -> None:
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
