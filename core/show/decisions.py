"""Decisions as documents."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from core.base.pattern_titles import pattern_title
from core.base.text import plural
from core.decisions.case import ABOUT, about_text, author_text, describe_change, verb_text
from core.records.decisions import SCAN_RULES, TEXT_HASH, TURNS, Decision, Verb
from core.records.times import day_of
from core.show.filter_parser import FieldKind, Fields, Query, Tests, matches
from core.show.pages import document as doc
from core.show.pages.document import Cells, Column, fields, line, section
from core.show.pages.signs import change_text, decision_line, reason_text

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.decisions import Effect
    from core.records.snapshot import Snapshot


_HIDDEN: Final = frozenset({"content_hash", "anti_hash", TEXT_HASH, "hashes", "seen_text", SCAN_RULES})
_NAMES: Final = {"computed": "state by its results", "until": "snoozed until", "anti_id": "anti-pattern"}
"""Labels of values that the decision log calls otherwise."""


def decision_document(state: ProjectState, decision: Decision) -> doc.Document:
    before, after = (_values(values) for values in (decision.before, decision.after))
    return doc.Document(
        decision.id,
        (
            decision_line(state, decision),
            line((subject(state, decision), "name")),
            *section("Before", before),
            *section("After", after),
            *section("Changed records", (_effect(effect) for effect in decision.effects)),
            line(("entry ", "quiet"), (decision.id, "quiet")),
        ),
    )


def subject(state: ProjectState, decision: Decision) -> str:
    """Describe the subject of a decision; for undo and redo the decision concerned."""
    known = next((one for one in state.snapshot.decisions if one.id == decision.subject), None)
    return about_text(decision, {known.id: known} if known is not None else {})


def _values(values: dict[str, Any]) -> Iterable[doc.Fields]:
    """List the recorded values by their labels."""
    shown = (
        (_NAMES.get(key, key.replace("_", " ")), _value(value))
        for key, value in values.items()
        if _is_readable(key, value)
    )
    return fields(*shown, indent=2)


def _is_readable(key: str, value: Any) -> bool:
    """Whether a value is shown; not hashes, rule versions, records or empty values."""
    return key not in _HIDDEN and not isinstance(value, dict) and value not in ("", [])


def _value(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _effect(effect: Effect) -> doc.Line:
    if effect.insert is not None:
        what: doc.Text = (f"new record {effect.pattern_id}",)
    elif effect.remove:
        what = (f"removed {effect.pattern_id}",)
    else:
        keys = ", ".join([*effect.set, *effect.text, *(f"-{key}" for key in effect.unset)])
        what = (f"{effect.pattern_id}: {keys}",)
    return line((f"{effect.file}  ", "quiet"), *what, indent=2)


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
    """Group adjacent decisions, newest first, into rows; those `unfolded` into acts."""
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
    """Return a row's cells: undone ones are struck out, those made elsewhere marked."""
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
    """Return a row's cells for a command, in which `(undone)` replaces a style."""
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
    """Return the title and ID of a decision's subject (of the original if an undo)."""
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


# Filter

DECISION_FIELDS: Final[Fields] = dict.fromkeys(("verb", "by", "subject"), FieldKind.TEXT)


def _verb(decision: Decision) -> str:
    return decision.verb.value.replace("_", " ")


def _is_by(decision: Decision, value: str) -> bool:
    return value in f"{decision.by}\n{author_text(decision)}".lower()


_DECISION_TESTS: Final[Tests[Decision]] = {
    "verb": lambda decision, value: any(
        word.startswith(value.replace("_", " ").replace("-", " ")) for word in (_verb(decision), verb_text(decision))
    ),
    "by": _is_by,
    "subject": lambda decision, value: value in decision.subject.lower(),
    "": lambda decision, value: (
        value in f"{_verb(decision)}\n{decision.by}\n{decision.subject}\n{decision.reason}".lower()
    ),
}


def select_decisions(decisions: Sequence[Decision], query: Query) -> list[str]:
    """Return the IDs of matching decisions, in the given order."""
    return [decision.id for decision in decisions if matches(decision, query, _DECISION_TESTS)]
