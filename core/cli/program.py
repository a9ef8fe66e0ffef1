"""`ralphdeck` without a screen: lazy command groups, options, exit codes, errors."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Final, NoReturn

import click
from click.shell_completion import CompletionItem

from core import __version__
from core.base.errors import Proposed, RalphdeckError
from core.base.text import visible, visible_line
from core.cli.command_table import COMMANDS, EPILOG, EXAMPLES, SECTIONS, GroupPlace, Place, translate_alias
from core.cli.support.options import OneOf, project_option, readonly_option
from core.cli.support.process import prepare_process

BROKEN_PIPE_EXIT: Final = 141  # Exit code that a shell reports for a program ended by SIGPIPE.


class _LazyGroup(click.Group):
    """A group that imports a command from its place in the command table."""

    @property
    def places(self) -> Mapping[str, Place | GroupPlace]:
        raise NotImplementedError

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self.places.get(cmd_name)
        if isinstance(place, GroupPlace):
            return CommandGroup(cmd_name, place)
        return load(place.target) if place is not None else None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of listed commands, and options after a dash."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        found = {name: place.help for name, place in self.places.items() if place.help and name.startswith(incomplete)}
        return [CompletionItem(name, help=help) for name, help in found.items()]


class CommandGroup(_LazyGroup):
    """A group of commands."""

    def __init__(self, name: str, place: GroupPlace) -> None:
        super().__init__(name, help=place.details)
        self.place: Final = place
        project_option(self)

    @property
    def places(self) -> Mapping[str, Place]:
        return self.place.commands

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command by the first word; raises UsageError if there is none."""
        if args[0] not in self.places and not args[0].startswith("-"):
            raise unknown_command(args[0], self.places, ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.help) for name, place in self.places.items()])


class Program(_LazyGroup):
    """The headless program; a user interface adds its commands in a subclass."""

    extra: ClassVar[Mapping[str, Mapping[str, Place]]] = {}  # Further commands by section.
    default: ClassVar[str] = ""  # Command that runs if the first word is missing or a path; "" for none.

    @property
    def sections(self) -> dict[str, dict[str, Place | GroupPlace]]:
        return {title: {**self.extra.get(title, {}), **commands} for title, commands in SECTIONS.items()}

    @property
    def places(self) -> dict[str, Place | GroupPlace]:
        return {name: place for commands in self.sections.values() for name, place in commands.items()}

    def keymap_problems(self, path: os.PathLike[str]) -> list[str]:
        """List the problems of the keymap file; none here, where no keys are used."""
        return []

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with quiet_broken_pipe():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        with quiet_broken_pipe():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the named command, or the default one for a path; may raise UsageError."""
        args = translate_alias(args)
        word = args[0]
        if word in self.places:
            return super().resolve_command(ctx, args)
        if self.default and (os.path.lexists(word) or os.sep in word or word.startswith(("~", "."))):
            return self.default, self.get_command(ctx, self.default), args
        raise unknown_command(word, all_spellings(self.places), ctx, path=bool(self.default))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.places))
        for title, commands in self.sections.items():
            rows = [(f"{name:<{width}}", place.help) for name, place in commands.items() if place.help]
            with formatter.section(title):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of commands, options after a dash, or else folders."""
        found = super().shell_complete(ctx, incomplete)
        return found if found or incomplete.startswith("-") else [CompletionItem(incomplete, type="dir")]


def load(target: str) -> click.Command:
    """Import the command at `module:name`."""
    module, _, name = target.partition(":")
    command = getattr(import_module(module if "." in module else f"{COMMANDS}.{module}"), name)
    assert isinstance(command, click.Command)
    return command


def all_spellings(places: Mapping[str, Place | GroupPlace]) -> dict[str, str]:
    """Map each word to the command line that it may mean: `list` to `loop list`."""
    found: dict[str, str] = {}
    for name, place in places.items():
        found[name] = name
        for inner in place.commands if isinstance(place, GroupPlace) else ():
            found.setdefault(inner, f"{name} {inner}")
    return found


def unknown_command(
    word: str, known: Mapping[str, object], ctx: click.Context, *, path: bool = False
) -> click.UsageError:
    """Make the error for an unknown command, with similar commands."""
    import difflib  # only needed here

    near = difflib.get_close_matches(word, known, n=2, cutoff=0.6)
    names = [value if isinstance(value := known[name], str) else name for name in near]
    if word in {"list", "show"} and word in known:
        names = [f"{group} {word}" for group in ("pattern", "loop", "task")]
    hint = f" Did you mean {' or '.join(names)}?" if names else ""
    return click.UsageError(f"{word!r} is not a command{' or a folder' if path else ''}.{hint}", ctx)


@contextmanager
def quiet_broken_pipe() -> Iterator[None]:
    """Exit quietly if the reader closed the pipe; click would report a failure."""
    try:
        yield
    except BrokenPipeError:
        discard_stream(1)
        discard_stream(2)
        raise click.exceptions.Exit(BROKEN_PIPE_EXIT) from None


