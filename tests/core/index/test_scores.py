"""Events and scores in the index: stored and updated, they equal those that are made of all records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import core.index.logs
from core.base.errors import DamagedError
from core.base.paths import ProjectPaths
from core.base.settings import MaturitySettings, Settings
from core.files.file_reader import Problem
from core.index.database import Database
from core.index.evidence import find_events
from core.index.logs import forget_events, open_events, update_events
from core.index.records import COLLECTIONS, Kind, Reader, encode
from core.index.scores import fill_scores, load_board, update_scores
from core.index.snapshot import IndexedSnapshot, ProjectFiles
from core.learning.evidence_records import EventIndex, work_names
from core.learning.scoreboard import Scoreboard
from core.records.decisions import CLIENT
from core.records.events import ErrorNote, ErrorType, Event, EventView
from core.records.snapshot import Snapshot
from core.sources.events import read_events
from core.trust.origins import Origins
from tests.drawn_snapshots import SUSPICIOUS, events, find_difference, same, snapshots
from tests.factories import NOW, days_ago, make_event, make_pattern, make_recorded_counts

_ERROR = ErrorNote(error_type=ErrorType.TIMEOUT, message="late")


class Log:
    """The event log of a project, its index, and the same log in memory."""

    def __init__(self, folder: Path) -> None:
        self.paths = ProjectPaths(folder)
        self.paths.events.parent.mkdir(parents=True)
        self.database = Database.open(folder, is_kept=False)
        self.whole = EventView.of(())

    def append(self, data: bytes) -> None:
        with self.paths.events.open("ab") as file:
            file.write(data)
        self.update()

    def update(self) -> None:
        with self.database.transaction() as connection:
            found = update_events(connection, self.paths)
        assert found is not None and not isinstance(found, Problem)
        events, findings = read_events(self.paths.relative(self.paths.events), self.paths.events.read_bytes())
        self.whole = EventView.of(events)
        assert found[1].findings == findings

    def view(self, *undone: str) -> EventView:
        return open_events(self.reader(), self.paths, frozenset(undone))

    def reader(self) -> Reader:
        return Reader(self.database.read(), self.database.decoded)

    def events(self, *undone: str) -> EventIndex:
        return find_events(self.reader(), Snapshot(events=self.view(*undone)))


def line(number: int, age: int = 0, **fields: object) -> bytes:
    return msgspec.json.encode(make_event(number, "applied", days_ago(age), **fields)) + b"\n"


_LINES = st.lists(
    st.one_of(
        st.sampled_from([b"\n", b"{}\n", b"\x00\n", b'{"id": 1}\n', b"[" * 600 + b"\n"]),
        st.builds(
            line,
            st.integers(0, 20),
            st.integers(0, 3),
            pattern_id=st.sampled_from(["p", "q", ""]),
            loop_id=st.sampled_from(["x", "by y", ""]),
            success=st.sampled_from([True, False, None]),
            decision=st.sampled_from(["", "", "d"]),
            error=st.sampled_from([None, None, _ERROR]),
            by=st.sampled_from(["y", f"{CLIENT}z"]),
        ),
    ),
    max_size=12,
).map(b"".join)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(_LINES, min_size=1, max_size=4), st.sampled_from([(), ("d",)]))
def test_an_indexed_log_equals_the_log_as_read_whole(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], undone: tuple[str, ...]
) -> None:
    log = Log(tmp_path_factory.mktemp("project"))
    for part in parts:
        log.append(part)
        whole, view = log.whole.without(frozenset(undone)), log.view(*undone)
        assert tuple(view) == tuple(whole)
        assert [view[place] for place in range(len(view))] == list(whole)
        assert (view.hidden, view.errors) == (whole.hidden, whole.errors)
        expected, found = EventIndex.of(whole), log.events(*undone)
        for name in ("by_pattern", "by_work", "reports"):
            known, stored = getattr(expected, name), getattr(found, name)
            assert {key: list(events) for key, events in stored.items()} == known
            assert stored.get("unknown") is None
        assert all(found.doubtful.get(name, 0) >= count for name, count in expected.doubtful.items())


def test_an_earlier_view_of_a_log_that_grew_stays_the_same_and_one_of_a_replaced_log_is_damaged(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.append(line(1))
    before = log.view()
    log.append(line(2, age=5))
    after = log.view()
    assert [event.id for event in before] == ["e000001"] and len(before) == 1
    changes = after.since(before)
    assert changes is not None and [event.id for event in changes.added] == ["e000002"]
    unread = log.view()
    log.paths.events.write_bytes(line(3) + line(2) + line(4))
    with pytest.raises(DamagedError):
        tuple(unread)
    log.update()
    replaced = log.view()
    assert [event.id for event in replaced] == ["e000003", "e000002", "e000004"]
    assert replaced.since(after) is None
    assert len(log.events().by_pattern["pat-error-sample-001"]) == 3


def test_a_removed_log_has_no_events_and_one_that_cannot_be_read_now_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(tmp_path)
    log.append(line(1))
    problem = Problem("unreadable", "cannot be read", torn=True)
    with monkeypatch.context() as patched, log.database.transaction() as connection:
        patched.setattr(core.index.logs, "read_file", lambda *_: problem)
        assert update_events(connection, log.paths) is problem
    assert len(log.view()) == 1
    log.paths.events.unlink()
    with log.database.transaction() as connection:
        assert update_events(connection, log.paths) is None
    assert tuple(log.view()) == ()
    log.append(line(1))
    with log.database.transaction() as connection:
        forget_events(connection)
    assert tuple(log.view()) == ()


def test_a_line_of_any_length_is_read(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.append(line(1, text="x" * 3_000_000) + line(2))
    assert [len(event.text) for event in log.view()] == [3_000_000, 0]
    (first, _) = log.events().by_pattern["pat-error-sample-001"]
    assert len(first.text) == 3_000_000


def test_an_event_is_found_by_its_work_and_by_the_source_of_its_report() -> None:
    def names(**fields: object) -> tuple[str, ...]:
        return work_names(make_event(1, "applied", days_ago(1), **fields))

    assert names(loop_id="x", success=True) == ("x",)
    assert names(loop_id="x", success=False) == ("x",)
    assert names(loop_id="", success=False, by="ada") == ("by ada",)
    assert names(loop_id="by ada", success=False) == ("by ada", "bead by ada")
    assert names(loop_id="", success=True) == ()


_SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


class Tables:
    """The records of a snapshot in the tables of an index, and its events in the log of a project."""

    def __init__(self, folder: Path, now: datetime = NOW, settings: Settings = SUSPICIOUS) -> None:
        self.now, self.settings = now, settings
        self.paths = ProjectPaths(folder)
        self.paths.events.parent.mkdir(parents=True)
        self.paths.events.write_bytes(b"")
        self.database = Database.open(folder, is_kept=False)
        self.written = Snapshot()
        self.newest = self._view(self.written)

    def write(self, snapshot: Snapshot, added: tuple[Event, ...] = ()) -> Scoreboard:
        """Write what differs from the last snapshot, and events; returns the scores that a new reader gets."""
        before = self.newest
        snapshot = replace(snapshot, events=(*self.written.events, *added))
        with self.paths.events.open("ab") as log:
            log.writelines(msgspec.json.encode(event) + b"\n" for event in added)
        with self.database.transaction() as connection:
            for name in ("patterns", "loops", "tasks", "attempts", "debug_sessions"):
                self._write_records(COLLECTIONS[name], getattr(self.written, name), getattr(snapshot, name))
            update_events(connection, self.paths)
            after = self._view(snapshot, Reader(connection, self.database.decoded))
            update_scores(before, after, find_difference(self.written, snapshot), self.now, self.settings)
        self.written, self.newest = snapshot, self._view(snapshot)
        return self.board(self.now)

    def board(self, now: datetime) -> Scoreboard:
        board = load_board(self.newest, now, self.settings)
        assert board is not None
        return board

    def _view(self, snapshot: Snapshot, reader: Reader | None = None) -> IndexedSnapshot:
        reader = reader or Reader(self.database.read(), self.database.decoded)
        view = IndexedSnapshot(reader, ProjectFiles(self.paths, Origins(self.paths.project)))
        fields = {name: getattr(snapshot, name) for name in ("curation", "foreign", "team")}
        fields["events"] = open_events(reader, self.paths, snapshot.curation.undone)
        for name, value in fields.items():  # which these tests do not store
            object.__setattr__(view, name, value)
        return view

    def _write_records(self, kind: Kind, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        execute = self.database.writer.execute
        for id in before.keys() - after.keys():
            execute("DELETE FROM record WHERE kind = ? AND id = ?", (kind, id))
            if kind is Kind.PATTERN:
                execute("DELETE FROM pattern WHERE id = ?", (id,))
        sql = "INSERT OR REPLACE INTO record (kind, id, key, place, is_open, data) VALUES (?, ?, ?, NULL, 0, ?)"
        for id, record in after.items():
            if before.get(id) != record:
                execute(sql, (kind, id, id, encode(record)))
            if kind is Kind.PATTERN:
                execute("INSERT OR IGNORE INTO pattern (id) VALUES (?)", (id,))


def check(board: Scoreboard, snapshot: Snapshot, now: datetime, settings: Settings = SUSPICIOUS) -> None:
    fresh = Scoreboard.build(snapshot, now, settings)
    same(board, fresh)
    assert board.bursts == fresh.bursts
    assert set(board.inputs.finished()) == set(fresh.inputs.finished())
    assert all(board.inputs.loop_patterns(id) == fresh.inputs.loop_patterns(id) for id in snapshot.loops)
    assert np.array_equal(np.sort(board.interval[0]), np.sort(fresh.interval[0]))


_STEPS = st.lists(st.tuples(snapshots(), events(), st.booleans(), st.integers(0, 40)), min_size=1, max_size=4)


@settings(max_examples=16, suppress_health_check=_SLOW, deadline=None)
@given(snapshots(), _STEPS)
def test_scores_after_updates_equal_scores_from_scratch(
    tmp_path_factory: pytest.TempPathFactory,
    first: Snapshot,
    steps: list[tuple[Snapshot, tuple[Event, ...], bool, int]],
) -> None:
    tables = Tables(tmp_path_factory.mktemp("project"))
    check(tables.write(first, renamed(tuple(first.events), "0")), tables.written, tables.now)
    for number, (snapshot, added, is_undone, days) in enumerate(steps, 1):
        tables.now += timedelta(days=days)
        curation = msgspec.structs.replace(snapshot.curation, undone=frozenset("d" if is_undone else ""))
        board = tables.write(replace(snapshot, curation=curation), renamed(added, str(number)))
        shown = tuple(one for one in tables.written.events if not (is_undone and one.decision))
        expected = replace(tables.written, events=tuple(sorted(shown, key=lambda event: event.at)))
        check(board, expected, tables.now)
        later = tables.now + timedelta(days=3)
        check(tables.board(later), expected, later)


def renamed(found: tuple[Event, ...], step: str) -> tuple[Event, ...]:
    """Give events IDs of their own, and some of them a decision that can be undone."""
    return tuple(
        msgspec.structs.replace(one, id=f"{one.id}-{step}", decision="d" if one.success is None else "")
        for one in found
    )


def test_scores_are_made_anew_for_other_settings_and_another_day_but_not_for_a_clock_a_moment_behind(
    tmp_path: Path,
) -> None:
    tables = Tables(tmp_path)
    snapshot = Snapshot(patterns={"p": make_pattern("p", recorded_counts=make_recorded_counts(4, 0), last_used=NOW)})
    tables.write(snapshot)
    assert tables.board(NOW - timedelta(seconds=1)).now == NOW
    assert tables.board(NOW - timedelta(days=1)).now == NOW - timedelta(days=1)
    tables.settings = Settings(maturity=MaturitySettings(min_feedback=9))
    assert load_board(tables.newest, NOW, tables.settings) is None
    check(tables.write(snapshot), tables.written, NOW, tables.settings)


def test_scores_that_did_not_change_are_read_once_and_a_damaged_column_is_noticed(tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    board = tables.write(Snapshot(patterns={"p": make_pattern("p")}))
    uses = board.uses
    tables.write(tables.written)
    again = load_board(tables.newest, NOW, tables.settings, board)
    assert again is not None and again.uses is uses and again.evidence is board.evidence
    used = (make_event(1, "feedback", days_ago(1), pattern_id="p", success=True),)
    tables.write(tables.written, used)
    changed = load_board(tables.newest, NOW, tables.settings, again)
    assert changed is not None and changed.uses.tolist() == [1] and uses.tolist() == [0]
    assert changed.ids is again.ids and again.use_times.rows.tolist() == [], "an earlier view stays as it was"
    with tables.database.transaction() as connection:
        connection.execute("UPDATE cells SET data = x'00000000' || zeroblob(8) WHERE name = 'score:uses'")
    tables.write(tables.written)
    with pytest.raises(DamagedError):
        _ = tables.board(NOW).uses


def test_scores_of_no_pattern_are_not_those_of_before(tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    board = tables.write(Snapshot(patterns={"p": make_pattern("p")}))
    with tables.database.transaction() as connection:
        for table in ("record", "pattern"):
            connection.execute(f"DELETE FROM {table}")
        fill_scores(Reader(connection, {}), Snapshot(), NOW, tables.settings)
    after = load_board(tables._view(Snapshot()), NOW, tables.settings, board)
    assert after is not None and (len(after.ids), after.uses.tolist()) == (0, [])


def test_removed_patterns_leave_no_row(tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    patterns = {id: make_pattern(id) for id in "abcd"}
    tables.write(Snapshot(patterns=patterns))
    used = (make_event(1, "feedback", days_ago(1), pattern_id="d", success=True),)
    left = {id: patterns[id] for id in "bd"}
    board = tables.write(Snapshot(patterns=left), used)
    assert list(board.ids) == ["b", "d"]
    assert (board.row("d"), board.successes.tolist(), board.use_times.rows.tolist()) == (1, [0, 1], [1])
    check(tables.write(Snapshot(patterns=patterns)), tables.written, NOW)
    assert "a" not in board  # a view stays as it was
    board = tables.board(NOW)
    assert (list(board.ids), "a" in board, "x" in board) == (["b", "d", "a", "c"], True, False)
