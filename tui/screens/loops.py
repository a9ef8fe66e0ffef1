"""The Loops screen: all loops from all sources, updated live."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

from textual import on
from textual.content import Content

from core.agents.plan import describe_connected
from core.base.errors import RalphdeckError
from core.base.formatting import format_cost, format_count
from core.documents.loops import elapsed
from core.queries.record_filters import LOOP_FIELDS, select_loops
from core.records.decisions import extraction_question_id
from core.records.waits import needs_person
from core.show import offers
from tui.present import loops as present
from tui.screens.list_screen import ListScreen
from tui.widgets.record_table import RecordTable

if TYPE_CHECKING:
    from core.documents.document import Block
    from core.queries.filter_parser import Query
    from core.records.loops import Loop, LoopDetails
    from core.records.snapshot import Delta
    from core.state.project_state import ProjectState
    from tui.present.glyphs import Cells

_Value: TypeAlias = "Callable[[Loop], Any]"  # what loops are sorted by


class LoopsScreen(ListScreen):
    """Lists all loops. The details of the loop under the cursor are read on demand."""

    place = "loops"
    FIELDS = LOOP_FIELDS
    TABS = present.TABS

    def __init__(self) -> None:
        super().__init__()
        self._details: LoopDetails | None = None  # the details that were read last
        self._newest: tuple[Mapping[str, Loop] | None, datetime | None] = (None, None)  # activity in a snapshot
        self._loops: Mapping[str, Loop] = {}  # the loops that are shown

    def is_affected_by(self, delta: Delta) -> bool:
        """Return True if a change can affect a loop, its outcome or its extractable patterns."""
        return bool(delta.loops or delta.events or delta.decisions or delta.debug_sessions)

    def changed_rows(self, view: ProjectState, delta: Delta) -> Collection[str] | None:
        """Return the changed loops if nothing else changed, and events still belong to the same loops."""
        before, after = self._loops, view.snapshot.loops
        known = delta.loops if not replace(delta, loops=frozenset()) else frozenset()
        is_alone = known and all(
            key in before and key in after and before[key].aliases == after[key].aliases for key in known
        )
        return known if is_alone else None

    def select(self, view: ProjectState, query: Query, sort: tuple[str, bool] | None) -> Sequence[str]:
        loops = view.snapshot.loops
        value, descending = _order(sort, view.now)
        return sorted(self._matching(view, loops, query), key=lambda key: value(loops[key]), reverse=descending)

    def select_again(self, view: ProjectState, changed: Collection[str]) -> Sequence[str]:
        """Move the changed rows to their places; the others keep theirs unless they are sorted by running time."""
        if self._sort is not None and self._sort[0] == "elapsed":
            return super().select_again(view, changed)
        loops, order = view.snapshot.loops, _order(self._sort, view.now)
        keys = [key for key in self.table.keys if key not in changed]
        for key in self._matching(view, {key: loops[key] for key in changed}, self._query):
            keys.insert(_row_of(loops[key], keys, loops, order), key)
        return keys

    def _matching(self, view: ProjectState, loops: Mapping[str, Loop], query: Query) -> list[str]:
        return select_loops(loops, query, lambda key: view.loop_patterns(key).injected_ids)

    def total(self, view: ProjectState) -> int:
        return len(view.snapshot.loops)

    def totals(self) -> Iterable[str]:
        """Yield the tokens and the cost of the visible loops of runners, where any are known."""
        loops = self.view.snapshot.loops
        used = [loop.usage for key in self.table.keys if (loop := loops.get(key)) is not None and loop.runner]
        if tokens := sum(usage.total or 0 for usage in used):
            yield f"{format_count(tokens)} tokens"
        if cost := sum(usage.cost_usd or 0.0 for usage in used):
            yield format_cost(cost)

    def empty(self) -> Content:
        connected = describe_connected(self.services.engine.connected_agents)
        return Content.styled(f"{connected}. Its sessions appear here", "$quiet") if connected else super().empty()

    def _loop(self, key: str | None) -> Loop | None:
        return self.view.snapshot.loops.get(key or "")

    def cells(self, key: str) -> Cells:
        loop = self._loop(key)
        if loop is None:
            return {}
        found, table = self.view.outcome(key), self.table
        return present.loop_cells(
            loop,
            found[1] if found else None,
            self.view.loop_patterns(key),
            self.services.now(),
            self.glyphs,
            offers.count_offered(self.view.offers.get(key)),
            with_bar=table.width_of("iteration") >= present.BAR_CELLS,
            in_full=table.width_of("patterns") >= present.PATTERNS_CELLS,
        )

    def words(self, key: str) -> dict[str, str]:
        return super().words(key) | present.unabbreviated_cells(loop) if (loop := self._loop(key)) else {}

    def below(self, key: str) -> Content:
        return present.second_line(loop) if (loop := self._loop(key)) else Content("")

    def blocks(self, key: str, tab: str) -> Sequence[Block]:
        """Return the content of one tab. Details that are not loaded yet are read in a worker."""
        view, loop = self.view, self._loop(key)
        if loop is None:
            return ()
        details = self._details if self._details is not None and self._details.loop_id == key else None
        offered = tuple(offers.offer_blocks(view.offers.get(key), self.services.shown_key("extract")))
        return present.tab_blocks(loop, tab, details, view, offered)

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        if delta is None or delta.loops:
            self._choose_columns(view)
        super().refresh_view(view, delta)
        self._loops = view.snapshot.loops
        key = self.table.cursor_key
        if key is not None and (delta is None or key in delta.loops):
            self.call_after_refresh(self._read_details)  # the rows do not wait for it

    def _choose_columns(self, view: ProjectState) -> None:
        """Show the columns about runners if there is a loop of one."""
        has_runners = any(loop.runner for loop in view.snapshot.loops.values())
        self.table.use([one for one in self.TABLE.columns if has_runners or one.id not in present.RUNNER_COLUMNS])

    @on(RecordTable.Highlighted)
    def _other_loop(self, message: RecordTable.Highlighted) -> None:
        if message.key is not None:
            self._read_details()

    def _read_details(self) -> None:
        """Read the details of the loop under the cursor."""
        key, project = self.table.cursor_key, self.services.project
        if key is None:
            return

        def read() -> LoopDetails | None:
            try:
                return project.story(key)
            except RalphdeckError:
                return None  # the loop has just been removed; the list will show it

        self.run_in_thread("details", read, self._show_loop)

    def _show_loop(self, found: LoopDetails | None) -> None:
        """Show the details if the cursor is still on the loop."""
        if found is not None and found.loop_id == self.table.cursor_key:
            self._details = found
            self._show_details(top=False)

    def tab_note(self, key: str | None) -> Content | None:
        return Content.styled(", ".join(loop.sources), "$quiet") if (loop := self._loop(key)) else None

    def activity(self) -> Iterable[datetime | None]:
        loops = self.view.snapshot.loops
        if self._newest[0] is not loops:
            times = (loop.last_activity for loop in loops.values() if loop.is_running)
            self._newest = loops, max(filter(None, times), default=None)
        return (self._newest[1],)

    def why_not(self, action: str) -> str | None:
        loop = self._loop(self.table.cursor_key)
        if action == "in_context" and (loop is None or not loop.task):
            return "There is no loop with a task under the cursor"
        if action in {"deliver", "extract"} and loop is None:
            return "There is no loop under the cursor"
        if action == "extract" and loop is not None and not loop.status.ended:
            return "This loop has not ended; patterns can be extracted when it has"
        return super().why_not(action)

    def label_for(self, action: str) -> str | None:
        count = offers.count_offered(self.view.offers.get(self.table.cursor_key or ""))
        return f"extract {count}" if action == "extract" and count else None

    def action_extract(self) -> None:
        """Preview the extraction in a dialog, or open the question about it in Review."""
        key = self.table.cursor_key or ""
        question = extraction_question_id(key)
        if any(item.question_key == question for item in self.view.queue):
            self.services.open_record("review", question)
        else:
            from tui.screens.extraction_preview import preview_extraction

            preview_extraction(self, key)

    def action_deliver(self) -> None:
        from tui.screens.delivery import show_delivery

        if (loop := self._loop(self.table.cursor_key)) is not None:
            show_delivery(self, loop)

    def action_in_context(self) -> None:
        self.with_cursor(self.services.preview_loop)

    def action_edit_file(self) -> None:
        self.with_cursor(lambda key: self.services.edit_file(next(iter(self.view.snapshot.loops[key].files), "")))


def _order(sort: tuple[str, bool] | None, now: datetime) -> tuple[_Value, bool]:
    """Return the value by which loops are sorted, and whether the highest is first."""
    name, descending = sort or ("newest", True)
    values: dict[str, _Value] = {
        "newest": _rank,
        "elapsed": lambda loop: elapsed(loop, now) or 0.0,
        "sign": lambda loop: loop.last_activity.timestamp() if loop.last_activity else float("-inf"),
        "status": lambda loop: loop.status.value,
        "tokens": lambda loop: loop.usage.total or 0,
        "cost": lambda loop: loop.usage.cost_usd or 0.0,
    }
    return values.get(name, lambda loop: loop.task.lower()), descending and name != "newest"


def _row_of(loop: Loop, keys: Sequence[str], loops: Mapping[str, Loop], order: tuple[_Value, bool]) -> int:
    """Return the row at which a loop belongs between sorted others."""
    value, descending = order
    mine = value(loop)

    def is_before(row: int) -> bool:
        other = loops[keys[row]]
        its = value(other)
        if mine == its:
            return _newest_first(loop) < _newest_first(other)
        return bool(its < mine if descending else mine < its)

    return bisect_left(range(len(keys)), True, key=is_before)


def _newest_first(loop: Loop) -> tuple[float, str]:
    """Return the sort key of `Snapshot.loops`, for loops that are equal otherwise."""
    return -loop.started_at.timestamp() if loop.started_at else inf, loop.id


def _rank(loop: Loop) -> tuple[bool, bool, bool, bool, float]:
    """Return the sort key: waiting for a person, running, needing attention, ended, archived; each newest first."""
    status, start = loop.status, loop.started_at or loop.updated_at
    newest_first = -start.timestamp() if start else 0.0
    return not needs_person(loop), status.ended, not loop.is_running, status.ended and loop.archived, newest_first
