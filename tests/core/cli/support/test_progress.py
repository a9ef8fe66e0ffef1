"""Progress of long work on a terminal."""

from __future__ import annotations

import sys

import pytest

from core.cli.render import output
from core.cli.render.output import show_progress


def test_a_terminal_shows_one_line_that_disappears(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    seconds = iter((0.0, 0.5, 1.0, 1.05, 1.2))
    monkeypatch.setattr(output, "monotonic", lambda: next(seconds))
    with show_progress() as progress:
        progress("Too early", 1, 10_000)
        progress("Sending uses", 2_000, 10_000)
        progress("Too soon", 3_000, 10_000)
        progress("Sending", 1, 2)
    text = "Sending uses: 2,000 of 10,000"
    assert capsys.readouterr().err == f"\r{text}\r{'Sending: 1 of 2':{len(text)}}\r{' ' * len('Sending: 1 of 2')}\r"


def test_a_file_gets_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress() as progress:
        progress("Sending uses", 1, 2)
    assert capsys.readouterr() == ("", "")
