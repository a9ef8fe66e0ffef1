"""The command itself: help, lazy loading, paths as words, and every way to fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from core import __version__
from core.cli import program
from core.cli.program import cli
from tests.core.cli.conftest import ROOT, Call, call_process


def run_in_shell(words: str, redirection: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command whose streams a shell has redirected."""
    command = f'"{sys.executable}" -m core.cli {words} {redirection}'
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_streams_that_cannot_be_written_end_it_with_one_line(examples: Path) -> None:
    for place in ("2>&-", "2> >(exec true)", "2>/dev/full"):
        assert run_in_shell("pattern show --why no-such-pattern", place) == (1, "", "")
    for words in ("loop list --json", "pattern promote pat-error-null-check-015", "-h"):
        closed = "Error: stdout is closed; to print nothing, send it to /dev/null\n"
        assert run_in_shell(words, ">&-") == (1, "", closed)
    assert not (examples / ".aiwg/ralph/shared/curation").exists()
    assert run_in_shell("loop list --json", "> /dev/full") == (1, "", "Error: output: No space left on device\n")


def test_help_groups_the_options_of_a_command_by_what_it_does(call: Call) -> None:
    text = call("debug", "record", "--help").out
    parts: tuple[str, ...] = ("Options:", "--start ", "With --start:", "--loop", "With --cause:", "--strategy")
    parts = (*parts, "With --end or --escalate:", "--reason", "Common options:", "--json")
    places = [text.index(f"\n{part}" if part.endswith(":") else f"  {part}") for part in parts]
    assert places == sorted(places)
    assert "Common options" not in call("log", "--help").out


def test_help_names_every_command_and_every_exit_code(call: Call) -> None:
    assert call("--version").out == f"ralphdeck {__version__}\n"
    text = call("--help").out
    assert call().out == text
    assert all(f"\n  {name} " in text for name in cli.places)
    assert all(f"\n    {code} " in text for code in (0, 1, 2, 3, 130, 141))
    for name in cli.places:
        result = call(name, "--help")
        assert result.code == 0 and result.out.startswith(f"Usage: ralphdeck {name} ")


HEADLESS = (
    "--version",
    "--help",
    "loop list",
    "pattern list --json",
    "lesson --reflections",
    "loop inject --task 'Fix type errors'",
    "log",
    "doctor",
    "loop score --json",
    "review --suspicious",
    "changes max_harmful=0.2",
    "loop score bd-1 --errors",
    "loop record bd-1 --outcome --success --dry-run",
)
"""The first two run first, because imports of other commands stay loaded."""


