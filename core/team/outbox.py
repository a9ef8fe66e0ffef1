"""Uses and trials that a project must send, and uses that it must withdraw.

A use is an observation after the local counting rules. Its ID is made of its content, not of the project or machine, so
two copies of a project send a use only once. Equal uses are numbered; a use that was withdrawn and is observed again
gets the next generation. The ID of a trial is made of the key of its task, which contains neither a text nor the secret
of the coin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

import msgspec
from msgspec import Struct

from core.index.experiment import list_results, list_units
from core.learning.experiments import place_trials
from core.records.team import TeamSums, TeamTrial, TeamUse
from core.team.local_state import LocalState, Status, StoredUse

if TYPE_CHECKING:
    from core.learning.scoreboard import Scoreboard
    from core.records.events import Observation
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot

INJECTED: Final = "injected"
APPLIED: Final = "applied"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = 1_000_000
_ID_BYTES: Final = 16
MAX_COUNT: Final = 100
"""Largest count of one use; the server refuses more."""
_FIRST_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)
_END_OF_TIMES: Final = datetime(2100, 1, 1, tzinfo=UTC)
_MAX_HALF_LIVES: Final = 900.0  # as on the server; a float can represent 2**900
_encode: Final = msgspec.json.Encoder().encode


class Use(Struct, frozen=True, array_like=True, gc=False):
    """What is sent about one use: no loop, no project, no text.

    `kind` is `injected` (not applied) or `applied`. `at` is in microseconds since 1970, None if unknown.
    """

    pattern_id: str
    kind: str
    at: int | None
    success: bool | None
    weight: float
    count: int

    @property
    def time(self) -> datetime | None:
        if self.at is None:
            return None
        return datetime.fromtimestamp(self.at // _MICROSECOND, UTC).replace(microsecond=self.at % _MICROSECOND)

    def sums(self, epoch: datetime, half_life_days: float, arrived: datetime | None = None) -> TeamSums:
        """Return what the use adds to its pattern's sums; `arrived` is the latest time."""
        at = self.time
        if at is not None and arrived is not None:
            at = min(at, arrived)
        age = 0.0 if at is None else (at - epoch).total_seconds() / 86_400.0 / half_life_days
        factor = 0.0 if at is None else 2.0 ** max(-_MAX_HALF_LIVES, min(_MAX_HALF_LIVES, age))
        is_applied, value = self.kind == APPLIED, self.count * self.weight
        helpful = value if is_applied and self.success is True else 0.0
        harmful = value if is_applied and self.success is False else 0.0
        is_fixed = at is None
        return TeamSums(
            pattern_id=self.pattern_id,
            successes=self.count if is_applied and self.success is True else 0,
            failures=self.count if is_applied and self.success is False else 0,
            uses=self.count if is_applied else 0,
            injected_only=0 if is_applied else self.count,
            helpful=helpful * factor,
            harmful=harmful * factor,
            injections=self.count * factor,
            undecayed=helpful + harmful,
            fixed_helpful=helpful * is_fixed,
            fixed_harmful=harmful * is_fixed,
            fixed_injections=float(self.count * is_fixed),
            last_used=at if is_applied else None,
        )


class Slot(NamedTuple):
    """One of several equal uses in a loop; `key` digests all that distinguishes it."""

    key: bytes
    use: Use


class Difference(NamedTuple):
    """What has to be sent so that the space has the uses of a project."""

    add: tuple[StoredUse, ...] = ()
    withdraw: tuple[StoredUse, ...] = ()


def decode_use(stored: StoredUse) -> Use:
    return msgspec.msgpack.decode(stored.fields, type=Use)


def make_uses(observation: Observation) -> Iterator[Use]:
    """Yield uses with counts the server takes; none for a time that it refuses."""
    at, left = observation.at, observation.count
    if at is not None and not _FIRST_TIME <= at < _END_OF_TIMES:
        return
    while True:
        yield Use(
            observation.pattern_id,
            INJECTED if observation.kind == "injected" else APPLIED,
            None if at is None else microseconds(at),
            observation.success,
            observation.weight,
            min(left, MAX_COUNT),
        )
        if (left := left - MAX_COUNT) <= 0:
            return


