"""The command `ralphdeck` itself: which commands there are, and what every one of them does on an error."""

from __future__ import annotations

import difflib
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NoReturn

import click
from click.shell_completion import CompletionItem

from core import __version__
from core.base.errors import RalphdeckError
from core.base.text import visible, visible_line
from core.cli.aliases import translate_alias
from core.cli.lazy import load
from core.cli.options import Invocation, project_option, readonly_option, theme_option

PROGRAM: Final = "ralphdeck"
INTERRUPTED: Final = 130
READER_GONE: Final = 141
"""What a shell tells of a program that the signal SIGPIPE has ended."""
_GARBAGE_AFTER: Final = 50_000
"""Objects made before the collector looks at them: at its own 700, a list of 100,000 patterns waits for it a fifth
of the time, and nothing here makes many cycles."""

COMMANDS: Final = {
    "demo": ("core.cli.demo:demo", "Open the dashboard on a sample project in which loops run."),
    "loops": ("core.cli.loops:loops", "List the loops of every source."),
    "patterns": ("core.cli.patterns:patterns", "List, show, prune, archive, export and import the learned patterns."),
    "reflections": ("core.cli.reflections:reflections", "List what agents wrote down about their attempts."),
    "task": ("core.cli.task:task", "Keep the memory of tasks: attempts, actions, outcomes, reflections."),
    "history": ("core.cli.history:history", "Print what was tried at a task, or export it."),
    "replay": ("core.cli.replay:replay", "Step through an attempt at a task."),
    "search": ("core.cli.search:search", "Search tasks, actions, reflections and errors."),
    "debug": ("core.cli.debug:debug", "List debug sessions, find known fixes, and archive what is old."),
    "inject": ("core.cli.inject:inject", "Print the context that a loop or a task gets."),
    "extract": ("core.cli.extract:extract", "Put what finished loops have learned into the registry."),
    "embed": ("core.cli.embed:embed", "Make the vectors by which patterns are found by meaning."),
    "record": ("core.cli.record:record", "Record that a loop applied a pattern, or feedback on a criterion."),
    "outcome": ("core.cli.outcome:outcome", "Record how a loop or an attempt came out."),
    "errors": ("core.cli.errors:errors", "Print, add or resolve the errors of a loop or an attempt."),
    "score": ("core.cli.score:score", "Score how loops and attempts came out."),
    "review": ("core.cli.review:review", "List what waits for a decision, most worth deciding first."),
    "snooze": ("core.cli.review:snooze", "Ask a question of the review queue later, or with new evidence."),
    "promote": ("core.cli.decide:promote", "Pin a pattern as proven."),
    "deprecate": ("core.cli.decide:deprecate", "Pin a pattern as deprecated, so that it is not injected."),
    "reset": ("core.cli.decide:reset", "Take the pin off a pattern: the evidence decides again."),
    "quarantine": ("core.cli.decide:quarantine", "Keep a pattern out of every context until somebody has read it."),
    "release": ("core.cli.decide:release", "Let loops get a pattern that is held or in quarantine."),
    "note": ("core.cli.decide:note", "Write a remark beside a pattern."),
    "invert": ("core.cli.invert:invert", "Review patterns that fail so often that they should become warnings."),
    "bursts": ("core.cli.bursts:bursts", "Review sources that report many patterns as harmful at once."),
    "undo": ("core.cli.decide:undo", "Take the newest standing decision back."),
    "redo": ("core.cli.decide:redo", "Repeat the decision that was taken back last."),
    "log": ("core.cli.log:log", "List the decisions, newest first."),
    "changes": ("core.cli.changes:changes", "Say what changed between two moments."),
    "mirror": ("core.cli.mirror:mirror", "Say how many of your verdicts held."),
    "why": ("core.cli.why:why", "Explain the state of a pattern, rule by rule."),
    "metrics": ("core.cli.metrics:metrics", "Print what sharing patterns has brought."),
    "what-if": ("core.cli.what_if:what_if", "Replay all history under other thresholds."),
    "serve": ("core.cli.serve:serve", "Show the dashboard in a browser on this machine."),
    "scan": ("core.cli.scan:scan", "Scan texts that an agent will read, and mask their secrets."),
    "check": ("core.cli.check:check_command", "Hold a project to a policy, for CI."),
    "watch": ("core.cli.watch:watch", "Follow a project without a screen; extract and prune unattended."),
    "doctor": ("core.cli.doctor:doctor", "Check the files of a project, the terminal and the watch."),
    "completion": ("core.cli.completion:completion", "Print the completion script of a shell."),
}
"""Where each command is, and its one line of help; so that `--help` loads none of them."""

_DASHBOARD: Final = ("core.cli.dashboard:dashboard", "Open the dashboard.")
_WITH_SCREEN: Final = frozenset({None, "dashboard", "demo", "serve"})
"""The commands that open a dashboard, by name; None: the dashboard itself."""


