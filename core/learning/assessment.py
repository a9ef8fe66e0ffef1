"""What the scoreboard says of one pattern at one moment."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from core.learning.aggregate_evidence import round_half_up
from core.records.decisions import Pin
from core.records.patterns import Maturity

HUMAN: Final = "human decision"
QUARANTINE: Final = "quarantine"
HELD: Final = "held"
INVERSION: Final = "inversion"
RULE: Final = "rule"


class Assessment(Struct, frozen=True, kw_only=True):
    """One pattern's evidence, state and what decided it (semantics 1, 3, 4).

    For an anti-pattern a success means that the avoided approach failed.

    Attributes:
        successes, failures: Raw counts of uses with a result.
        uses: Raw count of uses, those without a result included.
        injected_only: How often it was injected and not applied; no evidence.
        helpful, harmful: Decayed sums now.
        rate: Success rate as shown and ranked by, 0..1, see `core.learning.score_arrays.shown_rate`; None without any.
        claimed_rate: The rate that the record claims without the counts for it, 0..1; None if there is none.
        interval: (low, high) of the rate, Jeffreys, 0..1.
        computed: What the rules of (2) say.
        state: What holds: pin, stale pin or quarantine (candidate), or `computed`.
        faded: `computed` is candidate by age alone.
        decided_by: `human decision`, `quarantine`, `held`, `inversion` (waits for a verdict) or `rule`.
        pin: The standing human decision, stale or not.
        pin_stale: The text differs from the one the pin was given to.
        contradicted: Evidence since the pin says the opposite.
        multiplier: Of the state, (2) Multipliers in Decomposition.
        score: effectiveness x multiplier: how good it is before any task is known.
        inversion_due: A proposal to invert it stands open now (not snoozed).
        injectable: Neither deprecated, nor in quarantine, nor waiting for a verdict on its inversion (snoozed ones
            wait, too).
        quarantined: Its text came in without a person having read it (see `core.records.decisions.Arrival`), or the
            scan stops it (see `core.scanning.verdict.stops`); and no pin on this very text overrules that.
        held: It is quarantined only because it gives orders and no person has approved it; see
            docs/safety.md#held-texts.
        blocked: The scan blocks it: it is released or promoted only for a reason.
        last_used: Newest use that any file tells of.
        next_change: When `computed` changes if nothing more happens, and to what; None if it never does.
    """

    pattern_id: str
    successes: int
    failures: int
    uses: int
    injected_only: int
    helpful: float
    harmful: float
    rate: float | None
    interval: tuple[float, float]
    computed: Maturity
    state: Maturity
    faded: bool
    decided_by: str
    pin: Pin | None
    pin_stale: bool
    contradicted: bool
    multiplier: float
    score: float
    inversion_due: bool
    injectable: bool
    quarantined: bool
    last_used: datetime | None
    next_change: tuple[datetime, Maturity] | None
    claimed_rate: float | None = None
    held: bool = False
    blocked: bool = False

    @property
    def is_claimed(self) -> bool:
        """Whether `rate` is the claimed one, since there are too few results."""
        total = self.successes + self.failures
        counted = self.successes / total if total else None
        return self.claimed_rate is not None and self.rate == self.claimed_rate != counted

    @property
    def claim_text(self) -> str:
        """A claimed rate beside the recorded results: `85% claimed, 3 of 4 recorded`; "" without a claim."""
        if self.claimed_rate is None:
            return ""
        total = self.successes + self.failures
        recorded = f"{self.successes:,} of {total:,} recorded" if total else "no result recorded"
        return f"{round_half_up(self.claimed_rate * 100)}% claimed, {recorded}"

    @property
    def is_settled(self) -> bool:
        """Whether a decision keeps the state as it is, whatever age and results do."""
        return self.pin is not None and not self.pin_stale

    @property
    def shown(self) -> str:
        """The state as it is shown: `quarantine` and `held` have words of their own."""
        if self.held:
            return HELD
        return QUARANTINE if self.quarantined else self.state.value