def microseconds(at: datetime) -> int:
    since = at - _EPOCH
    return (since.days * 86_400 + since.seconds) * _MICROSECOND + since.microseconds


def recovered_use(sent: TeamUse, *, is_withdrawn: bool) -> StoredUse:
    """Return a use of this project that was found on the server."""
    at = None if sent.at is None else microseconds(sent.at)
    use = Use(sent.pattern_id, sent.kind, at, sent.success, sent.weight, sent.count)
    status = Status.WITHDRAWN if is_withdrawn else Status.TO_SEND
    return StoredUse(sent.id.bytes, use.pattern_id, sent.id.bytes, 0, status, msgspec.msgpack.encode(use))


def team_use(stored: StoredUse) -> TeamUse:
    """Return what is sent of a use, or of its withdrawal."""
    use, id = decode_use(stored), UUID(bytes=stored.id)
    if stored.status is Status.TO_WITHDRAW:
        ended = UUID(bytes=withdrawal_id(stored.id))
        return TeamUse(id=ended, pattern_id=use.pattern_id, kind=use.kind, at=use.time, withdraws=id)
    return TeamUse(
        id=id,
        pattern_id=use.pattern_id,
        kind=use.kind,
        at=use.time,
        success=use.success,
        weight=use.weight,
        count=use.count,
    )


def find_slots(observations: Iterable[Observation], salt: bytes) -> list[Slot]:
    """Return the uses of one pattern, each with a key that is unique among them.

    `salt` is that of the space: equal uses must not have equal keys in two spaces.
    """
    ordinals: Counter[bytes] = Counter()
    slots = []
    for one in observations:
        if one.is_sighting:
            continue
        for use in make_uses(one):
            content = _encode((use, one.loop_id, one.iteration))
            ordinal = ordinals[content]
            ordinals[content] += 1
            slots.append(Slot(_digest(salt, content, ordinal), use))
    return slots


def _digest(salt: bytes, content: bytes, number: int) -> bytes:
    return blake2b(content + b" %d" % number, digest_size=_ID_BYTES, key=salt[:64]).digest()


def use_id(key: bytes, generation: int) -> bytes:
    return blake2b(key + b" %d" % generation, digest_size=_ID_BYTES).digest()


def withdrawal_id(use: bytes) -> bytes:
    """Return the ID of the withdrawal of a use, the same in all copies of a project."""
    return blake2b(use + b" withdrawn", digest_size=_ID_BYTES).digest()


def compare(pattern_id: str, slots: Iterable[Slot], stored: Iterable[StoredUse]) -> Difference:
    """Compare the observed uses of a pattern with those that were sent.

    A use that was found on the server has its ID as slot, because the slot cannot be computed from it.
    """
    live: dict[bytes, StoredUse] = {}
    generations: dict[bytes, int] = {}
    by_id = {one.id: one for one in stored}
    for one in by_id.values():
        generations[one.slot] = max(one.generation, generations.get(one.slot, 0))
        if one.status not in (Status.TO_WITHDRAW, Status.WITHDRAWN):
            live[one.slot] = one
    add = []
    for slot in slots:
        if live.pop(slot.key, None) is not None:
            continue
        generation = generations.get(slot.key, -1) + 1
        name = use_id(slot.key, generation)
        while name in by_id and live.pop(name, None) is None:  # it was withdrawn
            generation += 1
            name = use_id(slot.key, generation)
        if name not in by_id:
            fields = msgspec.msgpack.encode(slot.use)
            add.append(StoredUse(name, pattern_id, slot.key, generation, Status.TO_SEND, fields))
    return Difference(tuple(add), tuple(live.values()))


