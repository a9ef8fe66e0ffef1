"""Options that many commands share, and the types of their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@dataclass
class Invocation:
    """What holds for the whole call, wherever on the command line it was said."""

    project: Path | None = None


def _keep_project(ctx: click.Context, param: click.Parameter, value: Path | None) -> None:
    invocation = ctx.ensure_object(Invocation)
    if value is not None:
        invocation.project = value


def project_option(command: Decorated) -> Decorated:
    """`--project PATH`, before or after the name of the command."""
    return click.option(
        "--project",
        type=click.Path(path_type=Path),
        metavar="PATH",
        expose_value=False,
        callback=_keep_project,
        help="Project folder, its .aiwg or its .aiwg/ralph. Default: $RALPHDECK_PROJECT, else the nearest one "
        "at or above the current folder.",
    )(command)


def json_option(command: Decorated) -> Decorated:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON (documented, stable).")(command)


def strict_option(command: Decorated) -> Decorated:
    """`--strict`."""
    return click.option("--strict", is_flag=True, help="Exit with 3 if the files have findings of severity error.")(
        command
    )


def reading_options(command: Decorated) -> Decorated:
    """The options of every command that reads: `--project`, `--json`, `--strict`."""
    return project_option(json_option(strict_option(command)))


def deciding_options(command: Decorated) -> Decorated:
    """The options of every command that decides: `--by`, `--project`, `--json`."""
    by = click.option("--by", metavar="NAME", help="Who decides. Default: $RALPHDECK_USER, else the name of the user.")
    return project_option(json_option(by(command)))


class Words(click.ParamType[tuple[str, ...]]):
    """One or more of some words, separated by commas."""

    name = "words"

    def __init__(self, words: Sequence[str]) -> None:
        self.words: Final = tuple(words)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The words; a usage error for any other."""
        if isinstance(value, tuple):
            return value
        chosen = tuple(word.strip().lower().replace("_", "-") for word in str(value).split(",") if word.strip())
        for word in chosen:
            if word not in self.words:
                self.fail(f"{word!r} is not one of {', '.join(self.words)}", param, ctx)
        return chosen

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The words, as the help shows them."""
        return ",".join(self.words)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The words that may come next."""
        begun, comma, last = incomplete.rpartition(",")
        return [CompletionItem(f"{begun}{comma}{word}") for word in self.words if word.startswith(last)]


class Fraction(click.ParamType[float]):
    """A number from 0 to 1, also written as a percentage."""

    name = "0..1"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; a usage error for anything else, NaN included."""
        text = str(value).strip()
        try:
            number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            number = math.nan
        if not 0 <= number <= 1:
            self.fail(f"{value!r} is not a number from 0 to 1", param, ctx)
        return number


def joined(groups: Sequence[Sequence[str]]) -> frozenset[str]:
    """All words of an option that was given several times."""
    return frozenset(word for group in groups for word in group)
