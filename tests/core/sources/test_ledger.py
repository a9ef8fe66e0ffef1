from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import UnknownRecord, Unwritable
from core.base.paths import ProjectPaths
from core.files.file_reader import MAX_PATTERN_BYTES
from core.records.decisions import Decision, Effect, Verb
from core.sources.ledger import DecisionLog, Ledger
from tests.factories import CURATION_NOW, PATTERN_FILE, read_decisions


def made(identifier: str, **changes: Any) -> Decision:
    values: dict[str, Any] = {
        "id": identifier,
        "at": CURATION_NOW,
        "by": "alice",
        "verb": Verb.PROMOTE,
        "subject": "pat-error-a-001",
        "reason": "é\n\u2028\x00",
        "before": {"state": "candidate"},
        "effects": (
            Effect(file=PATTERN_FILE, type="error", pattern_id="pat-error-a-001", set={"override": {"n": 1.0}}),
        ),
    }
    return Decision(**(values | changes))


def _at(time: str) -> bytes:
    return json.dumps({"kind": "decision", "id": "x", "at": time, "by": "", "verb": "note", "subject": ""}).encode()


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    return ProjectPaths(tmp_path)


def test_a_decision_is_read_back_unchanged_in_another_process(paths: ProjectPaths) -> None:
    one, other = Ledger(paths), Ledger(paths)
    assert other.decisions() == ()
    one.append(made("d1"))
    assert one.decisions() == other.decisions() == (made("d1"),)
    other.append(made("d2"))
    assert [decision.id for decision in one.decisions()] == ["d1", "d2"]
    assert one.state() == other.state()
    assert "d2" in one
    assert one.decision("d2") == made("d2")
    with pytest.raises(UnknownRecord):
        one.decision("d3")


def test_effects_are_pending_until_marked_as_applied(paths: ProjectPaths) -> None:
    ledger, other = Ledger(paths), Ledger(paths)
    two = Effect(file="other.json", type="anti", pattern_id="x", insert={"pattern_id": "x"})
    ledger.append(made("d1", effects=(*made("d1").effects, two)))
    ledger.append(made("d2", effects=()))
    assert [(decision.id, file) for decision, file in ledger.pending()] == [("d1", PATTERN_FILE), ("d1", "other.json")]
    other.mark_applied({"d1": [PATTERN_FILE]})
    assert [(decision.id, file) for decision, file in ledger.pending()] == [("d1", "other.json")]


def test_a_write_costs_the_same_in_a_big_ledger(paths: ProjectPaths) -> None:
    ledger = Ledger(paths)
    ledger.append(*(made(f"old{number}", effects=()) for number in range(20_000)))
    size = paths.ledger.stat().st_size
    started = time.perf_counter()
    for number in range(20):
        ledger.append(made(f"d{number}"))
    assert time.perf_counter() - started < 20 * 0.05  # rewriting it all would take several times that
    assert paths.ledger.stat().st_size - size < 20 * 1000


