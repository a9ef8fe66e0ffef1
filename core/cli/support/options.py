"""Options that many commands share, and the types of their values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from core.base.errors import DamagedError
from core.base.regexes import lazy_regex
from core.base.validation import MAX_COUNT, suggest_id
from core.records.times import parse_time

if TYPE_CHECKING:
    from core.show.filter_parser import Fields, Query

_NUMBER: Final = r"([0-9]+(?:\.[0-9]+)?)"
_DURATION: Final = lazy_regex(rf"(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?(?:{_NUMBER}ms)?")
_UNITS_MS: Final = (3_600_000, 60_000, 1000, 1)  # The ms of the parts of a duration.
_MOST_DIGITS: Final = 40  # Longest text that is parsed as a duration.

Value = TypeVar("Value")
Decorated = TypeVar("Decorated", bound=Callable[..., Any] | click.Command)


class Invocation:
    """Common options, anywhere on the command line; `folder` is the project found."""

    folder: Path | None = None
    project: Path | None = None
    readonly: bool = False
    by: str | None = None
    as_json: bool = False
    strict: bool = False


def invocation() -> Invocation:
    return click.get_current_context().ensure_object(Invocation)


def _store(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if param.name == "by" and value is not None and not value.strip():
        raise click.BadParameter("the name is empty", ctx, param)
    if value and param.name is not None:
        setattr(ctx.ensure_object(Invocation), param.name, value)


SHARED_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--project": {
        "type": click.Path(path_type=Path),
        "metavar": "PATH",
        "help": "Project folder, its .aiwg or its .aiwg/ralph. Default: $RALPHDECK_PROJECT, else the nearest one at or "
        "above the current folder, inside of its Git repository; commands that only read also take that repository.",
    },
    "--readonly": {
        "is_flag": True,
        "envvar": "RALPHDECK_READONLY",
        "help": "Write nothing into .aiwg; commands that decide or record fail.",
    },
    "--by": {
        "metavar": "NAME",
        "help": "Who decides. Default: $RALPHDECK_USER, else the setting curation.actor, else the user.",
    },
    "--json": {"is_flag": True, "help": "Print JSON."},
    "--strict": {"is_flag": True, "help": "Exit with 3 if the files have findings of severity error."},
}
"""The options that are stored in `Invocation`."""


def _shared_option(flag: str, *, hidden: bool = False) -> click.Option:
    names = [flag, "as_json"] if flag == "--json" else [flag]
    return click.Option(names, expose_value=False, callback=_store, hidden=hidden, **SHARED_OPTIONS[flag])


def _append(flag: str, command: Decorated) -> Decorated:
    option = _shared_option(flag)
    if isinstance(command, click.Command):
        command.params.append(option)
    else:
        command.__dict__.setdefault("__click_params__", []).append(option)
    return command


project_option: Final = partial(_append, "--project")  # `--project PATH`, before or after the name of the command.
readonly_option: Final = partial(_append, "--readonly")
"""`--readonly`, before the name of the command, or after the folder of the dashboard; all commands accept it."""


class Command(click.Command):
    """A command with the options of its class; its help describes the JSON output.

    With the `modes` of `choose_mode`, the help has a group of options for each mode.
    """

    standard: ClassVar[tuple[str, ...]] = ("--project", "--json")

    def __init__(
        self,
        *args: Any,
        params: list[click.Parameter] | None = None,
        modes: Mapping[str, str] | None = None,
        **attributes: Any,
    ) -> None:
        self.modes: Final = modes or {}
        attributes["params"] = [*(params or ()), *map(_shared_option, self.standard)]
        if not any("--readonly" in param.opts for param in attributes["params"]):
            # The help of the program lists it; here it is only accepted.
            attributes["params"].append(_shared_option("--readonly", hidden=True))
        super().__init__(*args, **attributes)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; delete a damaged index for the next run, raise DamagedError."""
        try:
            return super().invoke(ctx)
        except DamagedError:
            if (folder := ctx.ensure_object(Invocation).folder) is not None:
                from core.index.database import delete

                delete(folder)
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of all modes, then those of some, then the common ones."""
        groups: dict[str, list[tuple[str, str]]] = {title: [] for title in self._titles()}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None:
                groups[self._group(param)].append(record)
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def _titles(self) -> Iterable[str]:
        yield "Options"
        yield from (f"With {flag}" for flag in self.modes)
        yield from (f"With {one} or {other}" for one, other in combinations(self.modes, 2))
        yield "Common options"

    def _group(self, param: click.Parameter) -> str:
        if self.modes and not param.expose_value:
            return "Common options"
        owners = [flag for flag, names in self.modes.items() if param.name in names.split()]
        return "Options" if "" in owners or len(owners) not in (1, 2) else f"With {' or '.join(owners)}"

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from core.cli.json.documents import json_help

        self.epilog = json_help(ctx.command_path.partition(" ")[2])
        super().format_epilog(ctx, formatter)


class OfflineCommand(Command):
    """A command that needs no project."""

    standard = ("--json",)


class ReadingCommand(Command):
    """A command that only reads."""

    standard: ClassVar[tuple[str, ...]] = ("--project", "--json", "--strict")

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; again if the index was damaged, which has been deleted."""
        try:
            return super().invoke(ctx)
        except DamagedError:
            return super().invoke(ctx)


