"""The Reflections screen: single reflections, or grouped by recurring learning."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.documents.reflections import reflection_document
from core.queries.record_filters import REFLECTION_FIELDS, select_reflections
from tui.present import reflections as present
from tui.present.memory import attempt_key, task_key
from tui.screens.extraction_preview import preview_extraction
from tui.screens.list_screen import ListScreen

if TYPE_CHECKING:
    from core.documents.document import Block
    from core.extraction.clustering import Cluster
    from core.queries.filter_parser import Query
    from core.records.snapshot import Delta
    from core.state.project_state import ProjectState
    from tui.present.glyphs import Cells
    from tui.state.back_stack import ListState

_GROUPED: Final = "reflections-grouped"


class ReflectionsScreen(ListScreen):
    """Lists reflections, or learnings that several loops share. Enter opens the source."""

    place = "reflections"
    FIELDS = REFLECTION_FIELDS

    def __init__(self) -> None:
        super().__init__()
        self._grouped = False
        self._clusters: dict[str, Cluster] | None = None
        """Learnings by id, those of most loops first, those without a pattern to draft last; None until computed."""
        self._unfit: Mapping[str, str] = {}  # reasons why no pattern can be drafted, by learning
        self._unfolded: set[str] = set()

    def on_mount(self) -> None:
        self._grouped = self.services.user_state.get_here(_GROUPED) == "yes"
        super().on_mount()

    def is_affected_by(self, delta: Delta) -> bool:
        return bool(delta.reflections)

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        """Search for recurring learnings again if reflections or patterns have changed."""
        super().refresh_view(view, delta)
        has_changed = delta is None or delta.reflections or delta.tasks or delta.memory_tasks
        if self._grouped and (has_changed or (delta is not None and delta.patterns)):
            self._compare()

    def _compare(self) -> None:
        """Find recurring learnings. Takes some seconds for 10,000 reflections unless cached."""
        project = self.services.project
        self.run_in_thread("recurring", lambda: (project.recurring(), project.unfit_learnings()), self._show_clusters)

    def _show_clusters(self, found: tuple[Sequence[Cluster], Mapping[str, str]]) -> None:
        clusters, self._unfit = found
        ordered = sorted(clusters, key=lambda cluster: cluster.id in self._unfit)
        before, self._clusters = self._clusters or {}, {cluster.id: cluster for cluster in ordered}
        renamed = present.renamed_clusters(before, self._clusters)
        self._unfolded = {renamed.get(key, key) for key in self._unfolded}
        if self._grouped and self.is_composed:
            here = renamed.get(self.table.cursor_key or "")
            self._select(self.view)
            if here is not None:
                self.go_to(here)
            self._show_details(top=False)
            self.refresh_frame()

    def select(self, view: ProjectState, query: Query, sort: tuple[str, bool] | None) -> Sequence[str]:
        """Return the matching reflections, or the rows of the matching learnings."""
        reflections = view.snapshot.reflections
        keys = select_reflections(reflections, query)
        if self._grouped:
            return self._rows(set(keys))
        name, descending = sort or ("at", True)
        if name == "at":
            return keys if descending else keys[::-1]
        values = {
            "kind": lambda key: reflections[key].kind,
            "effect": lambda key: reflections[key].effectiveness,
            "loop": lambda key: reflections[key].loop_id or reflections[key].task_id,
        }
        return sorted(keys, key=values[name], reverse=descending)

    def _select(self, view: ProjectState, changed: Collection[str] | None = None) -> None:
        """Select the rows. Learnings have a fixed order, so no heading gets an arrow."""
        self.table.use(self.TABLE.other_columns if self._grouped else self.TABLE.columns)
        sort = self._sort
        self._sort = None if self._grouped else sort
        super()._select(view, changed)
        self._sort = sort

    def _sort_by(self, column: str, descending: bool) -> None:
        if not self._grouped:
            super()._sort_by(column, descending)

    def _rows(self, matching: Set[str]) -> list[str]:
        """Return the rows of learnings with these reflections; unfolded ones list reflections."""
        rows = []
        for cluster in (self._clusters or {}).values():
            own = [member.reflection.id for member in cluster.members if member.reflection.id in matching]
            if own:
                rows += [cluster.id, *(reversed(own) if cluster.id in self._unfolded else ())]
        return rows

    def total(self, view: ProjectState) -> int:
        return len(self._clusters or ()) if self._grouped else len(view.snapshot.reflections)

    def matching(self, shown: int) -> int:
        return sum(key in (self._clusters or {}) for key in self.table.keys) if self._grouped else shown

    def cells(self, key: str) -> Cells:
        now = self.services.now()
        if cluster := self._cluster(key):
            unfit, folded = self._unfit.get(key, ""), key not in self._unfolded
            return present.cluster_cells(cluster, now, self.glyphs, folded=folded, unfit=unfit)
        reflection = self.view.snapshot.reflections.get(key)
        return present.reflection_cells(reflection, now, below=self._grouped) if reflection else {}

    def below(self, key: str) -> Content:
        reflection = self.view.snapshot.reflections.get(key)
        return present.second_line(reflection) if reflection else Content("")

    def blocks(self, key: str, tab: str) -> Sequence[Block]:
        if cluster := self._cluster(key):
            return tuple(present.cluster_blocks(cluster, self._unfit.get(key, "")))
        reflection = self.view.snapshot.reflections.get(key)
        return reflection_document(self.view, reflection).blocks if reflection else ()

    def _cluster(self, key: str | None) -> Cluster | None:
        """Return the learning of a row, or None for the row of a reflection."""
        return (self._clusters or {}).get(key or "") if self._grouped else None

    def empty(self) -> Content:
        if not self._grouped:
            return Content.styled(
                "No reflections yet. Agents write them while they work; ralphdeck drafts one when an attempt ends.",
                "$quiet",
            )
        key = self.services.shown_key("group")
        text = "Comparing reflections…" if self._clusters is None else "No learning is shared by two loops yet"
        return Content.styled(f"{text}; {key} shows each reflection", "$quiet")

    def why_not(self, action: str) -> str | None:
        cluster = self._cluster(self.table.cursor_key)
        if action == "open" and cluster is None and self.table.cursor_key and self._home() is None:
            return "Its loop is unknown; press tab to read the reflection"
        if action == "sort" and self._grouped:
            return "Learnings are ordered by their number of loops"
        if action == "draft" and cluster is None:
            key = self.services.shown_key("group")
            do = "Go up to a learning" if self._grouped else f"Press {key} to group by learning"
            return f"{do}; patterns are drafted from learnings"
        if action == "draft" and cluster is not None and cluster.id in self._unfit:
            return f"No pattern to draft: {self._unfit[cluster.id]}"
        return super().why_not(action)

    def label_for(self, action: str) -> str | None:
        cluster = self._cluster(self.table.cursor_key)
        match action:
            case "open" if cluster is not None:
                return "unfold" if cluster.id not in self._unfolded else "fold"
            case "open":
                home = self._home()
                return f"show {'loop' if home is None or home[0] == 'loops' else 'task'}"
            case "draft" if cluster is not None:
                return f"draft {self.glyphs.arrow} candidate of {present.count_sources(cluster)}"
            case "group":
                return "ungroup" if self._grouped else "group"
        return None

    def _home(self) -> tuple[str, str] | None:
        """Return the screen and record ID of a reflection's source, or None if it is unknown."""
        snapshot = self.view.snapshot
        reflection = snapshot.reflections.get(self.table.cursor_key or "")
        if reflection is None:
            return None
        if loop := snapshot.find_loop(reflection.loop_id):
            return "loops", loop.id
        attempt = f"{reflection.task_id}.{reflection.attempt}"
        if attempt in snapshot.attempts:
            return "memory", attempt_key(attempt)
        return ("memory", task_key(reflection.task_id)) if reflection.task_id in snapshot.tasks else None

    def action_open(self) -> None:
        """Fold or unfold a learning, or open the loop or task of a reflection."""
        if cluster := self._cluster(self.table.cursor_key):
            self._unfolded ^= {cluster.id}
            self._select(self.view)
        elif home := self._home():
            self.services.open_record(*home)

    def action_group(self) -> None:
        self._group(not self._grouped)

    def _group(self, grouped: bool) -> None:
        if grouped == self._grouped:
            return
        self._grouped = grouped
        self.services.user_state.set_here(_GROUPED, "yes" if grouped else "")
        if grouped:
            self._compare()
        self._select(self.view)
        self._show_details()

    def action_draft(self) -> None:
        if cluster := self._cluster(self.table.cursor_key):
            preview_extraction(self, cluster.id)

    def go_to(self, key: str) -> None:
        """Move the cursor to a reflection, and stop grouping."""
        if key in self.view.snapshot.reflections:
            self._group(False)
        super().go_to(key)

    def list_state(self) -> ListState:
        return replace(super().list_state(), grouped=self._grouped)

    def restore_list(self, list_state: ListState) -> None:
        """Restore the grouping, then the list, so that the row of the cursor exists."""
        self._group(list_state.grouped)
        super().restore_list(list_state)

    def show_filter(self, text: str, key: str) -> None:
        """Apply the filter of a link, and stop grouping: links lead to single reflections."""
        self._group(False)
        super().show_filter(text, key)

    def action_edit_file(self) -> None:
        cluster = self._cluster(self.table.cursor_key)
        reflection = cluster.central if cluster else self.view.snapshot.reflections.get(self.table.cursor_key or "")
        if reflection is not None:
            self.services.edit_file(reflection.file)
