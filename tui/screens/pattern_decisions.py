"""Decisions about patterns, with a reason where one is needed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partialmethod

from textual.content import Content

from core.base.formatting import format_decimal
from core.base.text import visible_line
from core.curation.commands import command_for
from core.learning.scoreboard import Assessment
from core.records.decisions import APPROVE, VERBS, Verb, VerbInfo
from tui.screens.base_screen import BaseScreen
from tui.screens.bulk_decision import BulkDialog
from tui.screens.dialogs import AskLine, overtaken


def consequence(action: str, assessment: Assessment) -> str | None:
    """The consequence of a decision, short enough for its key label."""
    if action == "promote":
        return f"promote → x1.5, score {format_decimal(_score(assessment, 1.5))}"
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
    """Mixin of screens that decide about patterns."""

    def subjects(self) -> Sequence[str]:
        """The patterns to decide about: the selected rows, else the one under the cursor."""
        raise NotImplementedError

    def begin_decision(self, keys: Sequence[str]) -> None:
        """A decision about these patterns starts."""

    def decided(self) -> None:
        """A decision about several patterns is on its way."""

    def action_release(self) -> None:
        """Release quarantined texts or approve held ones; a blocked text needs a reason."""
        known, assessment = self.view.snapshot.patterns, self.view.assessment
        shown = [assessment(key) for key in self.subjects() if key in known]
        info = APPROVE if any(one.held for one in shown) else VERBS[Verb.RELEASE]
        self._decide(Verb.RELEASE, info._replace(asks="reason") if any(one.blocked for one in shown) else info)

    def _decide(self, verb: Verb, info: VerbInfo | None = None) -> None:
        """Decide about one pattern, after a reason if needed; many after a preview."""
        info = info or VERBS[verb]
        subjects = self.subjects()
        if len(subjects) > 1:
            self.begin_decision(subjects)
            self.app.push_screen(BulkDialog(verb, subjects, info), lambda begun: self.decided() if begun else None)
        elif subjects and info.asks:
            self._ask(verb, info, subjects[0])
        elif subjects:
            self.begin_decision(subjects)
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
            self.begin_decision([key])
            self.services.decide(command_for(verb, key, text), seen)

        title = Content(f"{info.word.capitalize()} {visible_line(key, 60)}: {info.asks}?")
        detail = Content(f"{info.effect} Can be undone.")
        other = None if verb is Verb.NOTE else overtaken(seen, key)
        self.ask_user(AskLine(title, detail, verb=info.word, required=True, overtaken=other), answered)
