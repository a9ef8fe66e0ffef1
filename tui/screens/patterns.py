"""The Patterns screen: all patterns, with their evidence and lineage."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partialmethod
from typing import TYPE_CHECKING, Final

from msgspec import structs
from textual.content import Content

from core.base.formatting import format_decimal
from core.base.text import visible_line
from core.decisions.commands import command_for
from core.decisions.rules import why_refused
from core.index.anchors import find_doubtful
from core.records.decisions import APPROVE, VERBS, Verb, VerbInfo
from core.show.now import describe_empty
from core.show.pages import patterns as documents
from core.show.pages.document import list_words
from core.show.pattern_filter import PATTERN_FIELDS, PatternCatalog
from core.show.patterns import COLUMNS, SORTS, pattern_cells
from tui.kit.looks import draw_state
from tui.screens.dialogs import AskLine, overtaken
from tui.screens.document import draw_cells
from tui.screens.list_screen import ListScreen
from tui.screens.previews import BulkDialog

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.patterns import Pattern
    from core.records.snapshot import Delta
    from core.show.filter_parser import Query
    from core.show.pages.document import Block
    from tui.kit.looks import Cells

TABS: Final = ("Overview", "Evidence", "Lineage", "Why", "History", "Anchors")
STATE_CELLS: Final = 13  # cells of the longest state in full
CONSEQUENCE_CELLS: Final = 120  # cells of the screen from which the keys name the consequence of a decision
_DECISIONS: Final = frozenset({"promote", "deprecate", "reset", "quarantine", "release", "archive"})


def second_line(pattern: Pattern) -> Content:
    """Return the second line of a row: the description of the pattern, and its tags."""
    tags = " ".join(f"#{visible_line(tag, 40)}" for tag in pattern.tags[:6])
    return Content.styled(f"{visible_line(pattern.description or pattern.title, 400)}   {tags}".rstrip(), "$quiet")


def tab_blocks(view: ProjectState, pattern: Pattern, tab: str, me: str = "") -> tuple[Block, ...]:
    """Return the content of a tab in `TABS`; `me` is the user, "" if unknown."""
    match tab:
        case "Overview":
            return tuple(documents.overview(view, pattern, me))
        case "Evidence":
            return tuple(documents.evidence(view, pattern))
        case "Lineage":
            return tuple(documents.lineage(view, pattern))
        case "Why":
            return tuple(documents.rules(view, pattern))
        case "History":
            return tuple(documents.decisions(view, pattern))
    return tuple(documents.anchors(view, pattern))


class PatternsScreen(ListScreen):
    place = "patterns"
    LIST = {"columns": COLUMNS, "sorts": SORTS}
    FIELDS = PATTERN_FIELDS
    TABS = TABS

    def __init__(self) -> None:
        super().__init__()
        self._catalog: PatternCatalog | None = None
        self._stale: frozenset[str] = frozenset()

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        patterns, pins = view.snapshot.patterns, view.snapshot.curation.pins
        self._stale = find_doubtful(view.stale, view.snapshot.curation)
        if self._catalog is None or delta is None:
            self._catalog = PatternCatalog(patterns, view.board, pins, self.services.project.by, self._stale)
        else:
            self._catalog = self._catalog.updated(patterns, view.board, delta.patterns, pins, self._stale)
        super().refresh_view(view, delta)
        if not self.services.is_deciding:
            self._deciding = frozenset()

    def is_affected_by(self, delta: Delta) -> bool:
        """Return True if a change can affect a pattern or its evidence."""
        return delta.affects_scores

    def select(self, view: ProjectState, query: Query, sort: tuple[str, bool] | None) -> Sequence[str]:
        return self._catalog.select(query, *(sort or self.TABLE.sorts[0])) if self._catalog is not None else ()

    def empty(self) -> Content:
        connected, loops = self.services.engine.connected_agents, self.view.snapshot.loops
        return Content.styled(describe_empty(connected, has_sessions=bool(loops)), "$quiet")

    def total(self, view: ProjectState) -> int:
        return len(view.snapshot.patterns)

    def cells(self, key: str) -> Cells:
        pattern = self.view.snapshot.patterns.get(key)
        if pattern is None:
            return {}
        assessment = self.view.assessment(key)
        row = pattern_cells(pattern, assessment, is_stale=key in self._stale)
        cells = draw_cells(row, self.view.now, self.glyphs)
        if self.table.width_of("state") < STATE_CELLS:
            return {**cells, "state": draw_state(assessment.shown, self.glyphs, short=True)}
        return cells

    def words(self, key: str) -> dict[str, str]:
        pattern = self.view.snapshot.patterns.get(key)
        return list_words(COLUMNS, pattern_cells(pattern, self.view.assessment(key))) if pattern is not None else {}

    def below(self, key: str) -> Content:
        pattern = self.view.snapshot.patterns.get(key)
        return second_line(pattern) if pattern is not None else Content("")

    def blocks(self, key: str, tab: str) -> Sequence[Block]:
        pattern = self.view.snapshot.patterns.get(key)
        return tab_blocks(self.view, pattern, tab, self.services.project.by) if pattern is not None else ()

    def subjects(self) -> Sequence[str]:
        """Return the patterns to decide about: selected rows, else the one at the cursor."""
        if marked := self.table.marked:
            return [key for key in self.table.keys if key in marked]
        return [key] if (key := self.table.cursor_key) is not None else []

    def why_not(self, action: str) -> str | None:
        about_patterns = _DECISIONS | {"note", "why", "in_context"}
        if action in about_patterns:
            subjects = self.subjects()
            if not subjects:
                return "There is no pattern under the cursor"
            if len(subjects) == 1 and subjects[0] in self.view.snapshot.patterns and action in _DECISIONS:
                return why_refused(command_for(Verb(action), subjects[0]), self.view) or None
        if action == "open" and self.has_class("-detail"):
            return "The details are open; escape shows the list"
        if action in {"next_item", "previous_item"} and not self.view.queue:
            return "Nothing needs a decision"
        return super().why_not(action)

    def first_action(self) -> str:
        known, assessment = self.view.snapshot.patterns, self.view.assessment
        shown = [assessment(key) for key in self.subjects() if key in known]
        return "release" if any(one.held or one.quarantined for one in shown) else ""

    def label_for(self, action: str) -> str | None:
        subjects = self.subjects()
        if len(subjects) > 1:
            return f"{action} {len(subjects)}" if action in _DECISIONS else None
        return self._consequence(action) if self.size.width >= CONSEQUENCE_CELLS else None

    def effect(self, action: str) -> str | None:
        is_one = action in _DECISIONS and len(self.subjects()) == 1
        return self._consequence(action) if is_one else super().effect(action)

    def _consequence(self, action: str) -> str | None:
        """Return the short effect of a decision about one pattern, for its key label."""
        key = next(iter(self.subjects()), "")
        if key not in self.view.snapshot.patterns:
            return None
        assessment = self.view.assessment(key)
        match action:
            case "promote":
                unpinned = assessment.score / assessment.multiplier if assessment.multiplier else 0.0
                factor = self.view.settings.maturity.multiplier_proven
                return f"promote → x{factor:g}, score {format_decimal(unpinned * factor)}"
            case "deprecate":
                return "deprecate → no longer given"
            case "release":
                return f"approve → {assessment.computed.value}"
            case "reset":
                return f"reset → {assessment.computed.value if assessment.pin else 'may be promoted'}"
        return None

    def action_release(self) -> None:
        """Release quarantined or approve held patterns. A blocked text needs a reason."""
        known, assessment = self.view.snapshot.patterns, self.view.assessment
        shown = [assessment(key) for key in self.subjects() if key in known]
        info = APPROVE if any(one.held for one in shown) else VERBS[Verb.RELEASE]
        self._decide(Verb.RELEASE, structs.replace(info, asks="reason") if any(one.blocked for one in shown) else info)

    def _decide(self, verb: Verb, info: VerbInfo | None = None) -> None:
        """Decide about one pattern, or open the preview of a decision about several."""
        info = info or VERBS[verb]
        subjects = self.subjects()
        if len(subjects) > 1:
            self._deciding |= set(subjects)
            self.app.push_screen(BulkDialog(verb, subjects, info, self.table.cursor_key), self._finish_bulk)
        elif subjects and info.asks:
            self._ask(verb, info, subjects[0])
        elif subjects:
            self._deciding |= set(subjects)
            self.services.decide(command_for(verb, subjects[0]))

    action_promote = partialmethod(_decide, Verb.PROMOTE)
    action_reset = partialmethod(_decide, Verb.RESET)
    action_deprecate = partialmethod(_decide, Verb.DEPRECATE)
    action_quarantine = partialmethod(_decide, Verb.QUARANTINE)
    action_archive = partialmethod(_decide, Verb.ARCHIVE)
    action_note = partialmethod(_decide, Verb.NOTE)

    def _ask(self, verb: Verb, info: VerbInfo, key: str) -> None:
        seen = self.view

        def answered(text: str) -> None:
            self._deciding |= {key}
            self.services.decide(command_for(verb, key, text), seen)

        title = Content(f"{info.word.capitalize()} {visible_line(key, 60)}: {info.asks}?")
        detail = Content(f"{info.effect} Can be undone.")
        about = () if verb is Verb.NOTE else (key,)
        self.ask_user(AskLine(title, detail, verb=info.word, overtaken=overtaken(seen, *about)), answered)

    def _finish_bulk(self, has_decided: bool | None) -> None:
        if has_decided:
            self.table.clear_marks()
            self._count()

    def action_mark(self) -> None:
        """Select the row under the cursor, and move to the next row."""
        self.with_cursor(lambda key: self.table.toggle_mark([key]))
        self.table.move(1)
        self._count()

    def action_mark_all(self) -> None:
        self.table.toggle_mark(self.table.keys)
        self._count()

    def action_why(self) -> None:
        self.show_tab(self.TABS.index("Why"))

    def action_in_context(self) -> None:
        if subjects := self.subjects():
            self.services.preview_pattern(subjects[0])

    def _step(self, by: int) -> None:
        """Move to the next or previous pattern that needs a decision, wrapping around."""
        pending, keys, cursor = {item.subject for item in self.view.queue}, self.table.keys, self.table.cursor
        others = ((cursor + by * step) % len(keys) for step in range(1, len(keys) + 1))
        found = next((row for row in others if keys[row] in pending), None)
        if found is None:
            self.services.say("None of the shown patterns needs a decision", severity="warning")
        else:
            self.table.cursor = found

    action_next_item = partialmethod(_step, 1)
    action_previous_item = partialmethod(_step, -1)

    def action_edit_file(self) -> None:
        self.with_cursor(lambda key: self.services.edit_file(self.view.snapshot.patterns[key].file))
