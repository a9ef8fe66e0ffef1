"""All settings, declared once with type, unit, bounds and help; see `Setting`.

`docs/settings.md` is generated from this module. Annotations are evaluated at import, because the declarations need the
types.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from math import inf
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, get_args, get_origin

from msgspec import Struct, StructMeta
from msgspec.structs import replace

from core.base import validation
from core.base.errors import BadInput
from core.base.text import visible_line

MAX_LIST: Final = 10  # longest list of numbers
_MS_PER_MINUTE: Final = 60_000.0


class Unit(StrEnum):
    NONE = ""
    DAYS = "days"
    SHARE = "0..1"  # also written as a percentage: `20%`
    TOTAL = "results, decayed"
    COUNT = "count"
    MS = "ms"
    SECONDS = "seconds"
    MINUTES = "minutes"
    FACTOR = "factor"
    TOKENS = "tokens"
    CHARACTERS = "characters"
    CHOICE = "choice"


class Setting(Struct, frozen=True):
    """Declaration of one setting: `field: TYPE = Setting(default, help, ...)`."""

    default: Any
    help: str
    label: str = ""  # short name beside an input field, at most 16 characters; "" where no editor offers the setting
    unit: Unit = Unit.NONE
    least: float = 0  # lower bound of a number, or of the length of a text
    most: float = validation.MAX_AMOUNT  # upper bound of the same
    step: float = 1  # distance of one key press in an editor, in the unit that the editor shows
    offered: tuple[float, float] = (0, inf)  # range that an editor offers, in the unit that it shows
    replayed: bool = True  # whether states and inversions depend on it, so that `changes NAME=VALUE` can replay them
    group: str = ""  # field of `Settings` that contains it; "" for a setting of no group
    field: str = ""  # field of the group
    kind: Any = None  # type of the value, without the annotation

    @property
    def name(self) -> str:
        """Full name in messages and files: `maturity.min_feedback`."""
        return f"{self.group}.{self.field}" if self.group else self.field

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the allowed words of a `Literal` setting; empty for other types."""
        literals = (part for part in (self.kind, *get_args(self.kind)) if get_origin(part) is Literal)
        return tuple(word for literal in literals for word in get_args(literal))

    @property
    def editor_scale(self) -> float:
        """Return the value of one unit in an editor, such as 60,000 ms for a minute."""
        return _MS_PER_MINUTE if self.unit is Unit.MS else 1.0

    def value(self, settings: Any) -> Any:
        return getattr(getattr(settings, self.group) if self.group else settings, self.field)

    def with_value(self, settings: Any, value: Any) -> Any:
        """Return a copy of `settings` with this value; raises BadInput if invalid."""
        if not self.group:
            return replace(settings, **{self.field: value})
        group = replace(getattr(settings, self.group), **{self.field: value})
        return replace(settings, **{self.group: group})

    def check(self, value: Any, name: str) -> None:
        """Raise `BadInput` with `name` unless `value` is valid."""
        if self.kind is bool:
            validation.check_flag(value, name)
        elif self.kind is int:
            validation.check_count(value, name, int(min(self.most, validation.MAX_COUNT)))
        elif self.kind is float and self.least == validation.MIN_HALF_LIFE:
            validation.check_half_life(value, name)
        elif self.kind is float:
            validation.check_amount(value, name, self.most, least=self.least)
        elif self.kind is str:
            self._check_line(value, name)
        elif get_origin(self.kind) is tuple:
            if not isinstance(value, tuple) or len(value) > MAX_LIST:
                raise BadInput(f"{name} must be at most {MAX_LIST} numbers, not {validation.format_value(value)}")
            for number in value:
                validation.check_amount(number, name, self.most)
        else:
            validation.check_choice(value, name, self.choices)

    def _check_line(self, value: Any, name: str) -> None:
        """Raise `BadInput` unless `value` is one visible line, safe in files and prompts."""
        most = int(self.most)
        if not isinstance(value, str) or len(value.strip()) < self.least or visible_line(value, most) != value:
            limits = f"{self.least:g} to {most}" if self.least else f"at most {most}"
            raise BadInput(
                f"{name} must be a text of {limits} visible characters, not {validation.format_value(value)}"
            )

    def text(self, settings: Any) -> str:
        """Format the value as text that `parse` can read."""
        value = self.value(settings)
        if isinstance(value, bool):
            return "on" if value else "off"
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)

    def parse(self, text: str) -> Any:
        """Parse the text of a value; raises BadInput if it is invalid."""
        word = text.strip()
        value: Any = word
        if self.kind is bool:
            value = {"on": True, "off": False}.get(word, word)
        elif self.kind in (int, float):
            number = word.removesuffix("%") if self.unit is Unit.SHARE else word
            try:
                value = self.kind(number)
            except ValueError:
                value = text
            else:
                value = value / 100 if number != word else value
        self.check(value, self.name)
        return value


