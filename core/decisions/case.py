"""Input (`Case`), result (`Draft`) and outcome (`Decided`) of a decision rule.

Below, texts that describe a decision to people: verb, author, subject and change.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from msgspec import Struct

from core.base.errors import AlreadyDone, BadInput
from core.base.formatting import format_day, shorten_id
from core.base.scanning.engine import VERSION
from core.base.settings import Settings
from core.base.text import plural, visible_line
from core.learning.maturity import HELD, QUARANTINE, Assessment
from core.records.decisions import (
    SCAN_RULES,
    SCRIPTS,
    TURNS,
    WAS_HELD,
    WAS_QUARANTINED,
    CurationState,
    Decision,
    Effect,
    Pin,
    Verb,
    is_signed_unattended,
    verb_info,
)
from core.records.patterns import Maturity, Pattern

DECIDED_TEXT: Final = "seen_text"
"""Key in `after` of a decision: the keys of the record that held the text when the decision was made."""
MAX_TEXT: Final = 10_000  # Maximum length of a reason, note or rewritten text, in characters.
Progress = Callable[[int, int], None]  # Called with (patterns done, patterns in all).


def make_id(at: datetime) -> str:
    """Return a new ID of an act, a decision or a proposal; IDs sort by time."""
    return f"{at:%Y%m%dT%H%M%S}{at.microsecond // 1000:03d}-{secrets.token_hex(4)}"


def clean(text: str, what: str) -> str:
    """Strip text and replace lone surrogates; raise `BadInput` if it is too long."""
    text = text.encode("utf-8", "replace").decode().strip()
    if len(text) > MAX_TEXT:
        raise BadInput(f"{what} is {len(text):,} characters long; at most {MAX_TEXT:,} are allowed")
    return text


def already_done(why: str, reason: str) -> AlreadyDone:
    """Return the error of an ineffective decision, which reports a reason as lost."""
    lost = "; the reason was not stored (to add it to a pattern: ralphdeck pattern note)" if reason.strip() else ""
    return AlreadyDone(f"{why}{lost}")


class Case(Struct, frozen=True, kw_only=True):
    """A pattern at the moment of a decision, as the user saw it.

    `state` is the current state of the ledger; it may be newer than what the user saw. `written` is the JSON text of an
    `override` in the record that no pin explains, None if there is none. `writable` is whether curation writes the
    pattern's file; it never writes copies. `anti_file` is the project-relative file for anti-patterns. `text` returns
    the keys of the record that hold the text, {} if they are not available. `label` replaces the pattern's ID in
    messages.
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
        """The pin in effect, even if stale; None if the pattern is not pinned."""
        return self.state.pins.get(self.pattern.id)

    @property
    def was_reset(self) -> bool:
        """Whether a person reset this pattern although the rules deprecate it."""
        is_reset = self.pin is None and self.pattern.id in self.state.reset
        return is_reset and self.assessment.computed is Maturity.DEPRECATED

    @property
    def effective(self) -> Maturity:
        """The pinned state, candidate if the pin is stale, or the computed state."""
        if self.pin is not None:
            fresh = self.pin.content_hash == self.pattern.content_hash
            return self.pin.state if fresh else Maturity.CANDIDATE
        return self.assessment.state if self.assessment.pin is None else self.assessment.computed

    def already_done(self, why: str) -> AlreadyDone:
        """Return the error of this decision if it would change nothing."""
        return already_done(why, self.reason)

    def recorded(self, state: Maturity) -> dict[str, Any]:
        """Return the values of this pattern to store in `Decision.before` or `.after`."""
        found = self.assessment
        counts = {"successes": found.successes, "failures": found.failures}
        content_hash = self.pattern.content_hash
        return {"state": state.value, "computed": found.computed.value, "content_hash": content_hash} | counts

    def recorded_with_text(self, state: Maturity) -> dict[str, Any]:
        """Return `recorded` with the text, to restore it later, and how it was scanned."""
        after = self.recorded(state) | {SCAN_RULES: VERSION}
        if self.pattern.scripts:
            after[SCRIPTS] = list(self.pattern.scripts)
        if text := self.text():
            after[DECIDED_TEXT] = text
        return after

    def draft(self, verb: Verb, summary: str, after: dict[str, Any], **more: Any) -> Draft:
        """Make a draft about this pattern; `more` has further fields of `Draft`."""
        before = self.recorded(self.effective)
        more = {"before": before, **more}
        return Draft(verb=verb, subject=self.pattern.id, summary=summary, reason=self.reason, after=after, **more)


