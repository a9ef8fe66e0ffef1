"""Effectiveness of shared patterns; docs/metrics.md#effectiveness.

A loop has injected patterns if its state or an event names at least one. Only completed loops are compared, by their
number of iterations, because an abandoned loop is not a fast one. Also the files with these metrics and the pattern
index; docs/metrics.md#derived-files.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct, to_builtins
from msgspec.structs import astuple, replace

from core.base.errors import BadInput, Conflict, Unwritable
from core.base.steps import group_pairs
from core.base.text import plural
from core.files.atomic_write import curation_lock, rewrite, take_theirs
from core.files.file_reader import MAX_PATTERN_BYTES, Problem, decode_json, read_file
from core.files.json_editor import JsonText
from core.learning.evidence import INVERSION, LOOP, loops_with_reflections, round_half_up
from core.learning.evidence_records import WorkNames
from core.learning.maturity import INVERSION as BY_INVERSION
from core.learning.maturity import STATES
from core.learning.statistics import (
    Difference,
    format_inconclusive,
    jeffreys_interval,
    required_cases,
    student_quantile,
)
from core.records.decisions import Decision, Verb
from core.records.events import EVENT_LOG
from core.records.patterns import Maturity, Pattern, PatternType
from core.records.times import iso
from core.retrieval.task import analyse_task
from core.sources.configuration import METRICS, read_registry_extras

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.settings import PruningSettings, Settings
    from core.index.project_state import ProjectState
    from core.learning.maturity import Assessment
    from core.learning.scoreboard import Scoreboard
    from core.records.decisions import CurationState
    from core.records.snapshot import Snapshot


_WHOLE_NUMBER_VARIANCE: Final = 1 / 12
"""Minimum variance: counts are whole numbers, so equal counts do not prove a variance of 0."""
_INJECTING: Final = frozenset({"injected", "applied"})
_TYPE_KEYS: Final = {
    PatternType.ERROR: "error_patterns",
    PatternType.SUCCESS: "success_patterns",
    PatternType.ANTI: "anti_patterns",
    PatternType.TEMPLATE: "code_templates",
}


class UsageStats(Struct, frozen=True):
    """`pattern_usage_stats` of the pattern files: uses with a result."""

    total_applications: int
    successful_applications: int
    failed_applications: int
    overall_success_rate: float | None = None  # 0..1, two decimals


class Benefit(Struct, frozen=True):
    """`cross_loop_benefit` of the pattern files: averages over completed loops."""

    loops_with_pattern_injection: int
    loops_without_pattern_injection: int
    average_iterations_with: float | None = None
    average_iterations_without: float | None = None
    improvement_percentage: float | None = None


class MeasuredBenefit(Benefit, frozen=True, kw_only=True):
    """The benefit, with failed loops and their iterations, which averages leave out."""

    completed_loops_with: int
    completed_loops_without: int
    failed_loops_with: int
    failed_loops_without: int
    average_iterations_failed_with: float | None = None
    average_iterations_failed_without: float | None = None


class EffectivenessMetrics(Struct, frozen=True):
    """`effectiveness_metrics` of the pattern files, with the same order and rounding."""

    total_patterns: int
    patterns_by_type: dict[str, int]
    pattern_usage_stats: UsageStats
    cross_loop_benefit: Benefit  # a `MeasuredBenefit` if it was computed from the evidence
    last_updated: str


class Group(NamedTuple):
    """Iterations of completed loops of one task category, with and without patterns."""

    category: str
    having: tuple[int, ...]
    lacking: tuple[int, ...]


class Comparison(Difference, frozen=True, kw_only=True):
    """Iterations with and without patterns, compared within each task category.

    The difference is in iterations; a negative one is an improvement. `groups` are the categories with both kinds of
    loops, sorted by name; "" for tasks of an unknown category.
    """

    groups: tuple[Group, ...] = ()
    having: float | None = None  # averages with and without; categories are weighted by their number of loops
    lacking: float | None = None

    @property
    def loops(self) -> tuple[int, int]:
        """Number of compared loops (with, without)."""
        return sum(len(group.having) for group in self.groups), sum(len(group.lacking) for group in self.groups)

    @property
    def verdict(self) -> str:
        """Text such as `-2.0 iterations`, or how many more sessions the comparison needs."""
        if self.is_conclusive and self.difference is not None:
            return f"{self.difference:+.1f} iterations"
        return format_inconclusive(self.needed, "session")


def compute_effectiveness(
    snapshot: Snapshot, board: Scoreboard, now: datetime, loops: LoopCounts | None = None
) -> EffectivenessMetrics:
    """Compute the effectiveness from the evidence; `loops` are of the snapshot."""
    registry = _list_shared(snapshot)
    types = Counter(pattern.type for pattern in registry)
    rows = [board.row(pattern.id) for pattern in registry]
    successes, failures = int(board.successes[rows].sum()), int(board.failures[rows].sum())
    moved = count_inherited(board, registry)
    successes, failures = successes - moved.successes, failures - moved.failures
    results = successes + failures
    return EffectivenessMetrics(
        len(registry),
        {key: types[kind] for kind, key in _TYPE_KEYS.items()},
        UsageStats(results, successes, failures, _round_half_up(successes / results, 2) if results else None),
        measure_benefit(loops or LoopCounts.of(snapshot)),
        iso(now) or "",
    )


class Inherited(NamedTuple):
    """Uses of warnings that came from patterns; both count them, a project only once."""

    successes: int
    failures: int
    uses: int


def count_inherited(board: Scoreboard, patterns: Iterable[Pattern]) -> Inherited:
    inverted = (pattern.id for pattern in patterns if pattern.inverted_from and pattern.type is PatternType.ANTI)
    uses = [use for id in inverted for use in board.observations(id) if use.source == INVERSION]
    good, bad = (sum(use.count for use in uses if use.success is result) for result in (True, False))
    return Inherited(good, bad, sum(use.count for use in uses))


class LoopCounts(NamedTuple):
    """Iterations of ended loops by ID, and which loops had injected patterns."""

    injected: Collection[str]
    others: Collection[str]
    completed: Mapping[str, int]  # without loops reported as failed
    failed: Mapping[str, int]

    @classmethod
    def of(cls, snapshot: Snapshot) -> LoopCounts:
        """Read all loops once."""
        reported = _find_reported_failures(snapshot)
        named = {event.loop_id for event in snapshot.events if event.kind in _INJECTING and event.pattern_id}
        injected, completed, failed = _resolve_loop_ids(snapshot, named), {}, {}
        for loop in snapshot.loops.values():
            if loop.injected:
                injected.add(loop.id)
            if loop.success is False or (reported and not reported.isdisjoint((loop.id, *loop.aliases))):
                failed[loop.id] = loop.iteration or 0
            elif loop.success and loop.iteration:
                completed[loop.id] = loop.iteration
        return cls(injected, snapshot.loops.keys() - injected, completed, failed)


def measure_benefit(loops: LoopCounts) -> MeasuredBenefit:
    """Count loops with and without injected patterns; average their iterations."""
    kinds = loops.injected, loops.others
    good, bad = (
        [[found[id] for id in kind if id in found] for kind in kinds] for found in (loops.completed, loops.failed)
    )
    averages = [sum(counts) / len(counts) if counts else None for counts in good]
    wasted = [sum(counts) / len(counts) if any(counts) else None for counts in bad]
    return MeasuredBenefit(
        *astuple(compute_benefit(*map(len, kinds), *averages)),
        completed_loops_with=len(good[0]),
        completed_loops_without=len(good[1]),
        failed_loops_with=len(bad[0]),
        failed_loops_without=len(bad[1]),
        average_iterations_failed_with=_round_average(wasted[0]),
        average_iterations_failed_without=_round_average(wasted[1]),
    )


def _round_average(value: float | None) -> float | None:
    return None if value is None else _round_half_up(value, 1)


def compute_benefit(having: int, lacking: int, average_with: float | None, average_without: float | None) -> Benefit:
    """Compute averages and improvement in percent: (without - with) / without * 100."""
    improvement = None
    if average_with is not None and average_without:
        improvement = (average_without - average_with) / average_without * 100
    averages = _round_average(average_with), _round_average(average_without)
    return Benefit(having, lacking, *averages, _round_average(improvement))


def count_states(snapshot: Snapshot, board: Scoreboard) -> dict[str, int]:
    """Count the registered patterns per state."""
    found = Counter(STATES[board.state_codes[board.row(pattern.id)]] for pattern in _list_shared(snapshot))
    return {state.value: found[state] for state in Maturity}


def compare_injection(snapshot: Snapshot, settings: Settings, loops: LoopCounts | None = None) -> Comparison:
    """Compare loops with and without injected patterns."""
    loops = loops or LoopCounts.of(snapshot)
    return _compare(snapshot, loops.injected, loops.others, loops, settings)


def compare_reflections(snapshot: Snapshot, settings: Settings, loops: LoopCounts | None = None) -> Comparison:
    """Compare loops with and without injected reflections."""
    having = _resolve_loop_ids(snapshot, loops_with_reflections(snapshot.events))
    return _compare(snapshot, having, snapshot.loops.keys() - having, loops or LoopCounts.of(snapshot), settings)


def compare_pattern(snapshot: Snapshot, board: Scoreboard, pattern_id: str, settings: Settings) -> Comparison:
    """Compare loops that applied a pattern with loops without injected patterns."""
    used = {one.loop_id for one in board.observations(pattern_id) if one.kind in ("applied", "feedback")}
    having = _resolve_loop_ids(snapshot, used)
    if not having:  # reading all loops would take most of the time of `pattern show`
        return compare_groups((), settings)
    loops = LoopCounts.of(snapshot)
    return _compare(snapshot, having, loops.others, loops, settings)


def compare_groups(groups: Iterable[Group], settings: Settings) -> Comparison:
    """Compare the groups that contain both kinds of loops; see `Comparison`."""
    both = tuple(sorted(group for group in groups if group.having and group.lacking))
    total = sum(len(group.having) + len(group.lacking) for group in both)
    least = settings.extraction.min_usage_count_for_evaluation
    if not both:
        return Comparison(needed=least)
    weighted = [((len(group.having) + len(group.lacking)) / total, group) for group in both]
    having = sum(weight * sum(group.having) / len(group.having) for weight, group in weighted)
    lacking = sum(weight * sum(group.lacking) / len(group.lacking) for weight, group in weighted)
    result = Comparison(groups=both, having=having, lacking=lacking, difference=having - lacking)
    fewest = min(result.loops)
    freedom = total - 2 * len(both)
    if fewest < least or freedom < 1:
        return replace(result, needed=max(least - fewest, 1))
    variance = max(sum(map(_scatter, both)) / freedom, _WHOLE_NUMBER_VARIANCE)
    shares = sum(weight * weight * (1 / len(group.having) + 1 / len(group.lacking)) for weight, group in weighted)
    half = student_quantile(freedom, (1 + settings.interval_level) / 2) * math.sqrt(variance * shares)
    low, high = having - lacking - half, having - lacking + half
    if low > 0 or high < 0:
        return replace(result, low=low, high=high)
    enough = required_cases(having - lacking, variance, settings.interval_level, settings.power)
    return replace(result, low=low, high=high, needed=max(enough - fewest, 1))


def _scatter(group: Group) -> float:
    """Return the sum of squared deviations from the averages of both kinds of loops."""
    both = (group.having, group.lacking)
    return sum(sum((count - sum(counts) / len(counts)) ** 2 for count in counts) for counts in both)


def _compare(
    snapshot: Snapshot, having: Iterable[str], lacking: Iterable[str], loops: LoopCounts, settings: Settings
) -> Comparison:
    completed = loops.completed
    kinds = [[id for id in kind if id in completed] for kind in (having, lacking)]
    if not all(kinds):
        return compare_groups((), settings)
    counts: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for kind, ids in enumerate(kinds):
        for id in ids:
            counts[_category(snapshot.loops[id].task)][kind].append(completed[id])
    return compare_groups((Group(name, tuple(one), tuple(other)) for name, (one, other) in counts.items()), settings)


@lru_cache(maxsize=50_000)
def _category(task: str) -> str:
    return analyse_task(task).category


def _list_shared(snapshot: Snapshot) -> list[Pattern]:
    """Return the shared patterns: those that do not only exist in another folder."""
    return [pattern for pattern in snapshot.patterns.values() if not pattern.copy_folder]


def _resolve_loop_ids(snapshot: Snapshot, names: set[str]) -> set[str]:
    """Return the IDs of loops that events name by ID, alias, task or attempt."""
    found = names & snapshot.loops.keys()
    if names - found:
        works = WorkNames(snapshot)
        found |= {loop.id for loop in snapshot.loops.values() if not names.isdisjoint(works.works_of(loop))}
    return found


def _find_reported_failures(snapshot: Snapshot) -> set[str]:
    """Return the IDs in events of the work whose newest outcome is a failure."""
    reported = {
        event.loop_id: event.success
        for event in snapshot.events
        if event.kind == "outcome" and event.success is not None and not event.pattern_id
    }
    return {name for name, success in reported.items() if not success}


def _round_half_up(value: float, places: int) -> float:
    """Round half up to a number of decimal places, as in the pattern files."""
    scale: float = 10.0**places
    return round_half_up(value * scale) / scale


# Selection of patterns to prune; docs/metrics.md#pruning


class PruneRule(StrEnum):
    RATE = "success-rate"
    UNUSED = "unused"


class Pruning(Struct, frozen=True):
    """A pattern that the policy prunes, and why."""

    pattern_id: str
    reason: str  # text for the archive
    rules: tuple[PruneRule, ...]  # all rules that apply
    rate: float | None  # success rate, 0..1; None without results
    uses: int  # uses with a result
    last_activity: datetime | None  # time of the last use or source loop, else of the discovery


def select_prunable(snapshot: Snapshot, board: Scoreboard, settings: PruningSettings) -> tuple[Pruning, ...]:
    """Select the patterns to prune at the time of the board, by ID.

    The policy never prunes pinned patterns (even if their text was edited since), patterns in quarantine, held
    patterns, patterns with an open or rejected inversion, unregistered copies, and patterns without any date. The rate
    of an anti-pattern is the share of failures of the approach that it warns of.
    """
    oldest = board.now - timedelta(days=settings.max_age_days)
    known = board.successes + board.failures
    failing = (known >= settings.min_usage_count) & (board.successes < settings.min_success_rate * known)
    recent = board.last_used >= oldest.timestamp()
    found = []
    for row in (failing | ~recent).nonzero()[0].tolist():
        pattern = snapshot.patterns[board.ids[row]]
        assessment = board.assessment(pattern.id)
        times = [assessment.last_used, *(loop.at for loop in pattern.source_loops)]
        last_activity = max(filter(None, times), default=pattern.first_discovered)
        uses = int(known[row])
        rate = assessment.successes / uses if uses else None
        reasons: dict[PruneRule, str] = {}
        if failing[row] and rate is not None:
            worked = f"{rate:.0%} of {plural(uses, 'use')} succeeded"
            reasons[PruneRule.RATE] = f"{worked}, below {settings.min_success_rate:.0%}"
        if last_activity is not None and last_activity < oldest:
            reasons[PruneRule.UNUSED] = f"unused for {plural((board.now - last_activity).days, 'day')}"
        if reasons and not _is_protected(pattern, assessment, snapshot.curation):
            reason, rules = ", ".join(reasons.values()), tuple(reasons)
            found.append(Pruning(pattern.id, reason, rules, rate, uses, last_activity))
    return tuple(sorted(found, key=attrgetter("pattern_id")))


def _is_protected(pattern: Pattern, assessment: Assessment, curation: CurationState) -> bool:
    """Return whether a decision or an open question protects the pattern."""
    arrival, verdict = curation.arrivals.get(pattern.id), curation.inversions.get(pattern.id)
    is_unread = arrival is not None and arrival.blocks and arrival.needs_review(pattern.content_hash)
    is_rejected = verdict is not None and verdict.verdict == "rejected"
    is_decided = not pattern.is_registered or pattern.id in curation.pins or is_unread or is_rejected
    return is_decided or assessment.held or assessment.decided_by == BY_INVERSION


# Decisions confirmed by later results; docs/metrics.md#reviewer-accuracy


MIN_FOLLOWED: Final = 30  # minimum number of followed decisions for a rate; fewer are not meaningful
_JUDGED: Final = (Verb.PROMOTE, Verb.DEPRECATE)
_VERDICTS: Final = frozenset({*_JUDGED, Verb.RESET, Verb.ACCEPT_INVERSION})
"""Decisions after which an earlier decision about the same pattern is no longer judged."""
_END: Final = datetime.max.replace(tzinfo=UTC)


class Share(Struct, frozen=True, kw_only=True):
    """Number of decisions of one kind that later results confirm."""

    made: int  # decisions, without undone ones
    followed: int  # decisions followed by enough results, see `ReviewerAccuracy.follow_up`
    held: int  # number of followed decisions that the results confirm
    low: float | None = None  # ends of the interval of `held / followed`, 0..1; None while `missing`
    high: float | None = None

    @property
    def missing(self) -> int:
        """Number of followed decisions that are missing for a rate."""
        return max(MIN_FOLLOWED - self.followed, 0)

    @property
    def rate(self) -> float | None:
        """Share of confirmed decisions, 0..1; None if too few are followed by results."""
        return None if self.missing else self.held / self.followed


class ReviewerAccuracy(Struct, frozen=True, kw_only=True):
    """Share of one person's decisions that later results confirm."""

    by: str  # name of the person in the decision log
    promotions: Share  # confirmed unless later results require deprecation
    deprecations: Share  # confirmed if later results require it
    follow_up: int  # results needed between a decision and the next one about the same pattern
    level: float  # level of the intervals, 0..1


