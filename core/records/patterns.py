"""Shared patterns."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from core.records.suspicions import Suspicion

UNNAMED: Final = "unnamed-"
"""Prefix of the provisional ID of a record without an ID."""


DECOMPOSITION_TAG: Final = "decomposition-strategy"
"""Tag of success patterns and anti-patterns about splitting a task (docs/scoring.md)."""


class PatternType(StrEnum):
    """The four types of patterns."""

    ERROR = "error"
    SUCCESS = "success"
    ANTI = "anti"
    TEMPLATE = "template"


class Maturity(StrEnum):
    """The four states of a pattern."""

    CANDIDATE = "candidate"
    ESTABLISHED = "established"
    PROVEN = "proven"
    DEPRECATED = "deprecated"


class SourceLoop(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of `source_loops`: a loop that contributed to the pattern."""

    loop_id: str
    at: datetime | None = None
    contributed_by: str = ""
    outcome: str = ""
    """`success`, `partial`, `failure` or "" (success patterns)."""
    iteration: int | None = None
    """`failure_iteration` of an anti-pattern, `iterations_required` of a success pattern."""


class TrendPoint(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One point of `effectiveness_trend`: rate 0..1 of `sample_size` uses up to `at`."""

    at: datetime | None = None
    rate: float | None = None
    sample_size: int | None = None


class RecordedCounts(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Rate (0..1) and counts in a pattern's record, as opposed to the evidence.

    None if missing or invalid. For an anti-pattern `rate` is `failure_rate` and `uses` is `occurrence_count`, because a
    failure of the avoided approach confirms it. `claimed` is the rate of the record before recorded results replaced
    it.
    """

    rate: float | None = None
    uses: int | None = None
    successes: int | None = None
    failures: int | None = None
    claimed: float | None = None


class IterationRange(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """`typical_iterations` of an approach; missing values are None."""

    average: float | None = None
    minimum: float | None = None
    maximum: float | None = None

    def __bool__(self) -> bool:
        return (self.average, self.minimum, self.maximum) != (None, None, None)

    @property
    def text(self) -> str:
        """`2.5 on average, 1 to 5`; "" if it is empty."""
        parts = [] if self.average is None else [f"{self.average:g} on average"]
        if self.minimum is not None and self.maximum is not None:
            if not self.average == self.minimum == self.maximum:
                parts.append(f"{self.minimum:g} to {self.maximum:g}")
        elif self.minimum is not None:
            parts.append(f"at least {self.minimum:g}")
        elif self.maximum is not None:
            parts.append(f"at most {self.maximum:g}")
        return ", ".join(parts)


class PatternCopy(Struct, frozen=True, kw_only=True, gc=False):
    """Another record with the ID of a pattern: shown, but its counts are never added."""

    file: str
    pointer: str
    differs: bool


class Pattern(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pattern of any type; fields that its type lacks have their default.

    `id` is `pattern_id` or `template_id` as written. `title` is one line for people: the error, the approach, the
    avoided approach or the use case; `description` the fix, approach, approach to avoid, or template description;
    `category` the fix_category, task_category, failure_mode or language (docs/file-formats.md#pattern-records).
    `error_pattern` and `task_pattern` are regexes from a file: only `core.base.text.safe_matcher` may run them.

    `content_hash` is the SHA-256 (hex) of everything that would be injected (not counts, times, source loops,
    override); decisions are bound to it. `file` and `pointer` are the place of its record, `copies` other records with
    this ID. `copy_folder` is the folder of a pattern that exists only outside `shared/patterns`; else "". `override` is
    `override.state` of the record; shown, but only the decision log decides. `suspicions` are the results of the safety
    scan, critical ones first.
    """

    id: str
    type: PatternType
    title: str
    description: str = ""
    category: str = ""
    error_type: str = ""
    error_pattern: str = ""
    location_hints: tuple[str, ...] = ()
    task_pattern: str = ""
    use_case: str = ""
    template_code: str = ""
    template_language: str = ""
    placeholders: tuple[tuple[str, str], ...] = ()
    diff_pattern: str = ""
    steps: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    preconditions: tuple[str, ...] = ()
    benefits: tuple[str, ...] = ()
    limitations: tuple[str, ...] = ()
    average_iterations: float | None = None
    typical_iterations: IterationRange | None = None
    symptoms: tuple[str, ...] = ()
    why_it_fails: str = ""
    better_alternative: str = ""
    better_pattern_id: str = ""
    source_loops: tuple[SourceLoop, ...] = ()
    trend: tuple[TrendPoint, ...] = ()
    tags: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    first_discovered: datetime | None = None
    last_used: datetime | None = None
    recorded_counts: RecordedCounts = RecordedCounts()
    inverted_from: str = ""
    aliases: tuple[str, ...] = ()
    content_hash: str = ""
    file: str = ""
    pointer: str = ""
    copy_folder: str = ""
    copies: tuple[PatternCopy, ...] = ()
    override: str = ""
    suspicions: tuple[Suspicion, ...] = ()

    @property
    def is_registered(self) -> bool:
        """Whether its record is in the registry and has an ID, so that it can be changed."""
        return not self.copy_folder and not self.is_unnamed

    @property
    def is_unnamed(self) -> bool:
        """Whether its record has no ID: it is shown, but cannot be injected or changed."""
        return self.id.startswith(UNNAMED)