def find_trials(snapshot: Snapshot, now: datetime, salt: bytes, skipped: Collection[str] = ()) -> list[TeamTrial]:
    """Return the user's finished trials of registered patterns not in `skipped`."""
    units = list_units(snapshot, now)
    found: list[TeamTrial] = []
    for kind in ("returned", "succeeded"):
        for trial, cell in place_trials(list_results(units, is_far=kind == "succeeded")):
            pattern = snapshot.patterns.get(trial.pattern)
            if pattern is None or not pattern.is_registered or pattern.id in skipped:
                continue
            content = f"trial\n{kind}\n{trial.task}\n{trial.pattern}".encode(errors="surrogateescape")
            found.append(
                TeamTrial(
                    id=UUID(bytes=_digest(salt, content, 0)),
                    pattern_id=trial.pattern,
                    kind=kind,
                    share=trial.share,
                    rate=cell.rate,
                    is_held_out=trial.is_held_out,
                    outcome=trial.outcome > 0,
                )
            )
    return found


class Outbox:
    """Finds the uses to send or to withdraw: those that differ from what was sent."""

    def __init__(self, state: LocalState, salt: bytes) -> None:
        self._state = state
        self._salt = salt
        self._compared: Scoreboard | None = None  # whose uses are those of the last `store`
        self._skipped: frozenset[str] = frozenset()  # patterns that were then not compared

    def find(
        self,
        board: Scoreboard,
        patterns: Mapping[str, Pattern],
        *,
        skipped: Collection[str] = (),
        withdraws: bool = True,
    ) -> Changes:
        """Compare the patterns whose uses changed since `store`, except `skipped`.

        The uses of a pattern that no longer exists stay in the space, unless it was merged into another one. Without
        `withdraws`, as long as files cannot be read, nothing is withdrawn.
        """
        changed = self._changed_patterns(board)
        if changed is not None and not (changed := changed - set(skipped)):
            return Changes()
        digests, new = self._state.digests(changed), {}
        add: list[StoredUse] = []
        withdraw: list[StoredUse] = []
        merged: set[str] = set()
        for pattern_id in patterns if changed is None else sorted(changed & patterns.keys()):
            pattern = patterns[pattern_id]
            if not pattern.is_registered or pattern_id in skipped:
                continue
            merged.update(pattern.aliases)
            slots = find_slots(board.observations(pattern_id), self._salt)
            digest = blake2b(b"".join(sorted(slot.key for slot in slots)), digest_size=_ID_BYTES).digest()
            if digests.get(pattern_id) == digest or (not slots and pattern_id not in digests):
                continue
            found = compare(pattern_id, slots, self._state.uses_of(pattern_id))
            add += found.add
            withdraw += found.withdraw
            new[pattern_id] = digest
        for pattern_id in self._state.digests(merged - patterns.keys()):
            found = compare(pattern_id, (), self._state.uses_of(pattern_id))
            withdraw += found.withdraw
        if not withdraws:
            return Changes(tuple(add))
        changes = Changes(tuple(add), tuple(withdraw), new, board, frozenset(skipped))
        if not (new or withdraw):
            self._note(changes)
        return changes

    def _changed_patterns(self, board: Scoreboard) -> set[str] | None:
        """Return patterns whose uses may differ from those compared; None if unknown."""
        before = self._compared
        if before is None or before.now > board.now:
            return None
        changed = board.changed_patterns(before.rescored(board.now))
        return None if changed is None else changed | self._skipped

    def store(self, changes: Changes) -> None:
        """Record what is going to be sent."""
        with self._state.transaction():
            self._state.add_uses(changes.add)
            self._state.set_status((use.id for use in changes.withdraw), Status.TO_WITHDRAW)
            self._state.set_digests(changes.digests)
        self._note(changes)

    def _note(self, changes: Changes) -> None:
        if changes.board is not None:
            self._compared, self._skipped = changes.board, changes.skipped


class Changes(NamedTuple):
    """Uses to send or withdraw, digests; board if all but `skipped` were compared."""

    add: tuple[StoredUse, ...] = ()
    withdraw: tuple[StoredUse, ...] = ()
    digests: Mapping[str, bytes] = {}
    board: Scoreboard | None = None
    skipped: frozenset[str] = frozenset()
