"""The program with a screen, called in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.cli.conftest import Call, Result, examples, home, sample, upstream
from tui.cli import run

__all__ = ["examples", "home", "sample", "upstream"]


@pytest.fixture
def call(capfdbinary: pytest.CaptureFixture[bytes]) -> Call:
    """Call ralphdeck in this process."""

    def call_here(*args: str | Path) -> Result:
        capfdbinary.readouterr()
        code = run([str(arg) for arg in args])
        out, err = capfdbinary.readouterr()
        return Result(code, out.decode(), err.decode())

    return call_here
