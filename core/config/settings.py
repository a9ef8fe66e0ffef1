"""All settings, each declared once (see `core.config.declaration.Setting`).

`docs/settings.md` is generated from this module. Annotations are evaluated here, so that the declarations can be read.
"""

from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from msgspec import Struct

from core.base.errors import BadInput
from core.base.validation import MIN_HALF_LIFE
from core.config.declaration import Setting, SettingsGroup, Unit, declared

_MINUTES_PER_DAY: Final = 1440
_MAX_RATIO_MARGIN: Final = 0.001
"""Limit of the margin, since with a half-life of hours the order within one minute matters."""
MAX_MINUTES: Final = 1e9  # 1,900 years; longer times do not fit the calendar
_MIN_SWEEP_SECONDS: Final = 0.05

OrderPolicy = Literal["hold", "flag", "block"]
BY_TYPE: Final = "by-type"  # value of a setting for a source of patterns: the setting for the pattern's type applies


def _share(help: str, label: str = "", step: float = 0.05, **options: Any) -> Setting:
    return Setting(help=help, label=label, unit=Unit.SHARE, most=1, step=step, **options)


def _count(help: str, label: str = "", unit: Unit = Unit.COUNT, **options: Any) -> Setting:
    return Setting(help=help, label=label, unit=unit, **options)


def _amount(help: str, unit: Unit, label: str = "", **options: Any) -> Setting:
    return Setting(help=help, label=label, unit=unit, **options)


def _half_life(help: str, **options: Any) -> Setting:
    return _amount(help, Unit.DAYS, "half-life", least=MIN_HALF_LIFE, step=5, offered=(1, float("inf")), **options)


def _days(help: str) -> Setting:
    return _amount(help, Unit.DAYS, most=36_500)


def _minutes(help: str, label: str = "", step: float = 1) -> Setting:
    return _amount(help, Unit.MINUTES, label, step=step, most=MAX_MINUTES)


def _seconds(help: str, least: float = 0, most: float = 86_400.0) -> Setting:
    return _amount(help, Unit.SECONDS, least=least, most=most)


def _option(help: str, label: str = "") -> Setting:
    return Setting(help=help, label=label, unit=Unit.CHOICE)


class LearningSettings(SettingsGroup, frozen=True, kw_only=True):
    """Score of a loop's outcome, and weights of criteria (docs/scoring.md#outcomes)."""

    half_life_days: Annotated[
        float, _half_life("Age at which outcomes and feedback on criteria count half", replayed=False)
    ] = 90.0
    min_feedback_for_adjustment: Annotated[
        int, _count("Feedback needed before a criterion can be deprecated", replayed=False)
    ] = 3
    max_harmful_ratio: Annotated[
        float, _share("Share of harmful feedback above which a criterion is deprecated", replayed=False)
    ] = 0.3
    min_criterion_weight: Annotated[float, _share("Lowest weight of a criterion", replayed=False)] = 0.1
    fast_completion_threshold_ms: Annotated[
        float, _amount("Duration below which a loop is fast", Unit.MS, "fast below")
    ] = 300_000
    slow_completion_threshold_ms: Annotated[
        float, _amount("Duration above which a loop is slow", Unit.MS, "slow above", step=5)
    ] = 1_800_000
    max_errors_for_helpful: Annotated[
        int, _count("Errors above which a loop has many errors, which is harmful", "max errors")
    ] = 2
    max_retries_for_neutral: Annotated[int, _count("Retries above which a loop has many retries")] = 1
    success_weight: Annotated[float, _share("Weight of success in the score of an outcome")] = 0.4
    duration_weight: Annotated[float, _share("Weight of the duration in the score of an outcome")] = 0.2
    errors_weight: Annotated[float, _share("Weight of errors in the score of an outcome")] = 0.2
    retries_weight: Annotated[float, _share("Weight of retries in the score of an outcome")] = 0.2
    partial_success_value: Annotated[float, _share("Value of a partial success; success is 1, failure 0")] = 0.5
    medium_duration_value: Annotated[float, _share("Value of a medium duration; fast is 1")] = 0.6
    slow_duration_value: Annotated[float, _share("Value of a slow duration; fast is 1")] = 0.2
    some_errors_value: Annotated[float, _share("Value of some errors; none is 1")] = 0.6
    many_errors_value: Annotated[float, _share("Value of many errors; none is 1")] = 0.2
    some_retries_value: Annotated[float, _share("Value of some retries; none is 1")] = 0.7
    many_retries_value: Annotated[float, _share("Value of many retries; none is 1")] = 0.3
    helpful_threshold: Annotated[float, _share("Lowest score of a helpful outcome")] = 0.7
    harmful_threshold: Annotated[float, _share("Highest score of a harmful outcome")] = 0.4
    ratio_tolerance: Annotated[float, _share("Distance at which a score or ratio equals a threshold")] = 1e-9
    neutral_counts_as: Annotated[
        Literal["nothing", "failure"],
        _option("Result of a pattern applied in a loop with a neutral outcome", "neutral means"),
    ] = "nothing"
    max_marks: Annotated[
        int, _count("Harmful reports of one source within `burst_minutes` that count without a question", "max reports")
    ] = 5
    burst_minutes: Annotated[
        float, _minutes("Time within which harmful reports of one source form a burst", "within", step=5)
    ] = 60.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any((self.success_weight, self.duration_weight, self.errors_weight, self.retries_weight)):
            raise BadInput("success_weight, duration_weight, errors_weight and retries_weight cannot all be 0")


