"""Merge counts and lineage of two records; see docs/curation.md#merge.

A loop that both records name counts as one use.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from core.base.errors import Refused
from core.base.text import visible_line
from core.learning.evidence import UseCounts, claimed_rate
from core.records.patterns import Pattern, PatternType, RecordedCounts, SourceLoop
from core.records.times import iso, parse_time
from core.sources.normalize import texts
from core.sources.pattern_text import id_key
from core.sources.patterns import read_content_hash, read_patterns
from core.sources.schema import CLAIMED_RATE

ORIGINS: Final = "origins"  # Key of a record: its counts by the project that they come from.
_ID_KEYS: Final = ("pattern_id", "template_id", "id")


@dataclass(frozen=True, slots=True)
class Tally:
    """Uses of one pattern by result; `uses` includes those without a result.

    For an anti-pattern a success means that the avoided approach failed; see docs/scoring.md.
    """

    successes: int = 0
    failures: int = 0
    uses: int = 0

    @classmethod
    def of(cls, recorded_counts: RecordedCounts) -> Tally:
        """Return the recorded counts; zero if there are none."""
        counts = UseCounts.of_record(recorded_counts)
        return cls(counts.successes, counts.failures, counts.uses) if counts else cls()

    @classmethod
    def of_share(cls, value: Any) -> Tally:
        """Parse one entry of `origins`; zero if it is invalid."""
        share = value if isinstance(value, dict) else {}
        successes, failures = _count(share.get("successes")), _count(share.get("failures"))
        return cls(successes, failures, max(_count(share.get("uses")), successes + failures))

    def share(self) -> dict[str, int]:
        known = self.successes + self.failures
        found = {"successes": self.successes, "failures": self.failures}
        return found if known == self.uses else {**found, "uses": self.uses}

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.successes + other.successes, self.failures + other.failures, self.uses + other.uses)

    def __or__(self, other: Tally) -> Tally:
        """Return the larger of each count, for two counts of the same uses."""
        successes, failures = max(self.successes, other.successes), max(self.failures, other.failures)
        return Tally(successes, failures, max(self.uses, other.uses, successes + failures))

    def __and__(self, other: Tally) -> Tally:
        """Return the smaller of each count, also of uses without a result."""
        successes, failures = min(self.successes, other.successes), min(self.failures, other.failures)
        unknown = min(tally.uses - tally.successes - tally.failures for tally in (self, other))
        return Tally(successes, failures, successes + failures + unknown)

    def __sub__(self, other: Tally) -> Tally:
        """Return the difference of each count, at least 0."""
        successes, failures = max(self.successes - other.successes, 0), max(self.failures - other.failures, 0)
        return Tally(successes, failures, max(self.uses - other.uses, successes + failures))


def check_pair(target: Pattern, other: Pattern) -> None:
    """Raise `Refused` unless these are two different patterns of one type."""
    one, two = visible_line(target.id, 80), visible_line(other.id, 80)
    if target.id == other.id:
        raise Refused(f"both IDs are those of {one}: give two patterns that are not merged yet")
    if target.type is not other.type:
        raise Refused(f"{one} and {two} are not of one type")


def merge_changes(
    target: Mapping[str, Any], other: Mapping[str, Any], pattern_type: PatternType, now: datetime
) -> dict[str, Any]:
    """Return the keys of `target` that change when `other` is merged into it.

    `other` may lack an ID. `now` dates the effectiveness snapshot if no record has a last use.
    """
    one, two = as_read(target, pattern_type), as_read(other, pattern_type)
    ours, theirs = Tally.of(one.recorded_counts), Tally.of(two.recorded_counts)
    if one.id == two.id:
        total = ours | theirs
        origins = combine_origins(target, other, Tally.__or__)
    else:
        total = _add_counts(ours, theirs, one, two)
        origins = combine_origins(target, other, Tally.__add__)
    changes = lineage_changes(target, other, pattern_type)
    last_used = max(filter(None, (one.last_used, two.last_used)), default=now)
    changes |= count_changes(target, total, pattern_type, last_used)
    if origins != target.get(ORIGINS, {}):
        changes[ORIGINS] = origins
    others_id = other.get(id_key(other))
    names = [*one.aliases, *two.aliases, *([others_id] if isinstance(others_id, str) else ())]
    aliases = list(dict.fromkeys(name for name in names if name != one.id))
    if aliases != list(one.aliases):
        changes["aliases"] = aliases
    return changes


def as_read(record: Mapping[str, Any], pattern_type: PatternType) -> Pattern:
    """Parse a record like a pattern file; a missing ID becomes a placeholder."""
    data = json.dumps({"patterns": [_named(record)]}).encode()
    found = read_patterns(f"{pattern_type.value}-patterns.json", data).patterns
    return found[0] if found else Pattern(id="", type=pattern_type, title="")


def text_hash(record: Mapping[str, Any], pattern_type: PatternType) -> str:
    """Return the content hash of a record: that of `as_read`, but without the scan of its text."""
    return read_content_hash(_named(record), pattern_type)


def _named(record: Mapping[str, Any]) -> Mapping[str, Any]:
    return record if any(record.get(key) for key in _ID_KEYS) else {"id": "pattern", **record}


def count_changes(
    record: Mapping[str, Any], total: Tally, pattern_type: PatternType, last_used: datetime
) -> dict[str, Any]:
    """Return the keys that set the counts of `record` to `total`; {} if equal.

    The new point of the trend is dated by the last use, so that old uses do not look like new ones.
    """
    pattern = as_read(record, pattern_type)
    if total == Tally.of(pattern.recorded_counts):
        return {}
    known = total.successes + total.failures
    rate = total.successes / known if known else 0.0
    claimed = claimed_rate(pattern.recorded_counts)
    anti = pattern_type is PatternType.ANTI
    changes: dict[str, Any] = {"occurrence_count" if anti else "usage_count": total.uses}
    if not known and claimed is not None:
        return changes  # without results the recorded rate stays
    changes["failure_rate" if anti else "success_rate"] = rate
    if claimed is not None:
        changes[CLAIMED_RATE] = claimed
    own = pattern.recorded_counts
    if anti and own.successes is None and own.failures is None and known == total.uses:
        return changes
    changes |= {"successful_applications": total.successes, "failed_applications": total.failures}
    if pattern_type is not PatternType.ANTI and known:
        trend = record.get("effectiveness_trend")
        at = iso(max([last_used, *(point.at for point in pattern.trend if point.at)]))
        point = {"timestamp": at, "success_rate_snapshot": rate, "sample_size": known}
        changes["effectiveness_trend"] = [*(trend if isinstance(trend, list) else ()), point]
    return changes


def lineage_changes(target: Mapping[str, Any], other: Mapping[str, Any], pattern_type: PatternType) -> dict[str, Any]:
    """Return the keys of `target` that change with the lineage of `other`."""
    one, two = as_read(target, pattern_type), as_read(other, pattern_type)
    changes: dict[str, Any] = {}
    loops = _merge_loops(target.get("source_loops"), other.get("source_loops"), pattern_type)
    if loops is not None:
        changes["source_loops"] = loops
    if two.last_used and (one.last_used is None or two.last_used > one.last_used):
        changes["last_used"] = iso(two.last_used)
    if two.first_discovered and one.first_discovered and two.first_discovered < one.first_discovered:
        changes["first_discovered"] = iso(two.first_discovered)
    for key, mine, new in (("tags", one.tags, two.tags), ("related_patterns", one.related, two.related)):
        more = [name for name in dict.fromkeys(new) if name not in mine and name not in (one.id, two.id)]
        if more:
            value = target.get(key)
            changes[key] = [*(value if isinstance(value, list) else mine), *more]
    return changes


def combine_origins(
    target: Mapping[str, Any], other: Mapping[str, Any], unite: Callable[[Tally, Tally], Tally] = Tally.__or__
) -> dict[str, dict[str, int]]:
    """Combine the shares of other projects in both records, per project."""
    found = {name: Tally.of_share(value) for name, value in origins_of(target).items()}
    for name, value in origins_of(other).items():
        found[name] = unite(found.get(name, Tally()), Tally.of_share(value))
    return {name: tally.share() for name, tally in sorted(found.items())}


def origins_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the shares of a record by project, {} if it has none."""
    value = record.get(ORIGINS)
    return value if isinstance(value, dict) else {}