class LazyGroup(click.Group):
    """Loads a command when it is called. A first word that is a path opens the dashboard there."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the words; prints the help or the version if they ask for it."""
        with _while_somebody_reads():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        with _while_somebody_reads():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command with this name, imported now."""
        if cmd_name == "dashboard":
            return load(_DASHBOARD[0])
        return load(COMMANDS[cmd_name][0]) if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names, or the dashboard if it is a path."""
        args = translate_alias(args)
        word = args[0]
        if word in COMMANDS or word == "dashboard":
            return super().resolve_command(ctx, args)
        if os.path.lexists(word) or os.sep in word or word.startswith(("~", ".")):
            return "dashboard", load(_DASHBOARD[0]), args
        near = difflib.get_close_matches(word, COMMANDS, cutoff=0.5)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise click.UsageError(f"{word!r} is neither a command nor a folder.{hint}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands, and of options after a dash."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        names = [CompletionItem(name, help=text) for name, (_, text) in COMMANDS.items() if name.startswith(incomplete)]
        return names or [CompletionItem(incomplete, type="dir")]


@contextmanager
def _while_somebody_reads() -> Iterator[None]:
    """Exit quietly when the reader of a pipe has gone; click would call that a failure."""
    try:
        yield
    except BrokenPipeError:
        _give_up(1)
        _give_up(2)
        raise click.exceptions.Exit(READER_GONE) from None


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    subcommand_metavar="[PATH] | COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Exit codes:
  0    done
  1    failed; one line on stderr says why
  2    wrong usage
  3    done, but the files have findings of severity error (only with --strict)
  130  interrupted
  141  nobody reads the output any more, as in: ralphdeck loops | head -1

\b
Environment:
  RALPHDECK_PROJECT   the project, like --project
  RALPHDECK_USER      who decides, like --by
  RALPHDECK_AGENT     the agent that reports or works
  RALPHDECK_READONLY  1: write nothing, like --readonly
  RALPHDECK_MEANING   off: find patterns by words only
  RALPHDECK_THEME     theme of the dashboard, like --theme
  NO_COLOR            no colours

Every command explains itself: ralphdeck COMMAND --help""",
)
@project_option
@readonly_option
@theme_option
@click.version_option(__version__, "-V", "--version", prog_name=PROGRAM, message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Review what agent loops have learned, and decide what they may learn from.

    Without a command: open the dashboard on the nearest project at or above PATH (default: the current folder).

    \b
    Examples:
      ralphdeck                                  the dashboard here
      ralphdeck demo                             the dashboard on a sample project
      ralphdeck loops --status running,crashed   what is going on
      ralphdeck patterns list --type error --json
      ralphdeck inject --task "Fix the login"    what a loop would get to read
      ralphdeck deprecate pat-error-retry-004 --reason "hides the cause"
    """
    command = ctx.invoked_subcommand
    if command not in _WITH_SCREEN and ctx.ensure_object(Invocation).theme is not None:
        raise click.UsageError(f"--theme is for the dashboard, demo and serve; {command} has no screen", ctx)
    if command is None:
        ctx.invoke(load(_DASHBOARD[0]))


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code. Never shows a traceback."""
    gc.set_threshold(_GARBAGE_AFTER)
    sys.exit(run(args))


def alias() -> NoReturn:
    """Run the command behind the program's name; see `core.cli.aliases`."""
    main([Path(sys.argv[0]).stem, *sys.argv[1:]])


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    Without a stdout nothing is begun: what a command would print is lost, and a file that it opens could take the
    place of stdout.
    """
    if sys.stdout is None:
        return _failed("stdout is closed; to print nothing, send it to /dev/null", 1)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        return cli.main(args, prog_name=PROGRAM, standalone_mode=False) or 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.UsageError as error:
        if error.ctx is not None:
            click.echo(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n", err=True)
        return _failed(visible(error.format_message()), error.exit_code)
    except click.ClickException as error:
        return _failed(visible_line(error.format_message()), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except RalphdeckError as error:
        return _failed(visible_line(str(error)), error.exit_code)
    except OSError as error:
        _give_up(1)
        return _failed(visible_line(f"{error.filename or 'output'}: {error.strerror or error}"), 1)
    except Exception as error:
        from core.cli.userfiles import keep_traceback

        file = keep_traceback()
        where = f"details in {file}" if file else "no log file could be written"
        text = visible_line(f"{type(error).__name__}: {error}", 300)
        return _failed(f"internal error: {text} ({visible_line(str(where))})", 1)


def _failed(message: str, code: int) -> int:
    with suppress(OSError):
        click.echo(f"Error: {message}", err=True)
        return code
    _give_up(2)
    return code


def _give_up(descriptor: int) -> None:
    """What could not be written to stdout (1) or stderr (2) is not tried again when Python exits."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)
