"""Errors in what failed commands print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from core.retrieval.relevance import list_places
from core.tasks.command_errors import MAX_ERRORS, find_command_errors

ROOT = "/home/user/project"
OUTPUTS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("command_outputs.yaml").read_text("utf-8"))


@pytest.mark.parametrize("recorded", OUTPUTS, ids=[one["tool"] for one in OUTPUTS])
def test_the_first_error_of_each_tool_has_its_name_message_and_place(recorded: dict[str, Any]) -> None:
    found = find_command_errors(f"Exit code 1\n{recorded['output']}", "", ROOT)[0]
    assert (found.error_type, found.message) == (recorded["error"], recorded["message"])
    assert next(iter(list_places(found)), "") == recorded["place"]


def test_the_output_is_searched_if_the_error_text_only_has_an_exit_code() -> None:
    (found,) = find_command_errors("Exit code 2", "app.c:3:1: error: expected ';' before '}' token\n", ROOT)
    assert (found.message, found.file) == ("expected ';' before '}' token", "app.c")


def test_an_error_that_is_reported_twice_is_one_error() -> None:
    output = "E   KeyError: 'currency'\n\norders.py:5: KeyError\n"
    assert len(find_command_errors(output, f"\n{output}\n1 failed", ROOT)) == 1


def test_an_import_error_that_a_test_file_prints_is_the_error_of_the_test() -> None:
    output = (
        "# file:///home/user/project/cart.mjs:1\n# SyntaxError: The requested module './m.mjs' has no 'total'\n"
        "not ok 1 - /home/user/project/cart.test.mjs\n  ---\n  error: 'test failed'\n  ...\n1..1\n"
    )
    (found,) = find_command_errors(output, "", ROOT)
    assert (found.error_type, found.file, found.test_name) == ("SyntaxError", "cart.mjs", "")


def test_warnings_notes_and_summaries_are_skipped() -> None:
    noise = "cart.c:4:7: warning: unused variable 'x'\ncart.c:4:7: note: declared here\nmake: *** [cart] Error 1\n"
    assert find_command_errors(noise, "", ROOT) == ()


def test_the_number_of_errors_is_limited() -> None:
    many = "".join(f"app.py:{n}: error: Name 'x{n}' is not defined\n" for n in range(100))
    assert len(find_command_errors(many, "", ROOT)) == MAX_ERRORS


@given(st.lists(st.sampled_from([line for one in OUTPUTS for line in one["output"].splitlines()]), max_size=30))
def test_any_mixture_of_lines_can_be_parsed(lines: list[str]) -> None:
    for found in find_command_errors("\n".join(lines), "", ROOT):
        assert found.message.strip()