def test_lines_of_unknown_kinds_are_ignored(paths: ProjectPaths) -> None:
    ledger = Ledger(paths)
    ledger.append(made("d1"))
    with paths.ledger.open("a") as file:
        file.write('{"kind":"seal","hash":"abc"}\n')
        newer = {"kind": "decision", "id": "d2", "at": "2026-05-03T12:00:00", "by": "x", "verb": "note"}
        file.write(json.dumps({**newer, "subject": "p", "mood": "good"}) + "\n")
    before = paths.ledger.read_bytes()
    ledger.append(made("d3"))
    assert paths.ledger.read_bytes().startswith(before)
    assert [decision.id for decision in ledger.decisions()] == ["d1", "d2", "d3"]
    assert ledger.decision("d2").at == CURATION_NOW
    assert {finding.code for finding in read_decisions(before)[1]} == {"not-as-written"}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"\x00\x00", "bad-json"),
        (b"[]", "bad-json"),
        (b"\xff", "bad-json"),
        (b'{"kind":"decision","id":"\\ud800"}', "bad-json"),
        (b'{"a":' * 3000 + b"1" + b"}" * 3000, "too-deep"),
        (b'{"kind":"decision","before":' + b"[" * 64 + b"]" * 64 + b"}", "too-deep"),
        (b'{"a":1e999}', "bad-json"),
        (b'{"kind":"decision"}', "wrong-type"),
        (b'{"kind":"decision","id":"x","at":"never","by":"","verb":"note","subject":""}', "wrong-type"),
        (b'{"kind":"decision","id":"x","at":"2026-05-03","by":"","verb":"explode","subject":""}', "wrong-type"),
        (b'{"kind":"settled","decision":7,"files":"x"}', "wrong-type"),
        (_at("9999-12-31T23:59:59-23:59"), "bad-time"),
        (_at("0001-01-01T00:00:00+23:59"), "bad-time"),
    ],
)
def test_a_bad_line_is_a_finding_and_others_count(paths: ProjectPaths, line: bytes, code: str) -> None:
    ledger = Ledger(paths)
    ledger.append(made("d1"))
    with paths.ledger.open("ab") as file:
        file.write(line + b"\n")
    ledger.append(made("d2"))
    decisions, findings = read_decisions(paths.ledger.read_bytes() + b'{"torn')
    assert [decision.id for decision in decisions] == ["d1", "d2"]
    assert [(finding.code, finding.pointer) for finding in findings] == [(code, "line 2")]
    assert findings[0].file == paths.relative(paths.ledger)
    assert ledger.decisions() == decisions


def test_times_are_converted_to_utc(paths: ProjectPaths) -> None:
    decisions, findings = read_decisions(_at("2026-05-03T14:00:00+02:00") + b"\n")
    assert findings == ()
    assert decisions[0].at == CURATION_NOW
    assert decisions[0].at.utcoffset() == timedelta(0)


def test_a_duplicate_id_counts_once(paths: ProjectPaths) -> None:
    ledger = Ledger(paths)
    ledger.append(made("d1"))
    ledger.append(made("d1", by="mallory"))
    decisions, findings = read_decisions(paths.ledger.read_bytes())
    assert [decision.by for decision in decisions] == ["alice"]
    assert [finding.code for finding in findings] == ["duplicate-id"]


def test_a_replaced_ledger_is_read_again(paths: ProjectPaths) -> None:
    ledger = Ledger(paths)
    ledger.append(made("d1"))
    ledger.append(made("d2"))
    first = paths.ledger.read_bytes().splitlines(keepends=True)[0]
    paths.ledger.write_bytes(first)
    assert [decision.id for decision in ledger.decisions()] == ["d1"]
    paths.ledger.unlink()
    assert ledger.decisions() == ()
    assert ledger.state().pins == {}


def test_a_ledger_over_the_size_limit_is_refused(paths: ProjectPaths) -> None:
    ledger = Ledger(paths)
    ledger.append(made("d1"))
    os.truncate(paths.ledger, MAX_PATTERN_BYTES + 1)
    with pytest.raises(Unwritable, match="at most"):
        ledger.append(made("d2"))
    assert paths.ledger.stat().st_size == MAX_PATTERN_BYTES + 1


def test_a_ledger_outside_the_project_is_not_written(tmp_path: Path) -> None:
    paths = ProjectPaths(tmp_path / "project")
    (tmp_path / "outside").mkdir()
    paths.curation.parent.mkdir(parents=True)
    paths.curation.symlink_to(tmp_path / "outside")
    with pytest.raises(Unwritable, match="is outside"):
        Ledger(paths).append(made("d1"))
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_decision_log_is_parsed_incrementally(paths: ProjectPaths) -> None:
    ledger, log = Ledger(paths), DecisionLog()
    ledger.append(made("d1"))
    log.read(first := paths.ledger.read_bytes())
    known = log.decisions[0]
    ledger.append(made("d2"))
    whole = paths.ledger.read_bytes()
    log.read(whole[:-3])
    assert log.decisions == (known,)
    log.read(whole)
    assert [decision.id for decision in log.decisions] == ["d1", "d2"] and log.decisions[0] is known
    log.read(whole + b"no json\n")
    assert [finding.pointer for finding in log.findings] == ["line 3"]
    log.read(first)
    assert log.decisions == (known,) and not log.findings
    log.read(b"")
    assert not log.decisions
