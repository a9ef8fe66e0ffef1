"""One cycle of synchronization of a project with its space, in both directions.

Each step can be repeated: a cycle that was interrupted anywhere is completed by the next one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Final
from uuid import UUID

from msgspec import Struct

from core.base.errors import Unwritable
from core.base.text import plural, visible_line
from core.decisions.export import Masked
from core.decisions.merge import project_origin
from core.records.team import AddedUses, Level, PatternText, SpaceInfo, TeamTrial, TeamUse
from core.sources.team_evidence import TeamEvidenceWriter
from core.team.connection import AccessDenied, LimitReached
from core.team.decisions import Decisions
from core.team.local_state import JOINED, LAST_SYNC, LocalState, Status
from core.team.outbox import Changes, Outbox, decode_use, find_trials, recovered_use, team_use
from core.team.sharing import Sharing
from core.team.texts import Progress, Texts

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.snapshot import Snapshot
    from core.team.server import Space
    from core.team.texts import OpenProject

_USES: Final = 2_000  # uses in one call of the server
_ALL: Final = 2**31
_SERVER: Final = "server"
_PATTERNS: Final = "patterns_cursor"
_SUMS: Final = "sums_cursor"
_POSTPONED: Final = "postponed"  # fact: the day (UTC) for which the server took no more uses
_TRIALS_POSTPONED: Final = "trials_postponed"  # fact: the same of trials


class Prefer(StrEnum):
    """Whose text replaces the other one where both differ."""

    LOCAL = "local"
    TEAM = "team"


class Cycle(Struct, frozen=True, kw_only=True):
    """What one cycle did.

    `conflicts` are the IDs of patterns with two texts. `notes` say what was left out, and why.
    """

    sent_uses: int = 0
    withdrawn_uses: int = 0
    sent_trials: int = 0
    sent_texts: int = 0
    sent_decisions: int = 0
    received_texts: int = 0
    received_decisions: int = 0
    changed_sums: int = 0
    conflicts: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return self == Cycle(conflicts=self.conflicts, notes=self.notes)


class Preview(Struct, frozen=True, kw_only=True):
    """Exactly what the next cycle would send, and what of it is masked."""

    patterns: tuple[PatternText, ...]
    decisions: tuple[str, ...]
    uses: tuple[TeamUse, ...]
    trials: tuple[TeamTrial, ...]
    masked: tuple[Masked, ...]


class Synchronizer:
    """Synchronizes a project; the space knows it by `project_id`, shows `name`."""

    def __init__(
        self,
        project: OpenProject,
        state: LocalState,
        project_id: UUID,
        *,
        name: str = "",
        progress: Progress = lambda what, done, total: None,
    ) -> None:
        self._project = project
        self._state = state
        self._project_id = project_id
        self._progress = progress
        self._name = name or project.project.project.name or "project"
        self._evidence = TeamEvidenceWriter(project.project)
        self.decisions = Decisions(project, state, project_id, self._sharing)
        self._shared: tuple[Snapshot | None, Sharing] = None, Sharing("")
        self._outboxes: dict[str, Outbox] = {}
        self._trials: tuple[tuple[object, ...], list[TeamTrial]] = (), []  # of which events, patterns and conflicts
        self._notes: list[str] = []  # of this cycle
        self._unsent_texts: tuple[tuple[object, ...], int] = (), 0
        """How many texts the space does not have, and of what this was counted."""

    def run(self, space: Space, prefer: Prefer | None = None) -> Cycle:
        """Send and receive everything once; `prefer` resolves conflicts about texts.

        Raises TeamError, and Unwritable if a file cannot be written.
        """
        with self._state.exclusive(), _translated(self._state):
            self._begin(space)
            texts, decisions = self._texts(), self.decisions
            sent_before = decisions.sent_texts
            self._notes = texts.notes
            decisions.notes.clear()
            may_send = space.info.level.allows(Level.CONTRIBUTOR)
            sent_decisions, refused = decisions.send(space) if may_send else (0, ())
            received_decisions, late = decisions.receive(space)
            received_texts = self._receive_texts(space, texts, prefer)
            sent_texts = self._send_texts(space, texts) if may_send else 0
            sent, withdrawn = self._send_uses(space) if may_send else (0, 0)
            sent_trials = self._send_trials(space) if may_send else 0
            changed_sums = self._receive_sums(space)
            self._state.set_facts(**{LAST_SYNC: self._project.now().isoformat()})
            return Cycle(
                sent_uses=sent,
                withdrawn_uses=withdrawn,
                sent_trials=sent_trials,
                sent_texts=sent_texts + decisions.sent_texts - sent_before,
                sent_decisions=sent_decisions,
                received_texts=received_texts,
                received_decisions=received_decisions,
                changed_sums=changed_sums,
                conflicts=tuple(texts.conflicts),
                refused=(*refused, *late),
                notes=tuple(dict.fromkeys((*decisions.notes, *self._notes))),
            )

    def preview(self) -> Preview:
        """Return what would be sent; needs no server."""
        with _translated(self._state):
            sharing = self._sharing()
            patterns, payloads = self._texts().find_changed(), self.decisions.payloads()
            found = self._find_uses()
            stored = (*self._state.unsent(_ALL), *found.add)
            withdrawn = (use._replace(status=Status.TO_WITHDRAW) for use in found.withdraw)
            uses = tuple(team_use(use) for use in (*stored, *withdrawn))
            trials, masked = tuple(self._find_trials()), tuple(sharing.masked)
            return Preview(patterns=tuple(patterns), decisions=payloads, uses=uses, trials=trials, masked=masked)

    @property
    def _view(self) -> ProjectState:
        return self._project.view

    @property
    def _snapshot(self) -> Snapshot:
        return self._project.view.snapshot

    def _begin(self, space: Space) -> None:
        """Forget what is not true of this space or server any more."""
        info, state = space.info, self._state
        described = {"epoch": info.epoch.isoformat(), "half_life_days": str(info.half_life_days)}
        check_space(state, info)
        with state.transaction():
            if not state.fact("space"):
                state.clear()
                state.set_facts(space=info.id, **described)
            if (known := state.fact(_SERVER)) != space.server:  # a cursor is a number of a transaction of that server
                if known:  # it may be a standby or a restored backup, which has lost something
                    state.send_uses_again()
                state.set_facts(**{_SERVER: space.server, _PATTERNS: "0", _SUMS: "0"}, joined="")
            if {name: state.fact(name) for name in described} != described:
                state.forget_sums()
                state.set_facts(**described, **{_SUMS: "0"})
        if info.level.allows(Level.CONTRIBUTOR) and (joined := state.fact(JOINED)) != info.member:
            # none, unless the state of a joined project was lost
            found = () if joined else space.uses_of(self._project_id)
            space.join_project(self._project_id, self._name)
            with state.transaction():
                state.add_uses(recovered_use(use, is_withdrawn=is_withdrawn) for use, is_withdrawn in found)
                state.set_facts(**{JOINED: info.member})

    def count_unsent(self) -> int:
        """Return the number of unsent texts, decisions, uses, trials; needs no server."""
        with _translated(self._state):
            found = self._find_uses()
            uses = self._state.count_unsent() + len(found.add) + len(found.withdraw)
            return uses + len(self._find_trials()) + self._count_texts() + self.decisions.count_unsent()

    def _count_texts(self) -> int:
        texts = self._texts()
        if self._unsent_texts[0] != (compared := self._compared(texts)):
            self._unsent_texts = compared, texts.count_changed()
        return self._unsent_texts[1]

    def _compared(self, texts: Texts) -> tuple[object, ...]:
        """Return what decides which texts the space does not have."""
        snapshot = self._snapshot
        return snapshot.patterns, snapshot.curation, dict(texts.conflicts)

    def _sharing(self) -> Sharing:
        """Return what masks texts; the same object until a record changes."""
        snapshot = self._snapshot
        if self._shared[0] is not snapshot:
            self._shared = snapshot, self._make_sharing(snapshot)
        return self._shared[1]

    def _make_sharing(self, snapshot: Snapshot) -> Sharing:
        loops = {name for loop in snapshot.loops.values() for name in (loop.id, *loop.aliases)}
        loops |= {source.loop_id for one in snapshot.patterns.values() for source in one.source_loops}
        loops |= {event.loop_id for event in snapshot.events if event.loop_id}
        persons = {source.contributed_by for one in snapshot.patterns.values() for source in one.source_loops}
        origin = project_origin(self._project.project, self._project.settings.watch.retry_seconds)
        sharing = Sharing(origin, loops, persons)
        sharing.add_pairs(self._state.hash_pairs())
        return sharing

    def _texts(self) -> Texts:
        return Texts(self._project, self._state, self._sharing, self._progress)

    def _receive_texts(self, space: Space, texts: Texts, prefer: Prefer | None) -> int:
        cursor = self._state.fact(_PATTERNS, "0")
        found = space.changed_patterns(cursor)
        self._notes += (
            f"the pattern {visible_line(id, 80)} of {visible_line(by, 80)} is larger than 256 KiB; it was not received"
            for id, by in found.too_large.items()
        )
        if cursor == "0":  # these are all: other texts were lost, and are sent again
            self._state.forget_texts(self._state.text_bases().keys() - found.ids)
        levels = {member.name: member.level for member in space.members()} if found.pages else {}
        count = 0
        for page in found.pages or ((),):  # without new texts, conflicts may still have ended
            count += texts.receive(space.patterns(page) if page else (), levels)
        if prefer is not None and texts.conflicts:
            rows = space.patterns(texts.conflicts)
            count += texts.take_theirs(rows) if prefer is Prefer.TEAM else 0
            if prefer is Prefer.LOCAL:
                texts.take_ours(space, rows)
        with self._state.transaction():
            self._state.set_conflicts(texts.conflicts)
            self._state.set_facts(**{_PATTERNS: found.cursor})
        return count

    def _send_texts(self, space: Space, texts: Texts) -> int:
        if self._unsent_texts == (self._compared(texts), 0):
            return 0
        count = texts.send(space, texts.find_changed(space.info.level))
        self._state.set_conflicts(texts.conflicts)
        if not texts.is_at_limit:
            self._unsent_texts = self._compared(texts), 0
        return count

    def _outbox(self) -> Outbox:
        space = self._state.fact("space")
        if space not in self._outboxes:
            self._outboxes = {space: Outbox(self._state, space.encode())}
        return self._outboxes[space]

    def _send_uses(self, space: Space) -> tuple[int, int]:
        """Send uses; return how many were sent and withdrawn."""
        sent, withdrawn = self._send_stored(space)  # those of an interrupted cycle
        self._outbox().store(self._find_uses())
        if self._state.fact(_POSTPONED) != (today := space.now().date().isoformat()):
            self._state.retry_postponed()
            self._state.set_facts(**{_POSTPONED: today})
        more = self._send_stored(space)
        if later := self._state.count_postponed():
            self._notes.append(f"{plural(later, 'use')} more than a member may send in a day: sent after midnight UTC")
        return sent + more[0], withdrawn + more[1]

    def _find_uses(self) -> Changes:
        """Compare all patterns' uses with those sent, except of those with a conflict."""
        snapshot = self._snapshot
        is_whole = snapshot.complete and not snapshot.unreadable
        skipped = self._state.conflicts()  # their uses are of another text than that of the space
        return self._outbox().find(self._view.board, snapshot.patterns, skipped=skipped, withdraws=is_whole)

    def _send_trials(self, space: Space) -> int:
        """Send the finished trials of the experiment; return how many were sent."""
        today = space.now().date().isoformat()
        found = self._find_trials()
        if not found or self._state.fact(_TRIALS_POSTPONED) == today:
            return 0
        sent = 0
        for start in range(0, len(found), _USES):
            batch = found[start : start + _USES]
            try:
                later = space.add_trials(self._project_id, batch).later
            except LimitReached:
                later = frozenset(trial.id for trial in batch)
            self._state.add_sent_trials(trial.id.bytes for trial in batch if trial.id not in later)
            sent += len(batch) - len(later)
            if later:
                self._state.set_facts(**{_TRIALS_POSTPONED: today})
                self._notes.append("more trials than a member may send in a day: sent after midnight UTC")
                break
        return sent

    def _find_trials(self) -> list[TeamTrial]:
        """Return trials that the space lacks, except of patterns with a conflict."""
        snapshot, skipped = self._snapshot, self._state.conflicts()
        space, now = self._state.fact("space"), self._view.now
        compared = snapshot.events, snapshot.patterns, snapshot.trial_key, tuple(skipped), space
        if self._trials[0] != compared:
            self._trials = compared, find_trials(snapshot, now, space.encode(), skipped)
        if not self._trials[1]:
            return []
        known = self._state.sent_trials()
        return [trial for trial in self._trials[1] if trial.id.bytes not in known]

    def _send_stored(self, space: Space) -> tuple[int, int]:
        sent = withdrawn = total = 0
        while batch := self._state.unsent(_USES):
            if len(batch) == _USES:
                total = total or self._state.count_unsent()
                self._progress("Sending uses", sent + withdrawn, total)
            added = [use for use in batch if use.status is Status.TO_SEND]
            ended = [use for use in batch if use.status is Status.TO_WITHDRAW]
            answer = space.add_events(self._project_id, map(team_use, added)) if added else AddedUses(new=frozenset())
            later = [use.id for use in added if UUID(bytes=use.id) in answer.later]
            self._state.postpone(later)
            added = [use for use in added if UUID(bytes=use.id) not in answer.later]
            if ended:
                space.add_events(self._project_id, map(team_use, ended))
            info = space.info
            sums = {
                use.id: decode_use(use).sums(info.epoch, info.half_life_days, answer.arrived.get(UUID(bytes=use.id)))
                for use in added
            }
            self._state.confirm(sums, [use.id for use in ended])
            sent, withdrawn = sent + len(added), withdrawn + len(ended)
        return sent, withdrawn

    def _receive_sums(self, space: Space) -> int:
        """Write what other projects added to the sums; return the number of patterns."""
        found, held = space.sums(self._state.fact(_SUMS, "0")), space.held_uses()
        self._state.set_not_counted([id.bytes for id in space.not_counted(self._project_id)])
        with self._state.transaction():
            self._state.set_sums(found.sums.values())
            self._state.set_facts(**{_SUMS: found.cursor})
        info = space.info
        is_whole = self._evidence.is_whole(info.name, info.epoch, info.half_life_days)
        others = self._state.others(only_changed=is_whole)
        written = self._evidence.update(info.name, info.epoch, info.half_life_days, others, held)
        self._state.forget_changed()
        if written is not None:
            self._project.apply((self._project.project.team_evidence,))
        return written or 0


def check_space(state: LocalState, info: SpaceInfo) -> None:
    """Raise AccessDenied for another space with the joined name: it gets nothing."""
    if state.fact("space") not in ("", str(info.id)):
        raise AccessDenied(
            f"the space {visible_line(info.name)} of this server is not the one that this project has joined; "
            "to join it instead: ralphdeck team join --leave, then ralphdeck team join"
        )


@contextmanager
def _translated(state: LocalState) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise Unwritable(f"cannot use {state.file}: {error}") from None