def test_headless_commands_import_no_screen(examples: Path) -> None:
    program = (
        "import shlex, sys; from core.cli.program import run\n"
        "for words in sys.argv[2:]:\n"
        "    code = run(['--project', sys.argv[1], *shlex.split(words)])\n"
        "    print('LOADED', code, *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(examples), *HEADLESS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    reported = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("LOADED ")]
    for words, (code, *loaded) in zip(HEADLESS, reported, strict=True):
        assert code == "0", words
        assert not {"textual", "tui"} & set(loaded), words
        if words.startswith("--"):
            assert not {"numpy", "msgspec", "yaml", "rich"} & set(loaded), words


BLOCK_TEXTUAL = """
import sys
from importlib.abc import MetaPathFinder

class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("textual", "tui"):
            raise ImportError(f"{name} is not installed")

sys.meta_path.insert(0, Blocked())
import click
from core.cli.program import load
from core.cli.program import cli, run

context = click.Context(cli)
for name in cli.list_commands(context):
    command = cli.get_command(context, name)
    for inner in command.list_commands(context) if isinstance(command, click.Group) else ():
        assert command.get_command(context, inner) is not None, inner
sys.exit(run(["--project", sys.argv[1], "doctor"]))
"""


def test_every_headless_command_works_without_textual(examples: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCK_TEXTUAL, str(examples)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "verdict: " in done.stdout


def test_a_wrong_value_is_answered_with_the_values_that_are_possible(examples: Path, call: Call) -> None:
    for words, answer in (
        ("lops", "'lops' is not a command. Did you mean loop"),
        ("loop list --status runing", "did you mean running?"),
        ("connect clade", "did you mean claude?"),
        ("metrics --weeks x", "'x' is not a whole number from 1 to 520"),
        ("metrics --weeks 0", "'0' is not a whole number from 1 to 520"),
        ("task show task-001 --attempt -1", "'-1' is not a whole number from 0"),
        ("task shw", "Did you mean show?"),
        ("show", "Did you mean pattern show"),
        ("loop list --no-such-option", "No such option"),
        ("pattern list --min-success-rate nan", "'nan'"),
        ("pattern list --type error,nonsense", "nonsense"),
        ("pattern deprecate pat-error-null-check-015", "Missing option '--reason'"),
        ("loop inject", "--task"),
        ("loop inject a-loop --task more", "--task"),
        ("--completion tcsh", "tcsh"),
        ("pattern deprecate pat-error-null-check-015 --by= --reason x", "Invalid value for '--by': the name is empty"),
        ("pattern list --type=", "Invalid value for '--type': give at least one of error, success"),
        ("loop list --status ,", "Invalid value for '--status': give at least one of "),
        ("task show task-001 --replay --speed nan", "Invalid value for '--speed': 'nan' is not a number"),
        ("task complete task-001 --success --percent NaN", "Invalid value for '--percent': 'NaN' is not a number"),
    ):
        result = call(*words.split())
        assert (result.code, result.out) == (2, "") and answer in result.err and "Traceback" not in result.err, words


def test_an_ambiguous_id_names_what_it_matches(sample: Path, call: Call) -> None:
    result = call("pattern", "show", "pat-error")
    assert result.code == 1 and result.err.count("pat-error-") == 6 and " others" in result.err


def test_the_project_can_be_given_before_or_after_the_command_or_in_the_environment(
    examples: Path, upstream: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = call("--project", examples, "loop", "list").out
    assert "ralph-fix-api-d4e5f6a7" in before
    for place in (examples / ".aiwg", examples / ".aiwg" / "ralph"):
        assert call("loop", "list", "--project", place).out == before
    monkeypatch.setenv("RALPHDECK_PROJECT", str(examples))
    assert call("loop", "list").out == before
    assert call("--project", upstream, "loop", "list").out != before
    monkeypatch.delenv("RALPHDECK_PROJECT")
    monkeypatch.chdir(examples / ".aiwg" / "ralph" / "loops")
    assert call("loop", "list").out == before


def test_without_a_project_the_message_explains_how_to_begin(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("loop", "list", "--json")
    assert (result.code, result.out) == (1, "")
    assert result.err.count("\n") == 1 and "ralphdeck demo" in result.err


def test_a_folder_without_aiwg_is_an_empty_project(tmp_path: Path, call: Call) -> None:
    for words, records in ((["loop", "list"], "loops"), (["pattern", "list"], "patterns"), (["log"], "decisions")):
        result = call(*words, "--json", "--project", tmp_path)
        assert result.code == 0
        assert result.document == {records: [], "findings": []}
        plain = call(*words, "--project", tmp_path)
        assert (plain.code, plain.out) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_an_internal_error_is_one_line_and_a_traceback_in_the_log_file(
    home: Path, examples: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("some \x1b[31mbug")

    monkeypatch.setattr("core.cli.json.loops.loop_row", fail)
    result = call("loop", "list", "--json")
    log = home / "state" / "ralphdeck" / "ralphdeck.log"
    assert (result.code, result.out) == (1, "")
    assert result.err == f"Error: internal error: RuntimeError: some ␛[31mbug (details in {log})\n"
    assert "Traceback" in log.read_text() and "\x1b" not in log.read_text()


def test_a_log_file_that_cannot_be_written_changes_nothing_else(
    home: Path, examples: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "state").write_text("in the way")
    monkeypatch.setattr("core.cli.json.loops.loop_row", lambda *_: 1 / 0)
    result = call("loop", "list", "--json")
    assert result.code == 1
    assert result.err == ("Error: internal error: ZeroDivisionError: division by zero (no log file could be written)\n")


def test_an_interrupt_exits_with_130(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for interruption in (KeyboardInterrupt, click.Abort):

        def interrupt(*_: object, error: type[BaseException] = interruption, **__: object) -> None:
            raise error

        monkeypatch.setattr(program.cli, "main", interrupt)
        result = call("loop", "list")
        assert (result.code, result.out) == (130, "") and "Traceback" not in result.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "both"),
    [("loop list --json", False), ("--help", True), ("pattern show pat-error-null-check-015 --why", True)],
)
def test_a_closed_pipe_ends_it_quietly(words: str, both: bool, examples: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "core.cli", *words.split()],
        cwd=ROOT,
        env={**os.environ, "RALPHDECK_PROJECT": str(examples)},
        stdout=writer,
        stderr=writer if both else subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr or b"") == (program.BROKEN_PIPE_EXIT, b"")


def test_a_current_folder_that_was_removed_is_named(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = tmp_path / "gone"
    removed.mkdir()
    monkeypatch.chdir(removed)
    removed.rmdir()
    for words in ("loop list", "doctor --json", "pattern promote x", "--project .aiwg log"):
        result = call(*words.split())
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
        assert result.err.startswith("Error: the current folder was deleted; ")
    unknown = call("loop", "list", "--project", "~no-such-user/project")
    assert (unknown.code, unknown.err) == (1, "Error: ~no-such-user/project: unknown home folder; give a full path\n")


def test_an_output_encoding_without_unicode_works(upstream: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    result = call_process(["loop", "list"])
    assert (result.code, result.err) == (0, "")
    assert "ralph-moji-5cfda65c" in result.out