class DecidingCommand(Command):
    """A command that decides or records."""

    standard = ("--by", "--project", "--json")


class ReviewingCommand(Command):
    """A command that lists, or decides on what it lists."""

    standard = ("--by", "--project", "--json", "--strict")


class ListingCommand(ReviewingCommand):
    """A command that lists what a person may decide, and only reads."""


def choose_mode(modes: Mapping[str, str]) -> str:
    """Return the chosen mode, such as `--why` or an argument; "" for none of them.

    `modes` has for each mode the names of the parameters that it accepts, separated by spaces. Raises UsageError for
    two modes, or for another parameter.
    """
    ctx = click.get_current_context()
    labels = {
        param.name: _label(param, ctx)
        for param in ctx.command.params
        if param.name and param.expose_value and _may_be_source(param, ctx)
    }
    given = [
        name
        for name in labels
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE and ctx.params[name] not in (None, ())
    ]
    chosen = [name for name in given if labels[name] in modes]
    if len(chosen) > 1:
        raise click.UsageError(f"give either {labels[chosen[0]]} or {labels[chosen[1]]}")
    mode = labels[chosen[0]] if chosen else ""
    for name in given:
        if name not in {*modes[mode].split(), *chosen}:
            needed = " or ".join(flag for flag, names in modes.items() if flag and name in names.split())
            raise click.UsageError(f"{labels[name]} {f'does not go with {mode}' if mode else f'needs {needed}'}")
    return mode


def _may_be_source(param: click.Parameter, ctx: click.Context) -> bool:
    """Whether `param` may have set its value; of a parameter's flags, only one has."""
    if not isinstance(param, click.Option) or not param.is_flag or param.is_bool_flag:
        return True
    return ctx.params.get(param.name or "") in (None, param.flag_value)


def _label(param: click.Parameter, ctx: click.Context) -> str:
    """Return how messages name a parameter: `--why`, or `ID` for an argument."""
    return param.opts[0] if isinstance(param, click.Option) else param.make_metavar(ctx).strip("[].")


def setting_option(flag: str, name: str, **options: Any) -> Callable[[Decorated], Decorated]:
    """Make an option that replaces a setting, with the setting's help and type."""
    from core.base.settings import SETTINGS  # msgspec takes longer to import than `--version` may take

    setting = SETTINGS[name]
    if setting.kind is int:
        options = {"type": WholeNumber(min=int(setting.least)), "metavar": "N", **options}
    parameter = name.rpartition(".")[2]
    return click.option(flag, parameter, help=f"{setting.help}. Default: the setting `{name}`.", **options)


reason_option: Final = click.option("--reason", default="", help="Why; saved in the decision log.")


class ExclusiveFlags(click.Command):
    """A command that rejects two flags of one parameter; in click the last one wins."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; raises UsageError for two flags of one parameter."""
        given: dict[str | None, click.Parameter] = {}
        for param in self.make_parser(ctx).parse_args(list(args))[2]:
            other = given.setdefault(param.name, param)
            if other is not param:
                raise click.UsageError(f"give either {other.opts[0]} or {param.opts[0]}", ctx)
        return super().parse_args(ctx, args)


def _not_one_of(word: object, known: Iterable[str]) -> str:
    words = [*known]
    return f"{word!r} is not one of {', '.join(words)}{suggest_id(str(word), words)}"


class OneOf(click.Choice[str]):
    """One word of a fixed set; the error for another word suggests the nearest one."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        return _not_one_of(value, self.choices)

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Name the words in one line, because a hook reports an error in one."""
        return f"Choose from {', '.join(self.choices)}."


