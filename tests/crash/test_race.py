"""Ten agents and a curator on one pattern file: nobody's work is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from core.curation.curator import Curator
from core.curation.ledger import Ledger
from core.errors import Refused
from core.paths import ProjectPaths
from core.settings import Settings
from tests.core.curation.making import NOW, make_assessment, make_pattern, make_project

AGENT = Path(__file__).with_name("agent.py")
IDS = [f"pat-error-{number}-001" for number in range(5)]
SECONDS = 4.0


@contextmanager
def agents(path: Path, kinds: list[str]) -> Iterator[set[str]]:
    """Agents at work; afterwards the set holds the ids of all that they wrote."""
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


def race(paths: ProjectPaths, kinds: list[str]) -> None:
    curator = Curator(paths, Settings(), by="alice")
    decided: list[str] = []
    now = NOW
    with agents(paths.pattern_file("error"), kinds) as written:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            now += timedelta(seconds=1)
            pattern = make_pattern(IDS[len(decided) % len(IDS)])
            try:
                decided.append(curator.promote(pattern, make_assessment(), now=now).decision.id)
            except Refused:
                decided.append(curator.reset(pattern, make_assessment(), now=now).decision.id)
    content = json.loads(paths.pattern_file("error").read_bytes())
    records = [record["pattern_id"] for record in content["pattern_registry"]["error_patterns"]]
    assert len(written) > 20
    assert len(decided) > 5
    assert set(records) == written | set(IDS)
    assert len(records) == len(set(records))
    assert [decision.id for decision in Ledger(paths).decisions()] == decided
    assert not list(paths.patterns.glob("*.displaced-*"))
    assert curator.settle() == ()


def test_agents_that_rename_lose_no_record_to_a_curator(tmp_path: Path) -> None:
    race(make_project(tmp_path, *IDS), ["rename"] * 10)


def test_agents_that_truncate_lose_no_record_to_a_curator(tmp_path: Path) -> None:
    race(make_project(tmp_path, *IDS), ["rename"] * 5 + ["truncate"] * 5)
