"""Shares of a record's counts by project, so that no use counts twice.

A record stores for each other project its share of the counts; the rest is this project's own. A share only grows and
only its own project increases it, so two versions of a share are combined by their maximum.

Copies of one project (`cp -r`, `git clone`) report the same uses under two origins. They are recognised because both
name the same loops, but no common project. Their common uses are moved into a share named by both origins (`a+b`). A
project that does not know this share yet has it within the shares of its parts, from which it is subtracted. Two copies
never count a use twice; three or more that counted on before they met may count some later uses twice.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, product
from typing import TYPE_CHECKING, Any, Final

from core.base.errors import Unwritable
from core.decisions.merge import Tally, as_read, common_loops, origins_of
from core.files.atomic_write import curation_lock, rewrite, take_theirs
from core.files.file_reader import RawFile, read_file

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.records.patterns import PatternType

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
