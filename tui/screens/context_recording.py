"""Recording of an injection for a running loop."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.content import Content

from core.base.errors import Refused
from core.base.text import plural, visible_line
from tui.present import context_recording as present
from tui.screens.dialogs import Choose

if TYPE_CHECKING:
    from core.project.project import Project
    from core.records.loops import Loop
    from core.retrieval.injection import Injection
    from core.state.project_state import ProjectState
    from tui.screens.base_screen import BaseScreen


def running_loops(view: ProjectState, task: str = "") -> list[Loop]:
    """Return the running loops that have a task, or that have the given task."""
    running = [loop for loop in view.snapshot.loops.values() if loop.is_running and loop.task]
    return [loop for loop in running if loop.task.strip() == task] if task else running


def ask_to_record(screen: BaseScreen, injection: Injection, task: str) -> None:
    """Record the injection for the only loop with this task, or ask for the loop."""

    def record(loop_id: str) -> None:
        screen.services.engine.write(partial(record_injection, loop_id=loop_id, injection=injection))

    loops = running_loops(screen.view, task)
    if len(loops) == 1:
        record(loops[0].id)
        return
    counts = (plural(len(injection.chosen), "pattern"), plural(len(injection.reflections.chosen), "reflection"))
    title = f"Which loop received {' and '.join(text for text in counts if not text.startswith('0 '))}?"
    detail = "The record is used to measure the effect. It cannot be undone."
    choices = present.loop_choices(loops or running_loops(screen.view))
    screen.ask_user(Choose(Content(title), Content(detail), choices, verb="record"), record)


def record_injection(project: Project, loop_id: str, injection: Injection) -> str:
    """Record an injection in the engine's thread and return the text of the toast.

    Raises Refused if the loop has ended.
    """
    if not project.view.loop(loop_id).is_running:
        raise Refused(f"{visible_line(loop_id, 60)} has ended; nothing was recorded")
    return present.recorded_toast(project.inject(loop_id, injection), injection, loop_id)
