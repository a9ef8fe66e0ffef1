"""Texts of patterns in both directions: new, changed and conflicting ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from core.base.paths import is_safe_id
from core.base.text import visible_line
from core.decisions.apply import apply_pending
from core.decisions.case import make_id
from core.decisions.merge import text_hash
from core.decisions.pattern_registry import Registry, UnitOfWork
from core.decisions.record_changes import Changes, with_id
from core.files.atomic_write import curation_lock, rewrite
from core.records.decisions import SYNC, Decision, Verb
from core.records.patterns import Pattern, PatternType
from core.records.team import MAX_RECORD_BYTES, Level, PatternText
from core.sources.keys import RecordText
from core.sources.pattern_text import LIST_OF, empty_file, insert_all, merge_records, records
from core.team.connection import LimitReached
from core.team.local_state import LocalState, TextBase
from core.team.sharing import Sharing, keep_shared_keys, new_record

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.settings import Settings
    from core.index.project_state import ProjectState
    from core.records.snapshot import Delta
    from core.records.team import SpacePattern
    from core.sources.ledger import Ledger
    from core.team.server import Space

_BATCH: Final = 500  # texts in one call of the server
Progress = Callable[[str, int, int], object]
"""A function that gets the name of a step, how much of it is done, and how much there is."""
_BATCH_BYTES: Final = 8 << 20  # texts in one call of the server


class OpenProject(Protocol):
    """What a sync needs of an open project."""

    project: ProjectPaths
    settings: Settings
    ledger: Ledger
    by: str

    @property
    def view(self) -> ProjectState: ...

    def now(self) -> datetime: ...

    def apply(self, changed: Iterable[Path] | None) -> tuple[ProjectState, Delta]: ...


class Texts:
    """Compares the patterns of one project with those of its space."""

    def __init__(
        self, project: OpenProject, state: LocalState, sharing: Callable[[], Sharing], progress: Progress
    ) -> None:
        self._project = project
        self._progress = progress
        self._state = state
        self._sharing = sharing
        self.conflicts: dict[str, TextBase] = state.conflicts()
        self.notes: list[str] = []
        """What was left out, and why."""
        self.is_at_limit = False

    # From the space

    def receive(self, rows: Iterable[SpacePattern], levels: Mapping[str, Level | None]) -> int:
        """Write new and changed texts of the space into the project; return their number.

        `levels` are those of the members by name: a text from a contributor is held until a person has released it. A
        text that was changed on both sides becomes a conflict, and nothing is overwritten.
        """
        rows = tuple(rows)
        if not rows and not self.conflicts:
            return 0
        patterns, registry = self._project.view.snapshot.patterns, Registry(self._project.project)
        bases = self._state.text_bases({*self.conflicts, *(row.pattern_id for row in rows)})
        same: dict[str, TextBase] = {}
        new: list[SpacePattern] = []
        changed: list[SpacePattern] = []
        self._drop_settled(registry, patterns, bases)
        for row in rows:
            self.conflicts.pop(row.pattern_id, None)
            local = patterns.get(row.pattern_id)
            if row.record is None or row.type not in LIST_OF or not is_safe_id(row.pattern_id):
                same[row.pattern_id] = TextBase("", row.content_hash)  # removed: the decision about it does the rest
            elif local is None or not local.is_registered:
                new.append(row)
            elif self._is_same(registry, local, row.content_hash):
                same[row.pattern_id] = TextBase(local.content_hash, row.content_hash)
            elif (base := bases.get(row.pattern_id)) is not None and base.local == local.content_hash:
                changed.append(row)
            elif base is None or base.shared != row.content_hash:
                self.conflicts[row.pattern_id] = TextBase(local.content_hash, row.content_hash)
        self._state.set_texts(same)
        return self._insert(new, levels) + self._change(changed)

    def _drop_settled(self, registry: Registry, patterns: Mapping[str, Pattern], bases: Mapping[str, TextBase]) -> None:
        """Drop the conflicts that a person has resolved by changing the local text."""
        for pattern_id, conflict in list(self.conflicts.items()):
            local, base = patterns.get(pattern_id), bases.get(pattern_id)
            if local is None or local.content_hash == conflict.local:
                continue
            if base is not None and base == TextBase(local.content_hash, conflict.shared):
                del self.conflicts[pattern_id]
            elif self._is_same(registry, local, conflict.shared):
                self._state.set_texts({pattern_id: TextBase(local.content_hash, conflict.shared)})
                del self.conflicts[pattern_id]

    def _is_same(self, registry: Registry, local: Pattern, shared_hash: str) -> bool:
        if shared_hash == local.content_hash or shared_hash == self._state.to_shared(local.content_hash):
            return True
        record = registry.records([local]).get(local.id)
        if record is None:
            return False
        return self._sharing().pattern(local.type, record, local.content_hash).shared_hash == shared_hash

    def _insert(self, rows: Sequence[SpacePattern], levels: Mapping[str, Level | None]) -> int:
        """Add patterns that the project does not have, unless it has archived them."""
        if not rows:
            return 0
        archived = self._archived_ids({row.pattern_id for row in rows})
        curation = self._project.ledger.state()
        by_type: dict[str, dict[str, dict[str, Any]]] = {}
        held: dict[str, list[SpacePattern]] = {}
        for row in rows:
            record = _decode(row)
            if record is None or row.pattern_id in archived:
                continue
            by_type.setdefault(row.type, {})[row.pattern_id] = record
            level = levels.get(row.changed_by)
            if level is not None and level.allows(Level.REVIEWER):
                continue
            if not curation.approves(row.pattern_id, text_hash(record, PatternType(row.type))):
                held.setdefault(row.changed_by, []).append(row)
        if held:  # first, so that no agent is given a text before it is held
            self._append(*(self._holding(by, found, by_type) for by, found in held.items()))
        for number, (kind, found) in enumerate(by_type.items()):
            self._progress("Writing files of patterns", number, len(by_type))
            self._write(kind, found)
        patterns = self._read().snapshot.patterns
        hashes = {row.pattern_id: row.content_hash for row in rows if row.pattern_id in patterns}
        self._state.set_texts({id: TextBase(patterns[id].content_hash, shared) for id, shared in hashes.items()})
        return len(hashes)

    def _archived_ids(self, wanted: set[str]) -> set[str]:
        registry = Registry(self._project.project)
        found: set[str] = set()
        for file in registry.archives():
            found |= {id for id in wanted if registry.find(file, id) is not None}
        return found

    def _holding(
        self, by: str, rows: Sequence[SpacePattern], records: Mapping[str, Mapping[str, dict[str, Any]]]
    ) -> Decision:
        """Hold a contributor's new texts by a decision until a person releases them."""
        hashes = {row.pattern_id: text_hash(records[row.type][row.pattern_id], PatternType(row.type)) for row in rows}
        after = {"patterns": [*hashes], "joined": [], "found": {}, "hashes": hashes, "proposed": True}
        return self._decision(visible_line(f"{by} in the team"), f"added by {visible_line(by)} to the team", after)

    def _write(self, kind: str, new: Mapping[str, dict[str, Any]]) -> None:
        """Add records to the file of their type; keep those that it has meanwhile."""
        paths = self._project.project
        path = paths.pattern_file(kind)

        def change(data: bytes | None) -> bytes:
            document = empty_file(kind) if data is None else RecordText(data)
            present = {record.id for record in records(document)}
            insert_all(document, kind, [record for id, record in new.items() if id not in present])
            return document.encode()

        with curation_lock(paths):
            path.parent.mkdir(parents=True, exist_ok=True)
            rewrite(path, change, merge=merge_records, retry_seconds=self._project.settings.watch.retry_seconds)

    def _change(self, rows: Sequence[SpacePattern]) -> int:
        """Replace local texts by the space's; the decision log keeps the old ones."""
        if not rows:
            return 0
        unit, changes = UnitOfWork(self._project.project, self._project.ledger), Changes()
        patterns, names = self._project.view.snapshot.patterns, []
        for row in rows:
            record, local = _decode(row), patterns[row.pattern_id]
            if record is None or not unit.is_writable(local):
                continue
            stored = unit.registry.record(local)
            shared = keep_shared_keys(local.type, stored.value)
            texts = {
                key: value
                for key, value in keep_shared_keys(local.type, record).items()
                if stored.value.get(key) != value
            }
            removed = tuple(key for key in shared if key not in record)
            changes.set(stored, local.type, local.id, texts, removed)
            names.append(row)
        if names:
            ids = [row.pattern_id for row in names]
            after = {"patterns": [], "joined": ids, "found": {}, "hashes": {}}
            authors = ", ".join(sorted({visible_line(row.changed_by) for row in names}))
            reason = f"the text was changed in the team by {authors}"
            self._append(self._decision("the team", reason, after, changes.draft_fields()))
        found = self._read().snapshot.patterns
        self._state.set_texts(
            {row.pattern_id: TextBase(found[row.pattern_id].content_hash, row.content_hash) for row in names}
        )
        return len(names)

    # To the space

    def find_changed(self, level: Level | None = None) -> list[PatternText]:
        """Return the texts that the space lacks; changed ones with what they replace.

        Quarantined patterns stay here until they are released. A text that the level of the member cannot change
        becomes a conflict.
        """
        bases = self._state.text_bases()
        wanted = []
        for pattern in self._changed_patterns(bases):
            base = bases.get(pattern.id)
            if base is not None and level is not None and not level.allows(Level.REVIEWER):
                self.conflicts[pattern.id] = TextBase(pattern.content_hash, base.shared)
            else:
                wanted.append(pattern)
        found = Registry(self._project.project).records(wanted)
        texts, same = [], {}
        for number, pattern in enumerate(wanted):
            if number % _BATCH == 0:
                self._progress("Masking patterns", number, len(wanted))
            if pattern.id not in found:
                continue
            shared = self._sharing().pattern(pattern.type, found[pattern.id], pattern.content_hash)
            base = bases.get(pattern.id)
            expected = base.shared if base is not None else ""
            if shared.shared_hash == expected:
                same[pattern.id] = TextBase(pattern.content_hash, expected)
            elif _size(text := make_text(pattern, shared.record, shared.shared_hash, expected)) > MAX_RECORD_BYTES:
                self.notes.append(f"the pattern {visible_line(pattern.id, 80)} is larger than 256 KiB; it was not sent")
            else:
                texts.append(text)
        if same:
            self._state.set_texts(same)
        return texts

    def count_changed(self) -> int:
        """Return how many texts the space does not have, without those in a conflict."""
        return sum(1 for _ in self._changed_patterns(self._state.text_bases()))

    def _changed_patterns(self, bases: Mapping[str, TextBase]) -> Iterator[Pattern]:
        state = self._project.view
        for pattern_id, pattern in state.snapshot.patterns.items():
            base = bases.get(pattern_id)
            if not pattern.is_registered or pattern_id in self.conflicts:
                continue
            is_known = base is not None and base.local in ("", pattern.content_hash)
            if not is_known and not state.board.quarantined[state.board.row(pattern_id)]:
                yield pattern

    def send(self, space: Space, texts: Sequence[PatternText]) -> int:
        """Send texts; return the number accepted. Those that others changed conflict.

        Texts beyond the daily limit of the server are sent by a later sync.
        """
        patterns, count, done = self._project.view.snapshot.patterns, 0, 0
        for batch in _batches(texts):
            self._progress("Sending patterns", done, len(texts))
            done += len(batch)
            try:
                refused = {conflict.subject: conflict for conflict in space.put_patterns(batch)}
            except LimitReached as error:
                self.notes.append(str(error))
                self.is_at_limit = True
                break
            accepted = [text for text in batch if text.pattern_id not in refused]
            self._state.set_texts(
                {
                    text.pattern_id: TextBase(patterns[text.pattern_id].content_hash, text.content_hash)
                    for text in accepted
                }
            )
            for conflict in refused.values():
                local = patterns[conflict.subject].content_hash
                self.conflicts[conflict.subject] = TextBase(local, conflict.content_hash)
            count += len(accepted)
        return count

    # Conflicts

    def take_theirs(self, rows: Sequence[SpacePattern]) -> int:
        """Resolve conflicts with the space's texts; the decision log has the local ones."""
        patterns = self._project.view.snapshot.patterns
        chosen = [row for row in rows if row.pattern_id in self.conflicts and row.pattern_id in patterns]
        count = self._change([row for row in chosen if row.record is not None])
        for row in chosen:
            self.conflicts.pop(row.pattern_id)
        return count

    def take_ours(self, space: Space, rows: Sequence[SpacePattern]) -> int:
        """Resolve conflicts with local texts; the decision log notes the space's ones."""
        patterns = self._project.view.snapshot.patterns
        chosen = {
            row.pattern_id: row for row in rows if row.pattern_id in self.conflicts and row.pattern_id in patterns
        }
        found = Registry(self._project.project).records(patterns[id] for id in chosen)
        texts = []
        for pattern_id, record in found.items():
            shared = self._sharing().pattern(patterns[pattern_id].type, record)
            expected = chosen[pattern_id].content_hash
            texts.append(make_text(patterns[pattern_id], shared.record, shared.shared_hash, expected))
            self.conflicts.pop(pattern_id)
        count = self.send(space, texts)
        replaced = [text.pattern_id for text in texts if text.pattern_id not in self.conflicts]
        self._append(*(self._lost_text(chosen[pattern_id]) for pattern_id in replaced))
        return count

    def _lost_text(self, row: SpacePattern) -> Decision:
        text = f"Replaced the text of the team, by {row.changed_by}, which was: {row.record or ''}"
        return Decision(
            id=make_id(self._project.now()),
            at=self._project.now(),
            by=self._project.by,
            verb=Verb.NOTE,
            subject=row.pattern_id,
            after={"text": text},
        )

    def _decision(
        self, subject: str, reason: str, after: dict[str, Any], effects: Mapping[str, Any] | None = None
    ) -> Decision:
        """Make a decision of the sync; like an unattended extraction, undo skips it."""
        fields = dict(effects or {})
        at = self._project.now()
        return Decision(
            id=make_id(self._project.now()),
            at=at,
            by=SYNC,
            verb=Verb.EXTRACT,
            subject=subject,
            reason=reason,
            after=after,
            **fields,
        )

    def _append(self, *decisions: Decision) -> None:
        if decisions:
            self._project.ledger.append(*decisions)
            apply_pending(self._project.project, self._project.settings, self._project.ledger)

    def _read(self) -> ProjectState:
        paths = self._project.project
        return self._project.apply((paths.ledger, paths.patterns))[0]