class Draft(Struct, frozen=True, kw_only=True):
    """A decision that the rules allow, before it is written; see `Decision`.

    `summary` is one line: `promoted X: established → proven`. `warnings` are shown to the user. `ledger_only` is set if
    curation does not write the pattern's file. `quoted` has the IDs of other patterns whose text the decision copies.
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


class Refusal(NamedTuple):
    """Why a decision on a pattern was not made; `is_done` if already in effect."""

    pattern_id: str
    why: str
    is_done: bool = False


class Decided(Struct, frozen=True, kw_only=True):
    """A decision that is in the ledger, or the decisions of one act.

    `decision` is the last one. `group` has all decisions of an act on many patterns, in ledger order, and `refused` the
    patterns without a decision. `written` is whether the pattern files contain all effects. If not, the decision is
    still in effect, and the next decision writes the file. `summary` is one line: `promoted 12 of 14 patterns`.
    """

    decision: Decision
    warnings: tuple[str, ...]
    written: bool
    summary: str
    group: tuple[Decision, ...] = ()
    refused: tuple[Refusal, ...] = ()

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """All decisions of the act, also if there is only one."""
        return self.group or (self.decision,)


def change(before: str, after: str) -> str:
    """Describe a change of state: `established → proven`, or `stays proven`."""
    return f"stays {after}" if before == after else f"{before} → {after}"


def since(pin: Pin | None) -> str:
    """Describe who set a pin and when, e.g. ` (by ana on 3 May 2026)` or ` by rule`."""
    if pin is None:
        return " by rule"
    return f" (by {visible_line(pin.by, 40)} on {format_day(pin.at)})"


HOOK: Final = "hook"
ABOUT: Final = "about"  # Key in `after` of a decision: a short name for a question whose ID is too long to read.


def verb_text(decision: Decision) -> str:
    """Return the verb of a decision: `promote`, `acknowledge`, `accept inversion`."""
    return verb_info(decision).word


def author_text(decision: Decision) -> str:
    """Return who decided: the signature, or `hook` for an unattended extraction."""
    return HOOK if is_signed_unattended(decision.by) else decision.by


def subject_text(decision: Decision) -> str:
    """Return the short name of a decision's subject, or its ID if it has none."""
    about = decision.after.get(ABOUT)
    return shorten_id(about if isinstance(about, str) and about else decision.subject)


def about_text(decision: Decision, known: Mapping[str, Decision]) -> str:
    """Describe the subject of a decision; for undo and redo, the original decision."""
    other = known.get(decision.subject) if decision.verb in TURNS else None
    return f"{verb_text(other)} {subject_text(other)}" if other else subject_text(decision)


def describe_change(decision: Decision) -> str:
    """Describe what a decision changed: `established → proven`, `8 patterns`, or ""."""
    merged = decision.after.get("merged")
    if isinstance(merged, str):
        return f"with {shorten_id(merged)}"
    patterns, joined = decision.after.get("patterns"), decision.after.get("joined")
    if isinstance(patterns, list):
        parts = [plural(len(patterns), "pattern")] if patterns or not joined else []
        if isinstance(joined, list) and joined:
            parts.append(f"{plural(len(joined), 'known pattern')} found again")
        return ", ".join(parts)
    before, after = recorded_state(decision.before), recorded_state(decision.after)
    return change(before, after) if before and after else ""


def recorded_state(values: Mapping[str, Any]) -> str:
    """Return the state of a pattern by `Decision.before` or `.after`; "" if unknown.

    A decision that stops a text, or lets it through, records the state that the pattern has without that.
    """
    state = values.get("state")
    if not isinstance(state, str):
        return ""
    if values.get(WAS_QUARANTINED) is True or "hashes" in values:
        return QUARANTINE
    return HELD if values.get(WAS_HELD) is True else state
