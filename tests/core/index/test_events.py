"""The event log in the index: what is read from it equals the log as it is read whole."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import core.index.logs
from core.base.errors import DamagedError
from core.base.paths import ProjectPaths
from core.files.decoded import Problem
from core.index.database import Database
from core.index.evidence import find_events
from core.index.logs import forget_events, open_events, update_events
from core.index.records import Reader
from core.learning.evidence_records import EventIndex, work_names
from core.records.authors import CLIENT
from core.records.event_log import EventView
from core.records.events import ErrorNote, ErrorType
from core.records.snapshot import Snapshot
from core.sources.events import read_events
from tests.factories import days_ago, make_event

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


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
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
        assert (view.hidden, view.errors, view.in_log_order) == (whole.hidden, whole.errors, whole.in_log_order)
        expected, found = EventIndex.of(whole), log.events(*undone)
        for name in ("by_pattern", "by_work", "reports"):
            known, stored = getattr(expected, name), getattr(found, name)
            assert {key: list(events) for key, events in stored.items()} == known
            assert stored.get("unknown") is None
        assert all(found.doubtful.get(name, 0) >= count for name, count in expected.doubtful.items())


def test_an_earlier_view_of_a_log_that_grew_stays_the_same(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.append(line(1))
    before = log.view()
    log.append(line(2, age=5))
    after = log.view()
    assert [event.id for event in before] == ["e000001"] and len(before) == 1
    changes = after.since(before)
    assert changes is not None and [event.id for event in changes.added] == ["e000002"]


def test_a_log_that_did_not_only_grow_is_indexed_anew(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.append(line(1) + line(2))
    before = log.view()
    log.paths.events.write_bytes(line(3) + line(2) + line(4))
    log.update()
    after = log.view()
    assert [event.id for event in after] == ["e000003", "e000002", "e000004"]
    assert after.since(before) is None
    assert len(log.events().by_pattern["pat-error-sample-001"]) == 3


def test_a_removed_log_has_no_events(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.append(line(1))
    log.paths.events.unlink()
    with log.database.transaction() as connection:
        assert update_events(connection, log.paths) is None
    assert tuple(log.view()) == ()
    log.append(line(1))
    with log.database.transaction() as connection:
        forget_events(connection)
    assert tuple(log.view()) == ()


def test_a_log_that_cannot_be_read_now_keeps_its_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(tmp_path)
    log.append(line(1))
    problem = Problem("unreadable", "cannot be read", torn=True)
    with monkeypatch.context() as patched, log.database.transaction() as connection:
        patched.setattr(core.index.logs, "read_file", lambda *_: problem)
        assert update_events(connection, log.paths) is problem
    assert len(log.view()) == 1


def test_a_replaced_log_is_noticed_when_it_is_read(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.append(line(1) + line(2))
    view = log.view()
    log.paths.events.write_bytes(line(3) + line(4))
    with pytest.raises(DamagedError):
        tuple(view)


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
