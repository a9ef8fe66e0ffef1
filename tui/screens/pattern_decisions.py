"""Deciding about patterns from a list: a key, a reason where one is needed, and the decision goes to the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from textual.content import Content

from core.base.formatting import decimal_text
from core.base.text import visible_line
from core.curation.curator import Decided
from core.learning.scoreboard import Assessment
from core.project.project import Project
from core.records.decisions import Verb
from tui.screens.base_screen import BaseScreen
from tui.screens.bulk_decision import BulkDialog, Deed
from tui.screens.dialogs import AskLine, overtaken

PROMOTE: Final = Deed(Verb.PROMOTE, "Promote", "It stays proven, whatever the evidence says, until it is reset.")
RESET: Final = Deed(Verb.RESET, "Reset", "The evidence decides again.")
DEPRECATE: Final = Deed(Verb.DEPRECATE, "Deprecate", "Not injected into any loop until somebody resets it.", "why?")
QUARANTINE: Final = Deed(
    Verb.QUARANTINE, "Quarantine", "Not injected into any loop until it is released in Review.", "why?"
)
RELEASE: Final = Deed(Verb.RELEASE, "Approve", "Loops may get this very text; a changed text waits again.")
ARCHIVE: Final = Deed(
    Verb.ARCHIVE, "Archive", "It leaves the registry for this month's archive and can be restored from there.", "why?"
)
NOTE: Final = Deed(Verb.NOTE, "Note on", "Kept in the log and shown under History; changes no state.", "what?")


def consequence(action: str, assessment: Assessment) -> str | None:
    """What a decision would change, short enough for its key."""
    if action == "promote":
        return f"promote → x1.5, score {decimal_text(_score(assessment, 1.5))}"
    if action == "deprecate":
        return "deprecate → never injected"
    if action == "release":
        return f"approve → {assessment.computed.value}"
    if action == "reset":
        return f"reset → {assessment.computed.value}" if assessment.pin else "reset → may be promoted"
    return None


def _score(assessment: Assessment, multiplier: float) -> float:
    return assessment.score / assessment.multiplier * multiplier if assessment.multiplier else 0.0


class PatternDecisions(BaseScreen):
    """Mixin of places in which patterns are promoted, deprecated, reset, put away and annotated."""

    def subjects(self) -> Sequence[str]:
        """The patterns that a decision is about: the marked ones, else the one under the cursor."""
        raise NotImplementedError

    def begin_decision(self, keys: Sequence[str]) -> None:
        """A decision about these patterns is being made."""

    def decided(self) -> None:
        """A decision about the many is on its way."""

    def action_promote(self) -> None:
        """Pin as proven."""
        self._decide(PROMOTE, lambda deck, key, _: deck.promote(key))

    def action_reset(self) -> None:
        """Take the pin off."""
        self._decide(RESET, lambda deck, key, _: deck.reset(key))

    def action_deprecate(self) -> None:
        """Pin as deprecated, with a reason."""
        self._decide(DEPRECATE, lambda deck, key, reason: deck.deprecate(key, reason=reason))

    def action_quarantine(self) -> None:
        """Put into quarantine, with a reason."""
        self._decide(QUARANTINE, lambda deck, key, reason: deck.quarantine(key, reason=reason))

    def action_release(self) -> None:
        """Approve held or quarantined texts; what the scan blocks only with a reason."""
        known, assessment = self.view.snapshot.patterns, self.view.assessment
        blocked = any(key in known and assessment(key).blocked for key in self.subjects())
        deed = replace(RELEASE, asks="why?") if blocked else RELEASE
        self._decide(deed, lambda deck, key, reason: deck.release(key, reason=reason))

    def action_archive(self) -> None:
        """Move into the archive, with a reason."""
        self._decide(ARCHIVE, lambda deck, key, reason: deck.archive(key, reason=reason))

    def action_note(self) -> None:
        """Write a note beside it."""
        self._decide(NOTE, lambda deck, key, text: deck.note(key, text=text))

    def _decide(self, deed: Deed, decide: Callable[[Project, str, str], Decided]) -> None:
        """One pattern at once, or when what it takes is typed; many after a preview.

        Args:
            deed: What is decided.
            decide: Decides it about one pattern, with what was typed.
        """
        subjects = self.subjects()
        if len(subjects) > 1:
            self.begin_decision(subjects)
            self.app.push_screen(BulkDialog(deed, subjects), lambda begun: self.decided() if begun else None)
        elif subjects and deed.asks:
            self._ask(deed, subjects[0], decide)
        elif subjects:
            self.begin_decision(subjects)
            self.services.decide(lambda deck: decide(deck, subjects[0], ""))

    def _ask(self, deed: Deed, key: str, decide: Callable[[Project, str, str], Decided]) -> None:
        seen = self.view

        def answered(text: str | None) -> None:
            if text:
                self.begin_decision([key])
                self.services.decide(lambda deck: decide(deck, key, text), seen)

        title = Content(f"{deed.word} {visible_line(key, 60)}: {deed.asks}")
        detail = Content(f"{deed.effect} Undo takes this back.")
        faster = None if deed is NOTE else overtaken(seen, key)
        self.app.push_screen(AskLine(title, detail, required=True, overtaken=faster), answered)
