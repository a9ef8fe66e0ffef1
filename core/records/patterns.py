"""Patterns, results of the safety scan of their texts, and repairs of old ones."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from msgspec import Struct


class Severity(StrEnum):
    """Severity of a suspicion, the most severe first; it decides on injection."""

    BLOCKED = "blocked"  # The text is not injected until a person releases it with a reason.
    HELD = "held"  # The text is not injected until a person approves it.
    FLAGGED = "flagged"  # The text is injected, but marked in the UI and reviewed earlier.

    @property
    def rank(self) -> int:
        """Position in the order of severity; 0 is the most severe."""
        return _RANKS[self]

    @property
    def stops(self) -> bool:
        """Whether the text is not injected until a person decides."""
        return self is not Severity.FLAGGED


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class Suspicion(Struct, frozen=True, gc=False):
    """Suspicious part of a text, found by a rule of the safety scan.

    `rule` is the ID of a rule of `core.base.scanning`. `field` is the field of `Pattern` with the match, or "" if
    the match spans several fields. `excerpt` contains the matching words and is untrusted. `since` is the first version
    of the rules that finds it.
    """

    rule: str
    severity: Severity
    field: str
    excerpt: str
    since: int = 1

    @property
    def critical(self) -> bool:
        """Whether it blocks the text: an approval without a reason is not enough."""
        return self.severity is Severity.BLOCKED


UNNAMED: Final = "unnamed-"  # Prefix of the temporary ID that a record without an ID gets.


DECOMPOSITION_TAG: Final = "decomposition-strategy"
"""Tag of success patterns and anti-patterns about splitting a task (docs/scoring.md)."""


class PatternType(StrEnum):
    """Type of a pattern."""

    ERROR = "error"
    SUCCESS = "success"
    ANTI = "anti"
    TEMPLATE = "template"


ID_PREFIXES: Final = {
    PatternType.ERROR: "pat-error",
    PatternType.SUCCESS: "pat-success",
    PatternType.ANTI: "pat-anti",
    PatternType.TEMPLATE: "tmpl",
}
"""ID prefix of each pattern type."""


class Maturity(StrEnum):
    """State of a pattern."""

    CANDIDATE = "candidate"
    ESTABLISHED = "established"
    PROVEN = "proven"
    DEPRECATED = "deprecated"


class SourceLoop(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One entry of `source_loops`: a loop that contributed to the pattern."""

    loop_id: str
    at: datetime | None = None
    contributed_by: str = ""
    outcome: str = ""  # `success`, `partial`, `failure` or "" (success patterns).
    iteration: int | None = None  # `failure_iteration` of an anti-pattern, `iterations_required` of a success pattern.
    file: str = ""  # where it is written down, if it is a lesson, which has not used the pattern


