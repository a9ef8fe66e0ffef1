"""Ten agents and a curator write one pattern file: no write is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from core.base.errors import Refused
from core.base.settings import Settings
from core.decisions.commands import Promote, Reset
from core.decisions.curator import Curator
from core.sources.ledger import Ledger
from tests.factories import CURATION_NOW, decide, make_error_pattern, make_project

AGENT = Path(__file__).with_name("agent.py")
IDS = [f"pat-error-{number}-001" for number in range(5)]
SECONDS = 2.0
MAX_SECONDS = 60.0
"""Seconds that a slow machine may need."""
WRITTEN, DECIDED = 20, 5
"""Minimum number of records and decisions that must have overlapped."""


def recorded(path: Path) -> int:
    """Number of records in a file, if it is complete at the moment."""
    try:
        return len(json.loads(path.read_bytes())["pattern_registry"]["error_patterns"])
    except ValueError:
        return 0


@contextmanager
def agents(path: Path, kinds: list[str]) -> Iterator[set[str]]:
    """Agents at work; afterwards the set holds the IDs of everything that they wrote."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-S", "-E", str(AGENT), str(path), f"agent{number}", kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number, kind in enumerate(kinds)
    ]
    written: set[str] = set()
    try:
        yield written
    finally:
        for process in processes:
            assert process.stdin
            process.stdin.close()
        for process in processes:
            assert process.stdout
            written.update(process.stdout.read().split())
            process.stdout.close()
            assert process.wait() == 0


@pytest.fixture(autouse=True)
def _as_patient_as_the_machine_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A curator that gives up writes a copy beside the file, which is right but not tested here."""
    monkeypatch.setattr("core.files.atomic_write._TIMEOUT_SECONDS", MAX_SECONDS)


def test_agents_that_rename_or_truncate_files_lose_no_record(tmp_path: Path) -> None:
    paths = make_project(tmp_path, *IDS)
    curator = Curator(paths, Settings(), by="alice")
    decided: list[str] = []
    now = CURATION_NOW
    with agents(paths.pattern_file("error"), ["rename", "truncate"] * 5) as written:
        start = time.monotonic()
        while (took := time.monotonic() - start) < SECONDS or (
            took < MAX_SECONDS
            and (len(decided) <= DECIDED or recorded(paths.pattern_file("error")) <= WRITTEN + len(IDS))
        ):
            now += timedelta(seconds=1)
            pattern = make_error_pattern(IDS[len(decided) % len(IDS)])
            try:
                decided.append(decide(curator, Promote, pattern, now=now).decision.id)
            except Refused:
                decided.append(decide(curator, Reset, pattern, now=now).decision.id)
    content = json.loads(paths.pattern_file("error").read_bytes())
    records = [record["pattern_id"] for record in content["pattern_registry"]["error_patterns"]]
    assert len(written) > WRITTEN
    assert len(decided) > DECIDED
    assert set(records) == written | set(IDS)
    assert len(records) == len(set(records))
    assert [decision.id for decision in Ledger(paths).decisions()] == decided
    assert not list(paths.patterns.glob("*.displaced-*"))
    assert curator.apply_pending() == ()