class Words(click.ParamType[tuple[str, ...]]):
    """A list of words from a fixed set, separated by commas."""

    name = "words"

    def __init__(self, words: Iterable[str]) -> None:
        self.words: Final = tuple(words)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        chosen = tuple(word.strip().lower().replace("_", "-") for word in str(value).split(",") if word.strip())
        if not chosen:
            self.fail(f"give at least one of {', '.join(self.words)}", param, ctx)
        for word in chosen:
            if word not in self.words:
                self.fail(_not_one_of(word, self.words), param, ctx)
        return chosen

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return ",".join(self.words)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        begun, comma, last = incomplete.rpartition(",")
        return [CompletionItem(f"{begun}{comma}{word}") for word in self.words if word.startswith(last)]


class Parsed(click.ParamType[Value]):
    """A value parsed by `parse`, which returns None for an invalid value."""

    def __init__(
        self, name: str, noun: str, usage: str, parse: Callable[[Any], Value | None], metavar: str | None = None
    ) -> None:
        self.name = name
        self.noun: Final = noun
        self.usage: Final = usage
        self.parse: Final = parse
        self.metavar: Final = metavar

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Value:
        parsed = self.parse(value)
        if parsed is None:
            self.fail(f"Invalid {self.noun} {value!r}. Use {self.usage}.", param, ctx)
        return parsed

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return self.metavar


class WholeNumber(click.IntRange):
    """A whole number between limits; the error names them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a whole number{_limits(self)}", param, ctx)


class NumberRange(click.FloatRange):
    """A number between limits that the error names; unlike in click, NaN is invalid."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = super().convert(value, param, ctx)
        except click.BadParameter:
            number = math.nan
        if math.isnan(number):
            self.fail(f"{value!r} is not a number{_limits(self)}", param, ctx)
        return number


def _limits(limited: click.IntRange | click.FloatRange) -> str:
    least = f" from {limited.min:g}" if limited.min is not None else ""
    return f"{least}{f' to {limited.max:g}' if limited.max is not None else ''}"


def _parse_fraction(value: Any) -> float | None:
    text = str(value).strip()
    try:
        number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None
    return number if 0 <= number <= 1 else None


def _parse_count(value: Any) -> int | None:
    try:
        number = int(value)
    except ValueError:
        return None
    return number if 0 <= number <= MAX_COUNT else None


def _parse_duration(value: Any) -> float | None:
    if isinstance(value, int | float):
        return value
    text = value.strip()
    if re.fullmatch(_NUMBER, text):
        text += "ms"
    parts = _DURATION.fullmatch(text) if len(text) <= _MOST_DIGITS else None
    if parts is None or not any(parts.groups()):
        return None
    return sum(float(part) * ms for part, ms in zip(parts.groups(), _UNITS_MS, strict=True) if part)


filter_option: Final = click.option(
    "--filter",
    "filter_text",
    metavar="TEXT",
    default="",
    help="A filter as on the screen, such as 'kind:convention -flaky'.",
)


def read_filter(text: str, fields: Fields) -> Query:
    """Parse a filter as the screens do; UsageError for an unknown field or bad value."""
    from core.show.filter_parser import parse_query

    query = parse_query(text, fields)
    if query.problems:
        raise click.UsageError(query.problems[0])
    return query


filter_argument: Final = click.argument("filter_text", metavar="[FILTER]...", nargs=-1)
limit_option: Final = click.option("--limit", type=WholeNumber(min=0), metavar="N", help="At most N rows.")
FRACTION: Final = Parsed("0..1", "rate", "a number from 0 to 1, or a percentage: 0.8 or 80%", _parse_fraction)
COUNT: Final = Parsed("count", "number", "a whole number, at least 0", _parse_count)
MOMENT: Final = Parsed("time", "time", "2026-11-15, 2026-11-15T09:00 or 2026-11-15T09:00:00Z", parse_time)
"""A time in ISO-8601 (aware, UTC); UTC without a zone."""
DURATION: Final = Parsed(
    "duration", "duration", "1h30m, 12m, 90s or 450 (ms)", _parse_duration, metavar="1h30m|12m|90s|450"
)
"""A duration in ms."""


def words_option(*names: str, words: Iterable[str], **attributes: Any) -> Callable[[Decorated], Decorated]:
    """Make a repeatable option for words of a fixed set; its value is a frozenset."""

    def join(ctx: click.Context, param: click.Parameter, value: tuple[tuple[str, ...], ...]) -> frozenset[str]:
        return frozenset(word for group in value for word in group)

    return click.option(*names, type=Words(words), multiple=True, callback=join, **attributes)


def output_option(help: str) -> Callable[[Decorated], Decorated]:
    return click.option("--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help=help)
