"""The list of decisions: one row for all that was decided at once, or extracted by hooks in one day."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.base.pattern_titles import pattern_title
from core.base.text import plural
from core.decisions.decision_text import ABOUT, about_text, author_text, describe_change, verb_text
from core.records.decisions import TURNS, Decision, Verb
from core.records.times import day_of
from core.show.pages import document as doc
from core.show.pages.decisions import change_text, decision_document, decision_line, reason_text
from core.show.table import Cells, Column

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.snapshot import Snapshot

COLUMNS: Final = (
    Column("at", "when", 13, align="right", about="when it was decided"),
    Column("verb", "decision", 17, about="what was decided, and whether it was made elsewhere"),
    Column("subject", "about", 22, flex=3, about="the pattern, the session or the question"),
    Column("change", "change", 24, keep=4, about="state before and after"),
    Column("by", "by", 8, keep=5, about="who decided; hook: a session ended, and its lessons were extracted"),
    Column("reason", "reason", 16, flex=2, keep=3, about="the reason that was given"),
)
COMMAND_COLUMNS: Final = (Column("at", "at (UTC)", 16), *COLUMNS[1:])


class Entry(Struct, frozen=True):
    """One row: decisions of one act, or of several acts of hooks; the newest first."""

    decisions: tuple[Decision, ...]

    @property
    def key(self) -> str:
        """ID of the newest decision."""
        return self.decisions[0].id

    @property
    def is_several_acts(self) -> bool:
        return len({one.act for one in self.decisions}) > 1


def group_decisions(
    decisions: Iterable[Decision], undone: Collection[str] = (), unfolded: Collection[str] = ()
) -> list[Entry]:
    """Group adjacent decisions, newest first, into rows; a row with an ID of `unfolded` is divided into acts."""
    groups: list[list[Decision]] = []
    last: object = None
    for decision in decisions:
        is_hook = decision.is_unattended and not decision.is_proposal and decision.id not in unfolded
        what = ("hook", day_of(decision.at), decision.id in undone) if is_hook else decision.act
        if what != last:
            groups.append([])
        groups[-1].append(decision)
        last = what
    return [Entry(tuple(group)) for group in groups]


def decision_cells(entry: Entry, snapshot: Snapshot) -> Cells:
    """Return the cells of a row; an undone decision is struck out, and one made elsewhere is marked."""
    decision = entry.decisions[0]
    is_undone = decision.id in snapshot.curation.undone
    is_claim = decision.id in snapshot.curation.claims
    quiet = "quiet" if is_undone else ""
    return {
        "at": (doc.Moment(decision.at),),
        "verb": (
            (verb_text(decision), "strike quiet" if is_undone else "" if is_claim else "strong"),
            (" elsewhere" if is_claim else "", "warning"),
        ),
        "subject": _subject(entry, snapshot, quiet),
        "change": ((_change(entry), quiet),),
        "by": ((author_text(decision), "quiet"),),
        "reason": ((reason_text(decision), "quiet"),),
    }


def command_cells(entry: Entry, snapshot: Snapshot) -> Cells:
    """Return the cells of a row without styles that a command cannot print: an undone decision is named so."""
    cells = decision_cells(entry, snapshot)
    undone = (" (undone)", "warning") if entry.key in snapshot.curation.undone else ""
    return {**cells, "verb": (*cells["verb"], undone)}


def _subject(entry: Entry, snapshot: Snapshot, quiet: str) -> doc.Text:
    """Return what an entry is about: a title and its ID, or how many records."""
    if len(entry.decisions) == 1:
        return subject_title(entry.decisions[0], snapshot, quiet)
    if entry.is_several_acts:
        return ((plural(len(entry.decisions), "session"), quiet),)
    lessons = {one.subject: one for one in entry.decisions if one.verb is not Verb.DISMISS}
    if len(lessons) == 1:  # with the answer to its question, or its anchors and its text
        return subject_title(next(iter(lessons.values())), snapshot, quiet)
    return ((plural(len(lessons or {one.subject for one in entry.decisions}), "pattern"), quiet),)


def subject_title(decision: Decision, snapshot: Snapshot, style: str = "") -> doc.Text:
    """Return the title of what a decision is about, and its ID; for undo and redo, of the original decision."""
    if decision.verb in TURNS:
        original = next((one for one in snapshot.decisions if one.id == decision.subject), None)
        if original is not None:
            return ((f"{verb_text(original)} ", style), *subject_title(original, snapshot, style))
    if (pattern := snapshot.patterns.get(decision.subject)) is not None:
        return ((pattern_title(pattern), style), (f"  {pattern.id}", "quiet"))
    for name in (decision.subject, str(decision.after.get(ABOUT, ""))):
        if (loop := snapshot.loops.get(name)) is not None and loop.task:
            return ((loop.task, style), (f"  {loop.id}", "quiet"))
    return ((about_text(decision, {}), style),)


def _change(entry: Entry) -> str:
    if len(entry.decisions) == 1:
        return change_text(entry.decisions[0])
    lists = [found for one in entry.decisions if isinstance(found := one.after.get("patterns"), list)]
    if lists:
        return plural(sum(map(len, lists)), "pattern")
    changes = {describe_change(one) for one in entry.decisions}
    return changes.pop() if len(changes) == 1 else ""


def entry_blocks(entry: Entry, state: ProjectState) -> Sequence[doc.Block]:
    """Describe one decision, or each decision of a row with its title."""
    if len(entry.decisions) == 1:
        decision = entry.decisions[0]
        *title, _id = subject_title(decision, state.snapshot, "strong")
        return *([doc.Line(tuple(title))] if title else []), *decision_document(state, decision).blocks
    blocks: list[doc.Block] = []
    for one in entry.decisions:
        blocks += [doc.Line(subject_title(one, state.snapshot)), decision_line(state, one), doc.line("")]
    return blocks[:-1]
