"""The details of the Memory screen: tasks, attempts, debug sessions and groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from textual import on

from core.base.errors import RalphdeckError
from core.documents import debug_sessions, tasks
from core.documents.document import Block, fields, section
from core.episodes.attempt_state import AttemptCondition, assess_attempt
from core.episodes.history import AttemptDetail, read_attempt
from core.episodes.loop_links import Coverage, measure_coverage
from core.episodes.success_metrics import RetryImprovement, measure_improvement
from core.learning.outcomes import collect_reports
from core.queries.memory_links import MemoryLinks, Remembered
from core.queries.record_filters import MemoryCatalog
from core.records.snapshot import Snapshot
from tui.present import memory_groups, memory_tasks
from tui.present.document import UNBROKEN, Drawable, document_lines
from tui.present.memory import ESCALATIONS, SESSIONS, TASKS, parts
from tui.screens.cross_links import CrossLinks
from tui.screens.list_screen import ListScreen
from tui.widgets.record_table import RecordTable
from tui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from textual.content import Content

    from core.records.debug_sessions import DebugSession
    from core.records.episodes import Attempt, Task

BESIDE: Final = 110  # cells of the details from which reflections are beside them
BESIDE_LONG: Final = 150  # The same for details with long lines: stack traces, diffs, and figures of all tasks.
DETAIL_SHARE: Final = (11, 25)  # share of the width for details beside the list, as in memory.tcss
TABS: Final = {
    "group": ("Overview",),
    "task": ("Overview", "Reflections", "Loop"),
    "earlier": ("Overview", "Reflections", "Loop"),
    "attempt": ("Overview", "Plan", "Actions", "Reflections"),
    "session": ("Executions", "Learned"),
}
"""The tabs by kind of row."""


class MemoryDetails(CrossLinks, ListScreen):
    """Base of the Memory screen: details of each record, with reflections beside them."""

    def __init__(self) -> None:
        super().__init__()
        self._catalog = MemoryCatalog(Snapshot())
        self.links = MemoryLinks(Snapshot(), self._catalog)
        self._measured: tuple[int, RetryImprovement, Coverage] | None = None
        """Snapshot number and the result of `_progress` for that snapshot."""
        self._detail: tuple[str, AttemptDetail] | None = None  # row of the attempt that was read last, and its details

    @property
    def pane(self) -> TextPane:
        return self.query_one("#memory-text", TextPane)

    def _room(self) -> int:
        """Return the width in cells of the details and the pane beside them."""
        beside_list = self.has_class("-wide") and not self.has_class("-detail")
        share, whole = DETAIL_SHARE if beside_list else (1, 1)
        return self.size.width * share // whole

    def _task_of(self, key: str | None) -> Task | None:
        """Return the task of a task row or of a row of earlier attempts, or None."""
        kind, record_id = parts(key or "")
        return self._catalog.tasks.get(record_id) if kind in {"task", "earlier"} else None

    def _attempt_of(self, key: str | None) -> Attempt | None:
        kind, record_id = parts(key or "")
        return self.view.snapshot.attempts.get(record_id) if kind == "attempt" else None

    def _session_of(self, key: str | None) -> DebugSession | None:
        kind, record_id = parts(key or "")
        return self._catalog.sessions.get(record_id) if kind == "session" else None

    def linked_record(self) -> Remembered | None:
        """Return the record under the cursor, or None for a heading."""
        key = self.table.cursor_key
        return self._task_of(key) or self._attempt_of(key) or self._session_of(key)

    def _read_detail(self, key: str) -> AttemptDetail | None:
        """Return the details of an attempt, or None if they are not read yet."""
        return self._detail[1] if self._detail is not None and self._detail[0] == key else None

    def _condition(self, attempt: Attempt) -> AttemptCondition:
        latest = self._catalog.attempts[attempt.task_id][-1].number
        task = self._catalog.tasks.get(attempt.task_id)
        return assess_attempt(attempt, task, latest, self.services.now(), self.view.settings.watch)

    def tabs(self, key: str | None) -> tuple[str, ...]:
        """Return the tabs of a row, without the tab of content that is shown beside the details."""
        kind, _ = parts(key or "group/")
        names = TABS[kind]
        return names[:-1] if kind in {"attempt", "session"} and self._has_beside(key) else names

    def _has_beside(self, key: str | None) -> bool:
        """Return True if reflections are shown beside the details of a row."""
        kind, _ = parts(key or "group/")
        if kind == "group" and key not in {TASKS, SESSIONS}:
            return False
        return self._room() >= (BESIDE_LONG if kind == "session" or key == TASKS else BESIDE)

    def details(self, key: str, tab: str) -> Sequence[Content]:
        width, height = self.pane.scrollable_content_region.width, self.pane.size.height
        if attempt := self._attempt_of(key):
            return self._attempt_details(key, attempt, tab, width, height)
        if task := self._task_of(key):
            return self._task_details(key, task, tab, width, height)
        if self._session_of(key):
            return self._draw(self.blocks(key, tab), width)
        return self._group_details(key, width)

    def blocks(self, key: str, tab: str) -> Sequence[Block]:
        """Return the content of a tab of a debug session, a task or an attempt."""
        if session := self._session_of(key):
            return tuple((debug_sessions.lessons if tab == "Learned" else debug_sessions.runs)(self.view, session))
        if tab != "Overview":
            return ()
        if task := self._task_of(key):
            about = fields(("Task", task.description), *tasks.about_rows(task))
            return (*about, *tasks.attempt_table(self._catalog.attempts.get(task.id, ()), self._condition))
        if (attempt := self._attempt_of(key)) and (detail := self._read_detail(key)):
            return tasks.attempt_document(detail, self._condition(attempt)).blocks
        return ()

    def _draw(self, blocks: Iterable[Drawable], width: int = UNBROKEN) -> list[Content]:
        return document_lines(blocks, self.view.now, self.glyphs, width)

    def _group_details(self, key: str, width: int) -> Sequence[Content]:
        if key == ESCALATIONS:
            return self._draw(memory_groups.escalations(self.view), width)
        alone = not self._has_beside(key)
        if key == SESSIONS:
            templates = memory_groups.template_lines(self.view, width) if alone else []
            return [*memory_groups.cause_lines(self.view, self.glyphs, width), *templates]
        better, covered = self._progress()
        missing = memory_groups.coverage(covered) if alone else ()
        return self._draw([*memory_groups.improvement(better, self.glyphs), *missing])

    def _beside(self, key: str, width: int) -> Sequence[Content]:
        if attempt := self._attempt_of(key):
            return self._draw(memory_tasks.reflection_blocks(self.links.reflections_of(attempt), of_task=False))
        if session := self._session_of(key):
            return self._draw(debug_sessions.lessons(self.view, session), width)
        if task := self._task_of(key):
            lines = self._draw(memory_tasks.task_notes(task, self.links.reflections_of(task), beside=True), width)
            return lines if lines[0] else lines[1:]
        if key == SESSIONS:
            return memory_groups.template_lines(self.view, width)[1:]
        return self._draw(memory_groups.coverage(self._progress()[1]))[1:]

    def _progress(self) -> tuple[RetryImprovement, Coverage]:
        """Return retry success and task coverage of loops, computed once per snapshot."""
        snapshot = self.view.snapshot
        if self._measured is None or self._measured[0] != snapshot.number:
            reports = collect_reports(snapshot.events)
            reflections = snapshot.reflections.values()
            better = measure_improvement(snapshot.attempts.values(), reflections, reports, self.view.settings)
            covered = measure_coverage(snapshot.tasks, snapshot.memory_tasks, snapshot.loops)
            self._measured = (snapshot.number, better, covered)
        return self._measured[1:]

    def _task_details(self, key: str, task: Task, tab: str, width: int, height: int) -> Sequence[Content]:
        reflections = self.links.reflections_of(task)
        if tab == "Reflections":
            return self._draw(memory_tasks.reflection_blocks(reflections, of_task=True))
        if tab == "Loop":
            loop_id, how = self.links.task_loop(task)
            return self._draw(memory_tasks.loop_tab(self.view.snapshot.loops.get(loop_id), how, self.view))
        attempts = self._catalog.attempts.get(task.id, ())
        overview = memory_tasks.task_overview(task, attempts, self._condition, self.glyphs, width, height)
        notes = () if self._has_beside(key) else memory_tasks.task_notes(task, reflections, beside=False)
        return self._draw([*overview, *notes], width)

    def _attempt_details(self, key: str, attempt: Attempt, tab: str, width: int, height: int) -> Sequence[Content]:
        detail, opens = self._read_detail(key), self.services.shown_key("open")
        reflections = self.links.reflections_of(attempt)
        match tab:
            case "Plan":
                return self._draw(memory_tasks.plan(attempt, detail))
            case "Actions":
                return self._draw(memory_tasks.last_actions(detail, opens))
            case "Reflections":
                return self._draw(memory_tasks.reflection_blocks(reflections, of_task=False))
        task, condition = self._catalog.tasks[attempt.task_id], self._condition(attempt)
        lines = self._draw(memory_tasks.attempt_overview(attempt, task, condition, self.glyphs, width, height), width)
        more = [*(tasks.milestones(detail.milestones) if detail is not None else ())]
        if session := self._catalog.of_attempts.get(attempt.id):
            more += section("Debug session", debug_sessions.runs(self.view, session, is_short=True))
        if height >= memory_tasks.TALL:
            more += memory_tasks.overview_end(detail, None if self._has_beside(key) else reflections, opens)
        return [*lines, *self._draw(more)]

    def _show_details(self, *, top: bool = True) -> None:
        key = self.table.cursor_key
        beside = self.query_one("#memory-beside", TextPane)
        beside.display = key is not None and self._has_beside(key)
        if key is not None and beside.display:
            beside.show(self._beside(key, beside.scrollable_content_region.width), top=top)
        super()._show_details(top=top)

    @on(RecordTable.Highlighted)
    def _other_row(self, message: RecordTable.Highlighted) -> None:
        if message.key is not None:
            self._read_attempt(message.key)

    def _read_attempt(self, key: str) -> None:
        attempt = self._attempt_of(key)
        if attempt is None:
            return
        project = self.services.project.project

        def read() -> AttemptDetail | None:
            try:
                return read_attempt(project, attempt.task_id, attempt.number)
            except RalphdeckError:
                return None  # it has just been removed; the list will show it

        def show(detail: AttemptDetail | None) -> None:
            if detail is not None and key == self.table.cursor_key:
                self._detail = (key, detail)
                self._show_details(top=False)

        self.run_in_thread("attempt", read, show)
