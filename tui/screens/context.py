"""The Context screen: the exact text that a task would get, and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, partialmethod
from typing import TYPE_CHECKING, Final

from textual import events, on
from textual.containers import Container, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input

from core.base.errors import Refused
from core.base.prompt_text import BLOCK_LINE, NO_BLOCKS
from core.base.text import plural, visible, visible_line
from core.questions.context_recipients import LOOP, Recipient, list_recipients
from core.retrieval.rendering import count_tokens
from core.show.contexts import COLUMNS, Preview, agent_file_lines, context_cells, context_document, row_details
from core.show.pages.markdown import to_markdown
from core.show.work import task_key
from core.sources.adapters.agent_files import put_first
from tui.kit.actions import PLACES
from tui.kit.bars import Item, ItemLine
from tui.kit.drawing import TextPane
from tui.kit.fields import FilterLine, ValueField
from tui.kit.record_table import RecordTable
from tui.kit.user_state import FollowedLink, ListState
from tui.screens.base_screen import BaseScreen
from tui.screens.dialogs import Choose
from tui.screens.document import BAR_CELLS, bar, document_lines, draw_cells
from tui.screens.knobs import KNOBS, SettingFields

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from core.base.settings import InjectionSettings, Settings
    from core.index.project_state import ProjectState
    from core.project.project import Injected, Project
    from core.records.loops import Loop
    from core.records.snapshot import Delta
    from core.retrieval.injection import Injection
    from core.retrieval.similarity import Repetition
    from core.sources.adapters.agent_files import AgentFile
    from tui.kit.looks import Cells, Glyphs

BESIDE: Final = 100  # cells of the screen from which reasons and text are side by side
FILES_BESIDE: Final = 150  # cells of the screen from which agents' files are beside the injected text
CHANGES, TEXT, FILES = "changes", "text", "files"  # what the left pane shows
_FENCE: Final = re.compile(BLOCK_LINE)
_SIGNS: Final = {"+": "$success", "-": "$error"}


def profile_line(injection: Injection) -> Content:
    """Return category, languages and likely errors detected in the task."""
    profile = injection.profile
    errors = f"likely {', '.join(profile.error_types)}" if profile.error_types else ""
    parts = (profile.category or "no category", ", ".join(profile.languages), errors)
    return Content.styled(visible_line(" · ".join(filter(None, parts)), 120), "$secondary")


def size_line(injection: Injection, settings: InjectionSettings) -> Content:
    return Content.assemble((f"{injection.tokens:,}", "bold"), (f" of {settings.max_tokens:,} tokens", "$quiet"))


def difference_line(preview: Preview) -> Content:
    """Return a summary of the changes: `+12 -4 lines, 2 patterns added`."""
    if not preview.differs:
        return Content.styled("the text stays the same", "$quiet")
    signs = [sign for sign, _line in preview.lines]
    changes = ""
    present = (("pattern", preview.chosen.keys()), ("reflection", preview.reflections.keys()))
    for (noun, now), own in zip(present, preview.own_keys, strict=True):
        added, removed = len(now - own), len(own - now)
        changes += f", {plural(added, noun)} added" if added else ""
        changes += f", {removed if added else plural(removed, noun)} removed" if removed else ""
    return Content.assemble(
        (f"+{signs.count('+')}", "bold $success"),
        " ",
        (f"-{signs.count('-')}", "bold $error"),
        (f" lines{changes}", "$quiet"),
    )


def context_lines(injection: Injection) -> list[Content]:
    if not injection.context:
        reasons = "The list shows the reason for each pattern." if injection.left_out else "There are no patterns yet."
        return [Content.styled("Nothing is given for this task.", "$warning"), Content.styled(reasons, "$quiet")]
    return [_line(line) for line in visible(injection.context).split("\n")]


def _line(line: str) -> Content:
    if line.startswith("## ") or _FENCE.fullmatch(line):
        return Content.styled(line, "bold $accent")
    return Content.styled(line, "bold" if line.startswith("### ") else "")


def difference(preview: Preview) -> tuple[list[Content], list[Content]]:
    """Return the lines of both texts, and the sign of each line."""
    lines = [Content.styled(line, _SIGNS[sign]) if sign in _SIGNS else _line(line) for sign, line in preview.lines]
    signs = [Content.styled(f"{sign} ", f"bold {_SIGNS.get(sign, '')}".strip()) for sign, _line in preview.lines]
    return lines, signs


def match_line(injection: Injection) -> Content:
    method = "semantic similarity" if injection.matched_by == "meaning" else "word match"
    return Content.assemble(("found by ", "$quiet"), method)


def embedding_line(done: int, total: int, glyphs: Glyphs) -> Content:
    drawn = (bar(done, total, BAR_CELLS, glyphs), "$accent")
    return Content.assemble(("embedding: ", "$quiet"), drawn, f" {done:,} of {plural(total, 'pattern')}")


def count_line(preview: Preview) -> Content:
    return Content.styled(f"{len(preview.given):,} given, {preview.unused:,} left out", "$quiet")


def choice_cells(choice: Recipient) -> Cells:
    return {
        "kind": Content.styled(choice.kind, "$success" if choice.kind == LOOP else "$quiet"),
        "task": Content(visible_line(choice.task, 300)),
    }


def loop_choices(loops: Sequence[Loop]) -> list[tuple[str, Content]]:
    """Return ID and label of the running loops, to choose from."""
    return [
        (one.id, Content.assemble(visible_line(one.task, 90) or "no task", (f"  {visible_line(one.id, 60)}", "$quiet")))
        for one in loops
    ]


def recorded_toast(new: Injected, injection: Injection, loop_id: str) -> str:
    """Return a toast about the injections recorded for a loop."""
    loop = visible_line(loop_id, 60)
    counts = (
        (len(new.patterns), len(injection.chosen), "pattern"),
        (len(new.reflections), len(injection.reflections.chosen), "reflection"),
    )
    if not any(count for count, _, _ in counts):
        known = " and ".join(plural(total, noun) for _, total, noun in counts if total)
        return f"already recorded: {known} given to {loop}"
    added = " and ".join(plural(count, noun) for count, _, noun in counts if count)
    before = sum(total - count for count, total, _ in counts)
    known = f"; {before:,} already recorded" if before else ""
    return f"recorded: {added} given to {loop}{known}. y copies the text"


def agent_size_line(files: Sequence[AgentFile]) -> Content:
    """Return how much agents load by themselves."""
    tokens = sum(count_tokens(file.text) for file in files)
    return Content.assemble((f"{tokens:,}", "bold"), (f" tokens in {plural(len(files), 'file')} of agents", "$quiet"))


class AgentFilesSide(Vertical):
    """Shows the files, and marks the lines that the injected text repeats."""

    def __init__(self) -> None:
        super().__init__(classes="side side--files")
        self.display = False

    def compose(self) -> ComposeResult:
        yield ItemLine(id="context-files-head")
        yield TextPane(id="context-files")

    @property
    def pane(self) -> TextPane:
        return self.query_one(TextPane)

    def show(self, files: Sequence[AgentFile], repeated: Mapping[str, Repetition], *, top: bool) -> None:
        self.query_one(ItemLine).show([Item(agent_size_line(files))])
        screen = self.screen
        assert isinstance(screen, BaseScreen)
        lines = agent_file_lines(files, repeated)
        self.pane.show(document_lines(lines, screen.view.now, screen.glyphs), top=top)

    def place_by(self, text: TextPane, *, wanted: bool) -> None:
        """Show the files beside the text or in its place, or hide them."""
        has_focus, is_wide = text.has_focus or self.pane.has_focus, self.screen.size.width >= FILES_BESIDE
        self.set_class(is_wide, "-beside")
        self.display = wanted
        if isinstance(text.parent, Widget):
            text.parent.display = is_wide or not wanted
        if has_focus and not (visible := self.reading(text)).has_focus:  # the focus stays on what is visible
            visible.focus()

    def reading(self, text: TextPane) -> TextPane:
        """Return the injected text, unless the files are in its place or have focus."""
        is_hidden = isinstance(text.parent, Widget) and not text.parent.display
        return self.pane if self.display and (self.pane.has_focus or is_hidden) else text


class Knobs(SettingFields):
    """Fields for the injection settings: the changed ones, or all while it is open."""

    def __init__(self, own: Settings) -> None:
        super().__init__(KNOBS, own, empty_is_own=False, id="context-knobs")
        self.display = False

    def compose(self) -> ComposeResult:
        for name, knob in KNOBS.items():
            own = knob.text(self.own)
            yield ValueField(name, Content(knob.setting.label), Content(f"({own})"), own, stepped=bool(knob.words))

    def open(self) -> None:
        """Show all fields, and focus the first one."""
        self.set_class(True, "-open")
        self.display = True
        next(iter(self.fields.values())).enter()

    def close(self) -> None:
        """Show only the changed fields."""
        self.set_class(False, "-open")
        self.display = bool(self.turned)

    @on(SettingFields.Turned)
    def _show_changed(self) -> None:
        self.display = self.has_class("-open") or bool(self.turned)


class ContextScreen(BaseScreen):
    """Shows the context for a typed task or a loop's task, with adjustable settings."""

    place = "context"
    LIST = {"columns": COLUMNS}

    def __init__(self) -> None:
        super().__init__()
        self._preview: Preview | None = None
        self._choices: dict[str, Recipient] = {}
        self._loop = -1  # index of the running loop whose task was taken last
        self._view = ""  # what the left pane shows, of `_views`; "" for the first one
        self._unfolded: frozenset[str] = frozenset()  # keys of the summary rows that were opened
        self._files: tuple[AgentFile, ...] = ()
        self.files = AgentFilesSide()
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
        yield Knobs(self.view.settings)

    @property
    def knobs(self) -> Knobs:
        return self.query_one(Knobs)

    @property
    def settings(self) -> InjectionSettings:
        """The injection settings with the values of the fields."""
        return self.knobs.settings.injection

    @property
    def _views(self) -> tuple[str, ...]:
        """What the left pane can show: text, files of agents, and changes if any."""
        changes = (CHANGES,) if self._preview is not None and self._preview.differs else ()
        return (*changes, TEXT, FILES)

    @property
    def _shown_view(self) -> str:
        return self._view if self._view in self._views else self._views[0]

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
            self.table.focus()
        else:
            self.task_line.focus_input()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= BESIDE, "-wide")
        self.files.place_by(self.text, wanted=self.files.display)
        self._show_parts()
        self.refresh_frame()

    def preview(self, task: str, pattern_id: str = "") -> None:
        """Show the context of a task, with the cursor on a pattern, else the first row."""
        self._wanted = pattern_id
        self.task_line.text = task
        self.table.focus()
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
        """Show the progress of embeddings; recompute the context when they are complete."""
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
        self.table.focus()

    def _prepare(self) -> None:
        """Compute the context. Without a task, list the tasks of loops and recent tasks."""
        if task := self.task_text:
            self.run_in_thread("injection", partial(self._compute, self.view, task, self.settings), self._show_preview)
        else:
            self._preview = None
            self._show()

    def _compute(self, view: ProjectState, task: str, settings: InjectionSettings) -> Preview:
        agents = (loop.agent for loop in view.snapshot.loops.values() if loop.task.strip() == task and loop.agent)
        self._files = put_first(self.services.project.adapters.agent_files(), next(agents, ""))
        return Preview.prepare(view, task, settings, self._files, self._token)

    def _show_preview(self, preview: Preview) -> None:
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
                    Content("Type a task, or press esc and n for the task of a running session."),
                    *[Content(f"Or choose a task below with down, and press {enter}.")] * bool(self._choices),
                    Content.styled("Shows the exact text that the session would get.", "$quiet"),
                ]
            )
            self.table.use(self.TABLE.other_columns)
            self.table.show(list(self._choices))
        else:
            self._choices = {}
            self.files.show(self._files, preview.repeated, top=top)
            if self._shown_view == CHANGES:
                lines, marks = difference(preview)
                self.text.show(lines, top=top, marks=marks)
            else:
                self.text.show(context_lines(preview.injection), top=top)
            titles = {"score": "lower", "other": "by score"} if preview.by_lower_bound else {}
            self.table.use([replace(column, title=titles.get(column.id, column.title)) for column in COLUMNS])
            self.table.show(preview.list_rows(self._unfolded))
            if top:
                self.table.cursor = 0
        self.files.place_by(self.text, wanted=self._shown_view == FILES and preview is not None)
        self._show_parts()
        self.refresh_frame()

    def _reach_difference(self) -> None:
        """Scroll to the first line that the changed settings add or remove."""
        if self._shown_view == CHANGES and self._preview is not None:
            self.text.reach(next((n for n, (sign, _line) in enumerate(self._preview.lines) if sign != " "), 0))

    def _show_heads(self) -> None:
        head, why = self.query_one("#context-head", ItemLine), self.query_one("#context-why", ItemLine)
        preview = self._preview
        making = [] if self._embedding is None else [Item(embedding_line(*self._embedding, self.glyphs))]
        if preview is None:
            self.task_line.count(Content(""))
            head.show([Item(Content.styled("Text for the prompt", "$quiet"))])
            why.show([Item(Content.styled("Running sessions and recent tasks", "$quiet"))], making)
            return
        self.task_line.count(profile_line(preview.injection))
        if fault := self.knobs.fault:
            right = [Item(Content.styled(f"! {visible_line(fault, 100)}", "$error"))]
        else:
            right = [Item(difference_line(preview))] if self.knobs.turned else []
            if not self.services.is_trusted:
                right.insert(0, Item(Content.styled("only a preview: not trusted", "$warning")))
        head.show([Item(size_line(preview.injection, self.settings))], right)
        why.show([Item(match_line(preview.injection))], making or [Item(count_line(preview))])

    def _cells(self, key: str) -> Cells:
        if (choice := self._choices.get(key)) is not None:
            return choice_cells(choice)
        if self._preview is None:
            return {}
        cells = context_cells(self._preview, key, self.view, self.table.width_of("why"))
        return draw_cells(cells, self.view.now, self.glyphs)

    @on(RecordTable.Highlighted)
    def _highlighted(self, message: RecordTable.Highlighted) -> None:
        message.stop()
        self._show_parts()

    def _show_parts(self) -> None:
        key, preview = self.table.cursor_key or "", self._preview
        blocks = row_details(preview, key, self.view) if preview is not None else ()
        self.query_one("#context-parts", TextPane).show(document_lines(blocks, self.view.now, self.glyphs))

    @on(SettingFields.Turned)
    def _turned(self, message: SettingFields.Turned) -> None:
        message.stop()
        self._show_heads()
        self._prepare()

    @on(SettingFields.Moved)
    def _moved(self, message: SettingFields.Moved) -> None:
        message.stop()
        self.refresh_frame()

    def action_agent_files(self) -> None:
        """Show the next view of the left pane."""
        views = self._views
        self._view = views[(views.index(self._shown_view) + 1) % len(views)]
        self._show(top=True)
        self._reach_difference()

    def action_more(self) -> None:
        """Show all values to change, or hide those that are not changed."""
        if self.knobs.has_class("-open"):
            self._leave_values()
        else:
            self.knobs.open()

    def _leave_values(self) -> None:
        self.table.focus()
        self.knobs.close()

    def _step(self, steps: int) -> None:
        """Change the focused value, or the number of patterns if no field has focus."""
        self.knobs.step(str(self.knobs.field.name) if self.knobs.field else "top_k_patterns", steps)

    action_step_up = partialmethod(_step, 1)
    action_step_down = partialmethod(_step, -1)

    def action_put_back(self) -> None:
        self.knobs.put_back(filter(None, [self.knobs.field]))

    def action_put_all_back(self) -> None:
        self.knobs.put_back(self.knobs.fields.values())

    def action_pick_loop(self) -> None:
        loops = running_loops(self.view)
        self._loop = (self._loop + 1) % len(loops)
        self.preview(loops[self._loop].task)

    def action_inject(self) -> None:
        if self._preview is not None:
            ask_to_record(self, self._preview.injection, self.task_text)

    def why_not(self, action: str) -> str | None:
        if action == "agent_files" and self._preview is None:
            return "Type a task first; v then shows what agents load by themselves"
        if action == "put_back" and self.knobs.field is None:
            return "Press . to change a value; R restores all"
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
        if action == "agent_files":
            views = self._views
            names = {CHANGES: "show changes", TEXT: "show text", FILES: "agents' files"}
            return names[views[(views.index(self._shown_view) + 1) % len(views)]]
        if action == "more":
            return "hide values" if self.knobs.has_class("-open") else "values"
        if action == "open" and self._choices:
            return "use this task" if self.table.has_focus else "tasks"
        if action == "open" and not self.table.has_focus:
            return "list"
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
            self._leave_values()
        elif not self.table.has_focus:
            self.table.focus()
        elif key := self.table.cursor_key:
            self._open(key)

    def _open(self, key: str) -> None:
        """Use the task under the cursor, list a summary's rows, or open the record."""
        if (choice := self._choices.get(key)) is not None:
            self.preview(choice.task)
            return
        preview = self._preview
        if preview is not None and key in preview.unfit:
            self._unfolded |= {key}
            self._show()
            return
        rows = (preview.reflections, preview.reflections_left_out) if preview is not None else ()
        learned = next((row[key] for row in rows if key in row), None)
        if learned is None:
            self.services.open_record("patterns", key)
        elif learned.id in self.view.snapshot.reflections:
            self.services.open_record("reflections", learned.id)
        else:
            self.services.open_record("loops", task_key(learned.id.rpartition("#")[0]))

    def action_back(self) -> None:
        if self.knobs.has_class("-open"):
            self._leave_values()
        elif self.can_return():
            self.services.go_back()
        else:
            self._leave_line()

    def _mover(self) -> RecordTable | TextPane:
        return self.table if self.table.has_focus else self.reading

    def _move(self, rows: int) -> None:
        if self.task_line.has_focus_within and self.table.keys:
            self.table.focus()
            return
        (self._mover() if self.knobs.field is None else self.knobs).move(rows)

    action_down = partialmethod(_move, 1)
    action_up = partialmethod(_move, -1)

    def _go_on(self, panes: int) -> None:
        texts = [pane for pane in (self.text, self.files.pane) if pane in self.focus_chain]
        stops: list[Callable[[], object]] = [self.task_line.focus_input, *(pane.focus for pane in texts)]
        stops.append(self.table.focus)
        widgets = (self.task_line, *texts, self.table)
        at = next((n for n, widget in enumerate(widgets) if widget.has_focus_within or widget.has_focus), 0)
        stops[(at + panes) % len(stops)]()

    action_next_pane = partialmethod(_go_on, 1)
    action_previous_pane = partialmethod(_go_on, -1)

    def copy_text(self) -> str:
        return self._preview.injection.context if self._preview is not None else ""

    def copy_markdown(self) -> str:
        preview = self._preview
        return to_markdown(context_document(preview, self.view, self.task_text)) if preview is not None else ""


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
    choices = loop_choices(loops or running_loops(screen.view))
    screen.ask_user(Choose(Content(title), Content(detail), choices, verb="record"), record)


def record_injection(project: Project, loop_id: str, injection: Injection) -> str:
    """Record an injection in the engine's thread and return the text of the toast.

    Raises Refused if the loop has ended.
    """
    if not project.view.loop(loop_id).is_running:
        raise Refused(f"{visible_line(loop_id, 60)} has ended; nothing was recorded")
    return recorded_toast(project.inject(loop_id, injection), injection, loop_id)
