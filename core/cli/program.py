"""The program `ralphdeck` without a screen: its options, exit codes and errors."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

import click

from core import __version__
from core.base.errors import Proposed, RalphdeckError
from core.base.text import visible, visible_line
from core.cli.command_table import EPILOG, EXAMPLES
from core.cli.groups import Program, discard_stream
from core.cli.support.options import OneOf, project_option, readonly_option
from core.cli.support.process import prepare_process

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
        from core.cli.support.logs import log_traceback

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
