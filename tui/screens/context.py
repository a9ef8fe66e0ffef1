"""The Context screen: the exact text that a task would get, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, partialmethod
from typing import TYPE_CHECKING, Final

from textual import events, on
from textual.containers import Container, Vertical
from textual.content import Content
from textual.widgets import Input

from core.adapters.agent_files import put_first
from core.base.context_blocks import NO_BLOCKS
from core.base.text import visible_line
from core.questions.context_recipients import Recipient, list_recipients
from tui.actions import PLACES
from tui.present import context as present
from tui.present.knobs import KNOBS
from tui.present.memory import task_key
from tui.screens.agent_files_side import AgentFilesSide
from tui.screens.context_knobs import KnobActions, Knobs
from tui.screens.context_recording import ask_to_record, running_loops
from tui.state.back_stack import FollowedLink, ListState
from tui.widgets.bars import Item, ItemLine
from tui.widgets.filter_line import FilterLine
from tui.widgets.record_table import RecordTable
from tui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from core.adapters.agent_files import AgentFile
    from core.config.settings import InjectionSettings
    from core.records.snapshot import Delta
    from core.state.project_state import ProjectState
    from tui.screens.base_screen import BaseScreen

BESIDE: Final = 100  # cells of the screen from which reasons and text are side by side


class ContextScreen(KnobActions):
    """Shows the context for a typed task or a loop's task, with adjustable settings."""

    place = "context"

    def __init__(self) -> None:
        super().__init__()
        self._preview: present.Preview | None = None
        self._choices: dict[str, Recipient] = {}
        self._loop = -1  # index of the running loop whose task was taken last
        self._shows_files = False  # whether the files that agents load by themselves are shown
        self._files: tuple[AgentFile, ...] = ()
        self.files = AgentFilesSide()
        self._plain = False  # whether the text is shown without the differences
        self._wanted = ""  # ID of the pattern to move the cursor to as soon as it is listed
        self._embedding: tuple[int, int] | None = None
        self._token = NO_BLOCKS.choose_token()  # of the fences, so that the same texts are always shown alike

    def compose_content(self) -> ComposeResult:
        hint = "Describe a task, e.g. Fix TypeScript type errors in user validation"
        passed = (*(f"go_{place}" for place in PLACES), "help", "edit_task")
        yield FilterLine(hint, {key for action in passed for key in self.services.keys_of(action).split(",")})
        with Container(classes="sides"):
            with Vertical(classes="side side--text"):
                yield ItemLine(id="context-head")
                yield TextPane(id="context-text")
            yield self.files
            with Vertical(classes="side side--right"):
                yield ItemLine(id="context-why")
                with Container(id="context-reasons"):
                    yield RecordTable(self.TABLE.columns, self._cells, lambda: Content(""))
                    yield TextPane(id="context-parts")
        keys = {knob.action: self.services.shown_key(knob.action) for knob in KNOBS.values()}
        yield Knobs(self.view.settings, keys)

    @property
    def task_line(self) -> FilterLine:
        return self.query_one(FilterLine)

    @property
    def task_text(self) -> str:
        return self.task_line.text.strip()

    @property
    def text(self) -> TextPane:
        return self.query_one("#context-text", TextPane)

    @property
    def reading(self) -> TextPane:
        return self.files.reading(self.text)

    def on_mount(self) -> None:
        if not self.is_composed:
            return
        task = self.services.user_state.get_here("context-task")
        if task:
            self.task_line.text = task
        super().on_mount()
        if task:
            self.reading.focus()
        else:
            self.task_line.focus_input()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= BESIDE, "-wide")
        self.files.place_by(self.text, wanted=self.files.display)
        self._show_parts()
        self.refresh_frame()

    def preview(self, task: str, pattern_id: str = "") -> None:
        """Show the context of a task, with the cursor on a pattern or the focus on the text."""
        self._wanted = pattern_id
        self.task_line.text = task
        (self.table if pattern_id else self.reading).focus()
        self._prepare()

    def follow_link(self, link: FollowedLink, show: Callable[[BaseScreen], None]) -> None:
        link.before = ListState(filter=self.task_line.text)
        super().follow_link(link, show)
        link.after = ListState(filter=self.task_line.text)

    def leave_link(self, link: FollowedLink, *, back: bool) -> None:
        """Restore the task from before the link, unless the user typed another one since."""
        if link.before is not None and link.after is not None and self.task_line.text == link.after.filter:
            self.task_line.text = link.before.filter

    def can_return(self) -> bool:
        """Return False while a field has focus, because `back` leaves the field first."""
        return super().can_return() and self.knobs.field is None and not isinstance(self.focused, Input)

    def embedding(self, done: int, total: int) -> None:
        """Show the progress of embeddings, and recompute the context when they are complete."""
        self._embedding = (done, total) if done < total else None
        if self.is_composed:
            self._show_heads()
            if done >= total:
                self._prepare()

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        if delta is None or delta.affects_scores:
            self._prepare()

    @on(FilterLine.Changed)
    def _typed(self, message: FilterLine.Changed) -> None:
        message.stop()
        link = self.services.link
        if link is None or link.after is None or link.place != self.place or message.text != link.after.filter:
            self.services.user_state.set_here("context-task", message.text)
        self._prepare()

    @on(FilterLine.Left)
    def _left(self, message: FilterLine.Left) -> None:
        message.stop()
        self._leave_line()

    def _leave_line(self) -> None:
        (self.table if self._choices else self.reading).focus()

    def _prepare(self) -> None:
        """Compute the context. Without a task, list the tasks of loops and recent tasks."""
        if task := self.task_text:
            self.run_in_thread("injection", partial(self._compute, self.view, task, self.settings), self._show_preview)
        else:
            self._preview = None
            self._show()

    def _compute(self, view: ProjectState, task: str, settings: InjectionSettings) -> present.Preview:
        agents = (loop.agent for loop in view.snapshot.loops.values() if loop.task.strip() == task and loop.agent)
        self._files = put_first(self.services.project.adapters.agent_files(), next(agents, ""))
        return present.Preview.prepare(view, task, settings, self._files, self._token)

    def _show_preview(self, preview: present.Preview) -> None:
        if not self.task_text:
            return
        before, self._preview = self._preview, preview
        self._show(top=before is None or before.injection.profile.text != preview.injection.profile.text)
        if self._wanted:
            self.table.go_to(self._wanted)
            self._wanted = ""
        if before is None or before.settings != preview.settings:
            self._reach_difference()

    def _show(self, *, top: bool = False) -> None:
        preview = self._preview
        self._show_heads()
        self.set_class(preview is None, "-choosing")
        if preview is None:
            by_task: dict[str, Recipient] = {}
            for one in list_recipients(self.view.snapshot):
                by_task.setdefault(one.task.strip(), one)
            self._choices = {f"{one.kind} {one.id}": one for one in by_task.values()}
            enter = self.services.shown_key("open")
            self.text.show(
                [
                    Content("Type a task, or press esc and l for the task of a running loop."),
                    *[Content(f"Or choose a task below with down, and press {enter}.")] * bool(self._choices),
                    Content.styled("Shows the exact text that the loop would get.", "$quiet"),
                ]
            )
            self.table.use(self.TABLE.other_columns)
            self.table.show(list(self._choices))
        else:
            self._choices = {}
            self.files.show(self._files, preview.repeated, top=top)
            if self._comparing:
                lines, marks = present.difference(preview)
                self.text.show(lines, top=top, marks=marks)
            else:
                self.text.show(present.context_lines(preview.injection), top=top)
            titles = {"score": "lower", "other": "by score"} if preview.by_lower_bound else {}
            self.table.use(
                [replace(column, title=titles.get(column.id, column.title)) for column in self.TABLE.columns]
            )
            self.table.show(preview.keys)
            if top:
                self.table.cursor = 0
        self.files.place_by(self.text, wanted=self._shows_files and preview is not None)
        self._show_parts()
        self.refresh_frame()

    def _reach_difference(self) -> None:
        """Scroll to the first line that the changed settings add or remove."""
        if self._comparing and self._preview is not None:
            self.text.reach(next((n for n, (sign, _line) in enumerate(self._preview.lines) if sign != " "), 0))

    @property
    def _comparing(self) -> bool:
        return self._preview is not None and self._preview.differs and not self._plain

    def _show_heads(self) -> None:
        head, why = self.query_one("#context-head", ItemLine), self.query_one("#context-why", ItemLine)
        preview = self._preview
        making = [] if self._embedding is None else [Item(present.embedding_line(*self._embedding, self.glyphs))]
        if preview is None:
            self.task_line.count(Content(""))
            head.show([Item(Content.styled("Injected text", "$quiet"))])
            why.show([Item(Content.styled("Running loops and recent tasks", "$quiet"))], making)
            return
        self.task_line.count(present.profile_line(preview.injection))
        if fault := self.knobs.fault:
            right = [Item(Content.styled(f"! {visible_line(fault, 100)}", "$error"))]
        else:
            right = [Item(present.difference_line(preview))] if self.knobs.turned else []
            if not self.services.is_trusted:
                right.insert(0, Item(Content.styled("only a preview: not trusted", "$warning")))
        head.show([Item(size) for size in present.size_items(preview.injection, self.settings)], right)
        why.show([Item(present.match_line(preview.injection))], making or [Item(present.count_line(preview))])

    def _cells(self, key: str) -> dict[str, Content]:
        if (choice := self._choices.get(key)) is not None:
            return dict(present.choice_cells(choice))
        return dict(present.score_cells(self._preview, key, self.glyphs)) if self._preview is not None else {}

    @on(RecordTable.Highlighted)
    def _highlighted(self, message: RecordTable.Highlighted) -> None:
        message.stop()
        self._show_parts()

    def _show_parts(self) -> None:
        key, preview = self.table.cursor_key or "", self._preview
        lines: list[Content] = []
        if preview is not None:
            short = not self.has_class("-wide")
            if (learned := preview.reflections.get(key) or preview.reflections_left_out.get(key)) is not None:
                lines = present.reflection_lines(learned, self.view.now, self.glyphs, short=short)
            elif (pattern := self.view.snapshot.patterns.get(key)) is not None:
                lines = present.detail_lines(preview, pattern, self.view, self.glyphs, short=short)
        self.query_one("#context-parts", TextPane).show(lines)

    @on(Knobs.Turned)
    def _turned(self, message: Knobs.Turned) -> None:
        message.stop()
        self._show_heads()
        self._prepare()

    @on(Knobs.Moved)
    def _moved(self, message: Knobs.Moved) -> None:
        message.stop()
        self.refresh_frame()

    def action_compare(self) -> None:
        self._plain = not self._plain
        self._show()
        self._reach_difference()

    def action_agent_files(self) -> None:
        self._shows_files = not self._shows_files
        self._show(top=True)

    def action_pick_loop(self) -> None:
        loops = running_loops(self.view)
        self._loop = (self._loop + 1) % len(loops)
        self.preview(loops[self._loop].task)

    def action_inject(self) -> None:
        if self._preview is not None:
            ask_to_record(self, self._preview.injection, self.task_text)

    def why_not(self, action: str) -> str | None:
        if action == "compare" and (self._preview is None or not self._preview.differs):
            return "Change a value first; c then hides the differences"
        if action == "agent_files" and self._preview is None:
            return "Type a task first; v then shows what agents load by themselves"
        if action == "put_back" and self.knobs.field is None:
            return "Press n, f, b or m to change a value; R restores all"
        if action == "put_all_back" and not (self.knobs.turned or self.knobs.fault):
            return "All values already equal the project's settings"
        if action == "pick_loop" and not running_loops(self.view):
            return "No loop with a task is running"
        if action == "inject" and not (self._preview and (self._preview.chosen or self._preview.reflections)):
            return "There is no pattern or reflection to record"
        if action == "inject" and not running_loops(self.view):
            return "No loop with a task is running, so there is nothing to record"
        if action == "open" and self.knobs.field is None and self.table.cursor_key is None:
            return "There is no pattern to open"
        if action == "copy" and not self.copy_text():
            return "There is no context to copy"
        return None

    def label_for(self, action: str) -> str | None:
        if action == "compare" and self._plain:
            return "difference"
        if action == "agent_files" and self._shows_files:
            return "hide files" if self.files.has_class("-beside") else "injected text"
        if action == "open" and self._choices:
            return "use this task" if self.table.has_focus else "tasks"
        if action == "open" and not self.table.has_focus:
            return "patterns"
        if action == "inject" and len(loops := running_loops(self.view, self.task_text)) == 1:
            return f"record for {visible_line(loops[0].id.removeprefix('ralph-'), 16)}"
        return None

    def _key_items(self) -> tuple[list[Item], list[Item]]:
        """Return the key items; for a focused field, what it accepts and how to leave it."""
        offered, right = super()._key_items()
        field = self.knobs.field
        if field is None:
            return offered, right
        typed = [] if field.stepped else [Item(Content("digits are typed"))]
        turning = [item for item in offered if item.value in {"step_down", "step_up", "put_back"}]
        return [*typed, self._key_item("back", "leave"), *turning], right[-1:]

    def action_edit_task(self) -> None:
        self.task_line.focus_input()

    def action_open(self) -> None:
        if self.knobs.field is not None:
            self.reading.focus()
        elif not self.table.has_focus:
            self.table.focus()
        elif key := self.table.cursor_key:
            self._open(key)

    def _open(self, key: str) -> None:
        """Use the task under the cursor, or open a pattern, a reflection or a learning's task."""
        if (choice := self._choices.get(key)) is not None:
            self.preview(choice.task)
            return
        preview = self._preview
        rows = (preview.reflections, preview.reflections_left_out) if preview is not None else ()
        learned = next((row[key] for row in rows if key in row), None)
        if learned is None:
            self.services.open_record("patterns", key)
        elif learned.id in self.view.snapshot.reflections:
            self.services.open_record("reflections", learned.id)
        else:
            self.services.open_record("memory", task_key(learned.id.rpartition("#")[0]))

    def action_back(self) -> None:
        if self.can_return():
            self.services.go_back()
        else:
            self._leave_line()

    def _mover(self) -> RecordTable | TextPane:
        return self.table if self.table.has_focus else self.reading

    def _move(self, rows: int) -> None:
        if self.task_line.has_focus_within and self._choices:
            self.table.focus()
            return
        (self._mover() if self.knobs.field is None else self.knobs).move(rows)

    action_down = partialmethod(_move, 1)
    action_up = partialmethod(_move, -1)

    def _go_on(self, panes: int) -> None:
        texts = [pane for pane in (self.text, self.files.pane) if pane in self.focus_chain]
        stops: list[Callable[[], object]] = [self.task_line.focus_input, *(pane.focus for pane in texts)]
        stops += [self.table.focus, self.knobs.enter]
        widgets = (self.task_line, *texts, self.table, self.knobs)
        at = next((n for n, widget in enumerate(widgets) if widget.has_focus_within or widget.has_focus), 0)
        stops[(at + panes) % len(stops)]()

    action_next_pane = partialmethod(_go_on, 1)
    action_previous_pane = partialmethod(_go_on, -1)

    def copy_text(self) -> str:
        return self._preview.injection.context if self._preview is not None else ""