class MaturitySettings(SettingsGroup, frozen=True, kw_only=True):
    """State of a pattern, from decayed totals of results (docs/scoring.md#states)."""

    min_feedback: Annotated[
        float, _amount("Results needed to be more than a candidate", Unit.TOTAL, "min feedback")
    ] = 3.0
    min_helpful: Annotated[float, _amount("Successes needed to be proven", Unit.TOTAL, "min helpful")] = 5.0
    max_harmful: Annotated[
        float, _share("Share of failures below which a pattern can be proven", "max harmful", 0.01)
    ] = 0.15
    deprecation_threshold: Annotated[
        float, _share("Share of failures above which a pattern is deprecated", "deprecated above")
    ] = 0.3
    half_life_days: Annotated[float, _half_life("Age at which a result counts half")] = 90.0
    total_tolerance: Annotated[float, _amount("Distance at which a total reaches a threshold", Unit.TOTAL)] = 0.01
    ratio_tolerance: Annotated[
        float, _share("Smallest distance at which a share of failures equals a threshold; see `ratio_margin`")
    ] = 1e-9
    multiplier_candidate: Annotated[
        float, _amount("Factor of the score of a candidate", Unit.FACTOR, replayed=False)
    ] = 0.5
    multiplier_established: Annotated[
        float, _amount("Factor of the score of an established pattern", Unit.FACTOR, replayed=False)
    ] = 1.0
    multiplier_proven: Annotated[
        float, _amount("Factor of the score of a proven pattern", Unit.FACTOR, replayed=False)
    ] = 1.5
    multiplier_deprecated: Annotated[
        float, _amount("Factor of the score of a deprecated pattern", Unit.FACTOR, replayed=False)
    ] = 0.0

    @property
    def ratio_margin(self) -> float:
        """Distance at which a decayed share of failures equals a threshold.

        At least the decay of one minute, so that the order of results within a minute does not matter
        (docs/scoring.md#thresholds).
        """
        decayed: float = 1.0 - 0.5 ** (1.0 / (_MINUTES_PER_DAY * self.half_life_days))
        return max(self.ratio_tolerance, min(decayed, _MAX_RATIO_MARGIN))


class AntiPatternSettings(SettingsGroup, frozen=True, kw_only=True):
    """Inversion: a pattern that fails becomes a warning (docs/scoring.md#inversion)."""

    min_observations: Annotated[int, _count("Results needed before an inversion is proposed", "min observations")] = 3
    failure_ratio_threshold: Annotated[
        float, _share("Share of failures at which an inversion is proposed", "failure ratio")
    ] = 0.6
    anti_pattern_prefix: Annotated[str, Setting(help="Prefix of the text of a warning", least=1, most=40)] = "AVOID: "
    failures_until_asked_again: Annotated[
        int, _count("Further failures after which a rejected inversion is proposed again", replayed=False)
    ] = 3
    max_examples: Annotated[int, _count("Newest work IDs that an observed pattern keeps", replayed=False)] = 10


