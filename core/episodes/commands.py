"""Parse the commands of actions, to find out which earlier run a command repeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from core.base.shell_commands import parse_check

if TYPE_CHECKING:
    from core.records.episodes import Action

_MAX_TEXT: Final = 20_000


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
    return ActionCommand((" ".join(text.split()),), *parse_check(text[:_MAX_TEXT]))
