"""The scores of one pattern at one moment."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from core.base.text import plural
from core.learning.evidence import round_half_up
from core.learning.statistics import jeffreys_interval
from core.records.decisions import Pin
from core.records.patterns import Maturity

HUMAN: Final = "human decision"
SCRIPT: Final = "script decision"
DECIDED: Final = frozenset({HUMAN, SCRIPT})
QUARANTINE: Final = "quarantine"
HELD: Final = "held"
INVERSION: Final = "inversion"
RULE: Final = "rule"


def describe_counts(given: int, uses: int, worked: int, seen: int, *, is_warning: bool = False) -> str:
    """Describe three counts: `given 4, used 2 (2 worked), seen 3 times`.

    A use needs no injection, so there may be more uses than injections.
    """
    applied = f"used {uses:,} ({worked:,} worked)" if uses else "never used"
    if is_warning:
        applied = f"right in {worked:,} of {plural(uses, 'result')}" if uses else "no result"
    return f"given {given:,}, {applied}" + (f", seen {plural(seen, 'time')}" if seen else "")


class Assessment(Struct, frozen=True, kw_only=True):
    """Evidence, state and score of one pattern; docs/scoring.md#states.

    A success of an anti-pattern means that the approach it warns of failed.
    """

    pattern_id: str
    successes: int  # raw counts of uses with a result
    failures: int
    uses: int  # raw count, including uses without a result
    injected_only: int  # injections that were not applied
    helpful: float  # decayed sums
    harmful: float
    rate: float | None  # success rate used for display and ranking, 0..1; None if unknown
    computed: Maturity  # state by the rules alone
    state: Maturity  # state in effect: the pin, candidate if stale or in quarantine, else `computed`; see `is_capped`
    faded: bool  # `computed` is candidate only because the evidence is old
    decided_by: str  # one of the constants above
    pin: Pin | None  # pin in effect, even if it is stale
    pin_stale: bool  # the text changed since the pin was set
    contradicted: bool  # evidence since the pin contradicts it
    multiplier: float  # factor of the state in scores
    score: float  # effectiveness x multiplier
    inversion_due: bool  # an inversion proposal is open and not snoozed
    injectable: bool  # may be injected: not deprecated, quarantined, warned of, or pending as an inversion
    quarantined: bool  # unpinned, and the imported text is unread or stopped by the scan
    last_used: datetime | None  # time of the newest known use
    given: int = 0  # injections, applied or not
    seen: int = 0  # loops that found the pattern themselves
    warning_id: str = ""  # the anti-pattern that warns of the same fix, so that this pattern is not injected
    claimed_rate: float | None = None  # recorded rate that the counts do not confirm, 0..1
    held: bool = False  # quarantined only because the text gives unapproved orders; docs/safety.md#held-texts
    unreviewed: bool = False  # no person has approved this text, which arrived by itself
    approved: bool = False  # agents get this text as guidance, see `CurationState.approves_as_guidance`
    blocked: bool = False  # blocked by the safety scan: releasing or promoting it needs a reason
    level: float = 0.9  # probability of the interval, 0..1
    known_interval: tuple[float, float] | None = None  # `interval`, if it was computed for all patterns

    @property
    def counts_text(self) -> str:
        return describe_counts(self.given, self.uses, self.successes, self.seen)

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high) of the Jeffreys interval of the rate, 0..1."""
        return self.known_interval or jeffreys_interval(self.successes, self.failures, self.level)

    @property
    def is_claimed(self) -> bool:
        total = self.successes + self.failures
        counted = self.successes / total if total else None
        return self.claimed_rate is not None and self.rate == self.claimed_rate != counted

    @property
    def claim_text(self) -> str:
        """Text such as `85% claimed, 3 of 4 recorded`; "" without a claimed rate."""
        if self.claimed_rate is None:
            return ""
        total = self.successes + self.failures
        recorded = f"{self.successes:,} of {total:,} recorded" if total else "no result recorded"
        return f"{round_half_up(self.claimed_rate * 100)}% claimed, {recorded}"

    @property
    def is_settled(self) -> bool:
        """Whether a pin on the current text fixes the state."""
        return self.pin is not None and not self.pin_stale

    @property
    def is_capped(self) -> bool:
        """Whether the pattern would be proven if a person approved its text."""
        return self.unreviewed and self.computed is Maturity.PROVEN and self.state is Maturity.ESTABLISHED

    @property
    def shown(self) -> str:
        """The displayed state: `quarantine`, `held`, or the state in effect."""
        if self.held:
            return HELD
        return QUARANTINE if self.quarantined else self.state.value
