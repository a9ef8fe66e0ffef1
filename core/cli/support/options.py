"""Options that many commands share, and the types of their values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from core.base.validation import MAX_COUNT
from core.records.times import parse_time

_NUMBER: Final = r"([0-9]+(?:\.[0-9]+)?)"
_DURATION: Final = re.compile(rf"(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?(?:{_NUMBER}ms)?")
_UNITS_MS: Final = (3_600_000, 60_000, 1000, 1)
"""What the parts of a duration count in."""
_MOST_DIGITS: Final = 40
"""Longest text that is looked at as a duration."""

Decorated = TypeVar("Decorated", bound=Callable[..., Any] | click.Command)


@dataclass
class Invocation:
    """What holds for the whole call, wherever on the command line it was said."""

    project: Path | None = None
    readonly: bool = False


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


def setting_option(flag: str, name: str, **options: Any) -> Callable[[Decorated], Decorated]:
    """Option that replaces a setting for one call; type and help come from the declaration of the setting."""
    from core.config.settings import SETTINGS  # msgspec takes longer to import than `--version` may take

    setting = SETTINGS[name]
    if setting.kind is int:
        options = {"type": click.IntRange(min=int(setting.least)), "metavar": "N", **options}
    return click.option(flag, help=f"{setting.help}. Default: the setting `{name}`.", **options)


def _keep_readonly(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    invocation = ctx.ensure_object(Invocation)
    invocation.readonly = invocation.readonly or value


def readonly_option(command: Decorated) -> Decorated:
    """`--readonly`, before the name of the command, or behind the folder of the dashboard."""
    return click.option(
        "--readonly",
        is_flag=True,
        envvar="RALPHDECK_READONLY",
        expose_value=False,
        callback=_keep_readonly,
        help="Write nothing into .aiwg: whatever decides or records is refused.",
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
    by = click.option(
        "--by",
        metavar="NAME",
        help="Who decides. Default: $RALPHDECK_USER, else the setting curation.actor, else the user.",
    )
    return project_option(json_option(by(command)))


class OneOfAKind(click.Command):
    """A command whose flags for one and the same parameter exclude each other, instead of the last one counting."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments as click takes them; a usage error where two such flags are given."""
        given: dict[str | None, click.Parameter] = {}
        for param in self.make_parser(ctx).parse_args(list(args))[2]:
            other = given.setdefault(param.name, param)
            if other is not param:
                raise click.UsageError(f"give either {other.opts[0]} or {param.opts[0]}", ctx)
        return super().parse_args(ctx, args)


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


class Count(click.ParamType[int]):
    """A whole number of at least 0."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; a usage error for anything else."""
        try:
            number = int(value)
        except ValueError:
            number = -1
        if not 0 <= number <= MAX_COUNT:
            self.fail(f"{value!r} is not a whole number of at least 0", param, ctx)
        return number


class Moment(click.ParamType[datetime]):
    """A time, ISO-8601; UTC where it names no zone."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The time, aware UTC; a usage error for anything else."""
        moment = parse_time(value)
        if moment is None:
            self.fail(f"{value!r} is not a time such as 2026-02-02T15:00:00Z", param, ctx)
        return moment


class Duration(click.ParamType[float]):
    """A length of time, in ms."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The ms; a usage error for anything that is not like 1h30m, 12m, 90s, 450ms or a plain number of ms."""
        if isinstance(value, int | float):
            return value
        text = value.strip()
        if re.fullmatch(_NUMBER, text):
            text += "ms"
        parts = _DURATION.fullmatch(text) if len(text) <= _MOST_DIGITS else None
        if parts is None or not any(parts.groups()):
            self.fail(f"{value!r} is not a duration such as 1h30m, 12m, 90s or 450 (ms)", param, ctx)
        return sum(float(part) * ms for part, ms in zip(parts.groups(), _UNITS_MS, strict=True) if part)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The forms, as the help shows them."""
        return "1h30m|12m|90s|450"


def joined(groups: Sequence[Sequence[str]]) -> frozenset[str]:
    """All words of an option that was given several times."""
    return frozenset(word for group in groups for word in group)