class TrendPoint(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Point of `effectiveness_trend`: rate, 0..1, of `sample_size` uses up to `at`."""

    at: datetime | None = None
    rate: float | None = None
    sample_size: int | None = None


class RecordedCounts(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Rate (0..1) and counts stored in a pattern, not computed from evidence.

    A missing or invalid value is None. For an anti-pattern, `rate` is `failure_rate` and `uses` is `occurrence_count`,
    since a failure of the avoided approach confirms it. `claimed` is the rate in the record before ralphdeck replaced
    it by the rate of the recorded results.
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
        """Such as "2.5 on average, 1 to 5"; "" if all values are missing."""
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
    """Another record with a pattern's ID; its counts are not added to the pattern's."""

    file: str
    pointer: str
    differs: bool


class Pattern(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A pattern of any type; fields that its type does not have keep their default.

    `id` is `pattern_id` or `template_id` from the file. The following texts are for error patterns, success patterns,
    anti-patterns and templates (docs/file-formats.md#pattern-records): `title`, in one line, is the error, approach,
    avoided approach or use case; `description` is the fix, approach, avoided approach or template description;
    `category` is the fix_category, task_category, failure_mode or language.
    `error_message` is a message that `error_pattern` matches, as the tool printed it, and `places` are the tests,
    functions and files to which this trigger is limited; empty if it applies everywhere.
    `error_pattern` and `task_pattern` are regexes from a file: run them only with `core.base.text.safe_matcher`.

    `anchors` are the files, and names in them, that it is about (`core.records.anchors`), `anchor_commit` the commit
    that was checked out when it was learned; neither is injected.

    `content_hash` is the SHA-256 (hex) of everything that can be injected, without counts, times, source loops and
    override; a decision refers to it. `file` and `pointer` locate the record; `copies` are other records with this ID.
    `copy_folder` is the folder of a pattern that exists only outside `shared/patterns`, or "". `override` is
    `override.state` of the record, which is shown but has no effect. `suspicions` are the results of the safety scan,
    the most severe first. `scripts` are the scripts other than Latin in which it has words.
    """

    id: str
    type: PatternType
    title: str
    description: str = ""
    category: str = ""
    error_type: str = ""
    error_pattern: str = ""
    error_message: str = ""
    places: tuple[str, ...] = ()
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
    anchors: tuple[str, ...] = ()
    anchor_commit: str = ""
    content_hash: str = ""
    file: str = ""
    pointer: str = ""
    copy_folder: str = ""
    copies: tuple[PatternCopy, ...] = ()
    override: str = ""
    suspicions: tuple[Suspicion, ...] = ()
    scripts: tuple[str, ...] = ()

    @property
    def is_registered(self) -> bool:
        """Whether its record has an ID and is in the registry, so it can be changed."""
        return not self.copy_folder and not self.is_unnamed

    @property
    def is_unnamed(self) -> bool:
        """Whether its record has no ID, so it cannot be injected or changed."""
        return self.id.startswith(UNNAMED)


class Problem(StrEnum):
    """Why a pattern does not keep today's rules."""

    TRIGGER = "trigger"
    TEXT = "text"
    TEMPLATE = "template"
    REPEATED = "repeated"

    @property
    def about(self) -> str:
        return _ABOUT[self]


_ABOUT: Final = {
    Problem.TRIGGER: "unspecific trigger",
    Problem.TEXT: "text without a reason",
    Problem.TEMPLATE: "template with partial placeholders",
    Problem.REPEATED: "repeats another pattern of the same fix",
}


class TextChange(NamedTuple):
    """Part of a pattern before and after a repair; "" is nothing."""

    part: str  # trigger, places, text, template or diff
    before: str
    after: str


class RecordRepair(Struct, frozen=True, kw_only=True):
    """Proposed repair of one pattern.

    `changes` has new values by key and subkey of the record; None removes a subkey. Without changes, the pattern is
    archived. `because` explains the proposal. `other_sources` are source loops with another fix, which has no
    pattern of its own yet.
    """

    pattern: Pattern
    problems: tuple[Problem, ...]
    changes: dict[str, dict[str, Any]] = {}
    because: str = ""
    other_sources: tuple[str, ...] = ()

    @property
    def is_archived(self) -> bool:
        return not self.changes

    @property
    def reason(self) -> str:
        """The problems and what follows from them, in one line."""
        problems = ", ".join(problem.about for problem in self.problems)
        return f"{problems}; {self.because}" if self.because else problems

    @property
    def text_changes(self) -> list[TextChange]:
        """The parts that differ after the repair; none if the pattern is archived."""
        signature, fix = (self.changes.get(key, {}) for key in ("error_signature", "fix_approach"))
        pattern = self.pattern
        rows = (
            ("trigger", pattern.error_pattern, signature.get("error_pattern", pattern.error_pattern)),
            ("places", ", ".join(pattern.places), ", ".join(signature.get("error_places") or ())),
            ("text", pattern.description, fix.get("description", pattern.description)),
            ("template", pattern.template_code, fix.get("code_template", pattern.template_code) or ""),
            ("diff", pattern.diff_pattern, fix.get("diff_pattern", pattern.diff_pattern) or ""),
        )
        return [TextChange(*row) for row in rows if row[1] != row[2]]


class OldRecords(Struct, frozen=True):
    """Proposed repairs, and IDs of approved or edited patterns with problems."""

    repairs: tuple[RecordRepair, ...]
    left: tuple[str, ...]

    def count(self, problem: Problem) -> int:
        return sum(problem in repair.problems for repair in self.repairs)
