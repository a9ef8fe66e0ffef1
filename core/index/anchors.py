"""Anchors of patterns that the project no longer has, found with Git.

Kept for one commit at a time; see docs/curation.md#anchors. Reading the result takes a millisecond and runs no Git.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from core.base.errors import DamagedError
from core.base.paths import ProjectPaths
from core.files.git import GitFailed, read_head
from core.index.database import unpack
from core.index.records import Kind
from core.index.snapshot import ChangedSnapshot, IndexedSnapshot
from core.index.verdicts import read_verdicts, write_verdicts
from core.records.anchors import AnchorChange, list_anchors, newest_change, parse_anchor
from core.records.decisions import anchor_question_id
from core.sources.anchor_check import Wanted, WorkingTree, find_changes
from core.trust.projects import is_trusted

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.index.verdicts import StoredVerdicts
    from core.records.decisions import CurationState
    from core.records.snapshot import Snapshot

KIND: Final = "anchors"
"""Kind of the one verdict with all anchors that were removed or renamed."""
_KEY: Final = "of all patterns"
_RETRY_SECONDS: Final = 3600.0  # after a check that failed, because each may take 30 seconds
_MOST_STALE: Final = 200  # patterns of which the present files are compared for one context
_POLL_SECONDS: Final = 0.01
Stale = Mapping[str, tuple[AnchorChange, ...]]


class AnchorChecks(Struct, frozen=True, array_like=True):
    """What Git showed when a commit was checked out, by pattern.

    `problem` is why the last check failed, at `failed_at` (seconds since 1970); `changes` are those of the one before.
    """

    head: str
    patterns: str  # identifies the records of that time
    count: int  # patterns with anchors
    changes: dict[str, tuple[AnchorChange, ...]]
    problem: str = ""
    failed_at: float = 0.0

    def is_current(self, head: str, patterns: str) -> bool:
        is_final = not self.problem or abs(time() - self.failed_at) < _RETRY_SECONDS
        return (self.head, self.patterns) == (head, patterns) and is_final


_DECODER: Final = msgspec.msgpack.Decoder(AnchorChecks)


def find_stale(snapshot: Snapshot) -> Stale:
    """Return the known changes of anchors that the working tree lacks, by pattern."""
    view, checks = _indexed(snapshot), _read_checks(snapshot)
    if view is None or checks is None or not checks.changes:
        return {}
    tree, stale = WorkingTree(view.project), dict(checks.changes)
    for id, changes in islice(checks.changes.items(), _MOST_STALE):
        stale[id] = tuple(one for one in changes if (anchor := parse_anchor(one.anchor)) and not tree.has(anchor))
    return {id: changes for id, changes in stale.items() if changes}


def find_doubtful(stale: Stale, curation: CurationState) -> frozenset[str]:
    """Return patterns with removed anchors that no person has called true since."""
    doubtful = set()
    for id, changes in stale.items():
        removed = [one for one in changes if one.is_removed]
        if removed and anchor_question_id(id, True, newest_change(removed).commit) not in curation.dismissed:
            doubtful.add(id)
    return frozenset(doubtful)


def find_problem(snapshot: Snapshot) -> str:
    """Return why the last check of anchors failed, or ""."""
    checks = _read_checks(snapshot)
    return checks.problem if checks is not None else ""


def explain_unchecked(snapshot: Snapshot, stored: StoredVerdicts) -> str:
    """Return why a check that ran just now knows nothing of the history, or ""."""
    view = _indexed(snapshot)
    if view is None or not read_head(view.project):
        return "there is no Git repository with a commit"
    if not is_trusted(ProjectPaths(view.project)):
        return "the project is not trusted"
    checks = read_verdicts(stored, KIND, [_KEY], AnchorChecks).get(_KEY)
    return checks.problem if checks is not None else ""


def is_checked(snapshot: Snapshot) -> bool:
    """Return whether the view knows a check of the commit that is checked out."""
    checks = _read_checks(snapshot)
    return checks is not None and checks.head == find_head(snapshot)


def is_check_due(snapshot: Snapshot) -> bool:
    """Return whether another commit was checked out since the anchors were checked."""
    checks = _read_checks(snapshot)
    return checks is not None and checks.count > 0 and checks.head != find_head(snapshot)


def _read_checks(snapshot: Snapshot) -> AnchorChecks | None:
    """Return the last result of a view, also one of earlier code."""
    view = _indexed(snapshot)
    row = view.reader.row("SELECT data FROM verdict WHERE kind = ? AND key = ?", KIND, _KEY) if view else None
    with suppress(DamagedError, msgspec.MsgspecError):
        return _DECODER.decode(unpack(row[0])) if row is not None else None
    return None


def find_head(snapshot: Snapshot) -> str:
    """Return the commit checked out in the project of a view; "" if unknown."""
    view = _indexed(snapshot)
    return read_head(view.project) if view is not None else ""


def check_in_steps(snapshot: Snapshot, stored: StoredVerdicts) -> Steps[Stale]:
    """Compare all anchors with the history, if the commit or a pattern changed."""
    view = _indexed(snapshot)
    head = find_head(snapshot)
    if view is None or not head or not is_trusted(ProjectPaths(view.project)):
        return {}
    rows = view.reader.rows("SELECT count(*), coalesce(max(number), 0) FROM record WHERE kind = ?", Kind.PATTERN)
    patterns = "-".join(map(str, rows[0]))
    before = read_verdicts(stored, KIND, [_KEY], AnchorChecks).get(_KEY)
    if before is not None and before.is_current(head, patterns):
        return before.changes
    wanted: list[tuple[str, Wanted]] = []
    for id, pattern in view.patterns.items():
        since, commit = pattern.first_discovered, pattern.anchor_commit
        wanted += ((id, Wanted(anchor, since, commit)) for anchor in list_anchors(pattern.anchors))
        yield
    search = _Search(view.project, wanted)
    search.start()
    while search.is_alive():
        search.join(_POLL_SECONDS)
        yield
    changes, problem = search.changes, search.problem
    if problem:
        changes = before.changes if before is not None else {}
    count = len({id for id, _ in wanted})
    checks = AnchorChecks(head, patterns, count, changes, problem, time() if problem else 0.0)
    write_verdicts(stored, KIND, {_KEY: checks})
    return changes


class _Search(threading.Thread):
    """Searches the history, because Git may take seconds; `problem` is why it failed."""

    def __init__(self, project: Path, wanted: Sequence[tuple[str, Wanted]]) -> None:
        super().__init__(daemon=True)
        self._project = project
        self._wanted = wanted
        self.changes: dict[str, tuple[AnchorChange, ...]] = {}
        self.problem = ""

    def run(self) -> None:
        """Group the changes by pattern."""
        try:
            found = find_changes(self._project, list(dict.fromkeys(one for _, one in self._wanted)))
        except GitFailed as error:
            self.problem = str(error)
        except (OSError, ValueError, OverflowError) as error:
            self.problem = f"the output of Git cannot be read: {error}"
        else:
            for id, one in self._wanted:
                if one in found:
                    self.changes[id] = (*self.changes.get(id, ()), found[one])


def _indexed(snapshot: Snapshot) -> IndexedSnapshot | None:
    """Return the view of the index that a snapshot is made from, or None."""
    while isinstance(snapshot, ChangedSnapshot):
        snapshot = snapshot.base
    return snapshot if isinstance(snapshot, IndexedSnapshot) else None
