"""Which loops and tasks match a filter, and in which order; the tree of work shows them with what is below them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from core.show.loops import LoopOrder
from core.show.needs import Need, find_needs
from core.show.work import FoundWork, Tree, WorkCatalog, build_tree, session_key

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.show.filter_parser import Query


class Selection(NamedTuple):
    """The rows that match a query, and what they were selected from; `needs` are by the key of the row."""

    catalog: WorkCatalog
    needs: Mapping[str, Need]
    found: Sequence[FoundWork]
    tree: Tree
    query: Query


def select_rows(
    view: ProjectState,
    catalog: WorkCatalog,
    known: tuple[WorkCatalog, Mapping[str, Need]] | None,
    query: Query,
    sort: tuple[str, bool] | None,
    unfolded: Collection[str],
    hits: Collection[str],
) -> Selection:
    """Select and sort the rows; if None are `known`, make the catalog from the one before it, and find the needs."""
    if known is None:
        needs = {one.loop_id or session_key(one.session_id): one for one in reversed(find_needs(view))}
        known = WorkCatalog(view.snapshot, catalog), needs
    catalog, needs = known[0], dict(known[1])
    found = catalog.select(query, needs, lambda key: view.loop_patterns(key).injected_ids, hits)
    name, descending = sort or ("newest", True)
    order = LoopOrder(name, view, catalog, needs)
    found.sort(key=lambda one: order.value(one.key), reverse=descending and name != "newest")
    return Selection(catalog, needs, found, build_tree(catalog, found, unfolded, view.loop_patterns), query)


def move_rows(
    found: Sequence[FoundWork], keys: Collection[str], order: LoopOrder, *, descending: bool
) -> list[FoundWork]:
    """Return sorted rows with those of `keys`, which have changed, at their places."""
    moved = [one for one in found if one.key not in keys]
    for key in keys:
        is_before = partial(_is_before, order, (order.value(key), order.started(key)), descending=descending)
        moved.insert(bisect_left(moved, True, key=lambda one: is_before(one.key)), FoundWork(key))
    return moved


def _is_before(order: LoopOrder, mine: tuple[Any, tuple[float, str]], other: str, *, descending: bool) -> bool:
    """Return whether a row, given by its value and its start, belongs before another one."""
    value = order.value(other)
    if mine[0] == value:
        return mine[1] < order.started(other)
    return bool(value < mine[0] if descending else mine[0] < value)
