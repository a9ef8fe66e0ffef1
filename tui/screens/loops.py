"""The Loops screen: a tree of all sessions with attempts, iterations and lessons."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace
from textual import on
from textual.content import Content

from core.base.errors import RalphdeckError
from core.base.formatting import format_cost, format_count, format_decimal
from core.index.search_words import MAX_RANKED, SearchFilters
from core.records.decisions import extraction_question_id
from core.records.snapshot import Snapshot
from core.show import loops as rows
from core.show.filter_parser import Query
from core.show.loops import Selection, count_offered, move_rows, offer_blocks, select_rows
from core.show.needs import Need, find_need
from core.show.now import describe_empty
from core.show.pages import loops as documents
from core.show.pages import tasks
from core.show.pages.document import Block, Sign, Text, fields, line, section
from core.show.pages.signs import attempt_sign, task_sign
from core.show.work import (
    FIELDS,
    FoundWork,
    Row,
    Tree,
    WorkCatalog,
    WorkLinks,
    attempt_key,
    build_tree,
    earlier_key,
    has_rows_below,
    parse_key,
)
from core.tasks.attempts import AttemptCondition, assess_attempt
from tui.kit.drawing import TextPane
from tui.kit.looks import Glyphs, draw
from tui.kit.record_table import RecordTable
from tui.screens.document import UNBROKEN, Drawable, Run, document_lines, draw_cells, heading, inline, line_chart
from tui.screens.list_screen import ListScreen
from tui.screens.replay import CrossLinks, ReplayScreen, chart_lines
from tui.screens.text_hits import failure_note, hit_content, hits_by_record, index_note, search_words

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.index.search import SearchResult
    from core.index.search_words import SearchHit, SearchWords
    from core.records.debug_sessions import DebugSession
    from core.records.episodes import Attempt, Task
    from core.records.loops import Loop, LoopDetails
    from core.records.snapshot import Delta
    from core.show.filter_parser import Term
    from core.show.pages.document import Cells as TextCells
    from core.show.work import Remembered
    from core.tasks.history import AttemptDetail
    from tui.kit.looks import Cells

TABS: Final = {
    "loop": ("Overview", "Attempts", "Iterations", "Lessons", "Reflections", "Files"),
    "task": ("Overview", "Reflections"),
    "attempt": ("Overview", "Plan", "Actions", "Reflections"),
    "session": ("Runs", "Learned"),
    "iteration": ("Iteration",),
    "lesson": ("Lesson",),
    "earlier": ("Overview",),
}
"""The tabs by kind of row; a loop without attempts has no tab of them."""
PAUSE_SECONDS: Final = 0.1  # seconds without typing before all texts are searched
MOST_UNFOLDED: Final = 400  # rows whose unfolded state is saved between runs, the most recent ones
_MAX_CHART_CELLS: Final = 110
_ROOMY: Final = 18  # minimum height of a pane for a full chart of an attempt
_SHORT: Final = 12  # height of a pane below which a chart has no heading
_UNFOLDED: Final = "loops-unfolded"  # key of the unfolded rows in the user state
MOST_AT_ONCE: Final = 1_000  # loops and tasks that are filtered and sorted without a thread
_OF_LOOPS: Final = frozenset({"in_context", "deliver", "extract"})


def task_lines(
    task: Task, attempts: Sequence[Attempt], condition: tasks.ConditionOf, glyphs: Glyphs, width: int, height: int
) -> Iterable[Drawable]:
    """Describe a task, with a chart of its quality and its attempts."""
    sign = task_sign(task, condition(attempts[-1]).state if attempts else None)
    yield line((task.description or "no description", "strong"))
    yield line(sign, (f"   {task.id}", "quiet"), (f"   by {task.agent}" if task.agent else "", "quiet"))
    if not attempts:
        yield line("")
        yield line((f"No attempts yet: ralphdeck task start {task.id}", "quiet"))
        return
    runs = []
    for attempt in attempts:
        if attempt.quality:
            glyph = draw(attempt_sign(attempt, condition(attempt)), glyphs)[:1]
            label = Content.assemble((f"{attempt.number} ", "$secondary"), glyph)
            runs.append(Run([entry.quality for entry in attempt.quality], label))
    if chart := line_chart(runs, min(width, _MAX_CHART_CELLS), chart_lines(height), glyphs):
        retries = line(*tasks.retry_text(attempts))
        parts: list[Drawable] = [*chart, retries] if height < _SHORT else [*heading("Quality"), retries, *chart]
        yield from parts
    yield line("")
    yield from tasks.attempt_table(attempts, condition)


def attempt_lines(
    attempt: Attempt, task: Task, condition: AttemptCondition, glyphs: Glyphs, width: int, height: int
) -> Iterable[Drawable]:
    """Describe outcome, plan, facts, quality, and what worked."""
    facts: Iterable[Drawable] = tasks.attempt_facts(attempt, task)
    chart: Iterable[Drawable] = quality_lines(attempt, glyphs, width, height)
    yield tasks.attempt_head(attempt, condition)
    for part in (chart, facts) if height < _SHORT else (facts, chart):
        yield from part
    yield from tasks.attempt_notes(attempt)


def quality_lines(attempt: Attempt, glyphs: Glyphs, width: int, height: int) -> list[Content]:
    """Return a chart of the quality by iteration, and its changes, or []."""
    if not attempt.quality:
        return []
    ticks = [str(place if one.iteration is None else one.iteration) for place, one in enumerate(attempt.quality, 1)]
    run = Run([entry.quality for entry in attempt.quality], Content(""), ticks=ticks)
    is_roomy = height >= _ROOMY
    lines = heading("Quality", "by iteration") if is_roomy else []
    lines += line_chart([run], min(width, _MAX_CHART_CELLS), chart_lines(height if is_roomy else 0), glyphs)
    styles = {1: "$success", -1: "$error", 0: "$quiet"}
    changes = [(one.change, one.delta or 0) for one in attempt.quality if one.change]
    if changes:
        parts = [(f" {change}", styles[(delta > 0) - (delta < 0)]) for change, delta in changes]
        row = Content.assemble(("change ", "$quiet"), *parts, (" points", "$quiet"))
        lines.append(row.truncate(width, ellipsis=True))
    return lines


class LoopsScreen(CrossLinks, ListScreen):
    """Lists all loops as a tree; details of the row under the cursor load on demand."""

    place = "loops"
    FIELDS = FIELDS
    LIST = {"columns": rows.COLUMNS, "sorts": rows.SORTS}
    TABS = TABS["loop"]

    def __init__(self) -> None:
        super().__init__()
        self._catalog = WorkCatalog(Snapshot())
        self.links = WorkLinks(Snapshot(), self._catalog)
        self._needs: Mapping[str, Need] = {}  # by the key of the row
        self._found: Sequence[FoundWork] = ()
        self._tree = Tree()
        self._is_stale = True  # whether the catalog and the needs are to be made again
        self._is_selected = False  # whether a thread has just selected the rows
        self._shown_query = Query(())
        self._wanted = ""  # the row to go to when a thread has selected the rows
        self._unfolded: dict[str, None] = {}  # keys of unfolded rows, the oldest first
        self._details: LoopDetails | None = None  # of the loop that was read last
        self._detail: tuple[str, AttemptDetail] | None = None  # row of the attempt that was read last, and its details
        self._newest: tuple[Mapping[str, Loop] | None, datetime | None] = (None, None)  # activity in a snapshot
        self._loops: Mapping[str, Loop] = {}  # the loops that are shown
        self._words: SearchWords | None = None  # those of the filter, searched in all texts of tasks and attempts
        self._searched: tuple[Term, ...] = ()  # terms of that filter
        self._must_search = False
        self._hits: dict[str, SearchHit] = {}  # best hit by ID of the task or attempt
        self._hits_note = ""

    def on_mount(self) -> None:
        """Restore the unfolded rows."""
        try:
            saved = json.loads(self.services.user_state.get_here(_UNFOLDED, "[]"))
        except (ValueError, RecursionError):
            saved = []
        if isinstance(saved, list):
            self._unfolded = dict.fromkeys(key for key in saved if isinstance(key, str))

    @on(TextPane.Widened)
    def _widened(self, message: TextPane.Widened) -> None:
        message.stop()
        if self.is_composed:
            self._show_details(top=False)

    # What is shown

    def is_affected_by(self, delta: Delta) -> bool:
        """Return True if a change can affect a row, its result or its lessons."""
        rows_changed = delta.loops or delta.tasks or delta.attempts or delta.debug_sessions or delta.escalations
        return bool(rows_changed or delta.events or delta.decisions)

    def changed_rows(self, view: ProjectState, delta: Delta) -> Collection[str] | None:
        """Return changed loops and attempts; None if more changed or a row may move."""
        if replace(delta, loops=frozenset(), attempts=frozenset(), events=False):
            return None
        before, after = self._loops, view.snapshot.loops
        for key in delta.loops:
            if key not in before or key not in after or before[key].aliases != after[key].aliases:
                return None
            if key in self._catalog.above:  # an earlier session that may go on
                return None
        above = {self._catalog.above.get(attempt_key(id)) for id in delta.attempts}
        if None in above or any(id not in view.snapshot.attempts for id in delta.attempts):
            return None
        return {*delta.loops, *map(attempt_key, delta.attempts), *(key for key in above if key)}

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        """Update rows and needs; reload the details under the cursor if they changed."""
        changed = None if delta is None else self.changed_rows(view, delta)
        if changed is not None and delta is not None:
            self._catalog = self._catalog.with_changes(view.snapshot, delta.loops, delta.attempts)
            self._needs = {
                **{key: need for key, need in self._needs.items() if key not in changed},
                **{
                    loop.id: need for key in changed if (loop := self._loop_of(key)) and (need := find_need(view, loop))
                },
            }
            self._choose_columns(view)
        elif delta is None or self.is_affected_by(delta):
            self._is_stale = self._must_search = True
        self.links = self.links.updated(view.snapshot, self._catalog, delta) if delta is not None else self.links
        super().refresh_view(view, delta)
        self._loops = view.snapshot.loops
        key = self.table.cursor_key
        if key is not None and (delta is None or parse_key(key).id in delta.loops | delta.attempts):
            self.call_after_refresh(self._read_details)  # the rows do not wait for it

    def _choose_columns(self, view: ProjectState) -> None:
        """Show the columns about runners if a loop has one, and all words of the needs."""
        has_runners = any(loop.runner for loop in self._catalog.loops.values())
        needs = rows.needs_column(self._needs.values(), view.now)
        columns = [needs if one.id == needs.id else one for one in rows.COLUMNS]
        self.table.use([one for one in columns if has_runners or one.id not in rows.RUNNER_COLUMNS])

    def select(self, view: ProjectState, query: Query, sort: tuple[str, bool] | None) -> Sequence[str]:
        """Return matching rows; of a large project, earlier ones until a thread is done."""
        if self._is_selected:  # by the thread
            self._is_selected = False
            return self._tree.keys
        self._search_texts(query)
        before = None if self._is_stale else (self._catalog, self._needs)
        work = partial(
            select_rows, view, self._catalog, before, query, sort, tuple(self._unfolded), frozenset(self._hits)
        )
        if len(view.snapshot.loops) + len(view.snapshot.tasks) > MOST_AT_ONCE:
            self.run_in_thread("rows", work, self._show_selection)
            return self.table.keys
        self._take(work())
        return self._tree.keys

    def _take(self, selection: Selection) -> None:
        if selection.catalog is not self._catalog:
            self.links = WorkLinks(self.view.snapshot, selection.catalog)
            self._is_stale = False
        self._catalog, self._needs, self._found, self._tree = selection[:4]
        self._choose_columns(self.view)

    def _show_selection(self, selection: Selection) -> None:
        """Show the rows that a thread has found."""
        self._take(selection)
        self._is_selected = True
        self._select(self.view)
        if self._shown_query != selection.query:
            self._shown_query = selection.query
            if selection.query.terms:
                self.table.cursor = self.first_match()
        if wanted := self._wanted:
            self._wanted = ""
            self.go_to(wanted)
        self._show_details(top=False)

    def select_again(self, view: ProjectState, changed: Collection[str]) -> Sequence[str]:
        """Move changed rows to their places, or select all if a filter or time decides."""
        name, descending = self._sort or ("newest", True)
        if self._query.terms or self._is_stale or name == "elapsed":
            return super().select_again(view, changed)
        order = rows.LoopOrder(name, view, self._catalog, self._needs)
        top = {key for key in changed if key in self._catalog.loops or key in self._catalog.free_keys}
        self._found = move_rows(self._found, top, order, descending=descending and name != "newest")
        self._tree = build_tree(self._catalog, self._found, self._unfolded, view.loop_patterns)
        return self._tree.keys

    def total(self, view: ProjectState) -> int:
        joined = sum(map(len, self._catalog.earlier_of.values()))
        return len(view.snapshot.loops) - joined + len(self._catalog.free_keys)

    def matching(self, shown: int) -> int:
        return len(self._found)

    def totals(self) -> Iterable[str]:
        """Yield totals of matching loops: how many need a person, tokens, and cost."""
        loops = self.view.snapshot.loops
        keys = [one.key for one in self._found]
        if count := sum(key in self._needs for key in keys):
            yield f"{count} {'needs' if count == 1 else 'need'} you"
        whole = chain(keys, *(self._catalog.earlier_of.get(key, ()) for key in keys))
        used = [loop.usage for key in whole if (loop := loops.get(key)) is not None and loop.runner]
        if tokens := sum(usage.total or 0 for usage in used):
            yield f"{format_count(tokens)} tokens"
        if cost := sum(usage.cost_usd or 0.0 for usage in used):
            yield format_cost(cost)

    def _search_texts(self, query: Query) -> None:
        """Search the filter's words in all texts, first in the index; select rows again."""
        if query.terms == self._searched and not self._must_search:
            return
        if is_new := query.terms != self._searched:
            self._hits, self._hits_note = {}, ""
        self._searched, self._must_search = query.terms, False
        self._words = words = search_words(query)
        if words is not None and self._catalog.tasks:
            self._start_search(words, query, is_new=is_new, reads_files=False)

    def _start_search(self, words: SearchWords, query: Query, *, is_new: bool, reads_files: bool) -> None:
        services, snapshot = self.services, self.view.snapshot
        self.run_in_thread(
            "texts",
            lambda: services.project.index.search(
                words,
                SearchFilters(),
                MAX_RANKED,
                go_on=lambda: reads_files and self._words is words,
                snapshot=snapshot,
            ),
            partial(self._show_hits, words, query, is_new=is_new, reads_files=reads_files),
            fail=self._search_failed,
            pause=PAUSE_SECONDS,
        )

    def _search_failed(self, error: Exception) -> None:
        self._hits_note = failure_note(error)
        self._count()

    def _show_hits(
        self, words: SearchWords, query: Query, result: SearchResult, *, is_new: bool, reads_files: bool
    ) -> None:
        """Show rows found in the index, and then in files that are not indexed yet."""
        if self._words is not words:
            return
        is_complete = result.is_indexed or reads_files
        is_first = is_new and self.table.cursor == self.first_match()
        self._hits = hits_by_record(result.hits, query)
        self._hits_note = "" if is_complete else index_note(result.missing)
        if not result.is_exact:
            self._hits_note = f"only the newest {MAX_RANKED:,} texts"
        if not is_complete:
            self._start_search(words, query, is_new=is_new, reads_files=True)
        self._select(self.view)
        if is_first:  # the user has not moved the cursor
            self.table.cursor = self.first_match()
        self._show_details(top=False)

    def first_match(self) -> int:
        """Return the first row whose text was found, else the first match by fields."""
        matching = [row for row, key in enumerate(self.table.keys) if key not in self._tree.headings]
        found = (row for row in matching if parse_key(self.table.keys[row]).id in self._hits) if self._hits else ()
        return next(iter(found), matching[0] if matching else 0)

    def filter_note(self) -> str:
        return super().filter_note() or self._hits_note

    def empty(self) -> Content:
        return Content.styled(describe_empty(self.services.engine.connected_agents), "$quiet")

    # Records of rows

    def _loop_of(self, key: str | None) -> Loop | None:
        return self.view.snapshot.loops.get(key or "")

    def _task_of(self, row: Row) -> Task | None:
        return self._catalog.tasks.get(row.id) if row.kind == "task" else None

    def _attempt_of(self, row: Row) -> Attempt | None:
        return self.view.snapshot.attempts.get(row.id) if row.kind == "attempt" else None

    def _session_of(self, row: Row) -> DebugSession | None:
        return self._catalog.sessions.get(row.id) if row.kind == "session" else None

    def linked_record(self) -> Remembered | None:
        """Return the task, attempt or debug session at the cursor, or a loop's only task."""
        key = self.table.cursor_key or ""
        row = parse_key(key)
        if (record := self._task_of(row) or self._attempt_of(row) or self._session_of(row)) is not None:
            return record
        loop = self._loop_of(row.id)
        own = [id for id, home in self._catalog.homes.items() if loop is not None and home == loop.id]
        return self._catalog.tasks[own[0]] if len(own) == 1 else None

    def _condition(self, attempt: Attempt) -> AttemptCondition:
        latest = self._catalog.attempts[attempt.task_id][-1].number
        task = self._catalog.tasks.get(attempt.task_id)
        return assess_attempt(attempt, task, latest, self.services.now(), self.view.settings.watch)

    def _fold(self, key: str) -> Text:
        """Return the sign of a row with rows below it, and as many spaces for others."""
        if key in self._catalog.above:
            return rows.EARLIER_SESSION
        if not self._can_fold(key):
            return ("  ",)
        return Sign("", "quiet", "unfolded" if self._is_unfolded(key) else "folded"), " "

    def _is_unfolded(self, key: str) -> bool:
        return key in self._unfolded or (key in self._tree.headings and key not in self._tree.earlier)

    # Drawing

    def cells(self, key: str) -> Cells:
        now, view, row = self.services.now(), self.view, parse_key(key)
        if (loop := self._loop_of(key)) is not None:
            found = count_offered(view.offers.get(key))
            count = len(self._catalog.attempts_of[key]) if key in self._catalog.earlier_of else 0
            need, fold = self._needs.get(key), self._fold(key)
            cells = rows.loop_cells(view, loop, need, now, found=found, attempts=count, fold=fold)
        elif (attempt := self._attempt_of(row)) is not None:
            cells = rows.attempt_cells(
                attempt, self._condition(attempt), self._catalog.tasks[attempt.task_id].description
            )
        elif (task := self._task_of(row)) is not None:
            attempts = self._catalog.attempts_of.get(key, ())
            last = self._condition(attempts[-1]).state if attempts else None
            cells = rows.task_cells(task, attempts, last, self._fold(key))
        elif (session := self._session_of(row)) is not None:
            escalated = self._catalog.escalated.get(session.id)
            cells = rows.session_cells(session, escalated, now, is_below=bool(self._catalog.row_above(key)))
        else:
            cells = self._cells_below(key, row)
        return draw_cells(cells, now, self.glyphs)

    def _cells_below(self, key: str, row: Row) -> TextCells:
        """Return the cells of an iteration, a lesson or a row of earlier ones."""
        if row.kind == "earlier":
            return rows.earlier_cells(self._tree.earlier.get(key, 0), row.id.partition("/")[0], self._fold(key))
        loop = self._loop_of(row.id)
        if loop is None:
            return {}
        if row.kind == "iteration" and row.place < len(loop.iterations):
            return rows.iteration_cells(loop.iterations[row.place])
        if row.kind == "lesson":
            found = self.view.loop_patterns(row.id)
            uses = [use for use in found.uses if use.pattern_id == row.pattern_id]
            pattern, verdict = self.view.snapshot.patterns.get(row.pattern_id), found.verdicts.get(row.pattern_id)
            is_held_out = row.pattern_id in found.held_out
            return rows.lesson_cells(row.pattern_id, pattern, uses, verdict, is_held_out=is_held_out)
        return {}

    def words(self, key: str) -> dict[str, str]:
        loop = self._loop_of(key)
        if loop is None:
            return super().words(key)
        status = [loop.status.value, *loop.badges, *(["archived"] * loop.archived)]
        quality = ", ".join(map(format_decimal, loop.quality))
        whole = {"status": ", ".join(status), "tokens": documents.usage_text(loop.usage), "quality": quality}
        return super().words(key) | whole

    def below(self, key: str) -> Content:
        row = parse_key(key)
        record = self._loop_of(key) or self._task_of(row) or self._attempt_of(row) or self._session_of(row)
        return inline(rows.second_line(record), self.services.now(), self.glyphs) if record is not None else Content("")

    def tabs(self, key: str | None) -> tuple[str, ...]:
        row = parse_key(key or "")
        names = TABS[row.kind] if self._loop_of(key) is None else TABS["loop"]
        return names if key in self._catalog.attempts_of else tuple(name for name in names if name != "Attempts")

    def details(self, key: str, tab: str) -> Sequence[Content]:
        """Return the details of a row, below the text that was found in it."""
        row, width, height = parse_key(key), self.pane.scrollable_content_region.width, self.pane.size.height
        if (attempt := self._attempt_of(row)) is not None and tab == "Overview":
            lines = self._attempt_lines(attempt, width, height)
        elif (task := self._task_of(row)) is not None and tab == "Overview":
            lines = self._task_lines(task, width, height)
        elif tab == "Attempts":
            ids = dict.fromkeys(attempt.task_id for attempt in self._catalog.attempts_of.get(key, ()))
            lines = [one for id in ids for one in self._task_lines(self._catalog.tasks[id], width, height)]
        else:
            lines = document_lines(self.blocks(key, tab), self.view.now, self.glyphs, width or UNBROKEN)
        hit = self._hits.get(row.id)
        return lines if hit is None or self._words is None else [hit_content(hit, self._words), Content(""), *lines]

    def blocks(self, key: str, tab: str) -> Sequence[Block]:
        """Return the content of one tab; details not loaded yet are read in a worker."""
        row = parse_key(key)
        if (loop := self._loop_of(key)) is not None:
            return self._loop_blocks(loop, tab)
        if (session := self._session_of(row)) is not None:
            return tuple((tasks.lessons if tab == "Learned" else tasks.runs)(self.view, session))
        if (attempt := self._attempt_of(row)) is not None:
            return tuple(self._attempt_blocks(attempt, tab))
        if (task := self._task_of(row)) is not None:
            if tab == "Reflections":
                return tuple(tasks.reflection_blocks(self.links.reflections_of(task), of_task=True))
            about = fields(("Task", task.description), *tasks.about_rows(task))
            return (*about, *tasks.attempt_table(self._catalog.attempts.get(task.id, ()), self._condition))
        above = self._loop_of(row.id)
        if row.kind == "iteration" and above is not None and row.place < len(above.iterations):
            return tuple(documents.iteration_blocks(above.iterations[row.place]))
        if row.kind == "lesson" and above is not None:
            return tuple(documents.lesson_blocks(self.view, above, row.pattern_id))
        return ()

    def _loop_blocks(self, loop: Loop, tab: str) -> Sequence[Block]:
        view, need = self.view, self._needs.get(loop.id)
        details = self._details if self._details is not None and self._details.loop_id == loop.id else None
        match tab:
            case "Iterations":
                return tuple(documents.iterations(loop, details))
            case "Lessons":
                return tuple(documents.patterns(view, loop))
            case "Reflections":
                return tuple(documents.reflection_rows(documents.loop_reflections(view, loop)))
            case "Files":
                return tuple(documents.files(loop, details))
        offered = offer_blocks(view.offers.get(loop.id), self.services.shown_key("extract"))
        title = line((rows.title_of(loop), "strong"))
        return (title, *rows.loop_overview(view, loop, need, details, tuple(offered)))

    def _attempt_blocks(self, attempt: Attempt, tab: str) -> Iterable[Block]:
        detail = self._read_detail(attempt)
        match tab:
            case "Plan":
                return tasks.plan_tab(attempt, detail)
            case "Actions":
                return tasks.last_actions(detail, self.services.shown_key("open"))
            case "Reflections":
                return tasks.reflection_blocks(self.links.reflections_of(attempt), of_task=False)
        return tasks.attempt_document(detail, self._condition(attempt)).blocks if detail is not None else ()

    def _attempt_lines(self, attempt: Attempt, width: int, height: int) -> list[Content]:
        task, condition = self._catalog.tasks[attempt.task_id], self._condition(attempt)
        blocks = [*attempt_lines(attempt, task, condition, self.glyphs, width, height)]
        if (detail := self._read_detail(attempt)) is not None:
            blocks += tasks.milestones(detail.milestones)
        if (session := self._catalog.of_attempts.get(attempt.id)) is not None:
            blocks += section("Debug session", tasks.runs(self.view, session, is_short=True))
        return document_lines(blocks, self.view.now, self.glyphs, width)

    def _task_lines(self, task: Task, width: int, height: int) -> list[Content]:
        overview = task_lines(
            task, self._catalog.attempts.get(task.id, ()), self._condition, self.glyphs, width, height
        )
        notes = tasks.task_notes(task, self.links.reflections_of(task))
        return document_lines([*overview, *notes], self.view.now, self.glyphs, width)

    def tab_note(self, key: str | None) -> Content | None:
        return Content.styled(", ".join(loop.sources), "$quiet") if (loop := self._loop_of(key)) else None

    # Reading details

    @on(RecordTable.Highlighted)
    def _other_row(self, message: RecordTable.Highlighted) -> None:
        if message.key is not None:
            self._read_details()

    def _read_details(self) -> None:
        """Read the details of the loop or the attempt under the cursor."""
        key, project = self.table.cursor_key, self.services.project
        if key is None:
            return
        if (attempt := self._attempt_of(parse_key(key))) is not None:
            from core.tasks.history import read_attempt  # loads the readers of files, which a list does not need

            folder = project.project
            self.run_in_thread(
                "details",
                lambda: _unless_removed(partial(read_attempt, folder, attempt.task_id, attempt.number)),
                partial(self._show_attempt, key),
            )
        elif self._loop_of(key) is not None:
            self.run_in_thread("details", lambda: _unless_removed(partial(project.story, key)), self._show_loop)

    def _show_loop(self, found: LoopDetails | None) -> None:
        """Show the details if the cursor is still on the loop."""
        if found is not None and found.loop_id == self.table.cursor_key:
            self._details = found
            self._show_details(top=False)

    def _show_attempt(self, key: str, found: AttemptDetail | None) -> None:
        if found is not None and key == self.table.cursor_key:
            self._detail = (key, found)
            self._show_details(top=False)

    def _read_detail(self, attempt: Attempt) -> AttemptDetail | None:
        """Return the details of an attempt, or None if they are not read yet."""
        is_read = self._detail is not None and self._detail[0] == attempt_key(attempt.id)
        return self._detail[1] if is_read and self._detail is not None else None

    def activity(self) -> Iterable[datetime | None]:
        loops = self.view.snapshot.loops
        if self._newest[0] is not loops:
            times = (loop.last_activity for loop in self.view.active_loops)
            self._newest = loops, max(filter(None, times), default=None)
        return (self._newest[1],)

    # Keys

    def go_to(self, key: str) -> None:
        """Move the cursor to a row, and unfold the rows above it.

        A task of a loop has no row: the cursor goes to its loop, whose tab has the attempts. A debug session that is
        shown as an attempt has the row of that attempt.
        """
        if self.is_computing("rows"):
            self._wanted = key
            return
        row = parse_key(key)
        if row.kind == "task" and row.id in self._catalog.homes and row.id not in self._catalog.free_tasks:
            key = self._catalog.homes[row.id]
            self._tab = "Attempts"
        session = self.view.snapshot.debug_sessions.get(row.id) if row.kind == "session" else None
        if session is not None and session.id not in self._catalog.sessions:
            key = attempt_key(session.attempt_id)
        if above := self._catalog.row_above(key):
            self._unfolded[above] = None
            self._select(self.view)
            if self.table.position(key) is None:
                self._unfolded[earlier_key(f"{parse_key(key).kind}/{above}")] = None
                self._select(self.view)
        super().go_to(key)
        self._show_details()

    def named(self, key: str) -> str:
        row = parse_key(key)
        if self._loop_of(key) is not None:
            return key
        task_id, _, number = row.id.rpartition(".")
        names = {
            "attempt": f"attempt {number} at {task_id}",
            "iteration": f"iteration of {row.id}",
            "lesson": row.pattern_id,
        }
        return names.get(row.kind, f"{row.kind} {row.id}" if row.kind != "loop" else key)

    def action_open(self) -> None:
        """Unfold or fold a row, replay an attempt, open a lesson, or show only details."""
        key = self.table.cursor_key or ""
        row = parse_key(key)
        if (attempt := self._attempt_of(row)) is not None:
            hit = self._hits.get(attempt.id)
            position = hit.action - 1 if hit is not None and hit.action is not None else None
            self.app.push_screen(ReplayScreen(attempt.task_id, attempt.number, self.links, position))
        elif row.kind == "lesson" and row.pattern_id in self.view.snapshot.patterns:
            self.services.open_record("patterns", row.pattern_id)
        elif not self.has_class("-detail") and self._can_fold(key):
            self._set_unfolded(key, not self._is_unfolded(key))
        else:
            self.action_whole()

    def _can_fold(self, key: str) -> bool:
        return key in self._tree.earlier or has_rows_below(self._catalog, key, self.view.loop_patterns(key))

    def _set_unfolded(self, key: str, unfolded: bool) -> None:
        self._unfolded.pop(key, None)
        if unfolded:
            self._unfolded[key] = None
        self.services.user_state.set_here(_UNFOLDED, json.dumps([*self._unfolded][-MOST_UNFOLDED:]))
        self._select(self.view)

    def action_whole(self) -> None:
        """Toggle between the details alone and the list beside its details."""
        if self.has_class("-detail"):
            self.action_back()
            return
        super().action_open()
        self._show_details(top=False)

    def action_back(self) -> None:
        super().action_back()
        self._show_details(top=False)

    def action_unfold(self) -> None:
        """Unfold the row, or move to its first child if it is unfolded."""
        key = self.table.cursor_key
        if key is not None and self._can_fold(key) and not self._is_unfolded(key):
            self._set_unfolded(key, True)
        else:
            self.table.move(1)

    def action_fold(self) -> None:
        """Fold the row, or move to the row above it if it cannot be folded."""
        key = self.table.cursor_key
        if key is not None and key in self._unfolded:
            self._set_unfolded(key, False)
        elif key is not None and (above := self._catalog.row_above(key)):
            self.table.go_to(above)

    def why_not(self, action: str) -> str | None:
        key = self.table.cursor_key
        loop = self._loop_of(key)
        if action in _OF_LOOPS and loop is None:
            return "There is no loop under the cursor"
        if action == "in_context" and loop is not None and not loop.task:
            return "This loop has no task"
        if action == "extract" and loop is not None and not loop.status.ended:
            return "This loop has not ended; lessons can be extracted when it has"
        if action in {"unfold", "fold"} and self.has_class("-detail"):
            return f"The list is hidden; {self.services.shown_key('whole')} or esc shows it"
        if action == "unfold" and key is not None and not self._can_fold(key):
            return "There is nothing to unfold"
        if action == "fold" and (key is None or (key not in self._unfolded and not self._catalog.row_above(key))):
            return "There is nothing to fold"
        if action == "to_loop" and loop is not None:
            return "This is the loop"
        if action == "to_loop" and key is not None and self._catalog.row_above(key) in self.view.snapshot.loops:
            return None
        return super().why_not(action)

    def label_for(self, action: str) -> str | None:
        key = self.table.cursor_key or ""
        if action == "extract" and (count := count_offered(self.view.offers.get(key))):
            return f"extract {count}"
        if action == "whole" and self.has_class("-detail"):
            return "show list"
        if action != "open":
            return None
        row = parse_key(key)
        if self._attempt_of(row) is not None:
            return "replay"
        if row.kind == "lesson":
            return "show pattern"
        if self._can_fold(key):
            return "fold" if self._is_unfolded(key) else "unfold"
        return None

    def action_to_loop(self) -> None:
        above = self._catalog.row_above(self.table.cursor_key or "")
        if above in self.view.snapshot.loops:
            self.table.go_to(above)
        else:
            super().action_to_loop()

    def action_extract(self) -> None:
        """Preview the extraction in a dialog, or open the question about it in Review."""
        key = self.table.cursor_key or ""
        question = extraction_question_id(key)
        if any(item.question_key == question for item in self.view.queue):
            self.services.open_record("review", question)
        else:
            from tui.screens.previews import preview_extraction

            preview_extraction(self, key)

    def action_deliver(self) -> None:
        from tui.screens.previews import show_delivery

        if (loop := self._loop_of(self.table.cursor_key)) is not None:
            show_delivery(self, loop)

    def action_in_context(self) -> None:
        self.with_cursor(self.services.preview_loop)

    def action_edit_file(self) -> None:
        row = parse_key(self.table.cursor_key or "")
        record = self._task_of(row) or self._attempt_of(row) or self._session_of(row)
        loop = self._loop_of(self.table.cursor_key) or self._loop_of(row.id)
        self.services.edit_file(record.file if record is not None else next(iter(loop.files), "") if loop else "")

    def copy_text(self) -> str:
        if self.focused is self.pane:
            return self.pane.plain
        row = parse_key(self.table.cursor_key or "")
        return row.pattern_id or row.id


def _unless_removed(read: Callable[[], Any]) -> Any:
    """Return what is read; None if the record is gone, which the list will show."""
    try:
        return read()
    except RalphdeckError:
        return None
