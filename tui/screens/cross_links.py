"""Links from a row in Loops or Replay to related records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.base.text import plural
from core.show.filter_parser import build_id_query
from tui.screens.base_screen import BaseScreen

if TYPE_CHECKING:
    from core.show.work import Remembered, WorkLinks

QUOTE: Final = '"'  # ends a quoted value in a filter


class CrossLinks(BaseScreen):
    """Mixin with links from a memory record to loop, patterns and reflections."""

    def linked_record(self) -> Remembered | None:
        """Return the record that the link keys act on, or None."""
        raise NotImplementedError

    links: WorkLinks  # the index of related records

    def why_not(self, action: str) -> str | None:
        record = self.linked_record()
        match action:
            case "to_loop" if record is None or not self.links.loop_of(record):
                return "Its loop is unknown"
            case "to_patterns" if record is None or not self.links.patterns_of(record):
                return "No pattern was extracted from it or used in it"
            case "to_reflections" if record is None or not any(
                one.has_learning for one in self.links.reflections_of(record)
            ):
                return "There are no reflections on it yet"
        return super().why_not(action)

    def action_to_loop(self) -> None:
        if record := self.linked_record():
            self.services.open_record("loops", self.links.loop_of(record))

    def action_to_patterns(self) -> None:
        """Open the related pattern, or the list of patterns filtered to the related ones."""
        if record := self.linked_record():
            found = self.links.patterns_of(record)
            if len(found) == 1:
                self.services.open_record("patterns", found[0])
            else:
                text, left = build_id_query(found)
                self.services.open_filtered("patterns", text, found[0])
                if left:
                    left_out = f"The filter is too long to include {plural(left, 'more pattern')}"
                    self.services.say(left_out, severity="warning")

    def action_to_reflections(self) -> None:
        """Open the newest reflection on the same task or loop."""
        if record := self.linked_record():
            newest = next(one for one in self.links.reflections_of(record) if one.has_learning)
            field, value = ("task", newest.task_id) if newest.task_id else ("loop", newest.loop_id)
            self.services.open_filtered("reflections", f'{field}:"{value.partition(QUOTE)[0]}"', newest.id)