def measure_accuracy(view: ProjectState, by: str) -> ReviewerAccuracy:
    """Compare a person's decisions with later results of the patterns.

    Only decisions in effect, and results in the event log or in loops, count: recorded counts have no time. A decision
    is refuted by the rule for contradicted pins (docs/scoring.md#thresholds).
    """
    limits = view.settings.maturity
    follow_up = math.ceil(limits.min_feedback)
    made = dict.fromkeys(_JUDGED, 0)
    outcomes: dict[Verb, list[bool]] = {verb: [] for verb in _JUDGED}
    for decision, until in _list_judged(view.snapshot.decisions, view.snapshot.curation.undone, by):
        made[decision.verb] += 1
        if decision.subject in view.board:
            results = [
                one.success
                for one in view.board.observations(decision.subject)
                if one.is_use
                and one.source in (EVENT_LOG, LOOP)
                and one.at is not None
                and decision.at < one.at <= until
            ]
            good, bad = results.count(True), results.count(False)
            if good + bad >= follow_up:
                is_bad = bad > (limits.deprecation_threshold + limits.ratio_tolerance) * (good + bad)
                outcomes[decision.verb].append(is_bad is (decision.verb is Verb.DEPRECATE))
    level = view.settings.interval_level
    promotions, deprecations = (_share(made[verb], outcomes[verb], level) for verb in _JUDGED)
    return ReviewerAccuracy(by=by, promotions=promotions, deprecations=deprecations, follow_up=follow_up, level=level)


