"""Parse the commands of actions, to find out which earlier run a command repeats."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from core.base.regexes import lazy_regex
from core.base.shell_commands import parse_check

if TYPE_CHECKING:
    from core.records.episodes import Action

_MAX_TEXT: Final = 20_000
_MAX_WORDS: Final = 60
_TAIL: Final = re.compile(
    r"\s*(?:2>&1|&>|>&2|2>\s?/dev/null|>\s?/dev/null)"
    r"|\s*\|&?\s*(?:tail|head|grep|tee|cat|less|sed|awk|sort|tac)\b[^|;&]*"
    r"|\s*(?:;|\|\||&&)\s*(?:echo|true|printf|exit)\b[^|;&]*$"
)
"""Parts of a command that only show or hide its output and result."""
_PLACE: Final = re.compile(r"\s*cd\s+\S+\s*(?:&&|;)\s*")
_SHELL: Final = frozenset({"bash", "sh", "dash", "zsh", "."})
_RUNNERS: Final = frozenset({"time", "timeout", "nice", "env", "npx", "uv", "poetry", "run", "exec", "sudo", "command"})
_QUIET: Final = lazy_regex(r"-{1,2}(?:q|v+|s|x|quiet|verbose|silent|no-color|color(?:=\w+)?)$")


class ActionCommand(NamedTuple):
    """Command of an action; two commands are equal if the actions ran the same."""

    whole: tuple[str, ...]  # the text of a shell command; for other tools, the tool and its parameters
    check: tuple[str, ...] = ()  # test runner, type checker, build or linter that a shell command runs, or ()
    words: tuple[str, ...] = ()  # arguments of the check that select files or tests; () if it checks everything
    parts: tuple[str, ...] = ()  # the programs of a shell command, each with its arguments

    @property
    def key(self) -> tuple[str, ...]:
        """Return what is equal for two commands if one may cover the other: the check, or the programs."""
        return self.check or tuple(map(_head, self.parts)) or self.whole

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
        if self.check or earlier.check:
            return self.check == earlier.check and all(map(is_covered, self.words))
        return bool(earlier.parts) and all(any(_extends(one, part) for one in self.parts) for part in earlier.parts)


def _extends(one: str, other: str) -> bool:
    """Return whether two programs are the same with the same files, maybe with other options."""
    files, others = ({word for word in part.split() if word[:1] != "-"} for part in (one, other))
    return _head(one) == _head(other) and files == others


def _head(part: str) -> str:
    """Return a program and its first file or subcommand, or its first option if it has none."""
    program, *words = part.split()
    return " ".join((program, *([word for word in words if word[:1] != "-"] or words)[:1]))


def parse_command(action: Action) -> ActionCommand:
    text = action.command
    if not text:
        return ActionCommand((action.tool or action.type, *(f"{name}={value}" for name, value in action.params)))
    return _parse(text[:_MAX_TEXT])


@lru_cache(1024)  # agents repeat their commands
def _parse(text: str) -> ActionCommand:
    bare = _PLACE.sub("", _TAIL.sub("", text), count=1) if len(text) < _MAX_TEXT else text
    whole = " ".join(bare.split()) or " ".join(text.split())
    check, words = parse_check(bare)
    return ActionCommand((whole,), check, words, () if check else tuple(filter(None, map(_program, _split(whole)))))


def _split(text: str) -> list[str]:
    return [] if "<<" in text else re.split(r"\s*(?:&&|;|\|\|)\s*", text)


def _program(part: str) -> str:
    """Return a program and its arguments, without the shell that runs a script and without quiet options."""
    words = part.split()[:_MAX_WORDS]
    while words and (words[0] in _RUNNERS or re.fullmatch(r"\d+[smh]?", words[0])):
        del words[0]
    if len(words) > 1 and words[0] in _SHELL and not words[1].startswith("-"):
        del words[0]
    words = [word.removeprefix("./") if n == 0 else word for n, word in enumerate(words) if not _QUIET.fullmatch(word)]
    return " ".join(words) if words and words[0] not in ("cd", "export", "set") else ""
