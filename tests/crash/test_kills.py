"""SIGKILL at any moment loses no acknowledged decision and leaves no incomplete file."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.records.decisions import Verb
from core.sources.ledger import Ledger, verify_ledger
from tests.crash.worker import MANY
from tests.factories import make_curator, make_project, read_decisions, read_overrides

ROOT = Path(__file__).parents[2]
IDS = [f"pat-error-{number}-001" for number in range(10)]


class Workers:
    """Children that make decisions until they are killed, one at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, *, acknowledged: int = 0, seconds: float = 0.0, kill_before_call: int | None = None) -> list[str]:
        """Run one child; returns the IDs of the decisions that it acknowledged.

        Args:
            acknowledged: Kill it after this number of decisions
            seconds: and this time.
            kill_before_call: Instead, let it kill itself before this system call that changes the disk.
        """
        assert self._process.stdin and self._process.stdout
        print(kill_before_call or "", file=self._process.stdin, flush=True)
        output: list[str] = []
        pid = 0
        for line in self._process.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "dead":
                return output
            if word == "ack":
                output.append(rest)
            else:
                pid = int(rest)
            # The PID can arrive after decisions of the child.
            if kill_before_call is None and len(output) >= acknowledged and pid:
                time.sleep(seconds)
                os.kill(pid, signal.SIGKILL)
                pid = 0
        raise AssertionError("the worker ended by itself")


@contextmanager
def workers(paths: ProjectPaths, kind: str) -> Iterator[Workers]:
    command = [sys.executable, "-m", "tests.crash.worker", str(paths.project), kind, "1"]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Workers(process)
        assert process.stdin
        process.stdin.close()


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    return make_project(tmp_path, *IDS)


def ledger_ids(paths: ProjectPaths) -> set[str]:
    """IDs in the decision log; every complete line must be readable."""
    data = paths.ledger.read_bytes() if paths.ledger.exists() else b""
    decisions, findings = read_decisions(data)
    assert findings == ()
    return {decision.id for decision in decisions}


def check_registry(paths: ProjectPaths) -> None:
    """Check that the pattern files are complete and no record lost data."""
    for path in paths.patterns.glob("*.json"):
        content = json.loads(path.read_bytes())
        if path == paths.pattern_file("error"):
            records = content["pattern_registry"]["error_patterns"]
            assert [record["pattern_id"] for record in records] == IDS
            assert all((record["success_rate"], record["usage_count"]) == (1.0, 3) for record in records)


def check_settled(paths: ProjectPaths) -> None:
    """The next curator applies pending effects of the ledger to the pattern files."""
    assert make_curator(paths).apply_pending() == ()
    ledger = Ledger(paths)
    assert ledger.pending() == ()
    assert verify_ledger(paths).problems == ()
    noted = Counter(decision.group for decision in ledger.decisions() if decision.verb is Verb.NOTE)
    assert set(noted.values()) <= {MANY}  # all decisions of a group are there, or none
    pins = ledger.state().pins
    written = read_overrides(paths)
    if paths.pattern_file("anti").exists():
        written |= read_overrides(paths, "anti")
    assert {key: value["decision"] for key, value in written.items()} == {
        key: pin.decision_id for key, pin in pins.items()
    }
    accepted = {key for key, value in ledger.state().inversions.items() if value.verdict == "accepted"}
    made = set()
    if paths.pattern_file("anti").exists():
        content = json.loads(paths.pattern_file("anti").read_bytes())
        made = {record["inverted_from"] for record in content["pattern_registry"]["anti_patterns"]}
    assert made == accepted


def test_no_acknowledged_decision_is_lost_when_writers_are_killed(paths: ProjectPaths) -> None:
    chance = random.Random(1)
    acknowledged: set[str] = set()
    with workers(paths, "append") as children:
        for kills in range(1, 26):
            acknowledged.update(children.run(acknowledged=chance.randrange(4), seconds=chance.uniform(0, 0.005)))
            if kills % 5 == 0:
                assert acknowledged <= ledger_ids(paths)
    assert len(acknowledged) > 25


def test_the_next_curator_completes_files_after_a_kill(paths: ProjectPaths) -> None:
    chance = random.Random(2)
    acknowledged: set[str] = set()
    with workers(paths, "curate") as children:
        for _ in range(20):
            acknowledged.update(children.run(acknowledged=chance.randrange(3), seconds=chance.uniform(0, 0.02)))
            assert acknowledged <= ledger_ids(paths)
            check_registry(paths)
            if chance.random() < 0.5:
                check_settled(paths)
    check_settled(paths)
    assert len(acknowledged) > 10


def test_a_kill_before_any_system_call_loses_nothing(paths: ProjectPaths) -> None:
    acknowledged: set[str] = set()
    with workers(paths, "curate") as children:
        for calls in range(1, 71, 2):
            acknowledged.update(children.run(kill_before_call=calls))
            assert acknowledged <= ledger_ids(paths)
            check_registry(paths)
            check_settled(paths)
    assert acknowledged


def test_two_killed_writers_leave_one_hash_chain(paths: ProjectPaths) -> None:
    acknowledged: set[str] = set()
    with workers(paths, "append") as one, workers(paths, "append") as two, ThreadPoolExecutor() as pool:
        for _ in range(4):
            for output in pool.map(lambda children: children.run(acknowledged=3), (one, two)):
                acknowledged.update(output)
            assert verify_ledger(paths).problems == ()
    assert acknowledged <= ledger_ids(paths)


def drafts(paths: ProjectPaths) -> list[Path]:
    return [path for path in paths.ralph.rglob(".*.tmp-*") if path.is_file()]


def test_drafts_of_killed_writers_are_removed(paths: ProjectPaths) -> None:
    with workers(paths, "write") as children:
        for calls in range(1, 200):
            children.run(kill_before_call=calls % 100 + 1)
            if len({path.parent for path in drafts(paths)}) > 1:
                break
        assert drafts(paths), "no draft was left"
        for path in drafts(paths):
            os.utime(path, (0, 0))
        children.run(acknowledged=2)
    assert [path for path in drafts(paths) if path.stat().st_mtime == 0] == []
