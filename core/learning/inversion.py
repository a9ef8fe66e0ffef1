"""Anti-pattern inversion: a pattern that keeps failing becomes a warning (2) Anti-Pattern Inversion."""

from __future__ import annotations

from msgspec import Struct


class Inversion(Struct, frozen=True, kw_only=True):
    """A proposal to turn one failing pattern into an anti-pattern; a human decides (semantics 5).

    Attributes:
        pattern_id: The failing pattern.
        text: The anti-pattern's `approach_description`, e.g. `AVOID: Split by file type. Failed 5/7 times
            (71% failure rate)`. Untrusted: it quotes the pattern.
        reason: The counts alone: `Failed 5/7 times (71% failure rate)`.
        failures, total: Raw counts of uses with a result.
        failure_mode: One of (3)'s failure modes, see `failure_mode_of`.
        why_it_fails: One line on what the failing loops show.
        better_alternative, better_pattern_id: The best success pattern that fits, "" if none does.
        source_loops: Ids of the loops in which it failed, oldest first.
        lint: Why the text may say the opposite of what is meant; asks for a rewrite. Empty if nothing is wrong.
        slug: Middle of the new id `pat-anti-<slug>-NNN`, from the original id.
    """

    pattern_id: str
    text: str
    reason: str
    failures: int
    total: int
    failure_mode: str
    why_it_fails: str
    better_alternative: str
    better_pattern_id: str
    source_loops: tuple[str, ...]
    lint: tuple[str, ...]
    slug: str
