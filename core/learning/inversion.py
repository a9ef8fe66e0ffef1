"""Inversion of a failing pattern to a warning; docs/scoring.md#inversion.

Below, observed strategies of other programs, docs/learning-api.md#inversion, and the detection of strategies in free
text, docs/scoring.md#decomposition-strategies.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from heapq import nsmallest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from core.base.polarity import Negations, find_prohibition, normalize_sentences
from core.base.prompt_text import escape_line
from core.base.settings import AntiPatternSettings, InjectionSettings
from core.base.steps import group_pairs
from core.base.text import plural, visible_line
from core.base.validation import check_amount, check_choice, check_count, check_flag, check_text, check_texts
from core.learning.evidence import find_origin
from core.learning.maturity import normalize_time, parse_moment
from core.learning.statistics import round_percent
from core.records.loops import Loop, LoopStatus, Outcome
from core.records.patterns import Pattern, PatternType

if TYPE_CHECKING:
    from core.learning.maturity import Assessment
    from core.records.events import Observation

_ID_SLUG: Final = re.compile(r"^(?:pat-(?:error|success|anti)|tmpl|pattern)-(?P<slug>.+?)(?:-\d{3,})?$")
_NOT_SLUG: Final = re.compile(r"[^a-z0-9]+")
_CHANGING: Final = re.compile(r"0x[0-9a-f]+|\d+|\s+", re.IGNORECASE)
_SLUG_CHARS: Final = 60
_MAX_ALTERNATIVES: Final = 3
_QUALITY_DROP: Final = 0.1  # minimum loss of quality (0..1) during a loop that counts as degradation
_PREFIX: Final = re.compile(r"\s*(avoid|do not|never)\s*:\s*", re.IGNORECASE)
_MAX_CHECKED: Final = 1000  # maximum number of characters that `polarity_lint` reads
_WORD: Final = re.compile(r"[^\W\d]{4,40}")
_MIN_SHARED_WORDS: Final = 2  # words that a success pattern and a fix of the same loop share if they are one fix


def inversion_triggered(successes: Any, failures: Any, settings: AntiPatternSettings) -> Any:
    """Return whether raw counts (numbers or arrays) require an inversion."""
    total = successes + failures
    return (total >= max(settings.min_observations, 1)) & (failures >= settings.failure_ratio_threshold * total)


def format_counts(failures: int, total: int) -> str:
    """Format counts: `Failed 5/7 times (71% failure rate)`, rounded half up."""
    return f"Failed {failures}/{total} times ({round_percent(failures, total)}% failure rate)"


def remove_warning_prefix(content: str) -> str:
    """Remove one leading `AVOID:`, `DO NOT:` or `NEVER:` in any case."""
    return _PREFIX.sub("", content, count=1) if _PREFIX.match(content) else content.strip()


def invert_text(content: str, failures: int, total: int, settings: AntiPatternSettings) -> str:
    """Return the warning against a failing approach, with its counts."""
    return warning_text(content, format_counts(failures, total), settings)


def warning_text(content: str, reason: str, settings: AntiPatternSettings) -> str:
    """Return a warning against an approach, followed by the reason."""
    approach = remove_warning_prefix(content).rstrip()
    end = "" if approach.endswith((".", "!", "?", "…")) else "."
    return f"{settings.anti_pattern_prefix}{approach}{end} {reason}"


def polarity_lint(text: str) -> tuple[str, ...]:
    """List the reasons why a warning made of `text` would give wrong advice.

    `AVOID: never commit secrets` would ask people to commit secrets. A text that is already a warning would be
    repeated, although following it failed.
    """
    text = text[:_MAX_CHECKED]
    notes: list[str] = []
    if prefix := _PREFIX.match(text):
        notes.append(
            f'already a warning ("{prefix[1].upper()}:"): the inversion would repeat the advice that failed; '
            "rewrite it as what to do instead"
        )
    if prohibition := find_prohibition(remove_warning_prefix(text)):
        word = visible_line(prohibition, 20)
        notes.append(
            f'double negative: the text already forbids something ("{word}"), so the warning would recommend it; '
            "rewrite it as the approach that failed"
        )
    return tuple(notes)


class Inversion(Struct, frozen=True, kw_only=True):
    """A proposal to turn one failing pattern into an anti-pattern."""

    pattern_id: str
    text: str  # the anti-pattern's `approach_description`: `AVOID: Split by file type. <reason>`; untrusted
    reason: str  # the counts alone: `Failed 5/7 times (71% failure rate)`
    failures: int  # raw counts of uses with a result
    total: int
    failure_mode: str
    why_it_fails: str  # one line about the failing loops
    better_alternative: str = ""  # the best matching success pattern, or ""
    better_pattern_id: str = ""
    source_loops: tuple[str, ...]  # IDs of the loops in which it failed, oldest first
    failed_at: tuple[datetime | None, ...] = ()  # when it failed in each of them; None if unknown
    lint: tuple[str, ...]  # reasons why the text may give wrong advice; see `polarity_lint`
    slug: str  # part of the new ID `pat-anti-<slug>-NNN`

    def with_alternative(self, better: Pattern | None) -> Inversion:
        text = (better.description or better.title) if better else ""
        return replace(self, better_alternative=text, better_pattern_id=better.id if better else "")

    def with_text(self, text: str) -> Inversion:
        """Return the proposal with a text that a person wrote."""
        return replace(self, text=text, lint=polarity_lint(remove_warning_prefix(text)))


def propose_inversion(
    pattern: Pattern,
    assessment: Assessment,
    observations: Sequence[Observation],
    loops: Mapping[str, Loop],
    better: Pattern | None,
    settings: AntiPatternSettings,
) -> Inversion:
    """Propose the inversion of a pattern; `better` is the alternative to recommend."""
    content = pattern.description or pattern.title
    total = assessment.successes + assessment.failures
    failed: dict[str, datetime | None] = {}
    for use in observations:
        if use.success is False and use.loop_id:
            failed.setdefault(use.loop_id, use.at)
    mode, why = detect_failure_mode([loops[id] for id in failed if id in loops])
    if failed.keys().isdisjoint(loops):
        why = f"It failed in {plural(len(failed), 'work item')} without a loop in this project." if failed else why
    proposal = Inversion(
        pattern_id=pattern.id,
        text=invert_text(content, assessment.failures, total, settings),
        reason=format_counts(assessment.failures, total),
        failures=assessment.failures,
        total=total,
        failure_mode=mode,
        why_it_fails=why,
        source_loops=tuple(failed),
        failed_at=tuple(failed.values()),
        lint=polarity_lint(content),
        slug=make_inversion_slug(pattern.id),
    )
    return proposal.with_alternative(better)


def discovery_key(pattern: Pattern) -> tuple[str, datetime] | None:
    """Return loop and time of a pattern's discovery; None if unknown or a warning."""
    origin = find_origin(pattern)
    if origin is None or pattern.first_discovered is None or pattern.type is PatternType.ANTI:
        return None
    return origin.loop_id, pattern.first_discovered


