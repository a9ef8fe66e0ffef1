"""A disk that fills up at each write of each command: a clear error, and no data lost or incomplete."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.endurance.test_kills import prepare
from tests.endurance.writing import DECIDING, LOGGING, QUIET, commands, has_mark, problems, record_ids, words

MOST_CALLS = 400
pytestmark = [pytest.mark.endurance, pytest.mark.slow, pytest.mark.timeout(0)]


@pytest.mark.parametrize("command", [*DECIDING, *LOGGING, *QUIET])
def test_a_full_disk_loses_nothing_and_the_command_can_be_repeated(command: str, tmp_path: Path) -> None:
    with commands(tmp_path / "home") as runner:
        before = prepare(tmp_path, runner)
        known = record_ids(before)
        project = tmp_path / "full" / "project"
        shutil.copytree(before, project)
        shutil.copy(tmp_path / "import.json", project.parent)
        whole = runner.run(words(command, project, "whole-end"))
        for call in range(1, MOST_CALLS):
            shutil.rmtree(project)
            shutil.rmtree(project.parent / "out", ignore_errors=True)
            shutil.copytree(before, project)
            full = runner.run(words(command, project, "full-end"), full_from=call)
            where = f"no space from call {call} on: {full.output}"
            assert full.code in (0, 1), where
            assert "Traceback" not in full.output, where
            if full.code == 0 and "{mark}" in command:
                assert has_mark(project, "full-end"), where
            assert problems(project) == [], where
            assert known <= record_ids(project), where
            again = runner.run(words(command, project, "again-end"))
            assert again.code in {whole.code, 0, 1}, f"{where}\nagain: {again.output}"
            assert problems(project) == [], where
            if not full.reached:
                break
        else:
            raise AssertionError("the command never ended without a fault")