def _list_judged(decisions: Iterable[Decision], undone: frozenset[str], by: str) -> Iterator[tuple[Decision, datetime]]:
    """Yield a person's decisions, each with the time of the next one on its pattern."""
    in_effect = (one for one in decisions if one.verb in _VERDICTS and one.id not in undone)
    verdicts = group_pairs((decision.subject, decision) for decision in in_effect)
    for own in verdicts.values():
        for decision, following in zip(own, (*own[1:], None), strict=True):
            if decision.by == by and decision.verb in _JUDGED:
                yield decision, following.at if following is not None else _END


def _share(made: int, outcomes: Sequence[bool], level: float) -> Share:
    followed, held = len(outcomes), sum(outcomes)
    ends = (None, None) if followed < MIN_FOLLOWED else jeffreys_interval(held, followed - held, level)
    return Share(made=made, followed=followed, held=held, low=ends[0], high=ends[1])


_VERSION: Final = "1.0.0"
_Update = Callable[[JsonText], None]


def metrics_path(paths: ProjectPaths) -> Path:
    """Path of the file with the effectiveness metrics."""
    return paths.ralph / "shared" / "effectiveness-metrics.json"


def index_path(paths: ProjectPaths) -> Path:
    """Path of the file with the index of patterns."""
    return paths.ralph / "memory" / "patterns-index.json"


