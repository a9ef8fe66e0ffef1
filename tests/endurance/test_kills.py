"""A thousand rounds of SIGKILL over all writing commands with two writers: no acknowledged write is lost."""

from __future__ import annotations

import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.cli.demo.sample import copy_sample
from tests.endurance.writing import (
    DECIDING,
    LOGGING,
    PATTERNS,
    QUIET,
    Answer,
    Commands,
    commands,
    has_mark,
    problems,
    record_ids,
    words,
)

ROUNDS = 1_000
MOST_CALLS = 25
"""Maximum number of calls that change the disk in one command."""
pytestmark = [pytest.mark.endurance, pytest.mark.slow, pytest.mark.timeout(0)]


def prepare(folder: Path, with_commands: Commands) -> Path:
    """The sample project, and a file to import."""
    project = folder / "project"
    copy_sample(project, datetime.now(UTC))
    exported = folder / "import.json"
    answer = with_commands.run(["pattern", "export", "--output", str(exported), "--project", str(project)])
    assert answer.code == 0, answer.output
    return project


def is_acknowledged(command: str, answer: Answer) -> bool:
    """Whether a command has reported that its mark or decision is written."""
    leaves_mark = "{mark}" in command or command.startswith("undo")
    repeated = "already" in answer.output or "had ended before" in answer.output
    return answer.code == 0 and leaves_mark and not repeated


def test_no_acknowledged_write_is_lost_when_two_writers_are_killed(tmp_path: Path) -> None:
    chance = random.Random(1)
    home = tmp_path / "home"
    acknowledged: list[str] = []
    killed = 0
    with commands(home) as one, commands(home) as two, ThreadPoolExecutor(2) as pool:
        project = prepare(tmp_path, one)
        known = record_ids(project)

        def write(writer: Commands, command: str, mark: str, number: int, kill_before: int) -> Answer:
            return writer.run(words(command, project, mark, number), kill_before=kill_before)

        for number in range(ROUNDS):
            chosen = [chance.choice((*DECIDING, *LOGGING, *QUIET)) for _ in range(2)]
            marks = [f"mark-{number}-{writer}-end" for writer in range(2)]
            kills = [chance.choice((0, chance.randint(1, MOST_CALLS))) for _ in range(2)]
            pattern = [chance.randrange(len(PATTERNS)) for _ in range(2)]
            answers = list(pool.map(write, (one, two), chosen, marks, pattern, kills))
            for command, mark, answer in zip(chosen, marks, answers, strict=True):
                killed += answer.code is None
                assert answer.code in (None, 0, 1), f"{command}: {answer.output}"
                if is_acknowledged(command, answer):
                    assert has_mark(project, mark), command
                    acknowledged.append(mark)
            assert problems(project) == [], f"round {number}: {chosen}, {kills}"
            assert known <= record_ids(project), f"round {number}: {chosen}"
        for mark in acknowledged:
            assert has_mark(project, mark)
    assert killed > ROUNDS / 4
    assert len(acknowledged) > ROUNDS / 10
    shutil.rmtree(project)
