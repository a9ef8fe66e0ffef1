"""Calls for a person, as they are kept."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.config.paths import ProjectPaths
from core.records.debug_sessions import Escalation
from core.sources.escalations import join_escalations, read_escalation
from core.sources.record_kinds import ESCALATION, kind_of
from core.sources.sweep import scan_path

FILE = ".aiwg/ralph/shared/curation/escalations/s.json"
AT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
KEPT = {"session_id": "s", "preserved_at": "2026-11-22T12:00:00Z", "by": "ada", "reason": "why", "session": {}}


def test_what_is_kept_is_the_record_of_the_call() -> None:
    assert read_escalation(FILE, KEPT) == ((Escalation(session_id="s", at=AT, by="ada", reason="why", file=FILE),), ())


@pytest.mark.parametrize(
    "value", [None, [], "x", {}, KEPT | {"session_id": " "}, KEPT | {"preserved_at": "soon"}, KEPT | {"session_id": []}]
)
def test_anything_else_is_no_call_but_a_finding(value: Any) -> None:
    calls, findings = read_escalation(FILE, value)
    assert calls == () and findings and {finding.file for finding in findings} == {FILE}


def test_long_words_are_cut_and_others_than_words_are_none() -> None:
    ((call,), _) = read_escalation(FILE, KEPT | {"reason": "x" * 10**6, "by": {"a": 1}})
    assert (len(call.reason), call.by) == (16_384, "")


def test_the_newest_call_holds_those_before_it() -> None:
    calls = [Escalation(session_id="s", at=AT.replace(hour=hour), file=f"{hour}") for hour in (3, 1, 2)]
    (joined,) = join_escalations(calls).values()
    assert (joined.file, [one.file for one in joined.earlier]) == ("3", ["1", "2"])


def test_only_regular_files_of_that_folder_are_calls(tmp_path: Path) -> None:
    assert kind_of(FILE) is ESCALATION
    assert kind_of(FILE.replace("s.json", "s.txt")) is kind_of(FILE.replace("s.json", "a/s.json")) is None
    folder = (tmp_path / FILE).parent
    folder.mkdir(parents=True)
    (tmp_path / "outside.json").write_text("{}")
    (folder / "s.json").symlink_to(tmp_path / "outside.json")
    assert scan_path(ProjectPaths(tmp_path), FILE) == {}