def write_derived(
    paths: ProjectPaths, settings: Settings, snapshot: Snapshot, board: Scoreboard, now: datetime
) -> tuple[str, ...]:
    """Update index and metrics; return errors, which do not affect the records."""
    of_index = _write_index(paths, settings, snapshot.patterns, now)
    return of_index + write_metrics(paths, settings, snapshot, board, now)


def write_metrics(
    paths: ProjectPaths, settings: Settings, snapshot: Snapshot, board: Scoreboard, now: datetime
) -> tuple[str, ...]:
    """Update `shared/effectiveness-metrics.json`; see `write_derived`."""
    metrics = to_builtins(compute_effectiveness(snapshot, board, now))
    at = metrics.pop("last_updated")

    def update(document: JsonText) -> None:
        is_wrapped = isinstance(document.value.get(METRICS), dict)  # a file of its own does not need the key
        path = (METRICS,) if is_wrapped else ()
        if _set_known(document, path, metrics):
            document.set(path, "last_updated", at)

    return _update(paths, settings, metrics_path(paths), update)


def _set_known(document: JsonText, path: tuple[str, ...], values: Mapping[str, Any]) -> bool:
    """Set the values at `path`, remove keys whose value is None; return if changed."""
    here = document.value
    for step in path:
        here = here[step]
    changed = False
    for key, value in values.items():
        old = here.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            changed |= _set_known(document, (*path, key), value)
        elif value is None and key in here:
            document.remove((*path, key))
            changed = True
        elif value is not None and (type(old) is bool or old != value):
            if isinstance(value, dict):
                value = {name: item for name, item in value.items() if item is not None}
            document.set(path, key, value)
            changed = True
    return changed


