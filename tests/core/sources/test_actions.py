"""Action logs of attempts, whose lines are decoded on demand."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import core.sources.episodes as module
from core.base.paths import ProjectPaths
from core.files.file_reader import decode_json
from core.records.episodes import Action
from core.sources.episodes import Actions, read_action
from core.sources.fields import Fields

FILE = ".aiwg/ralph/tasks/task-001/attempts/001/actions.jsonl"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Path of the action log."""
    path = tmp_path / FILE
    path.parent.mkdir(parents=True)
    return path


def opened(log: Path) -> Actions:
    return Actions(ProjectPaths(log.parents[6]), FILE)


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def decode_all(data: bytes) -> list[Action]:
    """Decode all lines of the log at once, as a reference."""
    begun = [text for text in data.split(b"\n")[:-1] if text.lstrip(b" \t\r\xef\xbb\xbf")[:1] == b"{"]
    found = []
    for number, text in enumerate(begun, 1):
        value = decode_json(text).value
        found.append(read_action(number, Fields(FILE, value, [])) if isinstance(value, dict) else Action(number=number))
    return found


TEXTS = st.text(max_size=20)
LINES = st.one_of(
    st.dictionaries(
        st.sampled_from(["timestamp", "type", "params", "success", "output", "error", "reasoning"]),
        st.one_of(TEXTS, st.booleans(), st.none(), st.integers(), st.dictionaries(TEXTS, TEXTS, max_size=2)),
    ).map(lambda value: json.dumps(value).encode()),
    st.sampled_from([b"", b"  ", b"[]", b"7", b"{torn", b'{"error": NaN}', b"\xff\xfe", b' {"type": "x"}\r']),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(LINES, max_size=12), torn=LINES, cut=st.slices(12), chunk=st.sampled_from([7, 1 << 20]))
def test_any_slice_is_what_a_full_parse_gives(
    log: Path, monkeypatch: pytest.MonkeyPatch, lines: list[bytes], torn: bytes, cut: slice, chunk: int
) -> None:
    monkeypatch.setattr(module, "_CHUNK", chunk)
    data = b"".join(text + b"\n" for text in lines)
    log.write_bytes(data + torn)
    actions, expected = opened(log), decode_all(data)
    assert list(actions[cut]) == expected[cut]
    assert list(actions) == expected
    assert list(actions.errors) == [place for place, action in enumerate(expected) if action.has_failed]


def test_the_documented_example_is_read(log: Path) -> None:
    log.write_bytes(
        line(
            timestamp="2026-02-01T010:02:00Z",
            iteration=1,
            type="bash",
            tool="Bash",
            params={"command": "npx tsc", "timeout": 5, "env": {"CI": True}},
            success=False,
            output="",
            error="exit 1",
            reasoning="because",
            expected_outcome="green",
        )
    )
    [action] = opened(log)
    assert action.params == (("command", "npx tsc"), ("timeout", "5"), ("env", '{"CI":true}'))
    assert (action.number, action.type, action.error, action.expected) == (1, "bash", "exit 1", "green")
    assert action.at is not None
    assert action.at.hour == 10
    assert action.has_failed


def test_a_log_that_grows_or_disappears_meanwhile(log: Path) -> None:
    log.write_bytes(line(type="read") + b'{"type": "ba')
    first = opened(log)
    with log.open("ab") as file:
        file.write(b'sh"}\n' + line(type="edit", success=False))
    assert [action.type for action in first] == ["read"]
    assert [action.type for action in opened(log)] == ["read", "bash", "edit"]
    log.unlink()
    assert [action.type for action in first] == [""]


def test_bad_lines_are_findings_at_their_line(log: Path) -> None:
    deep = b'{"params": ' + b"[" * 500 + b"]" * 500 + b"}\n"
    log.write_bytes(b"nonsense\n[]\n" + deep + b'{"type": "x", "output": NaN}\n{"torn\n')
    actions = opened(log)
    assert [finding.pointer for finding in actions.findings] == ["line 1"]
    assert "1 more lines" in actions.findings[0].message
    assert [(action.number, action.type) for action in actions] == [(1, ""), (2, "x"), (3, "")]
    assert [finding.pointer for finding in actions.findings] == ["line 1", "line 3", "line 4", "line 5"]


def test_a_line_of_ten_megabytes_is_skipped(log: Path) -> None:
    log.write_bytes(line(output="x" * 10_000_000) + line(type="bash"))
    actions = opened(log)
    assert [action.type for action in actions] == ["", "bash"]
    assert actions.findings[0].code == "too-large"


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "nothing"])
def test_another_file_has_no_actions(log: Path, tmp_path_factory: pytest.TempPathFactory, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(log)
    elif kind == "link":
        outside = tmp_path_factory.mktemp("outside") / "secret"
        outside.write_bytes(line(type="secret"))
        log.symlink_to(outside)
    elif kind == "folder":
        log.mkdir()
    actions = opened(log)
    assert len(actions) == 0
    assert bool(actions.findings) is (kind != "nothing")


def test_long_texts_are_truncated(log: Path) -> None:
    log.write_bytes(line(output="x" * 1_000_000, params={f"p{n}": "y" for n in range(1000)}))
    [action] = opened(log)
    assert len(action.output) == module.MAX_ACTION_TEXT
    assert len(action.params) == module.MAX_PARAMS


@pytest.mark.parametrize("between", [b"", b"no JSON\n", b'{"success": "no", "n": \n', b"\n"])
def test_failed_actions_are_found_between_other_lines(log: Path, between: bytes) -> None:
    failed, passed = line(success=False), line(success=True, output="x" * 200)
    log.write_bytes((failed + passed + between) * 50)
    actions = opened(log)
    assert list(actions.errors) == [place for place, action in enumerate(actions) if action.has_failed]
    assert len(actions.errors) == 50


def test_the_newest_actions_are_limited_in_number_and_size(log: Path) -> None:
    log.write_bytes(line(output="x") * 100)
    size = len(line(output="x"))
    assert opened(log).find_newest(30, 1 << 20) == 70
    assert opened(log).find_newest(30, 10 * size) == 90
    assert opened(log).find_newest(1000, 1 << 20) == 0
    log.write_bytes(b"")
    assert opened(log).find_newest(30, 100) == 0