class _Declaring(StructMeta):
    """Metaclass that takes the defaults of the fields from their declarations."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        settings = {field: value for field, value in namespace.items() if isinstance(value, Setting)}
        defaults = {field: setting.default for field, setting in settings.items()}
        group: Any = super().__new__(mcls, name, bases, namespace | defaults, **options)
        # Python 3.14 evaluates annotations when the finished class is asked for them.
        types = group.__annotations__ if settings else {}
        group.declarations = MappingProxyType(
            {field: replace(setting, field=field, kind=types[field]) for field, setting in settings.items()}
        )
        return group


class SettingsGroup(Struct, frozen=True, kw_only=True, metaclass=_Declaring):
    """Base class of a group of settings; checks each value against its declaration."""

    declarations: ClassVar[Mapping[str, Setting]]

    def __post_init__(self) -> None:
        for field, setting in self.declarations.items():
            setting.check(getattr(self, field), field)


_MINUTES_PER_DAY: Final = 1440
_MAX_RATIO_MARGIN: Final = 0.001  # since with a half-life of hours the order within a minute matters
MAX_MINUTES: Final = 1e9  # 1,900 years; longer times do not fit the calendar
_MIN_SWEEP_SECONDS: Final = 0.05

OrderPolicy = Literal["hold", "flag", "block"]
BY_TYPE: Final = "by-type"  # value of a setting for a source of patterns: the setting for the pattern's type applies

# Declarations: default, help, label and options. `Any`, because each is the default of a field of another type.
_setting: Any = Setting
_ms: Any = partial(Setting, unit=Unit.MS)
_total: Any = partial(Setting, unit=Unit.TOTAL)
_factor: Any = partial(Setting, unit=Unit.FACTOR)
_multiplier: Any = partial(Setting, unit=Unit.FACTOR, replayed=False)
_share: Any = partial(Setting, unit=Unit.SHARE, most=1, step=0.05)
_count: Any = partial(Setting, unit=Unit.COUNT)
_days: Any = partial(Setting, unit=Unit.DAYS, most=36_500)
_minutes: Any = partial(Setting, unit=Unit.MINUTES, most=MAX_MINUTES)
_seconds: Any = partial(Setting, unit=Unit.SECONDS, most=86_400.0)
_option: Any = partial(Setting, unit=Unit.CHOICE)
_half_life: Any = partial(
    Setting, label="half-life", unit=Unit.DAYS, least=validation.MIN_HALF_LIFE, step=5, offered=(1, float("inf"))
)


class LearningSettings(SettingsGroup, frozen=True, kw_only=True):
    """Score of a loop's outcome, and weights of criteria (docs/scoring.md#outcomes)."""

    half_life_days: float = _half_life(
        90.0, "Age at which outcomes and feedback on criteria count half", replayed=False
    )
    min_feedback_for_adjustment: int = _count(3, "Feedback needed before a criterion can be deprecated", replayed=False)
    max_harmful_ratio: float = _share(
        0.3, "Share of harmful feedback above which a criterion is deprecated", replayed=False
    )
    min_criterion_weight: float = _share(0.1, "Lowest weight of a criterion", replayed=False)
    fast_completion_threshold_ms: float = _ms(300_000, "Duration below which a loop is fast", "fast below")
    slow_completion_threshold_ms: float = _ms(1_800_000, "Duration above which a loop is slow", "slow above", step=5)
    max_errors_for_helpful: int = _count(
        2, "Number of errors above which a loop has many, which is harmful", "max errors"
    )
    max_retries_for_neutral: int = _count(1, "Number of retries above which a loop has many")
    success_weight: float = _share(0.4, "Weight of success in the score of an outcome")
    duration_weight: float = _share(0.2, "Weight of the duration in the score of an outcome")
    errors_weight: float = _share(0.2, "Weight of errors in the score of an outcome")
    retries_weight: float = _share(0.2, "Weight of retries in the score of an outcome")
    partial_success_value: float = _share(0.5, "Value of a partial success (success: 1, failure: 0)")
    medium_duration_value: float = _share(0.6, "Value of a medium duration (fast: 1)")
    slow_duration_value: float = _share(0.2, "Value of a slow duration (fast: 1)")
    some_errors_value: float = _share(0.6, "Value of some errors (no errors: 1)")
    many_errors_value: float = _share(0.2, "Value of many errors (no errors: 1)")
    some_retries_value: float = _share(0.7, "Value of some retries (no retries: 1)")
    many_retries_value: float = _share(0.3, "Value of many retries (no retries: 1)")
    helpful_threshold: float = _share(0.7, "Lowest score of a helpful outcome")
    harmful_threshold: float = _share(0.4, "Highest score of a harmful outcome")
    ratio_tolerance: float = _share(1e-9, "Distance within which a score or ratio counts as equal to a threshold")
    neutral_counts_as: Literal["nothing", "failure"] = _option(
        "nothing", "Result of a pattern applied in a loop with a neutral outcome", "neutral means"
    )
    max_marks: int = _count(
        5, "Harmful reports of one source within `burst_minutes` that count without review", "max reports"
    )
    burst_minutes: float = _minutes(
        60.0, "Time within which harmful reports of one source form a burst", "within", step=5
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any((self.success_weight, self.duration_weight, self.errors_weight, self.retries_weight)):
            raise BadInput("success_weight, duration_weight, errors_weight and retries_weight cannot all be 0")


class MaturitySettings(SettingsGroup, frozen=True, kw_only=True):
    """State of a pattern, computed from decayed results (docs/scoring.md#states)."""

    min_feedback: float = _total(3.0, "Results needed before a pattern stops being a candidate", "min feedback")
    min_helpful: float = _total(5.0, "Successes needed before a pattern is proven", "min helpful")
    max_harmful: float = _share(0.15, "Share of failures below which a pattern can be proven", "max harmful", step=0.01)
    deprecation_threshold: float = _share(
        0.3, "Share of failures above which a pattern is deprecated", "deprecated above"
    )
    half_life_days: float = _half_life(90.0, "Age at which a result counts half")
    total_tolerance: float = _total(0.01, "Distance within which a total counts as reaching a threshold")
    ratio_tolerance: float = _share(
        1e-9, "Least distance within which a share of failures counts as equal to a threshold"
    )
    multiplier_candidate: float = _multiplier(0.5, "Factor that multiplies the score of a candidate")
    multiplier_established: float = _multiplier(1.0, "Factor that multiplies the score of an established pattern")
    multiplier_proven: float = _multiplier(1.5, "Factor that multiplies the score of a proven pattern")
    multiplier_deprecated: float = _multiplier(0.0, "Factor that multiplies the score of a deprecated pattern")

    @property
    def ratio_margin(self) -> float:
        """Margin in which a share equals a threshold (docs/scoring.md#thresholds)."""
        decayed: float = 1.0 - 0.5 ** (1.0 / (_MINUTES_PER_DAY * self.half_life_days))
        return max(self.ratio_tolerance, min(decayed, _MAX_RATIO_MARGIN))


class AntiPatternSettings(SettingsGroup, frozen=True, kw_only=True):
    """Inversion of a failing pattern into a warning (docs/scoring.md#inversion)."""

    min_observations: int = _count(3, "Results needed before an inversion is proposed", "min observations")
    failure_ratio_threshold: float = _share(0.6, "Share of failures at which an inversion is proposed", "failure ratio")
    anti_pattern_prefix: str = _setting("AVOID: ", "Prefix of the text of a warning", least=1, most=40)
    failures_until_asked_again: int = _count(
        3, "Further failures after which a rejected inversion is proposed again", replayed=False
    )
    max_examples: int = _count(10, "Number of newest work IDs to keep for an observed pattern", replayed=False)


class ExtractionSettings(SettingsGroup, frozen=True, kw_only=True):
    """Extraction of candidate patterns from finished loops (docs/extraction.md)."""

    enabled: bool = _setting(True, "Extract patterns from finished work")
    auto_extract_on_completion: bool = _setting(True, "Extract patterns when a loop completes")
    min_success_rate_threshold: float = _share(0.6, "Success rate at which an extracted pattern counts as good")
    min_usage_count_for_evaluation: int = _count(
        3, "Uses needed to judge a pattern; also for pruning, if `pruning.min_usage_count` is not set"
    )
    extract_code_templates: bool = _setting(True, "Extract code templates")
    merge_similar_patterns: bool = _setting(True, "Add a source loop to a similar pattern instead of adding a new one")
    similarity_threshold: float = _share(0.80, "Similarity at which two patterns are duplicates")
    max_match_share: float = _share(0.20, "Share of known error messages that a trigger may match at most")
    min_known_messages: int = _count(10, "Error messages needed to measure how broad a trigger is")
    repeated_error_count: int = _count(3, "Repetitions of an error in one loop that make an anti-pattern")
    falling_iterations: int = _count(2, "Iterations of falling quality in a row that make an anti-pattern")
    scope_growth: float = _factor(3.0, "Growth of the number of changed files in a loop that makes an anti-pattern")
    extract_anchors: bool = _setting(True, "Record the files and names that a fix changed as anchors of its pattern")
    scope_files: int = _count(5, "Additional changed files that `scope_growth` requires")


class InjectionSettings(SettingsGroup, frozen=True, kw_only=True):
    """Selection of patterns and learnings to inject (docs/retrieval.md)."""

    enabled: bool = _setting(True, "Inject patterns and learnings into loops")
    top_k_patterns: int = _count(5, "Maximum number of injected patterns", "patterns", offered=(1, float("inf")))
    min_success_rate: float = _share(0.6, "Lowest success rate of an injected pattern", "min rate")
    max_patterns_injected: int = _count(10, "Upper limit of `top_k_patterns`")
    include_error_patterns: bool = _setting(True, "Inject error patterns", "errors")
    include_success_patterns: bool = _setting(True, "Inject success patterns", "successes")
    include_anti_patterns: bool = _setting(True, "Inject anti-patterns", "anti")
    include_code_templates: bool = _setting(True, "Inject code templates", "templates")
    max_tokens: int = _setting(
        2000, "Maximum size of the context, estimated", "tokens", Unit.TOKENS, step=100, offered=(100, 100_000)
    )
    max_field_chars: int = _count(400, "Maximum length of an injected field", unit=Unit.CHARACTERS)
    order: Literal["score", "lower-bound"] = _option(
        "score", "Order of patterns: by score, or by the lower bound of the success rate", "order"
    )
    stale_factor: float = _share(0.5, "Factor that multiplies the score of a pattern with a removed anchor")
    include_reflections: bool = _setting(True, "Inject learnings of similar tasks")
    max_reflections: int = _count(3, "Maximum number of injected learnings", "learnings", offered=(0, 20))
    reflection_share: float = _share(0.25, "Part of `max_tokens` reserved for learnings; patterns get the rest")
    min_reflection_relevance: float = _share(0.25, "Lowest relevance of an injected learning")
    allow_experiment: bool = _setting(
        True, "Let the user's own experiment hold out patterns by chance; a project can forbid it, but not start it"
    )
    include_decomposition: bool = _setting(True, "Inject decomposition strategies into decomposition tasks")
    decomposition_share: float = _share(
        0.25, "Largest part of `max_tokens` for decomposition strategies; patterns get the rest"
    )


class CompileSettings(SettingsGroup, frozen=True, kw_only=True):
    """Approved lessons in the files of agents (docs/instructions.md#compile)."""

    max_tokens: int = _setting(
        2000,
        "Maximum size of the lessons of a target, estimated",
        unit=Unit.TOKENS,
        offered=(100, 20_000),
    )
    ask_about_edits: bool = _setting(True, "Ask in Review about lessons that were edited in such a file")


class PruningSettings(SettingsGroup, frozen=True, kw_only=True):
    """Pruning: moves weak patterns to `shared/archive`; they can be restored."""

    min_success_rate: float = _share(0.5, "Success rate below which a pattern is pruned")
    min_usage_count: int = _count(3, "Uses needed before a pattern is pruned for its success rate")
    max_age_days: int = _days(90, "Days without use after which a pattern is pruned")
    auto_prune: bool = _setting(True, "Prune while `ralphdeck watch` runs")
    prune_interval_days: int = _days(7, "Days between two prunings")


class CurationSettings(SettingsGroup, frozen=True, kw_only=True):
    """Author of decisions."""

    actor: str = _setting("", "Author of decisions without `--by` and $RALPHDECK_USER; if empty, the user", most=80)


class DebugMemorySettings(SettingsGroup, frozen=True, kw_only=True):
    """Days until a debug session is archived; if several values apply, the longest."""

    default_days: int = _days(30, "Days until any session is archived")
    on_escalation: int = _days(90, "Days until an escalated session is archived")
    on_learning_identified: int = _days(60, "Days until a session that identified a pattern is archived")


class ReviewSettings(SettingsGroup, frozen=True, kw_only=True):
    """Selection of the questions in Review."""

    worthwhile_per_hour: float = _factor(1.0, "Failures per week that an hour of answering questions must prevent")
    soon_days: float = _days(14.0, "Time within which decay alone must change a state for it to be borderline")
    doubt: float = _share(0.2, "Minimum probability that a state is wrong for it to be borderline")
    broad_share: float = _share(0.5, "Share of common messages at which a trigger counts as too broad")
    minutes: float = _minutes(12.0, "Length of a review session")
    check_anchors: bool = _setting(True, "Check with Git whether files and names that patterns are about were removed")


class ScanSettings(SettingsGroup, frozen=True, kw_only=True):
    """Handling of texts that give orders, by type and source; see docs/safety.md.

    `hold` leaves the text out of every context until a person approves it, `block` until a person releases it with a
    reason. `flag`, which only marks it, is for your own settings: in a file of a project it is ignored, with the
    finding `bad-value`. No setting allows a text that the scan blocks.
    """

    error_patterns: OrderPolicy = _option("hold", "Error patterns")
    success_patterns: OrderPolicy = _option("hold", "Success patterns")
    anti_patterns: OrderPolicy = _option("hold", "Anti-patterns")
    code_templates: OrderPolicy = _option("hold", "Code templates")
    extracted: OrderPolicy | Literal["by-type"] = _option(
        "by-type", "Patterns extracted from own loops; `by-type` uses the setting of their type"
    )
    imported: OrderPolicy | Literal["by-type"] = _option(
        "by-type", "Imported patterns after quarantine; `by-type` uses the setting of their type"
    )
    other_texts: Literal["hold", "flag"] = _option(
        "hold", "Reflections, lessons from attempts, and known fixes; `hold` leaves them out"
    )

    @property
    def holds_other_texts(self) -> bool:
        """Whether orders in texts that are not patterns are left out of contexts."""
        return self.other_texts == "hold"


class WatchSettings(SettingsGroup, frozen=True, kw_only=True):
    """Detection of file changes."""

    batch_seconds: float = _seconds(0.05, "Time for which changes are collected before they are read")
    sweep_seconds: float = _seconds(60.0, "Time between sweeps that find missed changes", least=_MIN_SWEEP_SECONDS)
    poll_seconds: float = _seconds(2.0, "Time between sweeps if the system reports no events", least=_MIN_SWEEP_SECONDS)
    stale_after_minutes: float = _minutes(30.0, "Time without activity after which a running loop is stale")
    retry_seconds: tuple[float, ...] = _seconds(
        validation.RETRY_SECONDS, "Delays before an incomplete file is read again", most=10
    )


class SourcesSettings(SettingsGroup, frozen=True, kw_only=True):
    """Files of agents and of other runners of loops (docs/adapters.md)."""

    home: bool = _setting(
        True, "Read sessions and memories of this project below the home folder and in the private folders of agents"
    )
    instructions: bool = _setting(
        True, "Compare the instructions in files that agents load: CLAUDE.md, AGENTS.md, rules and skills"
    )


class Settings(SettingsGroup, frozen=True, kw_only=True):
    """All settings, by group."""

    learning: LearningSettings = LearningSettings()
    maturity: MaturitySettings = MaturitySettings()
    anti_pattern: AntiPatternSettings = AntiPatternSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    injection: InjectionSettings = InjectionSettings()
    compile: CompileSettings = CompileSettings()
    pruning: PruningSettings = PruningSettings()
    curation: CurationSettings = CurationSettings()
    debug_memory: DebugMemorySettings = DebugMemorySettings()
    review: ReviewSettings = ReviewSettings()
    scan: ScanSettings = ScanSettings()
    watch: WatchSettings = WatchSettings()
    sources: SourcesSettings = SourcesSettings()
    interval_level: float = _share(
        0.90, "Probability that a shown interval of a rate or a difference contains the true value"
    )
    power: float = _share(0.80, "Probability of detecting a difference, to estimate the number of loops needed")


DEFAULTS: Final = Settings()
GROUPS: Final[dict[str, type[SettingsGroup]]] = {
    name: type(group)
    for name in Settings.__struct_fields__
    if isinstance(group := getattr(DEFAULTS, name), SettingsGroup)
}  # by the field of `Settings`
_KINDS: Final[dict[str, type[SettingsGroup]]] = {**GROUPS, "": Settings}
_ALL: Final = [replace(one, group=group) for group, kind in _KINDS.items() for one in kind.declarations.values()]
SETTINGS: Final = MappingProxyType({setting.name: setting for setting in _ALL})  # by name, group by group
_NAME_CHARS: Final = 80  # longest name that is compared with known names
_FIELDS: Final = (
    ("maturity", "half_life_days min_feedback min_helpful max_harmful deprecation_threshold"),
    ("maturity", "total_tolerance ratio_tolerance"),
    ("anti_pattern", "min_observations failure_ratio_threshold"),
    ("learning", "success_weight duration_weight errors_weight retries_weight helpful_threshold harmful_threshold"),
    ("learning", "fast_completion_threshold_ms slow_completion_threshold_ms partial_success_value"),
    ("learning", "medium_duration_value slow_duration_value max_errors_for_helpful some_errors_value"),
    ("learning", "many_errors_value max_retries_for_neutral some_retries_value many_retries_value ratio_tolerance"),
    ("learning", "max_marks burst_minutes neutral_counts_as half_life_days min_feedback_for_adjustment"),
    ("learning", "max_harmful_ratio min_criterion_weight"),
    ("maturity", "multiplier_candidate multiplier_established multiplier_proven multiplier_deprecated"),
    ("anti_pattern", "failures_until_asked_again max_examples"),
)
THRESHOLDS: Final = tuple(SETTINGS[f"{group}.{field}"] for group, fields in _FIELDS for field in fields.split())
"""All thresholds in the order of `changes NAME=VALUE`; settings that change states and inversions come first."""


def find_threshold(name: str) -> Setting:
    """Find a threshold by its full name, or by a unique field; raises BadInput."""
    found = [known for known in THRESHOLDS if name in (known.name, known.field)]
    if len(found) == 1:
        return found[0]
    if found:
        raise BadInput(f"{name} is ambiguous; use {' or '.join(known.name for known in found)}")
    import difflib  # only for an unknown name

    names = {word: known.name for known in THRESHOLDS for word in (known.field, known.name)}
    near = dict.fromkeys(names[word] for word in difflib.get_close_matches(name[:_NAME_CHARS], names))
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise BadInput(f"no threshold {validation.format_value(name)}{hint}")


def with_threshold(settings: Settings, name: str, text: str) -> Settings:
    """Return `settings` with one threshold changed; raises BadInput if it is invalid."""
    setting = find_threshold(name)
    changed: Settings = setting.with_value(settings, setting.parse(text))
    return changed
