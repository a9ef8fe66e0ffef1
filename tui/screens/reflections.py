"""Place 5: what agents say they learned, in all its shapes, once each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.content import Content

from core.query import REFLECTION_FIELDS, Query, select_reflections
from core.snapshot import Delta
from core.view import View
from tui.present import reflections as present
from tui.screens.browse import Browse
from tui.widgets.record_table import Column


class ReflectionsPlace(Browse):
    """Browse reflections; enter goes to the loop that one came from."""

    place = "reflections"
    ABOUT = (
        "What agents wrote after iterations and attempts. Enter goes to the loop. Filter with words and with kind: "
        "loop: task: effect: shape: outcome:, for example  kind:error effect:helpful timeout."
    )
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("at", "when", 10, align="right", keep=6),
        Column("kind", "kind", 14, keep=7),
        Column("text", "learned", 24, flex=4),
        Column("effect", "effect", 9, keep=5),
        Column("iteration", "where", 6, keep=4),
        Column("loop", "loop or task", 20, flex=2, keep=3),
    )
    FIELDS = REFLECTION_FIELDS
    HINT = "filter, e.g. kind:error effect:helpful timeout"
    SORTS = (("at", True), ("kind", False), ("effect", False), ("loop", False))

    def touched(self, delta: Delta) -> bool:
        """Rows are reflections."""
        return bool(delta.reflections)

    def select(self, view: View, query: Query, sort: tuple[str, bool] | None) -> Sequence[str]:
        """The reflections that match; newest first is the library's own order."""
        reflections = view.snapshot.reflections
        keys = select_reflections(reflections, query)
        name, descending = sort or ("at", True)
        if name == "at":
            return keys if descending else keys[::-1]
        values = {
            "kind": lambda key: reflections[key].kind,
            "effect": lambda key: reflections[key].effectiveness,
            "loop": lambda key: reflections[key].loop_id or reflections[key].task_id,
        }
        return sorted(keys, key=values[name], reverse=descending)

    def total(self, view: View) -> int:
        """All reflections."""
        return len(view.snapshot.reflections)

    def cells(self, key: str) -> dict[str, Content]:
        """One row."""
        reflection = self.view.snapshot.reflections.get(key)
        return dict(present.reflection_cells(reflection, self.deck_app.now())) if reflection else {}

    def details(self, key: str, tab: str) -> Sequence[Content]:
        """The whole text."""
        reflection = self.view.snapshot.reflections.get(key)
        return present.reflection_text(self.view, reflection, self.glyphs) if reflection else ()

    def empty(self) -> Content:
        """None yet."""
        return Content.styled("no reflections yet: agents write them while loops run", "$quiet")

    def why_not(self, action: str) -> str | None:
        """Enter needs a loop to go to."""
        if action == "open" and self._loop_of_cursor() is None:
            return "the loop of this reflection is not known here; tab to read it"
        return super().why_not(action)

    def wording(self, action: str) -> str | None:
        """Enter leads to the loop."""
        return "to the loop" if action == "open" else None

    def _loop_of_cursor(self) -> str | None:
        key = self.table.cursor_key
        reflection = self.view.snapshot.reflections.get(key) if key else None
        if reflection is None:
            return None
        loops = self.view.snapshot.loops
        if reflection.loop_id in loops:
            return reflection.loop_id
        return next(
            (k for k, loop in loops.items() if reflection.loop_id and reflection.loop_id in loop.aliases),
            None,
        )

    def do_open(self) -> None:
        """Go to the loop."""
        if loop := self._loop_of_cursor():
            self.deck_app.open_record("loops", loop)

    def do_edit_file(self) -> None:
        """Open the file that holds it."""
        self.with_cursor(lambda key: self.deck_app.edit_file(self.view.snapshot.reflections[key].file))