def is_same_fix(pattern: Pattern, original: Pattern, *, is_only_fix: bool) -> bool:
    """Return whether two patterns recommend one fix (docs/scoring.md#inversion).

    Both are of one discovery. `is_only_fix`: it has at most one error pattern, which a success pattern is about.
    """
    if pattern.type is original.type:
        return False
    texts, codes = (pattern.description, original.description), (pattern.template_code, original.template_code)
    if _is_equal(*texts) or _is_equal(*codes):
        return True
    if PatternType.SUCCESS not in (pattern.type, original.type):
        return False
    return is_only_fix or len(_words(pattern) & _words(original)) >= _MIN_SHARED_WORDS


def _is_equal(one: str, other: str) -> bool:
    words = one.casefold().split()
    return bool(words) and words == other.casefold().split()


def _words(pattern: Pattern) -> set[str]:
    text = " ".join((pattern.description, *pattern.steps))[:_MAX_CHECKED]
    return set(_WORD.findall(text.casefold()))


def make_inversion_slug(pattern_id: str) -> str:
    """Return a slug for a new ID, taken from an ID such as `pat-error-<slug>-001`."""
    found = _ID_SLUG.match(pattern_id)
    slug = _NOT_SLUG.sub("-", (found["slug"] if found else pattern_id).lower()).strip("-")
    return slug[:_SLUG_CHARS].strip("-") or "pattern"


