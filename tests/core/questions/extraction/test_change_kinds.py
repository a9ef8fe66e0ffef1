"""Changes from which nothing is learned."""

from __future__ import annotations

import pytest

from core.questions.extraction.changes import is_environment_error, is_install, teaches_nothing
from core.records.debug_sessions import Failure
from core.records.episodes import Action
from core.tasks.changes import compare_texts


def is_nothing(file: str, old: str, new: str) -> bool:
    return teaches_nothing(compare_texts(file, f"{old}\n", f"{new}\n"), [file])


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("a.py", "x = f()", "x = f()  # type: ignore"),
        ("a.py", "import os", "import os  # noqa: F401"),
        ("a.ts", "const x = f();", "// @ts-ignore\nconst x = f();"),
        ("a.js", "var x = 1;", "var x = 1; // eslint-disable-line no-var"),
        ("pytest.ini", "[pytest]", "[pytest]\npythonpath = src"),
        ("requirements.txt", "flask", "flask\nrequests"),
        ("jest.config.js", "module.exports = {}", "module.exports = { testTimeout: 60000 }"),
        (".env", "A=1", "A=2"),
        ("pyproject.toml", "[tool.pytest.ini_options]", '[tool.pytest.ini_options]\naddopts = "-p no:x"'),
    ],
)
def test_suppressed_checks_and_changes_of_the_environment_teach_nothing(file: str, old: str, new: str) -> None:
    assert is_nothing(file, old, new)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("a.py", "x = 1", "x = 2"),
        ("a.ts", "const x = f();", "const x = await f(); // @ts-ignore"),
        ("test_a.py", "from app import totals", "from app import total"),
        ("conftest.py", "def client():", "def client(app):"),
        ("package.json", '  "main": "a.js"', '  "main": "b.js"'),
        ("Makefile", "prog: main.o", "prog: main.o hash.o"),
    ],
)
def test_changes_of_code_teach(file: str, old: str, new: str) -> None:
    assert not is_nothing(file, old, new)


def command(text: str, error: str = "", *, success: bool = False) -> Action:
    return Action(number=1, type="bash", tool="Bash", params=(("command", text),), success=success, error=error)


@pytest.mark.parametrize(
    ("text", "error", "expected"),
    [
        ("python -m pytets", "No module named pytets", True),
        ("python -m pytest", "/usr/bin/python: No module named pytest", True),
        ("pytets -q", "bash: line 1: pytets: command not found", True),
        ("npm run tset", 'npm error Missing script: "tset"', True),
        ("python tets.py", "python: can't open file 'tets.py': [Errno 2] No such file or directory", True),
        ("python -m pytest", "ModuleNotFoundError: No module named 'loader'", False),
        ("sh build.sh", "build.sh: 3: gti: not found", False),
        ("python -m pytest", "TypeError: x", False),
    ],
)
def test_a_missing_program_is_an_error_of_the_environment(text: str, error: str, expected: bool) -> None:
    action = command(text, error)
    assert is_environment_error(action, [Failure(message=error)]) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pip install requests", True),
        ("npm ci", True),
        ("source .venv/bin/activate", True),
        ("chmod +x run.sh", True),
        ("npm test", False),
        ("go test ./...", False),
    ],
)
def test_commands_that_install_or_change_the_environment(text: str, expected: bool) -> None:
    assert is_install(command(text, success=True)) is expected
