"""Place 4: the exact text that a task would get, and why."""

from __future__ import annotations

from typing import Final

import msgspec
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from core.deck import View
from core.retrieval.ranking import Injection
from core.settings import InjectionSettings
from core.snapshot import Delta
from tui.present import context as present
from tui.present.review import diff_lines
from tui.screens.place import Place
from tui.widgets.filter_line import FilterLine
from tui.widgets.text_pane import TextPane

RATES: Final = (0.0, 0.4, 0.6, 0.8, 0.9)
TYPE_SETS: Final = {
    "E S A T": (True, True, True, True),
    "E": (True, False, False, False),
    "S": (False, True, False, False),
    "A": (False, False, True, False),
    "T": (False, False, False, True),
    "E S": (True, True, False, False),
}
"""What `types` cycles through: errors, successes, anti-patterns, templates."""


class ContextPlace(Place):
    """Type a task or take a running loop's; turn the knobs; compare."""

    place = "context"
    ABOUT = (
        "The exact text that `ralphdeck inject` prints for a task: byte for byte. Left: the text. Right: each "
        "pattern's score part by part, and what was left out and why. Turn the knobs and compare with before."
    )

    class Prepared(Message):
        """A worker has prepared the context."""

        def __init__(self, injection: Injection, task: str) -> None:
            super().__init__()
            self.injection = injection
            self.task = task

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, ContextPlace.Prepared)

    def __init__(self) -> None:
        super().__init__()
        self._settings: InjectionSettings | None = None
        self._types = "E S A T"
        self._injection: Injection | None = None
        self._before: Injection | None = None
        self._comparing = False
        self._loop = -1

    def compose_content(self) -> ComposeResult:
        """Task, text and reasons, knobs."""
        yield FilterLine("describe a task, e.g. Fix TypeScript type errors in user validation")
        with Horizontal(classes="sides"):
            with Vertical(classes="side side--text"):
                yield Static(Content(""), classes="heading", id="context-size")
                yield TextPane(id="context-text")
            with Vertical(classes="side side--right"):
                yield Static(Content("why these"), classes="heading")
                yield TextPane(id="context-why")
        yield Static(Content(""), classes="heading heading--rule", id="context-knobs")

    @property
    def settings(self) -> InjectionSettings:
        """The knobs as they stand; they start at the project's settings."""
        if self._settings is None:
            self._settings = self.view.settings.injection
        return self._settings

    @property
    def task_text(self) -> str:
        """The task in question."""
        return self.query_one(FilterLine).text

    def on_mount(self) -> None:
        """Take up the task of the last run."""
        if not self.whole:
            return
        kept = self.deck_app.kept.get_here("context-task")
        if kept:
            self.query_one(FilterLine).text = kept
        super().on_mount()
        self.query_one("#context-text", TextPane).focus()

    def on_resize(self, event: events.Resize) -> None:
        """Beside each other where there is room."""
        self.set_class(event.size.width >= 100, "-wide")
        self.refresh_frame()

    def preview(self, task: str) -> None:
        """Show the context of a task."""
        self.query_one(FilterLine).text = task
        self.query_one("#context-text", TextPane).focus()

    def refresh_view(self, view: View, delta: Delta | None) -> None:
        """Patterns, evidence and decisions change what is injected."""
        if delta is None or delta.patterns or delta.loops or delta.events or delta.decisions:
            self._prepare()

    @on(FilterLine.Changed)
    def _typed(self, message: FilterLine.Changed) -> None:
        message.stop()
        self.deck_app.kept.set_here("context-task", message.text)
        self._before, self._comparing = None, False
        self._prepare()

    @on(FilterLine.Left)
    def _left(self, message: FilterLine.Left) -> None:
        message.stop()
        self.query_one("#context-text", TextPane).focus()

    def _prepare(self) -> None:
        task, view, settings = self.task_text.strip(), self.view, self.settings
        self.query_one("#context-knobs", Static).update(present.knobs_line(settings, self._types))
        if not task:
            self._injection = None
            self._show()
            return

        def work() -> None:
            self.post_message(self.Prepared(view.injection(task, settings), task))

        self.run_worker(work, thread=True, group="injection", exclusive=True)

    def on_context_place_prepared(self, message: Prepared) -> None:
        """Show the newest answer."""
        if message.task == self.task_text.strip():
            another = self._injection is None or self._injection.profile.text != message.injection.profile.text
            self._injection = message.injection
            self._show(top=another)

    def _show(self, *, top: bool = False) -> None:
        text, why = self.query_one("#context-text", TextPane), self.query_one("#context-why", TextPane)
        injection = self._injection
        line = self.query_one(FilterLine)
        size = self.query_one("#context-size", Static)
        if injection is None:
            line.count(Content(""))
            size.update(Content.styled("what the loop will read", "$quiet"))
            text.show(
                [
                    Content("Press / and type a task, or l for the task of a running loop."),
                    Content.styled("You will see the exact bytes that the loop would get.", "$quiet"),
                ]
            )
            why.show([])
            return
        line.count(present.profile_line(injection))
        size.update(present.size_line(injection, self.settings))
        if self._comparing and self._before is not None:
            lines = diff_lines(self._before.context, injection.context)
            text.show(lines or [Content.styled("No difference to before the last change.", "$quiet")])
        else:
            text.show(present.context_lines(injection), top=top)
        why.show(present.why_lines(injection, self.glyphs), top=top)
        self.refresh_frame()

    # Knobs

    def _turn(self, **changes: object) -> None:
        self._before = self._injection
        self._settings = msgspec.structs.replace(self.settings, **changes)
        self._prepare()

    def do_top_k_up(self) -> None:
        """One pattern more."""
        most = self.settings.max_patterns_injected
        self._turn(top_k_patterns=min(self.settings.top_k_patterns + 1, most))

    def do_top_k_down(self) -> None:
        """One pattern less."""
        self._turn(top_k_patterns=max(self.settings.top_k_patterns - 1, 1))

    def do_min_rate(self) -> None:
        """The next lowest rate."""
        higher = [rate for rate in RATES if rate > self.settings.min_success_rate + 1e-9]
        self._turn(min_success_rate=higher[0] if higher else RATES[0])

    def do_order(self) -> None:
        """By score or by lower bound."""
        self._turn(order="score" if self.settings.order == "lower-bound" else "lower-bound")

    def do_types(self) -> None:
        """The next set of types."""
        names = list(TYPE_SETS)
        self._types = names[(names.index(self._types) + 1) % len(names)]
        errors, successes, antis, templates = TYPE_SETS[self._types]
        self._turn(
            include_error_patterns=errors,
            include_success_patterns=successes,
            include_anti_patterns=antis,
            include_code_templates=templates,
        )

    def do_compare(self) -> None:
        """Show the difference to before the last change, or the text again."""
        self._comparing = not self._comparing
        self._show()

    def why_not(self, action: str) -> str | None:
        """Comparing needs something to compare with."""
        if action == "compare" and self._before is None and not self._comparing:
            return "turn a knob first; then c shows what it changed"
        if action == "pick_loop" and not self._running_tasks():
            return "no loop with a task is running"
        if action == "copy" and (self._injection is None or not self._injection.context):
            return "there is no context to copy"
        return None

    def wording(self, action: str) -> str | None:
        """Comparing is a switch."""
        return "whole text" if action == "compare" and self._comparing else None

    def do_edit_task(self) -> None:
        """Type a task."""
        self.query_one(FilterLine).focus_input()

    def _running_tasks(self) -> list[str]:
        return [loop.task for loop in self.view.snapshot.loops.values() if loop.status.active and loop.task]

    def do_pick_loop(self) -> None:
        """The task of the next running loop."""
        tasks = self._running_tasks()
        self._loop = (self._loop + 1) % len(tasks)
        self.preview(tasks[self._loop])

    def do_back(self) -> None:
        """Out of the task line."""
        if isinstance(self.focused, Input):
            self.query_one("#context-text", TextPane).focus()

    def copy_text(self) -> str:
        """The exact context."""
        return self._injection.context if self._injection is not None else ""
