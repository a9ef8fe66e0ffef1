"""The command itself: help, lazy loading, paths as words, and every way to fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from core import __version__
from core.cli import groups, program
from core.cli.program import cli
from tests.core.cli.conftest import ROOT, Call, call_process


def test_version_is_one_line(call: Call) -> None:
    assert call("--version").out == f"ralphdeck {__version__}\n"


def test_help_names_every_command_and_every_exit_code(call: Call) -> None:
    text = call("--help").out
    assert all(f"\n  {name} " in text for name in cli.places)
    assert all(f"\n    {code} " in text for code in (0, 1, 2, 3, 130, 141))


@pytest.mark.parametrize("name", cli.places)
def test_each_command_explains_itself(name: str, call: Call) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None and command.help
    result = call(name, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: ralphdeck {name} ")


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
from core.cli.groups import load
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


def test_without_a_command_the_headless_program_prints_its_help(call: Call) -> None:
    assert call() == call("--help")


def test_an_unknown_word_names_near_commands(call: Call) -> None:
    result = call("lops")
    assert (result.code, result.out) == (2, "")
    assert "'lops' is not a command. Did you mean loop" in result.err


@pytest.mark.parametrize(
    ("words", "help"),
    [
        (["loop", "list", "--status", "runing"], "did you mean running?"),
        (["connect", "clade"], "did you mean claude?"),
        (["metrics", "--weeks", "x"], "'x' is not a whole number from 1 to 520"),
        (["metrics", "--weeks", "0"], "'0' is not a whole number from 1 to 520"),
        (["task", "show", "task-001", "--attempt", "-1"], "'-1' is not a whole number from 0"),
        (["task", "shw"], "Did you mean show?"),
        (["show"], "Did you mean pattern show"),
    ],
)
def test_a_wrong_value_is_answered_with_the_values_that_are_possible(words: list[str], help: str, call: Call) -> None:
    result = call(*words)
    assert result.code == 2 and help in result.err


def test_an_ambiguous_id_names_what_it_matches(sample: Path, call: Call) -> None:
    result = call("pattern", "show", "pat-error", "--project", sample)
    assert result.code == 1 and result.err.count("pat-error-") == 6 and " others" in result.err


@pytest.mark.parametrize(
    "words",
    [
        ["loop", "list", "--no-such-option"],
        ["loop", "list", "--status", "sleeping"],
        ["pattern"],
        ["pattern", "list", "--min-success-rate", "nan"],
        ["pattern", "list", "--type", "error,nonsense"],
        ["pattern", "deprecate", "pat-error-null-check-015"],
        ["loop", "inject"],
        ["loop", "inject", "a-loop", "--task", "and a task"],
        ["--completion", "tcsh"],
    ],
)
def test_wrong_usage_exits_with_2_and_prints_nothing(words: list[str], examples: Path, call: Call) -> None:
    result = call("--project", examples, *words)
    assert (result.code, result.out) == (2, "")
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            ["pattern", "deprecate", "pat-error-null-check-015", "--by", " ", "--reason", "x"],
            "'--by': the name is empty",
        ),
        (["review", "--by", ""], "'--by': the name is empty"),
        (["pattern", "list", "--type", ""], "'--type': give at least one of error, success"),
        (["loop", "list", "--status", ","], "'--status': give at least one of "),
        (["task", "show", "task-001", "--replay", "--speed", "nan"], "'--speed': 'nan' is not a number"),
        (["task", "complete", "task-001", "--success", "--percent", "NaN"], "'--percent': 'NaN' is not a number"),
    ],
)
def test_an_empty_name_or_list_and_nan_are_invalid(words: list[str], reason: str, examples: Path, call: Call) -> None:
    result = call("--project", examples, *words)
    assert (result.code, result.out) == (2, "")
    assert f"Error: Invalid value for {reason}" in result.err


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
    result = call("loop", "list", "--json", "--project", examples)
    log = home / "state" / "ralphdeck" / "ralphdeck.log"
    assert (result.code, result.out) == (1, "")
    assert result.err == f"Error: internal error: RuntimeError: some ␛[31mbug (details in {log})\n"
    assert "Traceback" in log.read_text() and "\x1b" not in log.read_text()


def test_a_log_file_that_cannot_be_written_changes_nothing_else(
    home: Path, examples: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "state").write_text("in the way")
    monkeypatch.setattr("core.cli.json.loops.loop_row", lambda *_: 1 / 0)
    result = call("loop", "list", "--json", "--project", examples)
    assert result.code == 1
    assert result.err == ("Error: internal error: ZeroDivisionError: division by zero (no log file could be written)\n")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, click.Abort])
def test_an_interrupt_exits_with_130(
    interruption: type[BaseException], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise interruption

    monkeypatch.setattr(program.cli, "main", interrupt)
    result = call("loop", "list")
    assert (result.code, result.out) == (130, "")
    assert "Traceback" not in result.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "both"),
    [
        ("loop list --json", False),
        ("pattern list", True),
        ("--help", True),
        ("loop list --help", False),
        ("--version", False),
        ("pattern show pat-error-null-check-015 --why", False),
        ("loop inject --task types", True),
    ],
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
    assert (done.returncode, done.stderr or b"") == (groups.BROKEN_PIPE_EXIT, b"")


@pytest.mark.slow
def test_an_error_on_a_closed_stderr_keeps_its_exit_code(examples: Path) -> None:
    command = f'"{sys.executable}" -m core.cli pattern show --why no-such-pattern --project "{examples}"'
    for stderr in ("2>&-", "2> >(exec true)", "2>/dev/full"):
        done = subprocess.run(["bash", "-c", f"{command} {stderr}"], cwd=ROOT, capture_output=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


@pytest.mark.parametrize(
    "words",
    [
        ["loop", "list"],
        ["loop", "list", "--json"],
        ["pattern", "list"],
        ["pattern", "promote", "pat-error-null-check-015"],
        [],
        ["-h"],
    ],
)
def test_nothing_starts_without_stdout(words: list[str], examples: Path) -> None:
    program = '"$0" -m core.cli "$@" >&-'
    environment = {**os.environ, "RALPHDECK_PROJECT": str(examples)}
    done = subprocess.run(
        ["bash", "-c", program, sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"Error: stdout is closed; to print nothing, send it to /dev/null\n"
    assert not (examples / ".aiwg/ralph/shared/curation").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["loop", "list"],
        ["doctor", "--json"],
        ["pattern", "promote", "x"],
        ["loop", "inject", "--task", "x"],
        ["--project", ".aiwg", "log"],
    ],
)
def test_a_current_folder_that_was_removed_is_named(
    words: list[str], tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = tmp_path / "gone"
    removed.mkdir()
    monkeypatch.chdir(removed)
    removed.rmdir()
    result = call(*words)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("Error: the current folder was deleted; ")
    assert result.err.count("\n") == 1


def test_an_unknown_home_folder_is_one_line(call: Call) -> None:
    result = call("loop", "list", "--project", "~no-such-user/project")
    assert (result.code, result.err) == (1, "Error: ~no-such-user/project: unknown home folder; give a full path\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_line(upstream: Path) -> None:
    command = f'"{sys.executable}" -m core.cli loop list --json --project "{upstream}" > /dev/full'
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "Error: output: No space left on device\n")


def test_an_output_encoding_without_unicode_works(upstream: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    result = call_process(["loop", "list", "--project", upstream])
    assert (result.code, result.err) == (0, "")
    assert "ralph-moji-5cfda65c" in result.out
