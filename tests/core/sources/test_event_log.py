from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.errors import BadInput, Unwritable
from core.config.paths import ProjectPaths
from core.records.events import Event
from core.sources.events import EventLog, append_events

EVENT = Event(
    id="e1",
    at=datetime(2026, 5, 3, 12, 0, 0, 500, tzinfo=UTC),
    kind="applied",
    pattern_id="pat-error-a-001",
    loop_id="ralph-a-00000001",
    success=True,
    by="alice",
)


def test_appended_events_are_read_back(tmp_path: Path) -> None:
    paths = ProjectPaths(tmp_path)
    append_events(paths, EVENT)
    log = EventLog("events.jsonl")
    log.read(paths.events.read_bytes())
    assert log.events == (EVENT,)
    assert log.findings == ()


def test_a_lone_surrogate_is_refused_before_writing(tmp_path: Path) -> None:
    paths = ProjectPaths(tmp_path)
    with pytest.raises(BadInput):
        append_events(paths, Event(id="\ud800", at=EVENT.at, kind="applied"))
    assert not paths.events.exists()


def test_a_log_outside_the_project_is_not_written(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    paths = ProjectPaths(tmp_path / "project")
    paths.curation.parent.mkdir(parents=True)
    paths.curation.symlink_to(outside)
    with pytest.raises(Unwritable, match="is outside"):
        append_events(paths, EVENT)
    assert list(outside.iterdir()) == []