def detect_failure_mode(failing: Sequence[Loop]) -> tuple[str, str]:
    """Return the failure mode of the failing loops, and a reason in one line."""
    if not failing:
        return "incorrect_fix", "The failing uses are only known as a count."
    texts = [text for loop in failing for text in _error_texts(loop)]
    same = group_pairs((_CHANGING.sub(" ", text.lower()).strip(), text) for text in texts)
    repeated = max(same.values(), key=len, default=[])
    if len(repeated) > 1:
        shown = visible_line(repeated[0], 160)
        return "repeated_same_error", f'The same error came {len(repeated)} times: "{shown}"'
    limited = sum(loop.status is LoopStatus.LIMIT for loop in failing)
    if 2 * limited >= len(failing):
        return "infinite_loop", f"{plural(limited, 'loop')} of {len(failing)} ran into the iteration limit."
    worse = sum(len(loop.quality) > 1 and loop.quality[0] - loop.quality[-1] >= _QUALITY_DROP for loop in failing)
    if 2 * worse >= len(failing):
        return "quality_degradation", f"Quality fell in {plural(worse, 'loop')} of {len(failing)}."
    return "incorrect_fix", f"It did not solve the problem in {plural(len(failing), 'loop')}."


def _error_texts(loop: Loop) -> list[str]:
    failed = (Outcome.FAILURE, Outcome.TIMEOUT)
    texts = [step.result for step in loop.iterations if step.outcome in failed and step.result.strip()]
    if not loop.iterations and loop.status is LoopStatus.FAILED and loop.last_result.strip():
        texts.append(loop.last_result)
    return texts


class Alternatives:
    """Success patterns to recommend instead of failing patterns."""

    def __init__(self, scored: Iterable[tuple[Pattern, float]]) -> None:
        """`scored` are the established and proven patterns with their scores."""
        successes = ((pattern, score) for pattern, score in scored if pattern.type is PatternType.SUCCESS)
        self._by_key = group_pairs((key, (pattern, score)) for pattern, score in successes for key in _keys(pattern))

    def best_for(self, pattern: Pattern) -> Pattern | None:
        return next(iter(self.alternatives_for(pattern)), None)

    def alternatives_for(self, pattern: Pattern) -> tuple[Pattern, ...]:
        """Return the best alternatives by common tags and category, then by score."""
        shared: Counter[str] = Counter()
        found: dict[str, tuple[Pattern, float]] = {}
        for key in _keys(pattern):
            for other, score in self._by_key.get(key, ()):
                if other.id != pattern.id:
                    shared[other.id] += 1
                    found[other.id] = (other, score)
        best = nsmallest(_MAX_ALTERNATIVES, found.values(), key=lambda one: (-shared[one[0].id], -one[1], one[0].id))
        return tuple(other for other, _ in best)


def _keys(pattern: Pattern) -> set[str]:
    category = {f"category {pattern.category.lower()}"} if pattern.category else set()
    return category | {f"tag {tag.lower()}" for tag in pattern.tags}


# Observed strategies of other programs.

_DEFAULTS: Final = AntiPatternSettings()
MAX_CHARS: Final = InjectionSettings().max_field_chars
"""Maximum number of characters of a pattern in its line of a prompt."""


