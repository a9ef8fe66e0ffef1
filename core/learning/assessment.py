"""The scores of one pattern at one moment."""

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
    """Evidence, state and score of one pattern; docs/scoring.md#states.

    For an anti-pattern a success means that the avoided approach failed.

    Attributes:
        successes, failures: Raw counts of uses with a result.
        uses: Raw count of uses, those without a result included.
        injected_only: Number of injections that were not applied.
        helpful, harmful: Decayed sums.
        rate: Success rate as shown and ranked by, 0..1; None without any.
        claimed_rate: Recorded rate that the counts do not give, 0..1; None if there is none.
        interval: (low, high) of the Jeffreys interval of the rate, 0..1.
        computed: State by the rules alone.
        state: State in effect: the pin, candidate for a stale pin or quarantine, else `computed`.
        faded: Whether `computed` is candidate only because the evidence is old.
        decided_by: `human decision`, `quarantine`, `held`, `inversion` (pending) or `rule`.
        pin: Decision of a person that is in effect, stale or not.
        pin_stale: Whether the text changed since the pin was set.
        contradicted: Whether evidence since the pin contradicts it.
        multiplier: Multiplier of the state.
        score: effectiveness x multiplier.
        inversion_due: Whether an inversion proposal is open and not snoozed.
        injectable: Not deprecated, not quarantined, and without a pending inversion, snoozed or not.
        quarantined: No person has read the imported text, or the scan stops it, and no pin overrules that.
        held: Quarantined only because the text gives orders that no person has approved; docs/safety.md#held-texts.
        blocked: Blocked by the scan: releasing or promoting it needs a reason.
        last_used: Time of the newest known use.
        next_change: Time and value of the next change of `computed` by decay alone; None if there is none.
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
        total = self.successes + self.failures
        counted = self.successes / total if total else None
        return self.claimed_rate is not None and self.rate == self.claimed_rate != counted

    @property
    def claim_text(self) -> str:
        """Claimed and recorded: `85% claimed, 3 of 4 recorded`; "" without a claim."""
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
    def shown(self) -> str:
        """The state as shown, `quarantine` and `held` included."""
        if self.held:
            return HELD
        return QUARANTINE if self.quarantined else self.state.value
