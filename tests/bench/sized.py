"""The projects at three sizes that every command and every hook event is measured in."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.bench.command_runs import GUARDRAILS, SAMPLE, Subjects
from tests.bench.trees import NOW, error_id, loop_name, success_id

SIZES: Final = ("sample", "large", "huge")
"""The sample project; 10,000 loops and 10,000 patterns; 10,000 loops, 100,000 patterns and 1,000,000 events."""
_ROOT: Final = Path(__file__).parents[2]
_TEAM_HALF_LIFE_DAYS: Final = 90.0
_DECISIONS: Final[tuple[tuple[tuple[str, ...], range, tuple[str, ...]], ...]] = (
    (("pattern", "promote"), range(80), ()),
    (("pattern", "deprecate"), range(80, 140), ("--reason", "replaced")),
    (("pattern", "quarantine"), range(140, 220), ("--reason", "look again")),
    (("pattern", "promote"), range(240, 300), ("--re-enable",)),
    (("undo",), range(0), ()),
    (("pattern", "reset"), range(20), ()),
)
"""Commands with the numbers of the error patterns that they decide on, and options."""
_RELEASED: Final = range(140, 180)  # numbers of patterns in quarantine
GENERATED: Final = Subjects(
    loop=loop_name(40),
    pattern=error_id(230),
    other=error_id(231),
    template=success_id(30),
    question=error_id(229),  # held: its text gives orders,
    session="session-00007",
)


def subjects(size: str) -> Subjects:
    """IDs in the project of a size."""
    return SAMPLE if size == "sample" else GENERATED


def preparations(size: str) -> Sequence[Sequence[str]]:
    """Commands that make a project of a size one of the user who measures: a release from elsewhere has no effect."""
    trust = ["trust", "--yes", "--confirm", "all"]
    release = ["pattern", "release", *map(error_id, _RELEASED), "--reason", "read"]
    return [trust] if size == "sample" else [trust, release]


def write_lessons(project: Path) -> None:
    """Write a file of an agent with two lessons."""
    (project / ".ralph").mkdir(exist_ok=True)
    (project / ".ralph" / "guardrails.md").write_text(GUARDRAILS)


def decide(project: Path) -> None:
    """Make some hundred decisions on error patterns: pins, resets, quarantine, one act undone.

    A project with few patterns gets fewer. The commands run without the user's own settings and state.
    """
    known = (project / ".aiwg" / "ralph" / "shared" / "patterns" / "error-patterns.json").read_bytes()
    with tempfile.TemporaryDirectory(prefix="ralphdeck-bench-home-") as home:
        write_settings(Path(home) / ".config")
        for command, numbers, options in _DECISIONS:
            ids = [id for id in map(error_id, numbers) if b'"%b"' % id.encode() in known]
            if ids or not numbers:
                _decide(Path(home), [*command, *ids, *options, "--json", "--project", str(project)])


def write_team_sums(project: Path, patterns: int) -> None:
    """Write the uses of a third of the error patterns in other projects of a team."""
    source = random.Random(5)
    epoch = NOW - timedelta(days=180)
    lines: list[dict[str, Any]] = [
        {"kind": "space", "space": "web", "epoch": epoch, "half_life_days": _TEAM_HALF_LIFE_DAYS}
    ]
    for number in range(0, patterns // 4, 3):
        successes, failures, days = source.randrange(30), source.randrange(10), source.randrange(1, 120)
        used = NOW - timedelta(days=days)
        factor = 2 ** ((used - epoch) / timedelta(days=_TEAM_HALF_LIFE_DAYS))
        results = successes + failures
        lines.append(
            {
                "pattern_id": error_id(number),
                "successes": successes,
                "failures": failures,
                "uses": results + 1,
                "injected_only": number % 5,
                "helpful": successes * factor,
                "harmful": failures * factor,
                "injections": (results + 1 + number % 5) * factor,
                "undecayed": results,
                "last_used": used,
            }
        )
    file = project / ".aiwg" / "ralph" / "shared" / "team" / "evidence.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


def write_settings(folder: Path) -> None:
    """Write settings of a user, into a folder of settings, that let a script decide everything."""
    file = folder / "ralphdeck" / "settings.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[decisions]\nscripts = "all"\n')


def copy_project(project: Path, target: Path) -> None:
    """Copy a project with the times of its files; replaces an earlier copy."""
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-a", str(project), str(target)], check=True)  # three times as fast as shutil


def _decide(home: Path, arguments: Sequence[str]) -> None:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environment = {**kept, "HOME": str(home), "RALPHDECK_TRUSTED_PATHS": "/", "RALPHDECK_SEMANTIC": "off"}
    command = [sys.executable, "-m", "tui", *arguments]
    done = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True)
    if '"decision' not in done.stdout:  # some of several patterns may be refused
        raise RuntimeError(f"{' '.join(arguments[:2])}: {done.stderr.strip()[-300:]}")
