"""The table of decision verbs: their words, keys, effects and limits, for keys, toasts, the log, undo and dry runs."""

from __future__ import annotations

from typing import Final, NamedTuple

from core.records.decisions import Decision, Verb
from core.records.question_ids import ESCALATION_PREFIX


class VerbInfo(NamedTuple):
    """One row of `VERBS`. No verb is possible in a read-only project.

    Attributes:
        word: Imperative, lower case: on keys and buttons, in the log, in "Undone: ..." and "Would ...".
        past: Past tense, for the line that confirms the decision.
        key: Default key in the TUI; "" if no key of its own.
        effect: What it does to one pattern or several, in a sentence; "" for verbs that have no dialog.
        asks: The prompt for the text that it always needs (a reason; of a note its text); "" if it needs none.
        is_bulk: Can be decided about several patterns at once.
        own_only: Without further confirmation only on the user's own decisions.
    """

    word: str
    past: str
    key: str = ""
    effect: str = ""
    asks: str = ""
    is_bulk: bool = False
    own_only: bool = False


VERBS: Final[dict[Verb, VerbInfo]] = {
    Verb.PROMOTE: VerbInfo(
        "promote", "promoted", "p", "Pinned as proven until reset, whatever later evidence shows.", is_bulk=True
    ),
    Verb.DEPRECATE: VerbInfo(
        "deprecate", "deprecated", "d", "Never injected into any loop until reset.", "reason", is_bulk=True
    ),
    Verb.RESET: VerbInfo("reset", "reset", "r", "The evidence decides the state again.", is_bulk=True),
    Verb.QUARANTINE: VerbInfo(
        "quarantine", "quarantined", "Q", "Not injected into any loop until released.", "reason", is_bulk=True
    ),
    Verb.RELEASE: VerbInfo(
        "release", "released", "a", "This text may be injected; a changed text is held again.", is_bulk=True
    ),
    Verb.ARCHIVE: VerbInfo(
        "archive",
        "archived",
        "D",
        "Moved from the registry to this month's archive; it can be restored.",
        "reason",
        is_bulk=True,
    ),
    Verb.RESTORE: VerbInfo("restore", "restored"),
    Verb.NOTE: VerbInfo(
        "note",
        "noted on",
        "c",
        "Kept in the decision log and the history; the state does not change.",
        "note",
        is_bulk=True,
    ),
    Verb.SNOOZE: VerbInfo("snooze", "snoozed", "s", is_bulk=True),
    Verb.ACCEPT_INVERSION: VerbInfo("accept inversion", "inverted", is_bulk=True),
    Verb.REJECT_INVERSION: VerbInfo("reject inversion", "rejected the inversion of", is_bulk=True),
    Verb.EDIT: VerbInfo("restore text", "restored the text of"),
    Verb.DISMISS: VerbInfo("dismiss", "dismissed"),
    Verb.REVOKE: VerbInfo("discard reports", "discarded the harmful reports of"),
    Verb.CONFIRM: VerbInfo("count reports", "confirmed the harmful reports of"),
    Verb.EXTRACT: VerbInfo("extract", "extracted", "e"),
    Verb.IMPORT: VerbInfo("import", "imported"),
    Verb.MERGE: VerbInfo("merge", "merged"),
    Verb.UNDO: VerbInfo("undo", "undone", "u", own_only=True),
    Verb.REDO: VerbInfo("redo", "redone", "U"),
}
"""Every verb that the ledger stores; `Verb` is the stored value."""

ACKNOWLEDGE: Final = VerbInfo("acknowledge", "acknowledged")
"""Dismissing the question about an escalation."""
APPROVE: Final = VerbInfo("approve", "approved", "a", VERBS[Verb.RELEASE].effect, is_bulk=True)
"""Releasing a text that was held, not in quarantine."""
WAS_HELD: Final = "held"
"""Key in `before` of a release: the text was held."""
TEXT_HASH: Final = "text_hash"
"""Key in `after` of the approval of a text that is not a pattern."""


def verb_info(decision: Decision) -> VerbInfo:
    """The words for a decision in the log; an escalation is acknowledged, a held text approved."""
    if decision.verb is Verb.DISMISS and decision.subject.startswith(ESCALATION_PREFIX):
        return ACKNOWLEDGE
    if decision.verb is Verb.RELEASE and (decision.before.get(WAS_HELD) is True or TEXT_HASH in decision.after):
        return APPROVE
    return VERBS[decision.verb]
