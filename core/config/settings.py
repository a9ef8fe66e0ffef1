"""Every threshold, with the documents' defaults; none of them is a literal anywhere else.

A value that can't be one raises `BadInput`, naming field and value.
The numbers in parentheses name the document of the specification that a default comes from.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct

from core.base.errors import BadInput
from core.base.text import visible_line
from core.base.validation import check_amount, check_choice, check_count, check_flag, check_half_life, format_value

_MINUTES_PER_DAY: Final = 1440
_MAX_RATIO_MARGIN: Final = 0.001
"""With a half-life of hours the order within one minute matters."""
MAX_MINUTES: Final = 1e9
"""Some 1,900 years: more would leave the calendar."""
_MAX_DAYS: Final = 36_500
"""100 years."""
_MAX_SECONDS: Final = 86_400.0
"""A day without a look at the disk is no watch."""
_MIN_SECONDS: Final = 0.05
"""Looking more often than this would do nothing else."""
_MAX_PAUSE_SECONDS: Final = 10.0
_MAX_PAUSES: Final = 10
_MAX_PREFIX_CHARS: Final = 40
_MAX_ACTOR_CHARS: Final = 80


def _check_counts(settings: Struct, *names: str) -> None:
    for name in names:
        check_count(getattr(settings, name), name)


def _check_amounts(settings: Struct, *names: str) -> None:
    for name in names:
        check_amount(getattr(settings, name), name)


def _check_shares(settings: Struct, *names: str) -> None:
    for name in names:
        check_amount(getattr(settings, name), name, 1)


def _check_flags(settings: Struct, *names: str) -> None:
    for name in names:
        check_flag(getattr(settings, name), name)


def _check_prefix(value: Any, field: str) -> None:
    """It is written into files and into the prompt of an agent: one short visible line."""
    if not isinstance(value, str) or not value.strip() or visible_line(value, _MAX_PREFIX_CHARS) != value:
        raise BadInput(
            f"{field} must be a text of 1 to {_MAX_PREFIX_CHARS} visible characters, not {format_value(value)}"
        )


def _check_pauses(value: Any, field: str) -> None:
    if not isinstance(value, tuple) or len(value) > _MAX_PAUSES:
        raise BadInput(f"{field} must be at most {_MAX_PAUSES} numbers, not {format_value(value)}")
    for pause in value:
        check_amount(pause, field, _MAX_PAUSE_SECONDS)


class LearningSettings(Struct, frozen=True, kw_only=True):
    """(2) `learningConfig`, What Gets Scored, and what semantics 2 adds. Weights, values and ratios 0..1."""

    half_life_days: float = 90.0
    min_feedback_for_adjustment: int = 3
    max_harmful_ratio: float = 0.3
    min_criterion_weight: float = 0.1
    """(2) Weight floor."""
    fast_completion_threshold_ms: float = 300_000
    """Whatever takes less is fast; exactly this is medium."""
    slow_completion_threshold_ms: float = 1_800_000
    """Whatever takes longer is slow; exactly this is medium."""
    max_errors_for_helpful: int = 2
    """More errors are harmful; none are helpful, others neutral."""
    max_retries_for_neutral: int = 1
    """More retries are harmful; none are helpful, others neutral."""
    success_weight: float = 0.4
    duration_weight: float = 0.2
    errors_weight: float = 0.2
    retries_weight: float = 0.2
    partial_success_value: float = 0.5
    """Value of an end that reached a part of its goal; success is 1, failure 0."""
    medium_duration_value: float = 0.6
    slow_duration_value: float = 0.2
    some_errors_value: float = 0.6
    many_errors_value: float = 0.2
    some_retries_value: float = 0.7
    many_retries_value: float = 0.3
    helpful_threshold: float = 0.7
    """A raw score from here on is helpful."""
    harmful_threshold: float = 0.4
    """A raw score up to here is harmful."""
    ratio_tolerance: float = 1e-9
    """Scores and ratios this close to a threshold count as being on it."""
    neutral_counts_as: Literal["nothing", "failure"] = "nothing"
    """What a neutral loop says of a pattern that it applied without telling how that went (semantics 2)."""
    max_marks: int = 5
    """Harmful marks of one source on different patterns, within `burst_minutes`, that count without a question."""
    burst_minutes: float = 60.0

    def __post_init__(self) -> None:
        check_half_life(self.half_life_days)
        check_choice(self.neutral_counts_as, "neutral_counts_as", ("nothing", "failure"))
        _check_counts(
            self, "min_feedback_for_adjustment", "max_errors_for_helpful", "max_retries_for_neutral", "max_marks"
        )
        _check_amounts(self, "fast_completion_threshold_ms", "slow_completion_threshold_ms")
        check_amount(self.burst_minutes, "burst_minutes", MAX_MINUTES)
        _check_shares(
            self,
            *("max_harmful_ratio", "min_criterion_weight", "ratio_tolerance"),
            *("success_weight", "duration_weight", "errors_weight", "retries_weight"),
            *(
                "partial_success_value",
                "medium_duration_value",
                "slow_duration_value",
                "some_errors_value",
                "many_errors_value",
            ),
            *("some_retries_value", "many_retries_value", "helpful_threshold", "harmful_threshold"),
        )
        if not any((self.success_weight, self.duration_weight, self.errors_weight, self.retries_weight)):
            raise BadInput("success_weight, duration_weight, errors_weight and retries_weight cannot all be 0")


class MaturitySettings(Struct, frozen=True, kw_only=True):
    """(2) `maturityConfig`. Ratios 0..1; totals are decayed sums."""

    min_feedback: float = 3.0
    min_helpful: float = 5.0
    max_harmful: float = 0.15
    deprecation_threshold: float = 0.3
    half_life_days: float = 90.0
    total_tolerance: float = 0.01
    """Totals within this of a threshold count as reaching it (semantics 3)."""
    ratio_tolerance: float = 1e-9
    """Ratios this close to a threshold count as being on it; see `ratio_margin`."""
    multiplier_candidate: float = 0.5
    multiplier_established: float = 1.0
    multiplier_proven: float = 1.5
    multiplier_deprecated: float = 0.0

    def __post_init__(self) -> None:
        check_half_life(self.half_life_days)
        _check_amounts(
            self,
            *("min_feedback", "min_helpful", "total_tolerance"),
            *("multiplier_candidate", "multiplier_established", "multiplier_proven", "multiplier_deprecated"),
        )
        _check_shares(self, "max_harmful", "deprecation_threshold", "ratio_tolerance")

    @property
    def ratio_margin(self) -> float:
        """How close a decayed ratio is to a threshold that it counts as being on it.

        At least what one minute of decay makes of a ratio: results of the same minute count the same in any order
        (docs/scoring.md#thresholds).
        """
        decayed: float = 1.0 - 0.5 ** (1.0 / (_MINUTES_PER_DAY * self.half_life_days))
        return max(self.ratio_tolerance, min(decayed, _MAX_RATIO_MARGIN))


class AntiPatternSettings(Struct, frozen=True, kw_only=True):
    """(2) `antiPatternConfig`."""

    min_observations: int = 3
    failure_ratio_threshold: float = 0.6
    anti_pattern_prefix: str = "AVOID: "
    failures_until_asked_again: int = 3
    """A rejected inversion is proposed again after this many further failures (semantics 5)."""
    max_examples: int = 10
    """Newest work item IDs that an observed pattern keeps as examples."""

    def __post_init__(self) -> None:
        _check_prefix(self.anti_pattern_prefix, "anti_pattern_prefix")
        _check_counts(self, "min_observations", "failures_until_asked_again", "max_examples")
        _check_shares(self, "failure_ratio_threshold")


class ExtractionSettings(Struct, frozen=True, kw_only=True):
    """(0) `cross_loop_learning.extraction`, and how broad a trigger may be. Rates and shares 0..1."""

    enabled: bool = True
    auto_extract_on_completion: bool = True
    min_success_rate_threshold: float = 0.6
    min_usage_count_for_evaluation: int = 3
    extract_code_templates: bool = True
    merge_similar_patterns: bool = True
    similarity_threshold: float = 0.80
    max_match_share: float = 0.20
    """A trigger that matches a larger share of all known error messages is too broad."""
    min_known_messages: int = 10
    """Of fewer messages no share is taken."""
    repeated_error_count: int = 3
    """The same error so many times in one loop is an anti-pattern."""
    falling_iterations: int = 2
    """Quality that falls so many iterations in a row is an anti-pattern."""
    scope_growth: float = 3.0
    """A loop that changes so many times as many files as at first, and at least `scope_files` more, creeps."""
    scope_files: int = 5

    def __post_init__(self) -> None:
        _check_flags(
            self,
            *("enabled", "auto_extract_on_completion", "extract_code_templates", "merge_similar_patterns"),
        )
        _check_counts(
            self,
            *("min_usage_count_for_evaluation", "min_known_messages", "repeated_error_count"),
            *("falling_iterations", "scope_files"),
        )
        check_amount(self.scope_growth, "scope_growth")
        _check_shares(self, "min_success_rate_threshold", "similarity_threshold", "max_match_share")


class InjectionSettings(Struct, frozen=True, kw_only=True):
    """(0) `cross_loop_learning.injection`, with the budget of semantics 6."""

    enabled: bool = True
    top_k_patterns: int = 5
    min_success_rate: float = 0.6
    max_patterns_injected: int = 10
    include_error_patterns: bool = True
    include_success_patterns: bool = True
    include_anti_patterns: bool = True
    include_code_templates: bool = True
    max_tokens: int = 2000
    max_field_chars: int = 400
    """Longest single untrusted line in the rendered context."""
    order: Literal["score", "lower-bound"] = "score"
    """`score` (the documents' rule) or `lower-bound` (of the 90 % interval)."""
    include_reflections: bool = True
    max_reflections: int = 3
    reflection_share: float = 0.25
    """Part of `max_tokens` that is reserved for reflections, 0..1; what they do not need goes to the patterns."""
    min_reflection_relevance: float = 0.25
    include_decomposition: bool = True
    """Whether a task that is a decomposition gets the sections on decomposition strategies."""
    decomposition_share: float = 0.25
    """Largest part of `max_tokens` that these sections take, 0..1; what they do not need goes to the patterns."""

    def __post_init__(self) -> None:
        _check_flags(
            self,
            *("enabled", "include_error_patterns", "include_success_patterns"),
            *("include_anti_patterns", "include_code_templates", "include_reflections", "include_decomposition"),
        )
        _check_counts(self, "top_k_patterns", "max_patterns_injected", "max_tokens", "max_field_chars")
        _check_counts(self, "max_reflections")
        _check_shares(self, "min_success_rate", "reflection_share", "min_reflection_relevance", "decomposition_share")
        check_choice(self.order, "order", ("score", "lower-bound"))


class PruningSettings(Struct, frozen=True, kw_only=True):
    """(3) `PruningPolicy`. What is pruned is always archived, and always in `shared/archive`."""

    min_success_rate: float = 0.5
    min_usage_count: int = 3
    max_age_days: int = 90
    auto_prune: bool = True
    prune_interval_days: int = 7

    def __post_init__(self) -> None:
        _check_shares(self, "min_success_rate")
        _check_counts(self, "min_usage_count")
        check_count(self.max_age_days, "max_age_days", _MAX_DAYS)
        check_flag(self.auto_prune, "auto_prune")
        check_count(self.prune_interval_days, "prune_interval_days", _MAX_DAYS)


class CurationSettings(Struct, frozen=True, kw_only=True):
    """Who decides."""

    actor: str = ""
    """The name that decisions are signed with where neither `--by` nor $RALPHDECK_USER gives one; "": the user's."""

    def __post_init__(self) -> None:
        if not isinstance(self.actor, str) or visible_line(self.actor, _MAX_ACTOR_CHARS) != self.actor:
            raise BadInput(
                f"actor must be a text of at most {_MAX_ACTOR_CHARS} visible characters, not {format_value(self.actor)}"
            )


class DebugMemorySettings(Struct, frozen=True, kw_only=True):
    """(4) `retention`: for how many days a debug session is kept before it is archived; of several the longest."""

    default_days: int = 30
    on_escalation: int = 90
    """For an escalated session."""
    on_learning_identified: int = 60
    """For a session that has identified a pattern."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            check_count(getattr(self, name), name, _MAX_DAYS)


class ReviewSettings(Struct, frozen=True, kw_only=True):
    """What Review asks for, and for how long."""

    worthwhile_per_hour: float = 1.0
    """What a decision must bring to be worth the time: failures a week that loops are spared, for each hour of
    reading."""
    soon_days: float = 14.0
    """A state that decay alone changes within so many days is on the border."""
    doubt: float = 0.2
    """A state is on the border from so large a chance on, 0..1, that it is the wrong one."""
    broad_share: float = 0.5
    """A trigger that matches from so large a share of everyday messages on, 0..1, matches nearly everything."""
    minutes: float = 12.0
    """How long a sitting is, unless somebody says otherwise."""

    def __post_init__(self) -> None:
        check_amount(self.worthwhile_per_hour, "worthwhile_per_hour")
        check_amount(self.soon_days, "soon_days", _MAX_DAYS)
        _check_shares(self, "doubt", "broad_share")
        check_amount(self.minutes, "minutes", MAX_MINUTES)


OrderPolicy = Literal["hold", "flag", "block"]
BY_TYPE: Final = "by-type"
"""Value of a setting about a source of patterns: the setting of the pattern's type decides."""
_ORDER_POLICIES: Final = ("hold", "flag", "block")


class ScanSettings(Struct, frozen=True, kw_only=True):
    """What happens to a text that gives orders, by type and source of the pattern; see docs/safety.md#held-texts.

    `hold` keeps it out of every context until a person approves it, `block` until a person releases it for a reason,
    `flag` only marks it. What the scan blocks by itself stays blocked, whatever is set here.
    """

    error_patterns: OrderPolicy = "hold"
    success_patterns: OrderPolicy = "hold"
    anti_patterns: OrderPolicy = "hold"
    code_templates: OrderPolicy = "hold"
    extracted: OrderPolicy | Literal["by-type"] = "by-type"
    """For patterns extracted from the project's own loops; `by-type`: as for their type."""
    imported: OrderPolicy | Literal["by-type"] = "by-type"
    """For imported patterns, besides the quarantine that every import waits in."""
    other_texts: Literal["hold", "flag"] = "hold"
    """For reflections, lessons of earlier attempts and known fixes; `hold` leaves the text out."""

    def __post_init__(self) -> None:
        for name in ("error_patterns", "success_patterns", "anti_patterns", "code_templates"):
            check_choice(getattr(self, name), name, _ORDER_POLICIES)
        for name in ("extracted", "imported"):
            check_choice(getattr(self, name), name, (*_ORDER_POLICIES, BY_TYPE))
        check_choice(self.other_texts, "other_texts", ("hold", "flag"))

    @property
    def holds_other_texts(self) -> bool:
        """Whether a text that gives orders and is not a pattern is left out of contexts."""
        return self.other_texts == "hold"


class WatchSettings(Struct, frozen=True, kw_only=True):
    """How changes on disk are noticed. Times in seconds."""

    batch_seconds: float = 0.05
    sweep_seconds: float = 60.0
    """How often a full sweep confirms what the events said; at 60,000 files it costs 0.5 s."""
    poll_seconds: float = 2.0
    """How often to sweep when the system gives no events (inotify limit reached)."""
    stale_after_minutes: float = 30.0
    """A loop at work without any sign for so long is called stale."""
    retry_seconds: tuple[float, ...] = (0.025, 0.05, 0.1, 0.4)
    """When a torn file is read again."""

    def __post_init__(self) -> None:
        check_amount(self.batch_seconds, "batch_seconds", _MAX_SECONDS)
        check_amount(self.sweep_seconds, "sweep_seconds", _MAX_SECONDS, least=_MIN_SECONDS)
        check_amount(self.poll_seconds, "poll_seconds", _MAX_SECONDS, least=_MIN_SECONDS)
        check_amount(self.stale_after_minutes, "stale_after_minutes", MAX_MINUTES)
        _check_pauses(self.retry_seconds, "retry_seconds")


class Settings(Struct, frozen=True, kw_only=True):
    """All settings; see the groups."""

    learning: LearningSettings = LearningSettings()
    maturity: MaturitySettings = MaturitySettings()
    anti_pattern: AntiPatternSettings = AntiPatternSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    injection: InjectionSettings = InjectionSettings()
    pruning: PruningSettings = PruningSettings()
    curation: CurationSettings = CurationSettings()
    debug_memory: DebugMemorySettings = DebugMemorySettings()
    review: ReviewSettings = ReviewSettings()
    scan: ScanSettings = ScanSettings()
    watch: WatchSettings = WatchSettings()
    interval_level: float = 0.90
    """Probability mass of the intervals shown for a success rate (Jeffreys) and for what patterns bring (Student)."""
    power: float = 0.80
    """Probability with which a difference shall show that is there, where it is told how many loops that takes."""

    def __post_init__(self) -> None:
        _check_shares(self, "interval_level", "power")