class ExtractionSettings(SettingsGroup, frozen=True, kw_only=True):
    """Extraction of candidate patterns from finished loops (docs/extraction.md)."""

    enabled: Annotated[bool, Setting(help="Extract patterns at all")] = True
    auto_extract_on_completion: Annotated[bool, Setting(help="Extract when a loop completes")] = True
    min_success_rate_threshold: Annotated[
        float, _share("Lowest success rate at which an extracted pattern is good")
    ] = 0.6
    min_usage_count_for_evaluation: Annotated[
        int, _count("Uses needed to judge a pattern; also for pruning, if `pruning.min_usage_count` is not set")
    ] = 3
    extract_code_templates: Annotated[bool, Setting(help="Extract code templates")] = True
    merge_similar_patterns: Annotated[
        bool, Setting(help="Add a source loop to a similar pattern, not a new pattern")
    ] = True
    similarity_threshold: Annotated[float, _share("Similarity at which two patterns are duplicates")] = 0.80
    max_match_share: Annotated[
        float, _share("Share of all known error messages above which a trigger is too broad")
    ] = 0.20
    min_known_messages: Annotated[int, _count("Error messages needed to measure how broad a trigger is")] = 10
    repeated_error_count: Annotated[int, _count("Repetitions of an error in one loop that make an anti-pattern")] = 3
    falling_iterations: Annotated[int, _count("Iterations of falling quality in a row that make an anti-pattern")] = 2
    scope_growth: Annotated[
        float, _amount("Growth of the number of changed files in a loop that makes an anti-pattern", Unit.FACTOR)
    ] = 3.0
    scope_files: Annotated[int, _count("Additional changed files that `scope_growth` requires")] = 5


class InjectionSettings(SettingsGroup, frozen=True, kw_only=True):
    """Selection of what is injected into a loop (docs/retrieval.md)."""

    enabled: Annotated[bool, Setting(help="Inject anything")] = True
    top_k_patterns: Annotated[int, _count("Highest number of patterns", "patterns", offered=(1, float("inf")))] = 5
    min_success_rate: Annotated[float, _share("Lowest success rate of an injected pattern", "min rate")] = 0.6
    max_patterns_injected: Annotated[int, _count("Upper limit of `top_k_patterns`")] = 10
    include_error_patterns: Annotated[bool, Setting(help="Inject error patterns", label="errors")] = True
    include_success_patterns: Annotated[bool, Setting(help="Inject success patterns", label="successes")] = True
    include_anti_patterns: Annotated[bool, Setting(help="Inject anti-patterns", label="anti")] = True
    include_code_templates: Annotated[bool, Setting(help="Inject code templates", label="templates")] = True
    max_tokens: Annotated[
        int, _count("Size of the context, as estimated", "tokens", Unit.TOKENS, step=100, offered=(100, 100_000))
    ] = 2000
    max_field_chars: Annotated[int, _count("Longest line of an injected field", unit=Unit.CHARACTERS)] = 400
    order: Annotated[
        Literal["score", "lower-bound"],
        _option("Order of patterns: by score, or by the lower bound of the interval of the success rate", "order"),
    ] = "score"
    include_reflections: Annotated[bool, Setting(help="Inject learnings of similar tasks")] = True
    max_reflections: Annotated[int, _count("Highest number of learnings", "learnings", offered=(0, 20))] = 3
    reflection_share: Annotated[
        float, _share("Part of `max_tokens` reserved for learnings; patterns get what is left")
    ] = 0.25
    min_reflection_relevance: Annotated[float, _share("Lowest relevance of an injected learning")] = 0.25
    include_decomposition: Annotated[bool, Setting(help="Inject decomposition strategies into decomposition tasks")] = (
        True
    )
    decomposition_share: Annotated[
        float, _share("Largest part of `max_tokens` for decomposition strategies; patterns get what is left")
    ] = 0.25


class PruningSettings(SettingsGroup, frozen=True, kw_only=True):
    """Pruning; a pruned pattern is in `shared/archive` and can be restored."""

    min_success_rate: Annotated[float, _share("Success rate below which a pattern is pruned")] = 0.5
    min_usage_count: Annotated[int, _count("Uses needed before a pattern is pruned for its success rate")] = 3
    max_age_days: Annotated[int, _days("Days without use after which a pattern is pruned")] = 90
    auto_prune: Annotated[bool, Setting(help="Prune in `ralphdeck watch`")] = True
    prune_interval_days: Annotated[int, _days("Days between two prunings")] = 7


