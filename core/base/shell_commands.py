"""Parse shell commands, to find the check that one runs: a test runner, type checker, build or linter."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from core.base.regexes import lazy_regex

_MAX_TEXT: Final = 20_000
_MAX_WORDS: Final = 100
_RUNNER: Final = lazy_regex(r"pytest|unittest|tox|nox|jest|vitest|mocha|tsc|mypy|pyright|ruff|flake8|eslint")
"""Test runners, type checkers and linters."""
_BUILDER: Final = lazy_regex(r"npm|yarn|pnpm|bun|deno|cargo|go|mvn|gradle|gradlew|make|dotnet|mix|rake")
_CHECK: Final = lazy_regex(r"test|spec|check|build|lint|type|vet|clippy|verify|compile", re.IGNORECASE)
"""Targets of a build tool that check the work; other targets install or publish."""
_LAUNCHER: Final = lazy_regex(r"npx|bunx|uv|poetry|pipenv|hatch|run|exec|bundle|python(?:3(?:\.\d{1,2})?)?|-m|time|env")
_QUIET: Final = lazy_regex(r"-q|-v|-vv|-s|-x|--|--quiet|--verbose|--silent|--run")  # they do not affect the result
_TESTS: Final = lazy_regex(r"pytest|unittest|tox|nox|jest|vitest|mocha|.*(?:test|spec|verify).*|check", re.IGNORECASE)
"""Test runners, and targets of a build tool that run tests."""
_OWN_RUN: Final = lazy_regex(r"\bralphdeck\s+debug\s+run\s+[^;&|]{1,200}?\s--\s+")
"""Prefix of a command that `debug run` runs; its exit code is that of the command."""
_READ_ONLY: Final = lazy_regex(
    r"(?:ls|cat|head|tail|less|grep|rg|ag|find|fd|pwd|echo|printf|wc|which|type|tree|stat|file|diff|date|true|jq|ps)"
    r"(?:\s|$)|(?:sed\s+-n|git\s+(?:status|log|diff|show|branch|blame|grep|ls-files))\b"
)  # commands that change nothing, unless their output is redirected to a file
_EVERYTHING: Final = frozenset((".", "./..."))  # arguments that select everything, as if there were no argument


@lru_cache(1024)  # agents repeat their commands
def is_test_run(text: str) -> bool:
    """Return whether a shell command runs tests and its exit code is theirs."""
    return any(_TESTS.fullmatch(word) for word in parse_check(text[:_MAX_TEXT])[0])


@lru_cache(1024)
def parse_check(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the check in a shell command and its arguments; empty if it is in a pipe."""
    for part in _OWN_RUN.sub("", text).split("&&"):
        words = part.split()[:_MAX_WORDS]
        while words and (_LAUNCHER.fullmatch(words[0].rpartition("/")[2]) or "=" in words[0]):
            del words[0]
        name = words[0].rpartition("/")[2] if words else ""
        name_length = 0
        if _RUNNER.fullmatch(name):
            name_length = 1
        elif words[:2] == ["node", "--test"]:
            name_length = 2
        elif _BUILDER.fullmatch(name):
            name_length = 3 if words[1:2] == ["run"] else 2
        rest = words[name_length:]
        is_complete = 0 < name_length <= len(words)
        if not is_complete or (name_length > 1 and not _CHECK.search(words[name_length - 1])):
            continue
        if any(sign in word for word in rest for sign in "|;"):
            return (), ()
        given = (word.rstrip("/") or word for word in rest if not _QUIET.fullmatch(word) and ">" not in word)
        return (name, *words[1:name_length]), tuple(word for word in given if word not in _EVERYTHING)
    return (), ()


def is_recorded_run(text: str) -> bool:
    """Return whether a shell command runs a check with `debug run`, which records it itself."""
    return _OWN_RUN.search(text[:_MAX_TEXT]) is not None


@lru_cache(1024)
def is_read_only(text: str) -> bool:
    """Whether all programs in a shell command are known to change nothing."""
    parts = re.split(r"&&|\|\||[;|\n]", text[:_MAX_TEXT])
    commands = [part.strip() for part in parts if part.strip() and not re.match(r"\s*cd(?:\s|$)", part)]
    return ">" not in text and all(_READ_ONLY.match(part) for part in commands)