def discard_stream(descriptor: int) -> None:
    """Redirect a descriptor to /dev/null, so that Python does not retry at exit."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)


PROGRAM: Final = "ralphdeck"
INTERRUPTED: Final = 130
SHELLS: Final = ("bash", "zsh", "fish")


def create_program(kind: type[Program], summary: str, metavar: str, *options: click.Parameter) -> Program:
    """Make a program with the options of all commands, and `options`.

    `summary` describes what it does without a command; `metavar` ends its usage line.
    """
    program = kind(
        help=f"Review what coding agents have learned, and decide what they are given.\n\n{summary}\n\n{EXAMPLES}",
        epilog=EPILOG,
        invoke_without_command=True,
        subcommand_metavar=metavar,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        callback=_run_default,
        params=list(options),
    )
    project_option(program)
    readonly_option(program)
    click.option(
        "--completion",
        type=OneOf(SHELLS),
        is_eager=True,
        expose_value=False,
        callback=_print_completion,
        help="Print the completion script for a shell; it completes commands, options and IDs.",
    )(program)
    click.version_option(__version__, "-V", "--version", prog_name=PROGRAM, message="%(prog)s %(version)s")(program)
    return program


@click.pass_context
def _run_default(ctx: click.Context) -> None:
    """Run the default command if none is named, or print the help."""
    program = ctx.command
    assert isinstance(program, Program)
    if ctx.invoked_subcommand is not None:
        return
    if default := program.get_command(ctx, program.default):
        ctx.invoke(default)
    else:
        click.echo(ctx.get_help())


def _print_completion(ctx: click.Context, _param: click.Parameter, shell: str | None) -> None:
    """Print the completion script for a shell, and end."""
    if shell is None or ctx.resilient_parsing:
        return
    from click.shell_completion import get_completion_class

    complete = get_completion_class(shell)
    assert complete is not None
    program = ctx.find_root().info_name or PROGRAM
    script = complete(ctx.find_root().command, {}, program, f"_{program}_COMPLETE".upper()).source()
    click.echo(script.encode(), nl=False)
    ctx.exit()


cli: Final = create_program(Program, "The dashboard is the program of the package `tui`.", "COMMAND [ARGS]...")


def main(args: Sequence[str] | None = None, program: Program = cli) -> NoReturn:
    """Run the command line and exit with its code, without showing tracebacks.

    Hooks exit with 0 whatever happens: on exit code 2 an agent continues at its stop, or drops the user's prompt.
    What agents call for each prompt and tool ends without freeing all objects, which takes up to 0.01 s.
    """
    prepare_process()
    words = sys.argv[1:] if args is None else args
    try:
        code = run(words, program)
        if _is_hook(words):
            code = 0
        if (_is_hook(words) or words[:2] == ["task", "log"]) and _flush_streams():
            os._exit(code)
        sys.exit(code)
    finally:
        gc.freeze()  # else the interpreter searches all modules for cycles at its end, for 0.01 s


def _is_hook(words: Sequence[str]) -> bool:
    return "hook" in words[:1] or any(word.partition("=")[0] == "--hook" for word in words)


def _flush_streams() -> bool:
    """Write what is buffered; False if that failed, which Python reports at its end."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return False
    return True


def alias() -> NoReturn:
    """Run the command for which the name of the running program is an alias."""
    main([Path(sys.argv[0]).stem, *sys.argv[1:]])


def run(args: Sequence[str] | None = None, program: Program = cli) -> int:
    """Run the command line and return the exit code.

    No command is run without a stdout: its output would be lost, and a file that it opens could get the descriptor of
    stdout.
    """
    if sys.stdout is None:
        return _fail("stdout is closed; to print nothing, send it to /dev/null", 1)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        return program.main(args, prog_name=PROGRAM, standalone_mode=False) or 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.UsageError as error:
        if error.ctx is not None:
            click.echo(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n", err=True)
        return _fail(visible(error.format_message()), error.exit_code)
    except click.ClickException as error:
        return _fail(visible_line(error.format_message()), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Proposed as error:
        click.echo(visible_line(str(error)))
        return error.exit_code
    except RalphdeckError as error:
        return _fail(visible_line(str(error)), error.exit_code)
    except OSError as error:
        discard_stream(1)
        return _fail(visible_line(f"{error.filename or 'output'}: {error.strerror or error}"), 1)
    except Exception as error:
        from core.cli.support.user_files import log_traceback

        file = log_traceback()
        where = f"details in {file}" if file else "no log file could be written"
        text = visible_line(f"{type(error).__name__}: {error}", 300)
        return _fail(f"internal error: {text} ({visible_line(str(where))})", 1)


def _fail(message: str, code: int) -> int:
    with suppress(OSError):
        click.echo(f"Error: {message}", err=True)
        return code
    discard_stream(2)
    return code