class ObservedPattern(Struct, frozen=True, kw_only=True):
    """A strategy of decomposition with its raw counts, or a warning against one.

    `content` is the strategy in words, or the warning; it is untrusted. A pattern is an anti-pattern if `kind` or
    `is_negative` marks it as one; `reason` is why it was inverted. `example_beads` are the work items in which it was
    observed, newest last. The times are ISO-8601 or `datetime`, converted to UTC. Raises BadInput for a value of
    another type, an unknown kind, a negative count, or a time that can't be parsed.
    """

    id: str
    content: str
    kind: Literal["pattern", "anti_pattern"] = "pattern"
    is_negative: bool = False
    success_count: int = 0
    failure_count: int = 0
    reason: str = ""
    tags: tuple[str, ...] = ()
    example_beads: tuple[str, ...] = ()
    created_at: str | datetime | None = None
    updated_at: str | datetime | None = None

    def __post_init__(self) -> None:
        for field in ("id", "content", "reason"):
            check_text(getattr(self, field), field)
        for field in ("tags", "example_beads"):
            check_texts(getattr(self, field), field)
            force_setattr(self, field, tuple(getattr(self, field)))
        check_choice(self.kind, "kind", ("pattern", "anti_pattern"))
        for field in ("success_count", "failure_count"):
            check_count(getattr(self, field), field)
        check_flag(self.is_negative, "is_negative")
        for field in ("created_at", "updated_at"):
            normalize_time(self, field, optional=True)
        if self.is_negative or self.kind == "anti_pattern":
            force_setattr(self, "kind", "anti_pattern")
            force_setattr(self, "is_negative", True)


class PatternInversion(Struct, frozen=True, kw_only=True):
    """A pattern that failed too often, and the anti-pattern that replaces it."""

    original: ObservedPattern
    inverted: ObservedPattern
    reason: str


class Recorded(Struct, frozen=True, kw_only=True):
    """A pattern after an observation, with its inversion if the counts require one."""

    pattern: ObservedPattern
    inversion: PatternInversion | None = None


def should_invert(pattern: ObservedPattern, settings: AntiPatternSettings = _DEFAULTS) -> bool:
    """Return whether the raw counts require inversion; never for an anti-pattern."""
    due = inversion_triggered(pattern.success_count, pattern.failure_count, settings)
    return not pattern.is_negative and bool(due)


def invert(
    pattern: ObservedPattern, reason: str, now: str | datetime, settings: AntiPatternSettings = _DEFAULTS
) -> ObservedPattern:
    """Convert a pattern to an anti-pattern; an anti-pattern is returned unchanged.

    The warning ends with `reason`; if that is "", with the counts.
    """
    if pattern.is_negative:
        return pattern
    check_text(reason, "reason")
    now = parse_moment(now, "now")
    reason = reason.strip() or format_counts(pattern.failure_count, pattern.success_count + pattern.failure_count)
    return replace(
        pattern,
        id=f"anti-{pattern.id}",
        content=warning_text(pattern.content, reason, settings),
        kind="anti_pattern",
        is_negative=True,
        reason=reason,
        created_at=now if pattern.created_at is None else pattern.created_at,
        updated_at=now,
    )


def record_observation(
    pattern: ObservedPattern,
    success: bool,
    now: str | datetime,
    bead_id: str = "",
    settings: AntiPatternSettings = _DEFAULTS,
) -> Recorded:
    """Count one observation, and invert the pattern if its counts require it.

    `bead_id` is the work item, which becomes the newest example; "" for none. Raises BadInput if `success` is not a
    bool, `bead_id` is not a text, or `now` can't be parsed.
    """
    check_flag(success, "success")
    check_text(bead_id, "bead_id")
    examples = pattern.example_beads
    if bead_id:
        examples = (*(example for example in examples if example != bead_id), bead_id)
    updated = replace(
        pattern,
        success_count=pattern.success_count + success,
        failure_count=pattern.failure_count + (not success),
        example_beads=examples[max(len(examples) - settings.max_examples, 0) :],
        updated_at=parse_moment(now, "now"),
    )
    if not should_invert(updated, settings):
        return Recorded(pattern=updated)
    inverted = invert(updated, "", now, settings)
    inversion = PatternInversion(original=updated, inverted=inverted, reason=inverted.reason)
    return Recorded(pattern=updated, inversion=inversion)


