from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from core.cli.support import output
from core.cli.support.output import Column, line, percent, print_json, print_table
from tests.core.cli.conftest import ROOT, Call
from tests.factories import make_error_record, make_pattern_file

ANY_TEXT = st.text(st.characters(codec=None), max_size=30)


GITHUB = "ghp_" + "a1B2c3D4" * 5


def column(number: int, title: str, **how: Any) -> Column:
    return Column(title, itemgetter(number), **how)


def printed(capfdbinary: pytest.CaptureFixture[bytes]) -> bytes:
    return capfdbinary.readouterr()[0]


def test_secrets_in_json_are_masked_and_texts_of_the_same_wording_under_other_keys_stay(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    tried = [f"loop-{number}" for number in range(300)]
    print_json({"db": {"password": "Tiger4Kettle"}, "rows": [{"title": "Tiger4Kettle", "log": [*tried, GITHUB, 7]}]})
    document = json.loads(printed(capfdbinary))
    assert document["db"]["password"].startswith("[secret: ")
    (row,) = document["rows"]
    assert row["title"] == "Tiger4Kettle"
    assert row["log"][:300] == tried and row["log"][300].startswith("[secret: GitHub token") and row["log"][301] == 7


@given(texts=st.lists(ANY_TEXT, max_size=4))
def test_json_preserves_every_string_and_escapes_control_characters(texts: list[str]) -> None:
    written: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "print_bytes", written.append)
        print_json({"texts": texts})
    (data,) = written
    text = data.decode("utf-8")
    assert json.loads(text) == {"texts": texts}
    assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in text[:-1])
    assert not any(char in text for char in "\u202e\u200b\u2028\u2066\ufeff\U000e0041")


def test_columns_line_up_for_any_character_width(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    print_table([column(0, "ID"), column(1, "N", right=True), column(2, "TEXT", free=True)], [
        ("修正", "1", "one\ntwo"), ("plain", "12,345", "\x1b[31mred" + "x" * 500), ("x" * 100_000, "", ""),
    ])  # fmt: skip
    heading, first, second, huge = printed(capfdbinary).decode().splitlines()
    wide = " " * (output.MAX_CELL - len("plain"))
    assert heading == f"ID   {wide}       N  TEXT"
    assert first == f"修正 {wide}       1  one␤two"
    assert second.startswith(f"plain{wide}  12,345  ␛[31mred") and len(second) == 10 + 2 * output.MAX_CELL
    assert len(huge) == output.MAX_WHOLE_CELL


@pytest.mark.parametrize(
    ("room", "heading"),
    [(70, "ID  LAST  FIRST  NEVER  TEXT"), (43, "ID  LAST  NEVER  TEXT"), (36, "ID  NEVER  TEXT"), (9, "ID  NEVER")],
)
def test_a_narrow_terminal_does_without_some_columns(
    room: int, heading: str, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((room, 24)))
    monkeypatch.setenv("NO_COLOR", "1")
    columns = [column(0, "ID"), column(1, "LAST", expendable=2), column(2, "FIRST", expendable=1), column(3, "NEVER")]
    print_table([*columns, column(4, "TEXT", free=True)], [("1", "2", "3", "4", "x" * 40)])
    assert printed(capfdbinary).decode().splitlines()[0] == heading


def test_a_text_that_would_become_too_short_takes_a_line_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((73, 24)))
    monkeypatch.setenv("NO_COLOR", "1")
    columns = (column(0, "KIND"), column(1, "QUESTION", free=True, least=44), column(2, "REASON", free=True))
    print_table(columns, [("inversion", "q" * 60, "r" * 60)])
    assert printed(capfdbinary).decode().splitlines()[2:] == [f"inversion  {'q' * 60}", f"  {'r' * 60}"]


