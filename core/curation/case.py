"""What a decision rule reads (`Case`) and what it returns (`Draft`)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from core.base.formatting import format_day, shorten_id
from core.base.text import visible_line
from core.config.settings import Settings
from core.learning.assessment import Assessment
from core.records.decisions import CurationState, Effect, Pin, Verb
from core.records.patterns import Maturity, Pattern

DECIDED_TEXT: Final = "seen_text"
"""Key in `after` of a decision: the keys of the record that held the text that was decided about."""


class Case(Struct, frozen=True, kw_only=True):
    """One pattern, as the user saw it, at the moment of a decision.

    `state` is the fold of the ledger now, and may be newer than what the user saw. `written` is the `override` in the
    pattern's record that no pin explains, as JSON text. Curation writes the pattern's file only if `writable`, and
    never a copy. `anti_file` is the project-relative file for anti-patterns. `text` returns the keys of the record that
    hold the text of `pattern`, {} if they are not available. `label` replaces the pattern's ID in messages.
    """

    pattern: Pattern
    assessment: Assessment
    state: CurationState
    settings: Settings
    at: datetime
    reason: str
    writable: bool
    written: str | None = None
    anti_file: str = ""
    id: str = ""
    by: str = ""
    text: Callable[[], dict[str, Any]] = dict
    label: str = ""

    @property
    def name(self) -> str:
        return self.label or shorten_id(self.pattern.id)

    @property
    def pin(self) -> Pin | None:
        """The pin in effect, stale or not."""
        return self.state.pins.get(self.pattern.id)

    @property
    def was_reset(self) -> bool:
        """Whether a person reset this pattern, which the rules deprecate."""
        is_reset = self.pin is None and self.pattern.id in self.state.reset
        return is_reset and self.assessment.computed is Maturity.DEPRECATED

    @property
    def effective(self) -> Maturity:
        """Pinned state for this text, candidate under a stale pin, else computed."""
        if self.pin is not None:
            fresh = self.pin.content_hash == self.pattern.content_hash
            return self.pin.state if fresh else Maturity.CANDIDATE
        return self.assessment.state if self.assessment.pin is None else self.assessment.computed

    def recorded(self, state: Maturity) -> dict[str, Any]:
        """The pattern for `Decision.before` and `.after`."""
        found = self.assessment
        counts = {"successes": found.successes, "failures": found.failures}
        content_hash = self.pattern.content_hash
        return {"state": state.value, "computed": found.computed.value, "content_hash": content_hash} | counts

    def recorded_with_text(self, state: Maturity) -> dict[str, Any]:
        """The pattern for `Decision.after`, with its text for a later restoration."""
        text = self.text()
        return {**self.recorded(state), DECIDED_TEXT: text} if text else self.recorded(state)

    def draft(self, verb: Verb, summary: str, after: dict[str, Any], **more: Any) -> Draft:
        """A decision on this pattern; `more` are further fields of `Draft`."""
        before = self.recorded(self.effective)
        more = {"before": before, **more}
        return Draft(verb=verb, subject=self.pattern.id, summary=summary, reason=self.reason, after=after, **more)


class Draft(Struct, frozen=True, kw_only=True):
    """A decision that the rules allow, before it is written; see `Decision`.

    `summary` is one line: `promoted X: established → proven`. `warnings` are for the user. `ledger_only`: it changes a
    pattern whose file curation does not write. `quoted` has IDs of other patterns whose text it copies.
    """

    verb: Verb
    subject: str
    summary: str
    reason: str = ""
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    effects: tuple[Effect, ...] = ()
    inverse: tuple[Effect, ...] = ()
    warnings: tuple[str, ...] = ()
    ledger_only: bool = False
    quoted: tuple[str, ...] = ()


def change(before: str, after: str) -> str:
    """A change of state in messages: `established → proven`, or `stays proven`."""
    return f"stays {after}" if before == after else f"{before} → {after}"


def since(pin: Pin | None) -> str:
    """Who set a pin and when, for the end of a sentence: ` (by ana on 3 May 2026)`."""
    if pin is None:
        return " by rule"
    return f" (by {visible_line(pin.by, 40)} on {format_day(pin.at)})"