def _size(text: PatternText) -> int:
    return len((text.record or "").encode())


def _batches(texts: Iterable[PatternText]) -> Iterator[list[PatternText]]:
    """Divide texts into calls of the server."""
    batch: list[PatternText] = []
    size = 0
    for text in texts:
        size += _size(text)
        if batch and (size > _BATCH_BYTES or len(batch) == _BATCH):
            yield batch
            batch, size = [], _size(text)
        batch.append(text)
    if batch:
        yield batch


def make_text(pattern: Pattern, record: Mapping[str, Any], shared_hash: str, expected: str) -> PatternText:
    encoded = msgspec.json.encode(with_id(pattern.type, pattern.id, record)).decode()
    return PatternText(
        pattern_id=pattern.id, type=pattern.type.value, record=encoded, content_hash=shared_hash, expected=expected
    )


def _decode(row: SpacePattern) -> dict[str, Any] | None:
    """Return the record of a space's pattern, without local keys; None if invalid.

    A text must have its content hash: approvals of one text must not count for another.
    """
    if row.record is None or len(row.record) > MAX_RECORD_BYTES:
        return None
    try:
        record = msgspec.json.decode(row.record, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        return None
    kind = PatternType(row.type)
    found = new_record(kind, row.pattern_id, record)
    return found if text_hash(found, kind) == row.content_hash else None
