"""Which later command covers an earlier one."""

from __future__ import annotations

import pytest

from core.records.episodes import Action
from core.tasks.log_summary import parse_command


@pytest.mark.parametrize(
    ("earlier", "later", "covers"),
    [
        ("pytest tests/a.py::test_x -q", "pytest tests/a.py", True),
        ("pytest tests/a.py", "python -m pytest -q", True),
        (".venv/bin/python -m pytest tests/a.py", "/usr/bin/python3.12 -m pytest", True),
        ("cd app && npx vitest run src/a.test.ts", "npx vitest run src", True),
        ("CI=1 npm test", "npm test 2>&1", True),
        ("pytest tests/a.py", "pytest .", True),
        ("go test ./core/a", "go test ./...", True),
        ("pytest tests/ab.py", "pytest tests/a", False),
        ("npm test", "npm run test", False),
        ("pytest tests/a.py", "pytest -k fast", False),
        ("pytest", "pytest --lf", False),
        ("grep pytest README", "pytest", False),
        ("npm install", "npm install left-pad", False),
        ("npm install", "npm  install", True),
        ("sh test.sh", "bash test.sh", True),
        ("./test.sh", "sh test.sh -v", True),
        ("python check.py | tail -20", "cd app && timeout 60 python check.py 2>&1", True),
        ("gcc a.c -o a && ./a", "gcc -Wall a.c -o a && ./a", True),
        ("make && ./a", "make && ./b", False),
        ("python check.py", "python other.py", False),
        ("python check.py a", "python check.py b", False),
        ("DEBUG=1 python check.py", "python check.py", False),
    ],
)
def test_later_run_covers_an_earlier_run_of_the_same_or_less(earlier: str, later: str, covers: bool) -> None:
    one, other = (parse_command(Action(number=1, params=(("command", text),))) for text in (earlier, later))
    assert other.covers(one) is covers


def test_other_tools_are_covered_only_with_equal_parameters() -> None:
    one, other = (Action(number=1, tool="Fetch", params=(("url", url),)) for url in ("a", "b"))
    assert parse_command(one).covers(parse_command(one)) and not parse_command(one).covers(parse_command(other))
