"""Join the parts of files to the records of a project, only where parts changed.

The rules are those of `core.sources`, which get all parts with one key. The same functions join everything at first.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from core.index.database import get_meta
from core.index.records import COLLECTIONS, DECODERS, SWEPT, Decoder, Kind, LookUp, Reader, encode
from core.records.loops import SESSION_TAG, Liveness, Loop, LoopStatus
from core.records.reflections import Reflection
from core.sources.agent_sessions import SessionWork, build_session_loop, join_agent_sessions, join_session
from core.sources.debug_sessions import join_escalations, join_sessions
from core.sources.episodes import join_attempts, join_tasks
from core.sources.loop_join import (
    EXTERNAL_GROUP,
    LOOP_GROUP,
    REGISTRY_GROUP,
    LoopFact,
    group_by_loop,
    mark_stale_wait,
    merge_facts,
)
from core.sources.patterns import dangling_findings, duplicate_findings, join_copies, precedence, references
from core.sources.reflections import join_group, join_memory

if TYPE_CHECKING:
    from core.files.file_reader import Stamp
    from core.index.parse import FileParts, Part
    from core.records.episodes import Attempt
    from core.records.findings import Finding
    from core.records.patterns import Pattern
    from core.sources.adapters.contract import AdapterRecords
    from core.sources.liveness import Moment

_MANY: Final = 500  # keys from which one query for all parts of a kind is faster than one for each key
_SET_BACK: Final = timedelta(minutes=1)  # corrections of the clock that are smaller change no state of a loop for long
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_ADAPTED: Final = "adapted"
"""Key of the loops that come from other runners or hooks."""
_REGISTRY_FILE: Final = ".aiwg/ralph/registry.json"
_EXTERNAL_REGISTRY_FILE: Final = ".aiwg/ralph-external/registry.json"
_OPEN: Final = frozenset({Liveness.ALIVE, Liveness.FRESH, Liveness.STALE, Liveness.IDLE})
"""Sessions that can end with time alone."""
_COLLISION: Final = "@external"
"""Ending of the ID of a loop whose own ID another loop has."""
_NAMES: Final = {kind: name for name, kind in COLLECTIONS.items()}
_JOINS: Final[Mapping[Kind, Callable[[Iterable[Any]], Mapping[str, Any]]]] = {
    Kind.MEMORY_TASK: join_memory,
    Kind.TASK: join_tasks,
    Kind.ATTEMPT: join_attempts,
    Kind.DEBUG_SESSION: join_sessions,
    Kind.ESCALATION: join_escalations,
    Kind.AGENT_SESSION: join_agent_sessions,
}
"""Kinds whose parts are joined by ID alone."""
_FACT: Final[Decoder[LoopFact]] = Decoder(LoopFact)


class Joiner:
    """Writes the parts of changed files and the changed records, in one transaction."""

    def __init__(self, connection: sqlite3.Connection, decoded: dict[int, Any], moment: Moment) -> None:
        self._connection = connection
        self._reader = Reader(connection, decoded)
        self._moment = moment
        self._touched: dict[Kind, set[str]] = defaultdict(set)
        self._files = LookUp(self._reader, "SELECT path, number FROM file WHERE 1", "path")
        self._reported = LookUp(self._reader, "SELECT about, 1 FROM finding WHERE 1", "about")
        self._keys = {
            kind: LookUp(self._reader, "SELECT key, 1 FROM record WHERE kind = ?", "key", kind) for kind in Kind
        }
        # Rows that are written together, which is faster. Whatever reads their tables writes them first.
        self._new_files: list[tuple[Any, ...]] = []
        self._new_parts: list[tuple[Any, ...]] = []
        self._new_records: list[tuple[tuple[Any, ...], Any]] = []
        self._next_file = int((self._first("SELECT max(number) FROM file") or (0,))[0] or 0) + 1
        # Numbers of records are never given again; see the table.
        self._next_record = int((self._first("SELECT seq FROM sqlite_sequence WHERE name = 'record'") or (0,))[0]) + 1
        self.changed: dict[str, set[str]] = {name: set() for name in COLLECTIONS}
        """IDs of the records that were added, changed or removed, by collection."""
        self.has_new_findings = False
        self._renamed: set[str] = set()  # IDs of loops that now mean another loop

    # Parts of files

    def store(self, file: FileParts, stamp: Stamp) -> None:
        """Replace what a file said before; `stamp` is compared in the next sweep."""
        row = (stamp.inode, stamp.size, stamp.mtime_ns, stamp.ctime_ns)
        if (number := self._files.get(file.path)) is None:
            number = self._next_file
            self._next_file += 1
            self._files.add(file.path, number)
            self._new_files.append((number, file.path, *row))
            self._add_parts(number, file.parts)
        else:
            self._write_new()
            sql = "UPDATE file SET inode = ?, size = ?, mtime = ?, ctime = ? WHERE number = ?"
            self._connection.execute(sql, (*row, number))
            self._replace_parts(number, file.parts)
        self.report(file.path, file.findings if file.problem is None else (file.problem.finding(file.path),))

    def forget(self, path: str) -> None:
        """Remove what a file said."""
        if (number := self._files.get(path)) is not None:
            self._write_new()
            self._replace_parts(number, ())
            self._connection.execute("DELETE FROM file WHERE number = ?", (number,))
            self._files.add(path, None)
        self.report(path, ())

    def report(self, about: str, findings: Sequence[Finding]) -> None:
        """Replace the findings about something."""
        if not findings and self._reported.get(about) is None:
            return
        before = self._reader.rows("SELECT data FROM finding WHERE about = ? ORDER BY number", about)
        after = [(encode(finding),) for finding in findings]
        if before != after:
            self.has_new_findings = True
            self._connection.execute("DELETE FROM finding WHERE about = ?", (about,))
            rows = ((about, number, data) for number, (data,) in enumerate(after))
            self._connection.executemany("INSERT INTO finding VALUES (?, ?, ?)", rows)
            self._reported.add(about, 1)

    def _replace_parts(self, file: int, parts: Sequence[Part]) -> None:
        before = _by_key(
            self._reader.rows("SELECT kind, key, loop, data FROM part WHERE file = ? ORDER BY number", file)
        )
        after = _by_key(parts)
        differing = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        sql = "DELETE FROM part WHERE file = ? AND kind = ? AND key = ?"
        self._connection.executemany(sql, ((file, *key) for key in differing & before.keys()))
        self._add_parts(file, [part for part in parts if (part[0], part[1]) in differing])
        for kind, key in differing:
            self._touched[Kind(kind)].add(key)

    def _add_parts(self, file: int, parts: Sequence[Part]) -> None:
        for kind, key, loop, data in parts:
            self._new_parts.append((file, kind, key, loop, data))
            self._touched[kind].add(key)

    def _write_new(self) -> None:
        """Write the new rows; raises IntegrityError if two loops have the same ID."""
        if self._new_files or self._new_parts:
            files, parts, self._new_files, self._new_parts = self._new_files, self._new_parts, [], []
            self._connection.executemany("INSERT INTO file VALUES (?, ?, ?, ?, ?, ?)", files)
            self._connection.executemany("INSERT INTO part VALUES (NULL, ?, ?, ?, ?, ?)", parts)
        if self._new_records:
            records, self._new_records = self._new_records, []
            sql = "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?)"
            self._connection.executemany(sql, (row for row, _ in records))
            for row, record in records:
                self._reader.keep(row[0], record)

    def _parts(
        self, kind: Kind, keys: Iterable[str], decode: Callable[[object], Any]
    ) -> Iterator[tuple[str, list[Any]]]:
        """Yield the decoded parts with each key, in the order of their files."""
        wanted = set(keys)
        if len(wanted) < _MANY:
            sql = (
                "SELECT data FROM part JOIN file ON file.number = part.file WHERE kind = ? AND key = ?"
                " ORDER BY file.path, part.number"
            )
            for key in sorted(wanted):
                yield key, [decode(data) for (data,) in self._reader.rows(sql, kind, key)]
            return
        groups: dict[str, list[tuple[int, object]]] = defaultdict(list)
        # The plus sign: reading the whole table in its order is faster than by an index.
        for key, file, data in self._connection.execute(
            "SELECT key, file, data FROM part WHERE +kind = ? ORDER BY number", (kind,)
        ):
            if key in wanted:
                groups[key].append((file, data))
        paths = dict(self._reader.rows("SELECT number, path FROM file"))
        for group in groups.values():
            if len(group) > 1:
                group.sort(key=lambda part: paths[part[0]])
        yield from ((key, [decode(data) for _, data in group]) for key, group in groups.items())
        yield from ((key, []) for key in wanted - groups.keys())

    # Records

    def join(self, *, checks_open: bool, is_partial: bool = False, completes: bool = False) -> None:
        """Join the records whose parts were stored.

        `checks_open` adds those that time alone may change. Reflections name loops of any file, so a partial load does
        not join them; the step that `completes` it joins those of all steps.
        """
        self._write_new()
        self._join_loops(checks_open=checks_open)
        changed = {kind: self._join_by_id(kind) for kind in _JOINS}
        self._join_sessions(changed, checks_open=checks_open)
        self._join_patterns()
        if completes:
            sql = "SELECT DISTINCT key FROM part WHERE kind = ?"
            self._touched[Kind.REFLECTION] |= {key for (key,) in self._reader.rows(sql, Kind.REFLECTION)}
        if not is_partial:
            self._join_reflections()

    def replace_adapted(self, found: AdapterRecords) -> None:
        """Replace the loops, lessons, instructions and findings of adapters."""
        self.report(_ADAPTED, found.findings)
        self.replace_all(Kind.LESSON, {lesson.id: lesson for lesson in found.lessons})
        self.replace_all(Kind.INSTRUCTIONS, {file.id: file for file in found.instructions})
        by_id = {loop.id: loop for loop in found.loops}
        for id in self.replace_all(Kind.ADAPTED_LOOP, by_id):
            self._set_aliases(Kind.ADAPTED_LOOP, id, by_id[id].aliases if id in by_id else ())
            self._touched[Kind.ADAPTED_LOOP].add(id)

    def replace_all(self, kind: Kind, records: Mapping[str, Any]) -> list[str]:
        """Replace all records of a kind; returns the IDs of those that differ."""
        sql = "SELECT id, number, data, is_open FROM record WHERE kind = ?"
        before = {id: row for id, *row in self._reader.rows(sql, kind)}
        ids = [*(id for id in before if id not in records), *records]
        changed = [id for id in ids if self._write_row(kind, id, id, records.get(id), before.get(id))]
        self._write_new()
        return changed

    def _join_by_id(self, kind: Kind) -> set[str]:
        changed = set()
        for id, parts in self._parts(kind, self._touched.pop(kind, ()), DECODERS[kind]):
            if self._write(kind, id, _JOINS[kind](parts)):
                changed.add(id)
        self._write_new()
        return changed

    # Loops

    def _join_loops(self, *, checks_open: bool) -> None:
        keys = self._touched.pop(Kind.LOOP, set())
        if REGISTRY_GROUP in keys or (checks_open and self._is_set_back):  # all loops say whether a registry lists them
            sql = "SELECT DISTINCT key FROM part WHERE kind = ? AND key != ?"
            keys |= {key for (key,) in self._reader.rows(sql, Kind.LOOP, REGISTRY_GROUP)}
        open_keys: set[str] = set()
        if checks_open:
            sql = "SELECT DISTINCT key FROM record WHERE kind = ? AND is_open AND key != ?"
            open_keys = {key for (key,) in self._reader.rows(sql, Kind.LOOP, _ADAPTED)}
        has_external = EXTERNAL_GROUP in keys or any(key.startswith(f"{EXTERNAL_GROUP}:") for key in open_keys)
        keys = {key for key in keys | open_keys if key.startswith(LOOP_GROUP)}
        if not keys and not has_external:
            return
        try:
            if self._has_collisions():
                self._write_all_loops(keys)
                return
            self._write_loops(self._merge(keys))
            if has_external:
                self._write_loops(self._merge_external())
        except sqlite3.IntegrityError:  # two loops have the same ID
            self._keys[Kind.LOOP].forget()
            self._write_all_loops(keys)

    @property
    def _is_set_back(self) -> bool:
        """Whether the clock is earlier than at the last sweep: past times come again."""
        swept = get_meta(self._connection, SWEPT)
        return swept is not None and datetime.fromisoformat(swept.decode()) - self._moment.now > _SET_BACK

    def _merge(self, keys: Iterable[str]) -> Iterator[tuple[str, list[Loop]]]:
        context = self._context(_REGISTRY_FILE)
        for key, facts in self._parts(Kind.LOOP, keys, _FACT):
            yield key, self._merge_group(key, facts, context)

    def _merge_external(self) -> Iterator[tuple[str, list[Loop]]]:
        [(_, facts)] = self._parts(Kind.LOOP, [EXTERNAL_GROUP], _FACT)
        groups = {f"{EXTERNAL_GROUP}:{id}": found for id, found in group_by_loop(facts).items()}
        sql = "SELECT DISTINCT key FROM record WHERE kind = ? AND key >= ? AND key < ?"
        known = {key for (key,) in self._reader.rows(sql, Kind.LOOP, f"{EXTERNAL_GROUP}:", f"{EXTERNAL_GROUP};")}
        context = self._context(_EXTERNAL_REGISTRY_FILE)
        for key in sorted(known | groups.keys()):
            yield key, self._merge_group(key, groups.get(key, []), context)

    def _context(self, registry: str) -> Moment:
        sql = "SELECT 1 FROM part JOIN file ON file.number = part.file WHERE kind = ? AND key = ? AND path = ?"
        has_registry = self._exists(sql, Kind.LOOP, REGISTRY_GROUP, registry)
        return replace(self._moment, has_registry=has_registry)

    def _merge_group(self, key: str, facts: Sequence[LoopFact], context: Moment) -> list[Loop]:
        findings: list[Finding] = []
        loops = list(merge_facts(key.partition(":")[2], facts, context, findings)) if facts else []
        self.report(key, findings)
        return loops

    def _write_loops(self, groups: Iterable[tuple[str, list[Loop]]]) -> None:
        """Write loops under their own IDs; raises IntegrityError if two are the same."""
        for key, loops in groups:
            names = {loop.id: loop.aliases for loop in loops}
            is_known = self._has(Kind.LOOP, key)
            for id in self._write(Kind.LOOP, key, {loop.id: loop for loop in loops}):
                if is_known or names[id]:
                    self._set_aliases(Kind.LOOP, id, names.get(id, ()))
        self._write_new()

    def _has_collisions(self) -> bool:
        sql = "SELECT 1 FROM record WHERE kind = ? AND id LIKE ? AND key != ?"
        return self._exists(sql, Kind.LOOP, f"%{_COLLISION}", _ADAPTED)

    def _write_all_loops(self, changed: set[str]) -> None:
        """Give loops with the same ID different IDs; needs all loops and `changed` keys."""
        sql = "SELECT DISTINCT key FROM part WHERE kind = ? AND key >= ? AND key < ?"
        keys = changed | {key for (key,) in self._reader.rows(sql, Kind.LOOP, LOOP_GROUP, "loop;")}
        groups = [*sorted(self._merge(keys)), *self._merge_external()]
        named: dict[str, tuple[str, Loop]] = {}
        for key, loops in groups:
            for loop in loops:
                id = loop.id
                while id in named:
                    id += _COLLISION
                named[id] = key, loop if id == loop.id else msgspec.structs.replace(loop, id=id)
        sql = "SELECT id, key FROM record WHERE kind = ? AND key != ?"
        for id, key in self._reader.rows(sql, Kind.LOOP, _ADAPTED):
            if id not in named or named[id][0] != key:
                self._connection.execute("DELETE FROM record WHERE kind = ? AND id = ?", (Kind.LOOP, id))
                self._connection.execute("INSERT INTO removed (kind, id) VALUES (?, ?)", (Kind.LOOP, id))
                self._note(Kind.LOOP, id)
                self._set_aliases(Kind.LOOP, id, ())
        by_key: dict[str, list[Loop]] = defaultdict(list)
        for key, loop in named.values():
            by_key[key].append(loop)
        self._write_loops(by_key.items())

    # Sessions of agents, and loops of other runners

    def _join_sessions(self, changed: Mapping[Kind, set[str]], *, checks_open: bool) -> None:
        """Join what hooks recorded of sessions, and write the adapters' loops with them."""
        tasks = changed[Kind.TASK] | {id.rpartition(".")[0] for id in changed[Kind.ATTEMPT]}
        sessions = set(changed[Kind.AGENT_SESSION])
        for task_id in tasks:
            sessions |= self._replace_session_work(task_id)
        adapted = self._touched.pop(Kind.ADAPTED_LOOP, set())
        for id in adapted:  # sessions may now belong to another loop
            names = {id, *self._names_of(Kind.ADAPTED_LOOP, id)}
            sessions |= {one for name in names for one in self._session_ids(name)}
            sessions |= {row.id for row in self._reader.with_key(Kind.SESSION_ROW, id)}
        if checks_open:
            sql = "SELECT id FROM record WHERE kind = ? AND (is_open OR ?)"
            sessions |= {id for (id,) in self._reader.rows(sql, Kind.SESSION_ROW, self._is_set_back)}
            sql = "SELECT id FROM record WHERE kind = ? AND is_open AND key = ?"
            adapted |= {id for (id,) in self._reader.rows(sql, Kind.LOOP, _ADAPTED)}
        targets = set(adapted)
        for id in sessions:
            targets |= self._write_session(id)
        for id in targets:
            self._write_adapted(id)

    def _replace_session_work(self, task_id: str) -> set[str]:
        """Note in which sessions a task was worked on; returns those before and after."""
        sql = "SELECT loop FROM session_work WHERE task = ?"
        before = {loop for (loop,) in self._reader.rows(sql, task_id)}
        task, after = self._reader.find(Kind.TASK, task_id), set[str]()
        if task is not None and SESSION_TAG in task.tags and all(task.loop_id.partition(":")):
            after = {task.loop_id, *(one.loop_id or task.loop_id for one in self._attempts_at(task_id))}
        self._connection.executemany(
            "DELETE FROM session_work WHERE loop = ? AND task = ?", ((loop, task_id) for loop in before - after)
        )
        self._connection.executemany(
            "INSERT INTO session_work VALUES (?, ?)", ((loop, task_id) for loop in after - before)
        )
        return before | after

    def _attempts_at(self, task_id: str) -> list[Attempt]:
        """Return the attempts at a task by number; their IDs begin with its ID and a dot."""
        sql = "SELECT number, data FROM record WHERE kind = ? AND id > ? AND id < ?"
        rows = self._reader.rows(sql, Kind.ATTEMPT, f"{task_id}.", f"{task_id}/")
        attempts = [self._reader.decode(Kind.ATTEMPT, *row) for row in rows]
        return sorted((one for one in attempts if one.id.rpartition(".")[0] == task_id), key=lambda one: one.number)

    def _session_ids(self, name: str) -> list[str]:
        """Return the ID of a session if hooks recorded one with this ID."""
        sql = "SELECT 1 FROM session_work WHERE loop = ?"
        is_known = self._exists(sql, name) or self._reader.find(Kind.AGENT_SESSION, name) is not None
        return [name] if is_known else []

    def _write_session(self, id: str) -> set[str]:
        """Join the hook records of a session; return IDs of its loops before and after."""
        record = self._reader.find(Kind.AGENT_SESSION, id)
        works = []
        for (task_id,) in self._reader.rows("SELECT task FROM session_work WHERE loop = ? ORDER BY task", id):
            task = self._reader.find(Kind.TASK, task_id)
            own = tuple(one for one in self._attempts_at(task_id) if (one.loop_id or task.loop_id) == id)
            works.append((task, own))
        has_work = any(attempts for _, attempts in works)
        exists = has_work or (record is not None and record.prompt)
        row = build_session_loop(SessionWork(id, record, works), self._moment) if exists else None
        target = self._target_of(id)
        sql = "SELECT key FROM record WHERE kind = ? AND id = ?"
        before = self._first(sql, Kind.SESSION_ROW, id)
        if before is not None and before[0] != target:
            self._write(Kind.SESSION_ROW, before[0], self._rows_without(before[0], id))
        rows: dict[str, Loop] = self._rows_without(target, id) | ({id: row} if row is not None else {})
        is_changed = bool(self._write(Kind.SESSION_ROW, target, rows))
        self._write_new()
        if before is None or before[0] == target:
            return {target} if is_changed else set()
        return {before[0], target}

    def _rows_without(self, target: str, id: str) -> dict[str, Loop]:
        return {row.id: row for row in self._reader.with_key(Kind.SESSION_ROW, target) if row.id != id}

    def _target_of(self, id: str) -> str:
        """Return the ID of the adapter's loop that is this session, else its own ID."""
        if self._exists("SELECT 1 FROM record WHERE kind = ? AND id = ?", Kind.ADAPTED_LOOP, id):
            return id
        found = self._first("SELECT max(id) FROM alias WHERE kind = ? AND name = ?", Kind.ADAPTED_LOOP, id)
        return found[0] if found is not None and found[0] is not None else id

    def _write_adapted(self, id: str) -> None:
        """Write the loop of an adapter or hooks, unless `.aiwg` has one with this ID."""
        if self._exists("SELECT 1 FROM record WHERE kind = ? AND id = ? AND key != ?", Kind.LOOP, id, _ADAPTED):
            return
        loop = self._reader.find(Kind.ADAPTED_LOOP, id)
        if rows := self._reader.with_key(Kind.SESSION_ROW, id):
            newest = max(rows, key=lambda row: (row.last_activity or _LONG_AGO, row.id))
            loop = join_session(loop, newest) if loop is not None else newest
        if loop is not None and loop.status is LoopStatus.WAITING:
            loop = mark_stale_wait(loop, self._moment)
        others = self._first("SELECT number, data, is_open FROM record WHERE kind = ? AND id = ?", Kind.LOOP, id)
        self._write_row(Kind.LOOP, _ADAPTED, id, loop, others)
        self._write_new()

    # Patterns and reflections

    def _join_patterns(self) -> None:
        touched = self._touched.pop(Kind.PATTERN, set())
        changed: dict[str, Pattern | None] = {}
        added, removed = [], set()
        links: list[tuple[str, str]] = []
        for id, copies in self._parts(Kind.PATTERN, touched, DECODERS[Kind.PATTERN]):
            copies.sort(key=precedence)
            pattern = join_copies(copies)
            is_known = self._has(Kind.PATTERN, id)
            if self._write(Kind.PATTERN, id, {id: pattern} if pattern is not None else {}):
                changed[id] = pattern
                links += ((id, target) for target in references(pattern))
                if is_known:
                    self._connection.execute("DELETE FROM reference WHERE source = ?", (id,))
                if pattern is None:
                    self._keys[Kind.PATTERN].add(id, None)
                    removed.add(id)
                elif not is_known:
                    added.append(id)
            self.report(f"duplicate:{id}", duplicate_findings(copies))
        self._write_new()
        self._connection.executemany("DELETE FROM pattern WHERE id = ?", ((id,) for id in removed))
        self._connection.executemany("INSERT INTO pattern (id) VALUES (?)", ((id,) for id in added))
        self._connection.executemany("INSERT INTO reference VALUES (?, ?)", links)
        for id in self._referring({*added, *removed}) - changed.keys():
            changed[id] = self._reader.find(Kind.PATTERN, id)
        for id, pattern in changed.items():
            unknown = {one for one in references(pattern) if not self._has(Kind.PATTERN, one)}
            self.report(f"reference:{id}", dangling_findings(pattern, unknown) if pattern is not None else ())

    def _referring(self, targets: set[str]) -> set[str]:
        """Return the IDs of the patterns that refer to some patterns."""
        if len(targets) < _MANY:
            sql = "SELECT source FROM reference WHERE target = ?"
            return {source for id in targets for (source,) in self._reader.rows(sql, id)}
        rows = self._reader.rows("SELECT source, target FROM reference")
        return {source for source, target in rows if target in targets}

    def _join_reflections(self) -> None:
        aliases = _Aliases(self._reader)
        for name in self._renamed:
            sql = "SELECT DISTINCT key FROM part WHERE kind = ? AND loop = ?"
            self._touched[Kind.REFLECTION] |= {key for (key,) in self._reader.rows(sql, Kind.REFLECTION, name)}
        self._renamed.clear()
        touched = self._touched.pop(Kind.REFLECTION, set())
        for key, group in self._parts(Kind.REFLECTION, touched, DECODERS[Kind.REFLECTION]):
            self._write(Kind.REFLECTION, key, {one.id: one for one in join_group(key, group, aliases)})
        self._write_new()

    # Rows

    def _write(self, kind: Kind, key: str, records: Mapping[str, Any]) -> list[str]:
        """Replace the records with one key; returns changed IDs. New rows stay queued."""
        before = {}
        if self._has(kind, key):
            self._write_new()
            sql = "SELECT id, number, data, is_open FROM record WHERE kind = ? AND key = ?"
            before = {id: row for id, *row in self._reader.rows(sql, kind, key)}
        ids = [*(id for id in before if id not in records), *records]
        return [id for id in ids if self._write_row(kind, key, id, records.get(id), before.get(id))]

    def _write_row(self, kind: Kind, key: str, id: str, record: Any, before: Sequence[Any] | None) -> bool:
        """Replace a record (`before`: number, data, is_open); return whether it differs."""
        data = encode(record) if record is not None else None
        is_open = _is_open(kind, key, record, self._moment.now)
        if before is not None:
            number, data_before, was_open = before
            if data == data_before:
                if is_open != bool(was_open):
                    self._connection.execute("UPDATE record SET is_open = ? WHERE number = ?", (is_open, number))
                return False
            self._connection.execute("DELETE FROM record WHERE number = ?", (number,))
            if data is None:
                self._connection.execute("INSERT INTO removed (kind, id) VALUES (?, ?)", (kind, id))
        elif data is None:
            return False
        elif kind is Kind.LOOP and key != _ADAPTED and self._has(kind, _ADAPTED):
            # A file in `.aiwg` that has the ID of an adapter's loop has precedence.
            sql = "DELETE FROM record WHERE kind = ? AND id = ? AND key = ?"
            self._connection.execute(sql, (kind, id, _ADAPTED))
        if data is not None:
            row = (self._next_record, kind, id, key, _place_of(record), is_open, data)
            self._next_record += 1
            self._new_records.append((row, record))
            self._keys[kind].add(key, 1)
        elif kind is Kind.LOOP and key != _ADAPTED:
            self._touched[Kind.ADAPTED_LOOP].add(id)  # that of an adapter may be shown now
        self._note(kind, id)
        return True

    def _has(self, kind: Kind, key: str) -> bool:
        """Return whether there may be records with a key."""
        return self._keys[kind].get(key) is not None

    def _note(self, kind: Kind, id: str) -> None:
        if kind in _NAMES:
            self.changed[_NAMES[kind]].add(id)

    def _set_aliases(self, kind: Kind, id: str, names: Iterable[str]) -> None:
        """Replace the other IDs of a loop; reflections may name it by any of its IDs."""
        before, after = set(self._names_of(kind, id)), set(names)
        self._connection.executemany(
            "DELETE FROM alias WHERE kind = ? AND name = ? AND id = ?", ((kind, name, id) for name in before - after)
        )
        self._connection.executemany(
            "INSERT INTO alias VALUES (?, ?, ?)", ((kind, name, id) for name in after - before)
        )
        if kind is Kind.LOOP and (before or after):
            self._renamed |= {id, *before, *after}

    def _names_of(self, kind: Kind, id: str) -> list[str]:
        return [name for (name,) in self._reader.rows("SELECT name FROM alias WHERE kind = ? AND id = ?", kind, id)]

    def _first(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        return self._reader.row(sql, *values)

    def _exists(self, sql: str, *values: object) -> bool:
        return self._reader.row(f"{sql} LIMIT 1", *values) is not None


class _Aliases(LookUp):
    """Loop ID by alias; of loops that share an alias, the one that started first."""

    def __init__(self, reader: Reader) -> None:
        sql = (
            "SELECT name, record.id FROM alias JOIN record ON record.kind = alias.kind AND record.id = alias.id"
            " WHERE alias.kind = ?"
        )
        # The plus sign: with the index of places, each query would read all records.
        super().__init__(reader, sql, "name", Kind.LOOP, order=" ORDER BY +place NULLS FIRST, record.id DESC")
        sql = "SELECT id, 1 FROM record WHERE kind = ? AND key != ?"
        self._loops = LookUp(reader, sql, "id", Kind.LOOP, _ADAPTED)

    def get(self, name: str, default: Any = None) -> Any:
        id = super().get(name)
        return id if id is not None and self._loops.get(name) is None else default


def _is_open(kind: Kind, key: str, record: Any, now: datetime) -> bool:
    """Return whether time alone may change a record."""
    if kind is Kind.SESSION_ROW:
        return record is not None and record.liveness in _OPEN
    if kind is not Kind.LOOP or record is None:
        return False
    if record.status.active:
        return True
    if key == _ADAPTED:
        return bool(record.status is LoopStatus.WAITING)
    times = (record.started_at, record.ended_at, record.updated_at, record.modified_at)
    return record.liveness in (Liveness.ALIVE, Liveness.FRESH) or any(at is not None and at > now for at in times)


def _place_of(record: Any) -> float | None:
    """Return what loops and reflections are sorted by."""
    at = record.started_at if isinstance(record, Loop) else record.at if isinstance(record, Reflection) else None
    return at.timestamp() if at is not None else None


def _by_key(rows: Iterable[Sequence[Any]]) -> dict[tuple[int, str], list[tuple[Any, ...]]]:
    """Group (kind, key, loop, data) by kind and key."""
    groups: dict[tuple[int, str], list[tuple[Any, ...]]] = defaultdict(list)
    for kind, key, *rest in rows:
        groups[kind, key].append(tuple(rest))
    return groups
