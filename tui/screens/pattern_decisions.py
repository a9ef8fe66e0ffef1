"""Decisions about patterns: a key, a reason where one is needed, then the engine writes it."""

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
    """The consequence of a decision, short enough for its key label."""
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
    """Mixin of screens where patterns are promoted, deprecated, reset, archived and annotated."""

    def subjects(self) -> Sequence[str]:
        """The patterns to decide about: the selected rows, else the one under the cursor."""
        raise NotImplementedError

    def begin_decision(self, keys: Sequence[str]) -> None:
        """A decision about these patterns starts."""

    def decided(self) -> None:
        """A decision about several patterns is on its way."""

    def action_promote(self) -> None:
        self._decide(PROMOTE, lambda deck, key, _: deck.promote(key))

    def action_reset(self) -> None:
        self._decide(RESET, lambda deck, key, _: deck.reset(key))

    def action_deprecate(self) -> None:
        self._decide(DEPRECATE, lambda deck, key, reason: deck.deprecate(key, reason=reason))

    def action_quarantine(self) -> None:
        self._decide(QUARANTINE, lambda deck, key, reason: deck.quarantine(key, reason=reason))

    def action_release(self) -> None:
        """Approve held or quarantined texts; texts that the scan blocks need a reason."""
        known, assessment = self.view.snapshot.patterns, self.view.assessment
        blocked = any(key in known and assessment(key).blocked for key in self.subjects())
        deed = replace(RELEASE, asks="why?") if blocked else RELEASE
        self._decide(deed, lambda deck, key, reason: deck.release(key, reason=reason))

    def action_archive(self) -> None:
        self._decide(ARCHIVE, lambda deck, key, reason: deck.archive(key, reason=reason))

    def action_note(self) -> None:
        self._decide(NOTE, lambda deck, key, text: deck.note(key, text=text))

    def _decide(self, deed: Deed, decide: Callable[[Project, str, str], Decided]) -> None:
        """Decide about one pattern at once or after a text, about several after a preview.

        Args:
            deed: The kind of decision.
            decide: Makes it for one pattern, with the typed text.
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
