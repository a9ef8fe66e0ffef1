"""The Memory screen: tasks with attempts, debug sessions, escalations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from textual import events, on
from textual.containers import Horizontal
from textual.content import Content

from core.index.search import MAX_RANKED
from core.queries.memory_links import MemoryLinks
from core.queries.record_filters import MEMORY_FIELDS, MemoryCatalog
from core.search.words import SearchFilters
from tui.present import memory as present
from tui.present import memory_groups
from tui.present.memory import ESCALATIONS, SESSIONS, TASKS, Tree, attempt_key, earlier_key, parts, task_key, tree
from tui.present.text_hits import failure_note, hit_content, hits_by_record, index_note, search_words
from tui.screens.memory_details import DETAIL_SHARE, TABS, MemoryDetails
from tui.screens.replay import ReplayScreen
from tui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from core.index.search import SearchResult
    from core.queries.filter_parser import Query, Term
    from core.records.episodes import Attempt
    from core.records.snapshot import Delta
    from core.search.words import SearchHit, SearchWords
    from core.state.project_state import ProjectState
    from tui.present.glyphs import Cells

ALL_COLUMNS: Final = 115  # cells of the list from which it shows the number of actions
PAUSE_SECONDS: Final = 0.1  # seconds without typing before all texts are searched
MOST_FOLDED: Final = 400  # rows whose folded state is saved between runs, the most recent ones
_ABOUT_RECORDS: Final = frozenset({"to_loop", "to_patterns", "to_reflections", "edit_file", "copy"})
_FOLDED: Final = "memory-folded"  # key of the folded rows in the user state
_OF_TASKS: Final = frozenset({"newest", "status", "tries"})  # sort orders that do not depend on the number of actions
_OF_THE_LIST: Final = frozenset({"open", "fold", "unfold"})


class MemoryScreen(MemoryDetails):
    """Lists escalations, tasks with their attempts, and debug sessions as a tree."""

    place = "memory"
    FIELDS = MEMORY_FIELDS
    TABS = TABS["group"]

    def __init__(self) -> None:
        super().__init__()
        self._tree = Tree((), {}, {}, {}, set())
        self._open: Sequence[Attempt] = ()  # the attempts without an end
        self._folded: dict[str, bool] = {}  # rows that the user folded (True) or unfolded
        self._words: SearchWords | None = None  # those of the filter, searched in all texts of tasks and attempts
        self._searched: tuple[Term, ...] = ()  # terms of that filter
        self._must_search = False
        self._found: dict[str, SearchHit] = {}  # best hit by ID of the task or attempt
        self._found_note = ""

    def compose_details(self) -> ComposeResult:
        with Horizontal():
            yield TextPane(id="memory-text")
            yield TextPane(id="memory-beside")

    def on_mount(self) -> None:
        """Restore the folded rows."""
        try:
            saved = json.loads(self.services.user_state.get_here(_FOLDED, "{}"))
        except (ValueError, RecursionError):
            saved = {}
        if isinstance(saved, dict):
            self._folded = {key: folded for key, folded in saved.items() if isinstance(folded, bool)}

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        share, whole = DETAIL_SHARE
        width = event.size.width * (whole - share) // whole if self.has_class("-wide") else event.size.width
        self.table.use([one for one in self.TABLE.columns if one.id != "actions" or width >= ALL_COLUMNS])
        self.table.redraw()

    @on(TextPane.Widened)
    def _widened(self, message: TextPane.Widened) -> None:
        message.stop()
        if self.is_composed:
            self._show_details(top=False)

    def is_affected_by(self, delta: Delta) -> bool:
        rows = delta.tasks or delta.attempts or delta.debug_sessions
        return bool(rows or delta.escalations or delta.decisions)

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        """Update the catalog, and read the attempt under the cursor again if it has changed."""
        shown = delta
        if delta is not None and self._is_steady(view, delta):
            self._catalog = self._catalog.with_changed(view.snapshot, delta.attempts)
            changed = [view.snapshot.attempts[attempt_id] for attempt_id in delta.attempts]
            others = [attempt for attempt in self._open if attempt.id not in delta.attempts]
            self._open = [*others, *(attempt for attempt in changed if attempt.is_open)]
            self.table.redraw()
            shown = replace(delta, attempts=frozenset())
        elif delta is None or self.is_affected_by(delta):
            self._catalog = MemoryCatalog(view.snapshot, self._catalog)
            self._open = [attempt for attempt in view.snapshot.attempts.values() if attempt.is_open]
            self._must_search = True
        if delta is None:
            self.links = MemoryLinks(view.snapshot, self._catalog)
        else:
            self.links = self.links.updated(view.snapshot, self._catalog, delta)
        super().refresh_view(view, shown)
        key = self.table.cursor_key
        if key is not None and (delta is None or parts(key)[1] in delta.attempts):
            self._read_attempt(key)

    def _is_steady(self, view: ProjectState, delta: Delta) -> bool:
        """Return True if only attempts changed and no row moves, appears or disappears."""
        if not delta.attempts or self.is_affected_by(replace(delta, attempts=frozenset())):
            return False
        if self._query.terms or self._sort is None or self._sort[0] not in _OF_TASKS:
            return False
        known = self._catalog.attempts
        return all(
            attempt_id in view.snapshot.attempts
            and any(one.id == attempt_id for one in known.get(attempt_id.rpartition(".")[0], ()))
            for attempt_id in delta.attempts
        )

    def select(self, view: ProjectState, query: Query, sort: tuple[str, bool] | None) -> Sequence[str]:
        """Return the matching rows that are not inside a folded row."""
        self._search_texts(query)
        self._tree = tree(self._catalog, query, sort or self.TABLE.sorts[0], self._folded, self._found)
        return self._tree.keys

    def _search_texts(self, query: Query) -> None:
        """Search the words of a filter in all texts, first in the index, and select the rows again."""
        if query.terms == self._searched and not self._must_search:
            return
        if is_new := query.terms != self._searched:
            self._found, self._found_note = {}, ""
        self._searched, self._must_search = query.terms, False
        self._words = words = search_words(query)
        if words is None:
            return
        services, snapshot = self.services, self.view.snapshot

        def search(*, reads_files: bool) -> None:
            self.run_in_thread(
                "texts",
                lambda: services.project.index.search(
                    words,
                    SearchFilters(),
                    MAX_RANKED,
                    go_on=lambda: reads_files and self._words is words,
                    snapshot=snapshot,
                ),
                partial(show, reads_files=reads_files),
                fail=fail,
                pause=PAUSE_SECONDS,
            )

        def fail(error: Exception) -> None:
            self._found_note = failure_note(error)
            self._count()

        def show(result: SearchResult, *, reads_files: bool) -> None:
            if self._words is not words:
                return
            is_complete = result.is_indexed
            is_first = is_new and self.table.cursor == self.first_match()
            self._found = hits_by_record(result.hits, query)
            self._found_note = "" if is_complete or reads_files else index_note(result.missing)
            if not result.is_exact:
                self._found_note = f"only the newest {MAX_RANKED:,} texts"
            if not (is_complete or reads_files):
                search(reads_files=True)
            self._select(self.view)
            if is_first:  # the user has not moved the cursor
                self.table.cursor = self.first_match()
            self._show_details(top=False)

        search(reads_files=False)

    def first_match(self) -> int:
        """Return the first row whose text was found, else the first one that matches by its fields."""
        rows = [row for row, key in enumerate(self.table.keys) if key not in self._tree.headings]
        return next((row for row in rows if parts(self.table.keys[row])[1] in self._found), rows[0] if rows else 0)

    def filter_note(self) -> str:
        return super().filter_note() or self._found_note

    def details(self, key: str, tab: str) -> Sequence[Content]:
        """Return the details of a row, below the text that was found in it."""
        lines = super().details(key, tab)
        hit = self._found.get(parts(key)[1])
        return lines if hit is None or self._words is None else (hit_content(hit, self._words), Content(""), *lines)

    def total(self, view: ProjectState) -> int:
        return len(self._catalog.tasks) + len(self._catalog.sessions)

    def matching(self, shown: int) -> int:
        return sum(self._tree.counts.values())

    def cells(self, key: str) -> Cells:
        now, glyphs = self.services.now(), self.glyphs
        folded = self._tree.folds.get(key)
        if attempt := self._attempt_of(key):
            return present.attempt_cells(attempt, self._condition(attempt), now, glyphs)
        if count := self._tree.earlier.get(key):
            return present.earlier_cells(count, folded=bool(folded), glyphs=glyphs)
        if task := self._task_of(key):
            attempts = self._catalog.attempts.get(task.id, ())
            last = self._condition(attempts[-1]).state if attempts else None
            return present.task_cells(task, attempts, last, now, glyphs, folded=folded)
        if session := self._session_of(key):
            return present.session_cells(session, now, glyphs, escalated=self._catalog.escalated.get(session.id))
        if key in self._tree.counts:
            shown, total = self._tree.counts[key], self._totals()[key]
            in_attempts = len(self._catalog.of_attempts)
            return present.group_cells(key, shown, total, folded=bool(folded), glyphs=glyphs, in_attempts=in_attempts)
        return {}

    def below(self, key: str) -> Content:
        """Return the second line: the reason of the outcome, or the completion criterion."""
        if attempt := self._attempt_of(key):
            return present.attempt_second_line(attempt)
        if session := self._session_of(key):
            return present.session_second_line(session)
        task = self._task_of(key) if parts(key)[0] == "task" else None
        return present.task_second_line(task) if task is not None else Content("")

    def _totals(self) -> dict[str, int]:
        """Return the number of records of each group without a filter."""
        escalated = len(self._catalog.escalated)
        sessions = len(self._catalog.sessions) - escalated
        return {ESCALATIONS: escalated, TASKS: len(self._catalog.tasks), SESSIONS: sessions}

    def activity(self) -> Iterable[datetime | None]:
        return (attempt.last_action_at for attempt in self._open)

    def empty_details(self) -> Sequence[Content]:
        """Return the details of an empty list: loops for which a task could be created."""
        return () if self._query.terms else self._draw(memory_groups.without_tasks(self._progress()[1]))

    def action_open(self) -> None:
        """Fold or unfold a heading or a task, replay an attempt, or open a debug session."""
        key = self.table.cursor_key
        if key in self._tree.folds and key is not None:
            self._fold(key, not self._tree.folds[key])
        elif attempt := self._attempt_of(key):
            hit = self._found.get(attempt.id)
            position = hit.action - 1 if hit is not None and hit.action is not None else None
            self.app.push_screen(ReplayScreen(attempt.task_id, attempt.number, self.links, position))
        else:
            self.action_whole()

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
        if key is not None and self._tree.folds.get(key):
            self._fold(key, False)
        else:
            self.table.move(1)

    def action_fold(self) -> None:
        """Fold the row, or move to its parent if it cannot be folded."""
        key = self.table.cursor_key
        if key is not None and self._tree.folds.get(key) is False:
            self._fold(key, True)
        elif key is not None:
            self.table.go_to(self._above(key))

    def _fold(self, key: str, folded: bool) -> None:
        self._folded.pop(key, None)
        self._folded[key] = folded
        last = list(self._folded.items())[-MOST_FOLDED:]
        self.services.user_state.set_here(_FOLDED, json.dumps(dict(last)))
        self._select(self.view)

    def _above(self, key: str) -> str:
        """Return the key of a row's parent."""
        if attempt := self._attempt_of(key):
            return task_key(attempt.task_id)
        if parts(key)[0] == "earlier":
            return task_key(parts(key)[1])
        if session := self._session_of(key):
            return ESCALATIONS if session.id in self._catalog.escalated else SESSIONS
        return TASKS

    def go_to(self, key: str) -> None:
        """Move the cursor to a row, and unfold its parents; a session without a row is the row of its attempt."""
        session = self.view.snapshot.debug_sessions.get(parts(key)[1]) if parts(key)[0] == "session" else None
        if session is not None and session.id not in self._catalog.sessions:
            key = attempt_key(session.attempt_id)
        above = self._above(key)
        self._folded |= {above: False, self._above(above): False}
        self._select(self.view)
        if (attempt := self._attempt_of(key)) is not None and self.table.position(key) is None:
            self._folded[earlier_key(attempt.task_id)] = False
            self._select(self.view)
        super().go_to(key)

    def named(self, key: str) -> str:
        kind, record_id = parts(key)
        task_id, _, number = record_id.rpartition(".")
        return f"attempt {number} at {task_id}" if kind == "attempt" else f"{kind} {record_id}"

    def why_not(self, action: str) -> str | None:
        key = self.table.cursor_key
        if action in _ABOUT_RECORDS and key is not None and parts(key)[0] == "group":
            return "This is a heading; go to a row below it"
        if self.has_class("-detail") and action in _OF_THE_LIST and not (action == "open" and self._attempt_of(key)):
            return f"The list is hidden; {self.services.shown_key('whole')} or esc shows it"
        if action == "unfold" and self._tree.folds.get(key or "") is None:
            return "There is nothing to unfold"
        if action == "fold" and key is None:
            return "The list is empty"
        return super().why_not(action)

    def label_for(self, action: str) -> str | None:
        if action == "whole" and self.has_class("-detail"):
            return "show list"
        if action != "open":
            return None
        key = self.table.cursor_key or ""
        if key in self._tree.folds:
            return "unfold" if self._tree.folds[key] else "fold"
        return "replay" if self._attempt_of(key) else None

    def action_edit_file(self) -> None:
        if record := self.linked_record():
            self.services.edit_file(record.file)

    def copy_text(self) -> str:
        if self.focused is self.pane:
            return self.pane.plain
        return parts(self.table.cursor_key or "")[1]
