"""Parse the commands of actions, to find out which earlier run a command repeats."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from core.records.episodes import Action

_MAX_TEXT: Final = 20_000
_MAX_WORDS: Final = 100
_RUNNER: Final = re.compile(r"pytest|unittest|tox|nox|jest|vitest|mocha|tsc|mypy|pyright|ruff|flake8|eslint")
"""Test runners, type checkers and linters."""
_BUILDER: Final = re.compile(r"npm|yarn|pnpm|bun|deno|cargo|go|mvn|gradle|gradlew|make|dotnet|mix|rake")
_CHECK: Final = re.compile(r"test|spec|check|build|lint|type|vet|clippy|verify|compile", re.IGNORECASE)
"""Targets of a build tool that check the work; other targets install or publish."""
_LAUNCHER: Final = re.compile(r"npx|bunx|uv|poetry|pipenv|hatch|run|exec|bundle|python(?:3(?:\.\d{1,2})?)?|-m|time|env")
_QUIET: Final = re.compile(r"-q|-v|-vv|-s|-x|--|--quiet|--verbose|--silent|--run")  # they do not affect the result
_READ_ONLY: Final = re.compile(
    r"(?:ls|cat|head|tail|less|grep|rg|ag|find|fd|pwd|echo|printf|wc|which|type|tree|stat|file|diff|date|true|jq|ps)"
    r"(?:\s|$)|(?:sed\s+-n|git\s+(?:status|log|diff|show|branch|blame|grep|ls-files))\b"
)  # commands that change nothing, unless their output is redirected to a file
_EVERYTHING: Final = frozenset((".", "./..."))  # arguments that select everything, as if there were no argument


class ActionCommand(NamedTuple):
    """Command of an action; two commands are equal if the actions ran the same."""

    whole: tuple[str, ...]  # the text of a shell command; for other tools, the tool and its parameters
    check: tuple[str, ...] = ()  # test runner, type checker, build or linter that a shell command runs, or ()
    words: tuple[str, ...] = ()  # arguments of the check that select files or tests; () if it checks everything

    def covers(self, earlier: ActionCommand) -> bool:
        """Whether the command checks everything that an earlier command checked."""

        def is_covered(word: str) -> bool:
            """Whether an earlier argument equals a word or is inside this file or folder."""
            inside = (f"{word}/", f"{word}::")
            return word in earlier.words or (
                not word.startswith("-") and any(other.startswith(inside) for other in earlier.words)
            )

        if self.whole == earlier.whole:
            return True
        return bool(self.check) and self.check == earlier.check and all(map(is_covered, self.words))


def parse_command(action: Action) -> ActionCommand:
    text = action.command
    if not text:
        return ActionCommand((action.tool or action.type, *(f"{name}={value}" for name, value in action.params)))
    return ActionCommand((" ".join(text.split()),), *_parse_check(text[:_MAX_TEXT]))


def is_read_only(text: str) -> bool:
    """Whether all programs in a shell command are known to change nothing."""
    parts = re.split(r"&&|\|\||[;|\n]", text[:_MAX_TEXT])
    commands = [part.strip() for part in parts if part.strip() and not re.match(r"\s*cd(?:\s|$)", part)]
    return ">" not in text and all(_READ_ONLY.match(part) for part in commands)


def _parse_check(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the check in a shell command and its arguments; empty if it is in a pipe."""
    for part in text.split("&&"):
        words = part.split()[:_MAX_WORDS]
        while words and (_LAUNCHER.fullmatch(words[0].rpartition("/")[2]) or "=" in words[0]):
            del words[0]
        name = words[0].rpartition("/")[2] if words else ""
        name_length = 0
        if _RUNNER.fullmatch(name):
            name_length = 1
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