def format_anti_patterns(patterns: Iterable[ObservedPattern]) -> str:
    """Format the anti-patterns among `patterns` for a prompt; "" if there are none."""
    lines = [f"- {escape_line(pattern.content, MAX_CHARS)}" for pattern in patterns if pattern.is_negative]
    return _section("Anti-Patterns to Avoid", "Based on past failures, avoid these decomposition strategies:", lines)


def format_successful_patterns(patterns: Iterable[ObservedPattern], min_success_rate: float) -> str:
    """Format successful patterns for a prompt, best rate and most uses first; or "".

    Patterns that were never observed, or whose rate is below `min_success_rate`, are left out. Raises BadInput if
    `min_success_rate` is outside 0..1.
    """
    check_amount(min_success_rate, "min_success_rate", 1)
    ranked = []
    for pattern in patterns:
        good, total = pattern.success_count, pattern.success_count + pattern.failure_count
        if not pattern.is_negative and total and good / total >= min_success_rate:
            share = f"{good} of {total} times, {round_percent(good, total)}%"
            ranked.append((-good / total, -total, pattern.id, f"- {escape_line(pattern.content, MAX_CHARS)} ({share})"))
    lines = [line for *_, line in sorted(ranked)]
    return _section("Successful Patterns", "These decomposition strategies worked before:", lines)


def _section(heading: str, introduction: str, lines: list[str]) -> str:
    return "\n".join([f"## {heading}", "", introduction, "", *lines]) if lines else ""


_PART: Final = re.compile(r"\{([a-z_]+)\}")


@cache
def load_expressions() -> dict[str, re.Pattern[str]]:
    """Load the regular expressions in `strategies.yaml`, by title of the strategy."""
    import yaml  # takes 10 ms, and few commands need strategies

    text = Path(__file__).with_name("strategies.yaml").read_text(encoding="utf-8")
    table: dict[str, Any] = yaml.load(text, yaml.CSafeLoader)
    parts, found = table["parts"], {}
    for title, strategy in table["strategies"].items():
        wordings = []
        if noun := strategy.get("split_by"):
            whole = {**parts, "noun": f"{parts[noun]}{parts['whole']}"}
            wordings += [_expand(wording, {**parts, "noun": parts[noun]}) for wording in table["split_by"]]
            wordings += [_expand(wording, whole) for wording in table["one_per"]]
        if noun := strategy.get("one_per"):
            wordings += [_expand(wording, {**parts, "noun": parts[noun]}) for wording in table["one_per"]]
        wordings += [_expand(wording, parts) for wording in strategy.get("expressions", ())]
        found[title] = re.compile(rf"\b(?:{'|'.join(wordings)})\b")
    return found


def _expand(wording: str, parts: Mapping[str, str]) -> str:
    return _PART.sub(lambda name: _expand(parts[name[1]], parts), wording)


def extract_strategies(description: str) -> list[str]:
    """Return the titles of the common strategies that a description uses.

    A mention that is negated within its clause ("don't split by file type", "by feature instead of by layer",
    "one file per subtask is not an option") does not count. Only the first `core.base.polarity.MAX_TEXT` characters
    are read. Each title is returned once, first use first. Raises BadInput if `description` is not a text.
    """
    check_text(description, "description")
    text = normalize_sentences(description)
    expressions = load_expressions().items()
    mentions = sorted((found.end(), title) for title, regex in expressions for found in regex.finditer(text))
    negations = Negations(text)
    return list(dict.fromkeys(title for end, title in mentions if not negations.covers(end)))
