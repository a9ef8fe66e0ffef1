"""Recording of an injection on the Context screen."""

from __future__ import annotations

from functools import partial

from textual.content import Content

from core.base.errors import Refused
from core.base.text import plural, visible_line
from core.project.project import Project
from core.records.loops import Loop
from core.retrieval.injection import Injection
from tui.present import context as present
from tui.screens.base_screen import BaseScreen
from tui.screens.dialogs import Choose
from tui.widgets.filter_line import FilterLine


class InjectionRecording(BaseScreen):
    """Mixin that takes tasks of running loops, and records what a loop got."""

    def __init__(self) -> None:
        super().__init__()
        self._preview: present.Preview | None = None
        self._loop = -1

    @property
    def task_text(self) -> str:
        return self.query_one(FilterLine).text

    def preview(self, task: str, pattern_id: str = "") -> None:
        """Show the context of a task.

        Args:
            pattern_id: The pattern for the cursor; "" focuses the text.
        """
        raise NotImplementedError

    def _running_loops(self) -> list[Loop]:
        return [loop for loop in self.view.snapshot.loops.values() if loop.status.active and loop.task]

    def _of_task(self) -> list[Loop]:
        """The running loops with the current task."""
        task = self.task_text.strip()
        return [loop for loop in self._running_loops() if loop.task.strip() == task]

    def action_pick_loop(self) -> None:
        loops = self._running_loops()
        self._loop = (self._loop + 1) % len(loops)
        self.preview(loops[self._loop].task)

    def action_inject(self) -> None:
        """Record the injection for the loop with this task, or for a chosen loop."""
        if self._preview is None:
            return
        injection, loops = self._preview.injection, self._of_task()
        if len(loops) == 1:
            self._record(loops[0].id, injection)
            return
        counts = (plural(len(injection.chosen), "pattern"), plural(len(injection.reflections.chosen), "reflection"))
        title = f"Which loop got {' and '.join(text for text in counts if not text.startswith('0 '))}?"
        detail = "Recorded to measure the effect; cannot be undone."
        choices = present.loop_choices(loops or self._running_loops())
        dialog = Choose(Content(title), Content(detail), choices, verb="record")
        self.ask_user(dialog, lambda loop_id: self._record(loop_id, injection))

    def _record(self, loop_id: str, injection: Injection) -> None:
        self.services.engine.write(partial(_recorded, loop_id=loop_id, injection=injection))


def _recorded(project: Project, loop_id: str, injection: Injection) -> str:
    """Record an injection, in the engine's thread; returns the text of the toast.

    Raises:
        Refused: The loop has ended.
    """
    if not project.view.loop(loop_id).status.active:
        raise Refused(f"{visible_line(loop_id, 60)} has ended; nothing was recorded")
    return present.recorded(project.inject(loop_id, injection), injection, loop_id)
