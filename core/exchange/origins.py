"""Whose counts a record holds: a share for each project, so that records that travel are never counted twice.

A record says of other projects how much of its counts is theirs; the rest is this project's own. Each share only
grows, and only its project counts it on, so two tellings of it are united by the larger one.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from core.curation.merging import ORIGINS, Tally, as_read, origins_of, shares_a_loop
from core.errors import Unwritable
from core.paths import ProjectPaths
from core.records.patterns import PatternType
from core.sources.reading import RawFile, read_file
from core.sources.writing import curation_lock, rewrite

NOBODY: Final = "0" * 16
"""The origin of counts that came in without one."""
_ORIGIN: Final = re.compile(rb"[0-9a-f]{16}\n?")


def project_origin(paths: ProjectPaths, retry_seconds: Sequence[float]) -> str:
    """The random id of this project, 16 hex digits; made when it is first asked for.

    Raises:
        Conflict, Unwritable: It cannot be made.
    """
    path = paths.curation / "origin"
    with curation_lock(paths):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Unwritable(f"cannot make {path.parent}: {error.strerror}") from None
        made = secrets.token_hex(8).encode() + b"\n"
        rewrite(
            path,
            lambda data: data if data and _ORIGIN.fullmatch(data) else made,
            merge=lambda _base, theirs, _present: theirs,
            retry_seconds=retry_seconds,
        )
        read = read_file(path, paths.aiwg)
    if not isinstance(read, RawFile) or not _ORIGIN.fullmatch(read.data):
        raise Unwritable(f"cannot read {path}")
    return read.data.decode().strip()


def known_origin(paths: ProjectPaths) -> str:
    """The id of this project; "" as long as none is made, when no record can name it either."""
    read = read_file(paths.curation / "origin", paths.aiwg)
    return read.data.decode().strip() if isinstance(read, RawFile) and _ORIGIN.fullmatch(read.data) else ""


def told_shares(record: Mapping[str, Any], kind: PatternType, origin: str) -> dict[str, dict[str, int]]:
    """The shares of all projects in a record of this project's registry, as an export tells them."""
    shares = _others(record, origin)
    own = _total(record, kind) - _sum(shares)
    if own.uses:
        shares[origin] = own
    return _written(shares)


def united(
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    kind: PatternType,
    origin: str,
    base: Mapping[str, Any] | None,
) -> tuple[Tally, dict[str, dict[str, int]]]:
    """What our record counts once theirs is known, and the shares of others in that.

    Counts of theirs that no origin is told of are: where we know how theirs came in last time, what it has gained
    since; where both tell of the same loop, or theirs of none, another telling of the same uses; else new ones.

    Args:
        ours, theirs: Records of one pattern.
        kind: Its type.
        origin: This project; its share in theirs is an old one of ours.
        base: Theirs as it was imported last.
    """
    shares = _others(ours, origin)
    own = _total(ours, kind) - _sum(shares)
    for name, share in _others(theirs, origin).items():
        shares[name] = shares.get(name, Tally()) | share
    told = _sum({name: Tally.of_share(value) for name, value in origins_of(theirs).items()})
    rest = _total(theirs, kind) - told
    if rest.uses:
        nobodys = shares.get(NOBODY, Tally())
        if base is not None:
            gained = _total(theirs, kind) - _total(base, kind) if not told.uses else Tally()
            shares[NOBODY] = nobodys + gained
        else:
            read = as_read(ours, kind), as_read(theirs, kind)
            if not read[1].source_loops or shares_a_loop(*read):
                shares[NOBODY] = nobodys | (rest - own)
            else:
                shares[NOBODY] = nobodys + rest
    return own + _sum(shares), _written(shares)


def arriving_shares(record: Mapping[str, Any], kind: PatternType, origin: str) -> dict[str, dict[str, int]]:
    """The shares of others in a record that is new here; what it says is ours was ours, so it is again."""
    shares = _others(record, origin)
    own = Tally.of_share(origins_of(record).get(origin))
    rest = _total(record, kind) - _sum(shares) - own
    if rest.uses:
        shares[NOBODY] = shares.get(NOBODY, Tally()) + rest
    return _written(shares)


def with_origins(record: Mapping[str, Any], shares: Mapping[str, Any]) -> dict[str, Any]:
    """The record with these shares."""
    return {**record, ORIGINS: dict(shares)}


def _total(record: Mapping[str, Any], kind: PatternType) -> Tally:
    return Tally.of(as_read(record, kind).claim)


def _others(record: Mapping[str, Any], origin: str) -> dict[str, Tally]:
    return {
        name: Tally.of_share(value)
        for name, value in origins_of(record).items()
        if name != origin and _ORIGIN.fullmatch(name.encode(errors="replace"))
    }


def _sum(shares: Mapping[str, Tally]) -> Tally:
    return sum(shares.values(), Tally())


def _written(shares: Mapping[str, Tally]) -> dict[str, dict[str, int]]:
    return {name: tally.share() for name, tally in sorted(shares.items()) if tally.uses}
