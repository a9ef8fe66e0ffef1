"""Calls for a person, as they are kept."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.config.paths import ProjectPaths
from core.records.debug_sessions import Escalation
from core.sources.debug_sessions import join_escalations, read_escalation
from core.sources.record_kinds import ESCALATION, kind_of
from core.sources.sweep import scan_path

FILE = ".aiwg/ralph/shared/curation/escalations/s.json"
AT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
SAVED = {"session_id": "s", "preserved_at": "2026-11-22T12:00:00Z", "by": "ada", "reason": "why", "session": {}}


def test_a_saved_context_is_an_escalation() -> None:
    assert read_escalation(FILE, SAVED) == ((Escalation(session_id="s", at=AT, by="ada", reason="why", file=FILE),), ())


@pytest.mark.parametrize(
    "value",
    [None, [], "x", {}, SAVED | {"session_id": " "}, SAVED | {"preserved_at": "soon"}, SAVED | {"session_id": []}],
)
def test_anything_else_is_a_finding(value: Any) -> None:
    calls, findings = read_escalation(FILE, value)
    assert calls == () and findings and {finding.file for finding in findings} == {FILE}


def test_long_texts_are_truncated_and_other_types_ignored() -> None:
    ((call,), _) = read_escalation(FILE, SAVED | {"reason": "x" * 10**6, "by": {"a": 1}})
    assert (len(call.reason), call.by) == (16_384, "")


def test_the_newest_escalation_lists_earlier_ones() -> None:
    calls = [Escalation(session_id="s", at=AT.replace(hour=hour), file=f"{hour}") for hour in (3, 1, 2)]
    (joined,) = join_escalations(calls).values()
    assert (joined.file, [one.file for one in joined.earlier]) == ("3", ["1", "2"])


def test_only_regular_files_in_the_folder_are_escalations(tmp_path: Path) -> None:
    assert kind_of(FILE) is ESCALATION
    assert kind_of(FILE.replace("s.json", "s.txt")) is kind_of(FILE.replace("s.json", "a/s.json")) is None
    folder = (tmp_path / FILE).parent
    folder.mkdir(parents=True)
    (tmp_path / "outside.json").write_text("{}")
    (folder / "s.json").symlink_to(tmp_path / "outside.json")
    assert scan_path(ProjectPaths(tmp_path), FILE) == {}
