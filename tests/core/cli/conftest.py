"""A command line to call: in this process for speed, or as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.cli.program import run
from tests.conftest import WriteSample
from tests.copying import copy_folder

ROOT = Path(__file__).parents[3]
TREES = ROOT / "tests" / "trees"


@dataclass(frozen=True)
class Result:
    """What one call printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """stdout as one JSON document."""
        return json.loads(self.out)


Call = Callable[..., Result]


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has run nothing yet."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(folder))
    for name in ("STATE", "CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(folder / name.lower()))
    for name in ("RALPHDECK_PROJECT", "TMUX", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RALPHDECK_USER", "ada")
    settings = folder / "config" / "ralphdeck" / "settings.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[decisions]\nnames = ["ada", "eve", "grace", "Grace Hopper", "uma"]\n')
    return folder


@pytest.fixture
def call(capfdbinary: pytest.CaptureFixture[bytes]) -> Call:
    """Call ralphdeck in this process."""

    def call_here(*args: str | Path) -> Result:
        capfdbinary.readouterr()
        code = run([str(arg) for arg in args])
        out, err = capfdbinary.readouterr()
        return Result(code, out.decode(), err.decode())

    return call_here


def call_process(args: Sequence[str | Path], cwd: Path = ROOT, **options: Any) -> Result:
    """Call ralphdeck as a process of its own, as a shell would."""
    done = subprocess.run(
        [sys.executable, "-m", "core.cli", *map(str, args)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
        **options,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the tree that the real aiwg wrote, as the project of all commands."""
    monkeypatch.setenv("RALPHDECK_PROJECT", str(tmp_path / "upstream"))
    return copy_folder(TREES / "upstream", tmp_path / "upstream")


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the tree made of the documents' examples, as the project of all commands."""
    monkeypatch.setenv("RALPHDECK_PROJECT", str(tmp_path / "examples"))
    return copy_folder(TREES / "spec-examples", tmp_path / "examples")


@pytest.fixture
def sample(tmp_path: Path, write_sample: WriteSample, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sample project as of this minute, as the project of all commands: patterns in all states, two inversions."""
    folder = tmp_path / "acme-api"
    monkeypatch.setenv("RALPHDECK_PROJECT", str(folder))
    write_sample(folder, datetime.now(UTC).replace(second=0, microsecond=0))  # made once for several tests
    return folder