def _write_index(
    paths: ProjectPaths, settings: Settings, patterns: Mapping[str, Pattern], now: datetime
) -> tuple[str, ...]:
    entries = [
        {
            "pattern_id": pattern.id,
            "type": pattern.type.value,
            "title": pattern.title,
            "category": pattern.category,
            "tags": list(pattern.tags),
            "content_hash": pattern.content_hash,
            "file": pattern.file,
        }
        for _, pattern in sorted(patterns.items())
        if pattern.is_registered
    ]

    def update(document: JsonText) -> None:
        if document.value.get("patterns") == entries:
            return
        document.set((), "version", _VERSION)
        document.set((), "updated_at", iso(now))
        # json.dumps escapes lone surrogates; one line per pattern makes readable diffs.
        lines = ",".join(f"\n    {json.dumps(entry)}" for entry in entries)
        document.set((), "patterns", entries, f"[{lines}\n  ]" if entries else "[]")

    return _update(paths, settings, index_path(paths), update)


def _update(paths: ProjectPaths, settings: Settings, path: Path, update: _Update) -> tuple[str, ...]:
    """Edit or create a file that contains a JSON object; return the errors."""

    def change(data: bytes | None) -> bytes:
        document = JsonText(b"{\n}\n" if data is None else data)
        if not isinstance(document.value, dict):
            raise Conflict(f"{path} is not a JSON object; it was not changed")
        update(document)
        return document.encode()

    try:
        if (problem := _explain_unusable(paths, path)) is not None:
            raise Conflict(f"{path} {problem}; it was not changed")
        with curation_lock(paths):
            _make_folder(paths, path.parent)
            rewrite(path, change, merge=take_theirs, retry_seconds=settings.watch.retry_seconds)
    except (BadInput, Conflict, Unwritable) as error:
        return (str(error),)
    return ()


