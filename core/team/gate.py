"""Asks a joined project's space before a decision is written, unless offline."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from core.base.errors import BadInput, RalphdeckError, Unwritable
from core.decisions.conflicts import conflict_keys
from core.records.decisions import SYNC, TURNS, Decision, Verb
from core.records.team import Level
from core.records.times import parse_time
from core.team.connection import (
    AccessDenied,
    LevelTooLow,
    Limits,
    NotMember,
    Offline,
    SchemaMismatch,
    TeamError,
    TooLarge,
)
from core.team.local_state import LAST_SYNC, LocalState
from core.team.refusals import describe_conflict
from core.team.server import Space
from core.team.sharing import is_shared
from core.team.sync import Synchronizer, check_space

if TYPE_CHECKING:
    from core.records.team import DecisionReceipt
    from core.team.connection import Joined
    from core.team.decisions import DecisionCall
    from core.team.texts import OpenProject

SECONDS: Final = 3.0
"""Longest time for which a decision waits for the server, whatever takes it: names, connection or answers."""
_LIMITS: Final = Limits(connect=1.0, statement=2.0, lost=2.0)
_LOCK_SECONDS: Final = 0.5  # to wait for a sync of another process
_SLOW_SECONDS: Final = 0.5  # a failure that took longer is remembered
_PAUSE: Final = timedelta(minutes=1)
"""Time after a slow failure in which decisions do not wait again, unless a sync has reached the server."""
_FAILED: Final = "gate_failed"
_T = TypeVar("_T")


class _TimedOut(Offline):
    """The server did not answer in time; a thread still waits for it."""


class TeamGate:
    """The gate of one joined project; see `core.decisions.curator.DecisionGate`.

    `connect` opens the space. A decision whose answer was lost is made here and sent again by the next sync; the space
    recognises its ID. Decisions of loops are not asked for: they are sent by the next sync.
    """

    def __init__(self, project: OpenProject, joined: Joined, connect: Callable[[], Space] | None = None) -> None:
        self._project = project
        self._project_id = joined.id
        self._connect = connect or (lambda: Space.connect(joined.conninfo, joined.space, _LIMITS))
        self._space: Space | None = None
        self._state = LocalState(project.project.project)
        self._exchange = Synchronizer(project, self._state, joined.id).decisions
        self.note = ""

    def admit(self, decisions: Sequence[Decision], *, is_whole: bool) -> Mapping[str, str]:
        self.note = ""
        try:
            return self._admit(decisions, is_whole=is_whole)
        except sqlite3.Error as error:  # the space recognises what the next sync sends again
            self.note = f"not sent to the team yet: cannot use {self._state.file}: {error}"
            return {}

    def _admit(self, decisions: Sequence[Decision], *, is_whole: bool) -> Mapping[str, str]:
        asked = [decision for decision in decisions if self._is_asked(decision)]
        has_joined, has_synced = bool(self._state.fact("joined")), bool(self._state.fact(LAST_SYNC))
        if not asked or not (has_joined or has_synced) or self._has_queued(asked) or self._is_known_offline():
            return {}
        began = monotonic()
        try:
            if not has_joined and self._open(began + SECONDS).info.level.allows(Level.CONTRIBUTOR):
                return {}  # not a reader any more: the next sync adds this project to the space first
            calls, receipts = self._ask(asked, is_whole, began + SECONDS)
        except TooLarge as error:
            self.note = f"not sent to the team: {error}"
            return {}
        except LevelTooLow as error:
            if any(decision.verb is not Verb.EXTRACT for decision in asked):
                raise
            self.note = f"not sent to the team: {error}"
            return {}
        except (Offline, AccessDenied) as error:
            self._drop(error)
            if isinstance(error, NotMember):
                raise
            if monotonic() - began > _SLOW_SECONDS:
                with suppress(Unwritable):
                    self._state.set_facts(**{_FAILED: self._project.now().isoformat()})
            self.note = f"not sent to the team yet: {error}"
            return {}
        conflicts = {key: receipt.conflicts[0] for key, receipt in receipts.items() if receipt.conflicts}
        if not (conflicts and is_whole):
            with suppress(sqlite3.Error):  # they are sent again, and recognised
                for decision in asked:
                    if (seq := receipts[decision.id].seq) is not None:
                        self._exchange.accepted(decision, calls[decision.id], seq)
        known, now = self._project.ledger.by_id(), self._project.now()
        own = self._exchange.own_record
        return {key: describe_conflict(conflict, known, own, now) for key, conflict in conflicts.items()}

    def catch_up(self) -> None:
        """After a conflict, receive what others decided, if that is possible at once."""
        space, exchange = self._space, self._exchange
        if space is None:
            return
        with suppress(RalphdeckError), self._state.exclusive(_LOCK_SECONDS):
            head = exchange.head(space.info.id)
            rows = _run(lambda: space.decisions(head.seq), monotonic() + SECONDS, space.close)
            exchange.take(space, head, rows)

    def close(self) -> None:
        self._drop()
        self._state.close()

    def _is_asked(self, decision: Decision) -> bool:
        if decision.is_unattended or decision.by == SYNC or not is_shared(decision):
            return False
        return decision.verb not in TURNS or self._state.decision_seqs().get(decision.subject) is not None

    def _has_queued(self, asked: Sequence[Decision]) -> bool:
        """Whether an earlier decision on a subject is unsent; they are sent in order."""
        known = self._project.ledger.by_id()
        keys = {key for one in self._exchange.unsent() for key in conflict_keys(one, known)}
        return any(not keys.isdisjoint(conflict_keys(one, known)) for one in asked)

    def _is_known_offline(self) -> bool:
        failed, synced = (parse_time(self._state.fact(name) or None) for name in (_FAILED, LAST_SYNC))
        if failed is None or (synced is not None and synced > failed):
            return False
        return abs(self._project.now() - failed) < _PAUSE

    def _ask(
        self, asked: Sequence[Decision], is_whole: bool, until: float
    ) -> tuple[dict[str, DecisionCall], dict[str, DecisionReceipt]]:
        """Send decisions; with a connection that was idle, try once again with a new one."""
        is_idle = self._space is not None
        space = self._open(until)
        calls = {one.id: self._exchange.call(one, space.info.member) for one in asked}
        try:
            return calls, _run(lambda: self._send(space, calls, is_whole), until, space.close)
        except Offline as error:
            if not is_idle or isinstance(error, _TimedOut):
                raise
            self._drop()
        other = self._open(until)
        return calls, _run(lambda: self._send(other, calls, is_whole), until, other.close)

    def _open(self, until: float) -> Space:
        if self._space is None or self._space.connection.closed:
            try:
                self._space = space = _run(self._connect, until)
                check_space(self._state, space.info)
            except (NotMember, Offline, SchemaMismatch):
                raise
            except (BadInput, TeamError) as error:  # no address, or no driver
                raise AccessDenied(str(error)) from error
        return self._space

    def _send(self, space: Space, calls: Mapping[str, DecisionCall], is_whole: bool) -> dict[str, DecisionReceipt]:
        """Send the decisions of an act, in one transaction."""
        from psycopg import Rollback

        receipts = {}
        with space.transaction():
            for identifier, call in calls.items():
                receipts[identifier] = call.send(space, self._project_id)
            if is_whole and any(receipt.conflicts for receipt in receipts.values()):
                raise Rollback
        return receipts

    def _drop(self, error: Exception | None = None) -> None:
        """Close the connection; after a timeout, the thread that uses it does."""
        space, self._space = self._space, None
        if space is not None and not isinstance(error, _TimedOut):
            space.close()


def _run(function: Callable[[], _T], until: float, abandon: Callable[[], object] | None = None) -> _T:
    """Run a network call in a thread; at `until`, abandon it and raise _TimedOut.

    Nothing else bounds all of it: a name server may be slow, and a connection half open. `abandon` is called in the
    thread when a call that was left behind has ended.
    """
    results: list[_T] = []
    errors: list[BaseException] = []
    is_left = threading.Event()

    def work() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)
        if is_left.is_set():
            for close in (*(one.close for one in results if isinstance(one, Space)), *filter(None, [abandon])):
                close()

    thread = threading.Thread(target=work, name="ralphdeck-team-decision", daemon=True)
    thread.start()
    thread.join(max(until - monotonic(), 0))
    if thread.is_alive():
        is_left.set()
        raise _TimedOut(f"the team's server did not answer within {SECONDS:g} s")
    if errors:
        raise errors[0]
    return results[0]
