"""Whose counts a record holds: a share for each project, so that records that travel are never counted twice.

A record says of other projects how much of its counts is theirs; the rest is this project's own. Each share only
grows, and only its project counts it on, so two tellings of it are united by the larger one.

Copies of one project (`cp -r`, `git clone`) tell the same uses under two origins. They are known by this: both name
the same loops, yet no project is named by both. What both tell of is then moved into a *common* share, named by both
origins (`a+b`): the uses from before they parted. Whoever does not know of that share yet counts it within the shares
of its parts, where it is taken out. How many uses were there before nobody can say when copies first meet; of what
each has counted since, as much as the other has counted, too, passes for the same. Between two copies nothing is ever
invented; of three or more that each counted on before any of them met, some later uses may be counted twice.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, product
from typing import Any, Final

from core.base.errors import Unwritable
from core.config.paths import ProjectPaths
from core.curation.merge import ORIGINS, Tally, as_read, origins_of, shares_a_loop
from core.records.patterns import PatternType
from core.storage.atomic_write import curation_lock, rewrite, take_theirs
from core.storage.file_reader import RawFile, read_file

NOBODY: Final = "0" * 16
"""The origin of counts that came in without one."""
MAX_SHARES: Final = 32
"""Shares of one record that are told apart; what further ones hold is its own."""
_ORIGIN: Final = re.compile(rb"[0-9a-f]{16}\n?")
_JOIN: Final = "+"
_SHARE: Final = re.compile(rb"[0-9a-f]{16}(?:\+[0-9a-f]{16}){0,15}")


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
            merge=take_theirs,
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


def shares_for_export(record: Mapping[str, Any], kind: PatternType, origin: str) -> dict[str, dict[str, int]]:
    """The shares of all projects in a record of this project's registry, as an export tells them."""
    shares = _others(record, origin)
    own = _total(record, kind) - _sum(shares)
    if own.uses or not shares:  # who has counted nothing yet is named all the same
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

    Copies of one project: see above. Counts of theirs that no origin is told of are: where we know how theirs came
    in last time, what it has gained since; where both tell of the same loop, or theirs of none, another telling of
    the same uses; else new ones.

    Args:
        ours, theirs: Records of one pattern.
        kind: Its type.
        origin: This project; its share in theirs is an old one of ours.
        base: Theirs as it was imported last.
    """
    shares, told = _others(ours, origin), _others(theirs, origin)
    shares[origin] = _total(ours, kind) - _sum(shares)
    read = as_read(ours, kind), as_read(theirs, kind)
    if not _projects(shares) & projects_of(theirs) and shares_a_loop(*read):
        _part_copies(shares, told)
    _part(shares, told)
    _part(told, shares)
    _part_commons(shares, told)
    for name, share in told.items():
        shares[name] = shares.get(name, Tally()) | share
    own = shares.pop(origin)
    said = _sum(_others(theirs))
    rest = _total(theirs, kind) - said
    if rest.uses:
        nobodys = shares.get(NOBODY, Tally())
        if base is not None:
            gained = _total(theirs, kind) - _total(base, kind) if not said.uses else Tally()
            shares[NOBODY] = nobodys + gained
        elif not read[1].source_loops or shares_a_loop(*read):
            shares[NOBODY] = nobodys | (rest - own)
        else:
            shares[NOBODY] = nobodys + rest
    named = {name: share for name, share in shares.items() if share.uses or not _is_within(name, shares)}
    return own + _sum(shares), _written(named)


def _is_within(name: str, names: Iterable[str]) -> bool:
    """Whether the projects of a share are but some of those of another one."""
    return any(_projects((name,)) < _projects((wider,)) for wider in names)


def _part_copies(ours: dict[str, Tally], theirs: dict[str, Tally]) -> None:
    """Find the common share of two copies of one project.

    Which shares it is in is not told: the largest of each. Counts of nobody are then those of the one that names them.
    """
    named = [name for name in theirs if name != NOBODY]
    if named:
        _move(
            ours,
            max(ours, key=lambda name: (ours[name].uses, name)),
            theirs,
            max(named, key=lambda name: (theirs[name].uses, name)),
        )


def _part_commons(ours: dict[str, Tally], theirs: dict[str, Tally]) -> None:
    """Find what is common to three copies where each side knows what is common to two of them."""
    for one, two in product(tuple(ours), tuple(theirs)):
        left, right = _projects((one,)), _projects((two,))
        if left & right and not (left <= right or right <= left):
            _move(ours, one, theirs, two)


def _move(ours: dict[str, Tally], one: str, theirs: dict[str, Tally], two: str) -> None:
    """Take what both shares tell of out of them, into the common share of all their projects."""
    both = ours[one] & theirs[two]
    common = _JOIN.join(sorted(_projects((one, two)) - {NOBODY}))
    for shares, name in ((ours, one), (theirs, two)):
        shares[name] -= both
        shares[common] = shares.get(common, Tally()) + both


def _part(knowing: Mapping[str, Tally], other: dict[str, Tally]) -> None:
    """Take each common share that only one side knows of out of the share that holds it on the other side."""
    for common, share in knowing.items():
        wider = [name for name in other if _projects((common,)) <= _projects((name,))]
        if not any(name == common or name not in knowing for name in wider):
            within = [name for name in other if _projects((name,)) < _projects((common,))]
            holding = [name for name in within if not _is_within(name, within)]
            if holding:
                other[max(holding, key=lambda name: (other[name].uses, name))] -= share


def arriving_shares(record: Mapping[str, Any], kind: PatternType, origin: str) -> dict[str, dict[str, int]]:
    """The shares of others in a record that is new here; what it says is ours was ours, so it is again."""
    shares = _others(record, origin)
    own = Tally.of_share(origins_of(record).get(origin))
    rest = _total(record, kind) - _sum(shares) - own
    if rest.uses:
        shares[NOBODY] = shares.get(NOBODY, Tally()) + rest
    return _written(shares)


def projects_of(record: Mapping[str, Any]) -> frozenset[str]:
    """The origins of the projects that a record names."""
    return _projects(_others(record))


def with_origins(record: Mapping[str, Any], shares: Mapping[str, Any]) -> dict[str, Any]:
    """The record with these shares."""
    return {**record, ORIGINS: dict(shares)}


def _total(record: Mapping[str, Any], kind: PatternType) -> Tally:
    return Tally.of(as_read(record, kind).recorded_counts)


def _others(record: Mapping[str, Any], origin: str = "") -> dict[str, Tally]:
    named = (item for item in origins_of(record).items() if _SHARE.fullmatch(item[0].encode(errors="replace")))
    return {name: Tally.of_share(value) for name, value in islice(named, MAX_SHARES) if name != origin}


def _projects(names: Iterable[str]) -> frozenset[str]:
    """The origins of which the names of shares are made."""
    return frozenset(project for name in names for project in name.split(_JOIN))


def _sum(shares: Mapping[str, Tally]) -> Tally:
    return sum(shares.values(), Tally())


def _written(shares: Mapping[str, Tally]) -> dict[str, dict[str, int]]:
    return {name: tally.share() for name, tally in sorted(shares.items())}