def _explain_unusable(paths: ProjectPaths, path: Path) -> str | None:
    """Return why a file cannot be edited, as the end of a sentence, or None."""
    paths.inside(paths.relative(path))
    raw = read_file(path, paths.aiwg, MAX_PATTERN_BYTES)
    if raw is None or isinstance(raw, Problem):
        return raw.message if raw is not None else None
    decoded = decode_json(raw.data)
    return decoded.problems[0].message if decoded.failed else None


def _make_folder(paths: ProjectPaths, folder: Path) -> None:
    try:
        paths.inside(paths.relative(folder)).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unwritable(f"cannot make {folder}: {error.strerror}") from None


def read_recorded_metrics(paths: ProjectPaths) -> dict[str, dict[str, Any]]:
    """Return the metrics in the metrics and pattern files, by file and `group.key`."""
    recorded = {}
    raw = read_file(metrics_path(paths), paths.aiwg, MAX_PATTERN_BYTES)
    value = None if raw is None or isinstance(raw, Problem) else decode_json(raw.data).value
    if isinstance(value, dict):
        inner = value.get(METRICS)
        recorded[paths.relative(metrics_path(paths))] = _flatten(inner if isinstance(inner, dict) else value)
    for extras in read_registry_extras(paths, []):
        if extras.metrics is not None:
            recorded[extras.document.file] = _flatten(extras.metrics)
    return recorded


class MetricDifference(NamedTuple):
    """A recorded metric that differs from the evidence."""

    file: str
    key: str
    claimed: Any
    evident: Any


def compare_metrics(
    recorded: Mapping[str, Mapping[str, Any]], metrics: EffectivenessMetrics
) -> tuple[MetricDifference, ...]:
    """Find recorded metrics that differ from the evidence."""
    evident = _flatten(to_builtins(metrics))
    return tuple(
        MetricDifference(file, key, claimed[key], value)
        for file, claimed in recorded.items()
        for key, value in evident.items()
        if key != "last_updated" and key in claimed and (type(claimed[key]) is bool or claimed[key] != value)
    )


def _flatten(value: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            found |= {f"{key}.{inner}": it for inner, it in item.items()}
        else:
            found[key] = item
    return found