class CurationSettings(SettingsGroup, frozen=True, kw_only=True):
    """Who decides."""

    actor: Annotated[
        str,
        Setting(help="Author of decisions, if neither `--by` nor $RALPHDECK_USER is given; empty: the user", most=80),
    ] = ""


class DebugMemorySettings(SettingsGroup, frozen=True, kw_only=True):
    """Days before a debug session is archived; if several apply, the longest counts."""

    default_days: Annotated[int, _days("Any session")] = 30
    on_escalation: Annotated[int, _days("An escalated session")] = 90
    on_learning_identified: Annotated[int, _days("A session that identified a pattern")] = 60


class ReviewSettings(SettingsGroup, frozen=True, kw_only=True):
    """Questions of Review."""

    worthwhile_per_hour: Annotated[
        float, _amount("Failures per week that an hour of answering questions must prevent", Unit.FACTOR)
    ] = 1.0
    soon_days: Annotated[float, _days("A state that decay alone changes within this time is borderline")] = 14.0
    doubt: Annotated[float, _share("Lowest probability that a state is wrong for it to be borderline")] = 0.2
    broad_share: Annotated[
        float, _share("Share of common messages that a trigger must match to count as too broad")
    ] = 0.5
    minutes: Annotated[float, _minutes("Length of a review session")] = 12.0


class ScanSettings(SettingsGroup, frozen=True, kw_only=True):
    """Texts that give orders, by type and source (docs/safety.md#held-texts).

    `hold` keeps it out of every context until a person approves it, `block` until a person releases it for a reason,
    `flag` only marks it. No setting allows what the scan blocks.
    """

    error_patterns: Annotated[OrderPolicy, _option("Error patterns")] = "hold"
    success_patterns: Annotated[OrderPolicy, _option("Success patterns")] = "hold"
    anti_patterns: Annotated[OrderPolicy, _option("Anti-patterns")] = "hold"
    code_templates: Annotated[OrderPolicy, _option("Code templates")] = "hold"
    extracted: Annotated[
        OrderPolicy | Literal["by-type"], _option("Patterns extracted from own loops; `by-type`: as for their type")
    ] = "by-type"
    imported: Annotated[
        OrderPolicy | Literal["by-type"],
        _option("Imported patterns, after their quarantine; `by-type`: as for their type"),
    ] = "by-type"
    other_texts: Annotated[
        Literal["hold", "flag"],
        _option("Reflections, lessons of earlier attempts and known fixes; `hold` leaves them out"),
    ] = "hold"

    @property
    def holds_other_texts(self) -> bool:
        """Whether a text that gives orders and is not a pattern is left out of contexts."""
        return self.other_texts == "hold"


class WatchSettings(SettingsGroup, frozen=True, kw_only=True):
    """How changes on disk are noticed."""

    batch_seconds: Annotated[float, _seconds("Time for which changes are collected before they are read")] = 0.05
    sweep_seconds: Annotated[
        float, _seconds("Time between two sweeps that confirm the events", least=_MIN_SWEEP_SECONDS)
    ] = 60.0
    poll_seconds: Annotated[
        float, _seconds("Time between two sweeps if the system reports no events", least=_MIN_SWEEP_SECONDS)
    ] = 2.0
    stale_after_minutes: Annotated[float, _minutes("Time without activity after which a running loop is stale")] = 30.0
    retry_seconds: Annotated[
        tuple[float, ...], _seconds("Times after which an incomplete file is read again", most=10)
    ] = (0.025, 0.05, 0.1, 0.4)


class Settings(SettingsGroup, frozen=True, kw_only=True):
    """All settings, by group."""

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
    interval_level: Annotated[
        float, _share("Probability that an interval shown for a success rate or a difference contains the true value")
    ] = 0.90
    power: Annotated[
        float, _share("Probability of detecting a difference, for the estimate of how many loops that needs")
    ] = 0.80


DEFAULTS: Final = Settings()
GROUPS: Final = {
    name: type(group) for name in Settings.__struct_fields__ if isinstance(group := getattr(DEFAULTS, name), Struct)
}
"""Types of the groups by the field of `Settings`."""
SETTINGS: Final = MappingProxyType(
    {
        setting.name: setting
        for group, kind in (*GROUPS.items(), ("", Settings))
        for setting in declared(kind, group).values()
    }
)
"""All settings by name, group by group: `{"learning.half_life_days": Setting(...)}`."""
