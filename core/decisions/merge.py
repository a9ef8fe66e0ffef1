"""Merge counts and lineage of two records; see docs/curation.md#merge.

A loop that both records name counts as one use.

Below, the shares of a record's counts by project, so that no use counts twice. A record stores for each other project
its share of the counts; the rest is this project's own. A share only grows and only its own project increases it, so
two versions of a share are combined by their maximum.

Copies of one project (`cp -r`, `git clone`) report the same uses under two origins. They are recognised because both
name the same loops, but no common project. Their common uses are moved into a share named by both origins (`a+b`). A
project that does not know this share yet has it within the shares of its parts, from which it is subtracted. Two copies
never count a use twice; three or more that counted on before they met may count some later uses twice.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, product
from typing import TYPE_CHECKING, Any, Final

from core.base.errors import Refused, Unwritable
from core.base.text import visible_line
from core.files.atomic_write import curation_lock, rewrite, take_theirs
from core.files.file_reader import RawFile, read_file
from core.learning.evidence import UseCounts, claimed_rate
from core.records.patterns import Pattern, PatternType, RecordedCounts, SourceLoop
from core.records.times import iso, parse_time
from core.sources.normalize import texts
from core.sources.pattern_text import id_key
from core.sources.patterns import read_content_hash, read_patterns
from core.sources.schema import CLAIMED_RATE

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths

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
    """Return the content hash of a record, that of `as_read`, without a text scan."""
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


NO_ORIGIN: Final = "0" * 16  # Placeholder origin of counts from an unknown project.
MAX_SHARES: Final = 32  # Maximum number of shares per record; further ones count as the project's own.
_ORIGIN: Final = re.compile(rb"[0-9a-f]{16}\n?")
_JOIN: Final = "+"
_SHARE: Final = re.compile(rb"[0-9a-f]{16}(?:\+[0-9a-f]{16}){0,15}")


def project_origin(paths: ProjectPaths, retry_seconds: Sequence[float]) -> str:
    """Return the random ID of this project, 16 hex digits; created on first use.

    Raises `Conflict` or `Unwritable` if it cannot be created.
    """
    path = paths.curation / "origin"
    with curation_lock(paths):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Unwritable(f"cannot create {path.parent}: {error.strerror}") from None
        made = secrets.token_hex(8).encode() + b"\n"
        rewrite(
            path,
            lambda data: data if data and _ORIGIN.fullmatch(data) else made,
            merge=take_theirs,
            retry_seconds=retry_seconds,
        )
        read = read_file(path, paths.aiwg)
    if not isinstance(read, RawFile) or not _ORIGIN.fullmatch(read.data):
        raise Unwritable(f"cannot read {path}: it contains no valid origin")
    return read.data.decode().strip()


def known_origin(paths: ProjectPaths) -> str:
    """Return the ID of this project; "" if it was not created yet."""
    read = read_file(paths.curation / "origin", paths.aiwg)
    return read.data.decode().strip() if isinstance(read, RawFile) and _ORIGIN.fullmatch(read.data) else ""


def shares_for_export(record: Mapping[str, Any], kind: PatternType, origin: str) -> dict[str, dict[str, int]]:
    """Return the shares of all projects in a local record, for an export."""
    shares = _others(record, origin)
    own = _total(record, kind) - _sum(shares)
    if own.uses or not shares:  # also name a project without counts
        shares[origin] = own
    return _written(shares)


def combine_counts(
    ours: Mapping[str, Any], theirs: Mapping[str, Any], kind: PatternType, origin: str, base: Mapping[str, Any] | None
) -> tuple[Tally, dict[str, dict[str, int]]]:
    """Combine two records of a pattern; return the total and the other shares.

    Counts of `theirs` without an origin: if there is a `base` (`theirs` as last imported), only the increase since
    counts. Otherwise they are the same uses if both records name a common loop or `theirs` names no loop, and new uses
    if not. The share of this project (`origin`) in `theirs` is an old version of the local one.
    """
    shares, theirs_shares = _others(ours, origin), _others(theirs, origin)
    shares[origin] = _total(ours, kind) - _sum(shares)
    read = as_read(ours, kind), as_read(theirs, kind)
    if not _projects(shares) & projects_of(theirs) and common_loops(*read):
        _part_copies(shares, theirs_shares)
    _part(shares, theirs_shares)
    _part(theirs_shares, shares)
    _part_commons(shares, theirs_shares)
    for name, share in theirs_shares.items():
        shares[name] = shares.get(name, Tally()) | share
    own = shares.pop(origin)
    attributed = _sum(_others(theirs))
    rest = _total(theirs, kind) - attributed
    if rest.uses:
        nobodys = shares.get(NO_ORIGIN, Tally())
        if base is not None:
            gained = _total(theirs, kind) - _total(base, kind) if not attributed.uses else Tally()
            shares[NO_ORIGIN] = nobodys + gained
        elif not read[1].source_loops or common_loops(*read):
            shares[NO_ORIGIN] = nobodys | (rest - own)
        else:
            shares[NO_ORIGIN] = nobodys + rest
    named = {name: share for name, share in shares.items() if share.uses or not _is_within(name, shares)}
    return own + _sum(shares), _written(named)


def _is_within(name: str, names: Iterable[str]) -> bool:
    """Whether another share covers all projects of `name` and more."""
    return any(_projects((name,)) < _projects((wider,)) for wider in names)


def _part_copies(ours: dict[str, Tally], theirs: dict[str, Tally]) -> None:
    """Split off the common share of two copies from the largest shares."""
    named = [name for name in theirs if name != NO_ORIGIN]
    if named:
        _move(ours, _largest(ours, ours), theirs, _largest(theirs, named))


def _largest(shares: Mapping[str, Tally], names: Iterable[str]) -> str:
    return max(names, key=lambda name: (shares[name].uses, name))


def _part_commons(ours: dict[str, Tally], theirs: dict[str, Tally]) -> None:
    """Split off the share of three copies if each side knows a share of two."""
    for one, two in product(tuple(ours), tuple(theirs)):
        left, right = _projects((one,)), _projects((two,))
        if left & right and not (left <= right or right <= left):
            _move(ours, one, theirs, two)


def _move(ours: dict[str, Tally], one: str, theirs: dict[str, Tally], two: str) -> None:
    """Move what both shares contain into the common share of all their projects."""
    both = ours[one] & theirs[two]
    common = _JOIN.join(sorted(_projects((one, two)) - {NO_ORIGIN}))
    for shares, name in ((ours, one), (theirs, two)):
        shares[name] -= both
        shares[common] = shares.get(common, Tally()) + both


def _part(knowing: Mapping[str, Tally], other: dict[str, Tally]) -> None:
    """Subtract from `other` the common shares that only `knowing` contains."""
    for common, share in knowing.items():
        wider = [name for name in other if _projects((common,)) <= _projects((name,))]
        if not any(name == common or name not in knowing for name in wider):
            within = [name for name in other if _projects((name,)) < _projects((common,))]
            holding = [name for name in within if not _is_within(name, within)]
            if holding:
                other[_largest(other, holding)] -= share


def arriving_shares(record: Mapping[str, Any], kind: PatternType, origin: str) -> dict[str, dict[str, int]]:
    """Return other projects' shares in a new record; the local share is left out."""
    shares = _others(record, origin)
    own = Tally.of_share(origins_of(record).get(origin))
    rest = _total(record, kind) - _sum(shares) - own
    if rest.uses:
        shares[NO_ORIGIN] = shares.get(NO_ORIGIN, Tally()) + rest
    return _written(shares)


def projects_of(record: Mapping[str, Any]) -> frozenset[str]:
    """Return the origins of the projects that a record names."""
    return _projects(_others(record))


def _total(record: Mapping[str, Any], kind: PatternType) -> Tally:
    return Tally.of(as_read(record, kind).recorded_counts)


def _others(record: Mapping[str, Any], origin: str = "") -> dict[str, Tally]:
    named = (item for item in origins_of(record).items() if _SHARE.fullmatch(item[0].encode(errors="replace")))
    return {name: Tally.of_share(value) for name, value in islice(named, MAX_SHARES) if name != origin}


def _projects(names: Iterable[str]) -> frozenset[str]:
    return frozenset(project for name in names for project in name.split(_JOIN))


def _sum(shares: Mapping[str, Tally]) -> Tally:
    return sum(shares.values(), Tally())


def _written(shares: Mapping[str, Tally]) -> dict[str, dict[str, int]]:
    return {name: tally.share() for name, tally in sorted(shares.items())}
