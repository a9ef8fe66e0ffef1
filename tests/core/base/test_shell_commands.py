"""Find the check that a shell command runs."""

from __future__ import annotations

import pytest

from core.base.shell_commands import is_read_only, is_test_run


@pytest.mark.parametrize(
    "command",
    ["pytest -q", "cd shop && uv run pytest tests", "npm test", "npm run test:unit", "go test ./...", "make check"],
)
def test_a_test_run_is_recognized(command: str) -> None:
    assert is_test_run(command)


@pytest.mark.parametrize("command", ["ruff check .", "pytest | tail -5", "pytest || true", "npm run build", "ls", ""])
def test_a_command_whose_exit_code_is_not_that_of_tests_is_not_a_test_run(command: str) -> None:
    assert not is_test_run(command)


def test_a_command_that_redirects_its_output_is_not_read_only() -> None:
    assert is_read_only("cd shop && cat a | grep b")
    assert not is_read_only("cat a > b")