def _add_counts(ours: Tally, theirs: Tally, one: Pattern, two: Pattern) -> Tally:
    """Add both counts; a common loop counts once, as a failure if results differ."""
    shared = common_loops(one, two), common_loops(two, one)
    number = min(*map(len, shared), ours.uses, theirs.uses)
    failed = min(max(sum(loop.outcome == "failure" for loop in loops) for loops in shared), number)
    good = min(number - failed, ours.successes, theirs.successes)
    bad = min(number - good, ours.failures, theirs.failures)
    uses = ours.uses + theirs.uses - number
    failures = ours.failures + theirs.failures - bad
    successes = ours.successes + theirs.successes - good
    return Tally(min(successes, uses - failures), failures, uses)


def common_loops(one: Pattern, two: Pattern) -> list[SourceLoop]:
    """Return source loops of `one` that `two` has too; an unknown time matches any."""
    times: dict[str, set[datetime | None]] = {}
    for loop in two.source_loops:
        times.setdefault(loop.loop_id, set()).add(loop.at)
    found = {}
    for loop in one.source_loops:
        others = times.get(loop.loop_id, set())
        if loop.at in others or (others and (loop.at is None or None in others)):
            found[loop.loop_id, loop.at] = loop
    return list(found.values())


def _merge_loops(mine: Any, new: Any, pattern_type: PatternType) -> list[Any] | None:
    """Return `mine` with the new entries of `new` in its form; None if none are new."""
    target = mine if isinstance(mine, list) else [mine] if isinstance(mine, str) else []
    plain = all(isinstance(entry, str) for entry in target) if target else pattern_type is PatternType.TEMPLATE
    known: dict[str, set[datetime | None]] = {}
    for _, loop_id, at in _entries(target):
        known.setdefault(loop_id, set()).add(at)
    added: list[Any] = []
    for entry, loop_id, at in _entries(new):
        times = known.setdefault(loop_id, set())
        if times and (plain or at is None or at in times or None in times):
            continue
        times.add(at)
        added.append(loop_id if plain else entry)
    return [*target, *added] if added else None


def _entries(value: Any) -> Iterable[tuple[Any, str, datetime | None]]:
    """Yield (entry as an object, loop ID, time) of each entry that names a loop."""
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, str) and entry:
            yield {"loop_id": entry}, entry, None
        elif isinstance(entry, dict) and (ids := texts(entry.get("loop_id"))):
            yield entry, ids[0], parse_time(entry.get("timestamp"))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
