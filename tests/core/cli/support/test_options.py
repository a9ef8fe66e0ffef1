"""Options and classes of commands."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import click
import pytest

from core.cli.support.options import OneOf
from core.files.user_files import cache_path
from tests.core.cli.conftest import Call


@pytest.mark.parametrize(
    "command", [("pattern", "list"), ("loop", "list"), ("pattern", "show", "pat-error-null-check-001"), ("metrics",)]
)
def test_a_reading_command_that_finds_the_index_damaged_makes_it_again(
    examples: Path, call: Call, command: tuple[str, ...]
) -> None:
    before = call(*command)
    index = cache_path(examples, "index")
    with closing(sqlite3.connect(index, isolation_level=None)) as connection:
        connection.execute("UPDATE record SET data = zeroblob(length(data))")
    after = call(*command)
    assert (after.code, after.out, after.err) == (before.code, before.out, before.err)


def test_a_missing_choice_is_reported_in_one_line() -> None:
    option = click.Option(["--agent"], type=OneOf(["claude", "codex"]), required=True)
    with pytest.raises(click.MissingParameter) as failure:
        click.Command("hook", params=[option]).make_context("hook", [])
    assert failure.value.format_message() == "Missing option '--agent'. Choose from claude, codex."