def test_no_rows_print_nothing(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    print_table([column(0, "ID")], [])
    assert printed(capfdbinary) == b""


def test_no_colours_without_a_terminal(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    line(("bad \x1b[0m", "red"))
    assert printed(capfdbinary) == "bad ␛[0m\n".encode()


@pytest.mark.parametrize(("rate", "text"), [(None, ""), (5 / 7, "71 %"), (0.125, "13 %"), (1.0, "100 %")])
def test_percentages_round_half_up(rate: float | None, text: str) -> None:
    assert percent(rate) == text


def on_a_terminal(args: list[str], columns: int, **environment: str) -> list[str]:
    """The lines that a terminal with this number of columns gets."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "core.cli", *args],
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns), **environment},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    chunks = []
    with contextlib.suppress(OSError):  # how Linux reports that the other side has ended
        while chunk := os.read(master, 65536):
            chunks.append(chunk)
    os.close(master)
    assert process.wait(timeout=60) == 0
    return b"".join(chunks).decode().splitlines()


def test_on_a_terminal_texts_are_shortened_first_and_ids_last(upstream: Path) -> None:
    loops = ["loop", "list"]
    wide = on_a_terminal(loops, 140, NO_COLOR="1")
    assert all(len(line) <= 140 for line in wide)
    assert any("…" in line for line in wide)
    usual = on_a_terminal(loops, 80, NO_COLOR="1")
    assert all(len(line) <= 80 for line in usual)
    assert usual[0].split()[0] == "WHAT" and usual[0].endswith("ID")
    assert any(line.endswith("…3fb529e7") for line in usual), "both ends of an ID, so that IDs stay distinct"
    narrow = on_a_terminal(loops, 30, NO_COLOR="1")
    assert all(len(line) <= 30 for line in narrow)
    assert any(line == "  ralph-fix-null-user…3fb529e7" for line in narrow), "both ends, so that ids stay distinct"


def test_a_pipe_gets_every_value_in_full_on_one_line(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_table(
        (column(0, "ID"), column(1, "WHEN"), column(2, "TEXT", free=True)), [("x" * 60, "2026-11-21", "word " * 20)]
    )
    row = printed(capfdbinary).decode().splitlines()[1]
    assert row == f"{'x' * 60}  2026-11-21  {('word ' * 20).rstrip()}"


def test_a_terminal_gets_colours_unless_it_asks_for_none(upstream: Path) -> None:
    args = ["loop", "list"]
    assert any("\x1b[31mfailed\x1b[0m" in line for line in on_a_terminal(args, 200))
    for wish in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert not any("\x1b" in line for line in on_a_terminal(args, 200, **wish))


TABLES = (
    "loop list",
    "pattern list",
    "pattern merge --threshold 0.3",
    "pattern prune --dry-run --max-age-days 1",
    "pattern list --archived",
    "lesson --reflections",
    "lesson --recurring",
    "review",
    "review --suspicious",
    "log",
    "loop score",
    "changes --thresholds",
    "changes maturity.half_life_days=30",
    "changes --since 30d",
    "task list",
    "search types",
    "debug list",
    "debug list --escalated",
    "debug list --causes",
    "debug list --templates type_mismatch --min-effectiveness 0",
    "debug archive --dry-run",
)


def test_no_table_wraps_at_80_columns(sample: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    printed_tables: list[str] = []
    monkeypatch.setattr(output, "_is_terminal", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((80, 24)))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(output, "_echo_table", printed_tables.extend)
    for words in TABLES:
        printed_tables.clear()
        assert call(*words.split()).code == 0
        assert printed_tables and max(map(cell_len, printed_tables)) <= 80, words


def test_the_log_on_a_narrow_terminal_still_shows_who_decided(tmp_path: Path) -> None:
    long_id = "pat-error-" + "long-" * 12 + "001"
    file = tmp_path / ".aiwg/ralph/shared/patterns/error-patterns.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(make_pattern_file(make_error_record(1, pattern_id=long_id)))
    decide = [sys.executable, "-m", "core.cli", "pattern", "deprecate", long_id, "--reason", "r" * 60]
    subprocess.run([*decide, "--project", str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    heading, row = on_a_terminal(["log", "--project", str(tmp_path)], 80, NO_COLOR="1")
    assert "BY" in heading.split() and "ABOUT" in heading.split() and len(row) <= 80


def test_a_terminal_shows_one_line_that_disappears(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    seconds = iter((0.0, 0.5, 1.0, 1.05, 1.2))
    monkeypatch.setattr(output, "monotonic", lambda: next(seconds))
    with output.show_progress() as progress:
        progress("Too early", 1, 10_000)
        progress("Sending uses", 2_000, 10_000)
        progress("Too soon", 3_000, 10_000)
        progress("Sending", 1, 2)
    text = "Sending uses: 2,000 of 10,000"
    assert capsys.readouterr().err == f"\r{text}\r{'Sending: 1 of 2':{len(text)}}\r{' ' * len('Sending: 1 of 2')}\r"


def test_a_file_gets_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with output.show_progress() as progress:
        progress("Sending uses", 1, 2)
    assert capsys.readouterr() == ("", "")
