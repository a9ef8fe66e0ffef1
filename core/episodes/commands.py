"""What an action of an attempt ran, and whether a later run looks at all that an earlier one did."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from core.records.episodes import Action

_MAX_TEXT: Final = 20_000
_MAX_WORDS: Final = 100
_RUNNER: Final = re.compile(r"pytest|unittest|tox|nox|jest|vitest|mocha|tsc|mypy|pyright|ruff|flake8|eslint")
"""Programs that do nothing but look at the work."""
_BUILDER: Final = re.compile(r"npm|yarn|pnpm|bun|deno|cargo|go|mvn|gradle|gradlew|make|dotnet|mix|rake")
_CHECK: Final = re.compile(r"test|spec|check|build|lint|type|vet|clippy|verify|compile", re.IGNORECASE)
"""What a builder is asked for if it looks at the work, rather than installs or publishes something."""
_LAUNCHER: Final = re.compile(r"npx|bunx|uv|poetry|pipenv|hatch|run|exec|bundle|python|python3|-m|time|env")
_QUIET: Final = re.compile(r"-q|-v|-vv|-s|-x|--|--quiet|--verbose|--silent|--run")
"""Options that change neither what is looked at nor how it comes out."""
_LOOKS: Final = re.compile(
    r"(?:ls|cat|head|tail|less|grep|rg|ag|find|fd|pwd|echo|printf|wc|which|type|tree|stat|file|diff|date|true|jq|ps)"
    r"(?:\s|$)|(?:sed\s+-n|git\s+(?:status|log|diff|show|branch|blame|grep|ls-files))\b"
)
"""The beginning of a command that changes nothing, unless it writes what it prints into a file."""
_EVERYTHING: Final = frozenset((".", "./..."))
"""What a check is given to look at all there is, as it does without being given anything."""


class ActionCommand(NamedTuple):
    """What an action ran: alike where two actions ran the same.

    Attributes:
        whole: The tool and all it was given; of a shell command its text.
        check: The test, type check, build or linter that a shell command runs; empty for anything else.
        words: What that was given, without what only changes its output; empty if it looks at all there is.
    """

    whole: tuple[str, ...]
    check: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def covers(self, earlier: ActionCommand) -> bool:
        """Whether it looks at all that an earlier one did: it is the same, or the same check of as much or more."""
        if self.whole == earlier.whole:
            return True
        return bool(self.check) and self.check == earlier.check and all(_within(w, earlier.words) for w in self.words)


def parse_command(action: Action) -> ActionCommand:
    """What an action ran."""
    text = action.command
    if not text:
        return ActionCommand((action.tool or action.type, *(f"{name}={value}" for name, value in action.params)))
    return ActionCommand((" ".join(text.split()),), *_check_in(text[:_MAX_TEXT]))


def is_read_only(text: str) -> bool:
    """Whether a shell command, as far as its programs are known, only looks at something."""
    parts = re.split(r"&&|\|\||[;|\n]", text[:_MAX_TEXT])
    told = [part.strip() for part in parts if part.strip() and not re.match(r"\s*cd(?:\s|$)", part)]
    return ">" not in text and all(_LOOKS.match(part) for part in told)


def _within(word: str, earlier: Iterable[str]) -> bool:
    """Whether a word asks for nothing that the earlier ones did not ask for, or for a folder or file around it."""
    if word in earlier:
        return True
    return not word.startswith("-") and any(other.startswith((f"{word}/", f"{word}::")) for other in earlier)


def _check_in(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The check that a shell command runs, and what it gives it; nothing where its own result is not that of the
    check, as behind a pipe."""
    for part in text.split("&&"):
        words = part.split()[:_MAX_WORDS]
        while words and (_LAUNCHER.fullmatch(words[0]) or "=" in words[0]):
            del words[0]
        name = words[0].rpartition("/")[2] if words else ""
        named = 0
        if _RUNNER.fullmatch(name):
            named = 1
        elif _BUILDER.fullmatch(name):
            named = 3 if words[1:2] == ["run"] else 2
        rest = words[named:]
        if not named or len(words) < named or (named > 1 and not _CHECK.search(words[named - 1])):
            continue
        if any(sign in word for word in rest for sign in "|;"):
            return (), ()
        given = (word.rstrip("/") or word for word in rest if not _QUIET.fullmatch(word) and ">" not in word)
        return (name, *words[1:named]), tuple(word for word in given if word not in _EVERYTHING)
    return (), ()
