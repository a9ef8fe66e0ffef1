"""Marked blocks and files of ralphdeck in places that belong to others."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.entries import TomlTable
from core.files.managed_text import Block, OwnFile

OLD, NEW = Block("old text"), Block("new text")
LESSONS = Block("- one\n- two", name="lessons of ralphdeck")
LINES = st.lists(
    st.sampled_from(["", "text", " ", "# Title", "\ufeff", "\x0b", "- one", "<!-- BEGIN x -->", "é"]), max_size=6
)


def test_an_outdated_block_is_replaced_in_place() -> None:
    data = b"before\n\n" + OLD.merge(None) + b"\nafter\n"
    assert NEW.merge(data) == b"before\n\n" + NEW.merge(None) + b"\nafter\n"


def test_a_block_that_a_person_edited_stays() -> None:
    data = OLD.merge(b"before\n").replace(b"old text", b"my text")
    assert NEW.merge(data) == data
    assert NEW.strip(data) == b"before\n"


@given(LINES, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.integers(0, 3), LINES)
def test_removing_a_named_block_restores_the_bytes_around_it(
    lines: list[str], newline: str, has_end: bool, blocks: int, after: list[str]
) -> None:
    before = (newline.join(lines) + newline * has_end).encode()
    data = LESSONS.merge(before)
    assert LESSONS.merge(data) == data and LESSONS.strip(data) == before
    longer = Block("other text\n" * blocks, name=LESSONS.name).merge(data)
    assert LESSONS.strip(longer) == before
    connected = NEW.merge(before)
    assert LESSONS.strip(NEW.strip(LESSONS.merge(connected))) == NEW.strip(connected)
    assert LESSONS.strip(LESSONS.merge(connected)) == connected
    added = newline.join(after).encode()
    gap = (
        newline.encode() if before and added and not before.endswith(b"\n") else b""
    )  # they stay on lines of their own
    assert LESSONS.strip(data + added) == before + gap + added


@pytest.mark.parametrize("head", [b"", b"\r\n", b"a\r\nb\n"])
def test_line_ends_of_a_current_block_do_not_matter(head: bytes) -> None:
    for block in (NEW.merge(None), NEW.merge(None).replace(b"\n", b"\r\n"), NEW.merge(None).rstrip()):
        assert NEW.merge(head + block) == head + block
        assert b"ralphdeck" not in NEW.strip(head + block)


def test_a_block_is_written_with_the_line_ends_of_the_file() -> None:
    assert b"\n" not in NEW.merge(b"a\r\n").replace(b"\r\n", b"")


def test_a_file_that_a_person_edited_stays_and_an_outdated_one_is_replaced() -> None:
    old, new = OwnFile("old"), OwnFile("new")
    assert new.merge(old.merge(None)) == new.merge(None)
    edited = old.merge(None).replace(b"old", b"mine")
    assert new.merge(edited) == edited and new.strip(edited) == edited
    assert new.strip(old.merge(None)) == b""


@pytest.mark.parametrize(
    "program", ["ralphdeck", "/a b/ralphdeck", '/q"uote\\/ralphdeck', "/t\tab/\x7f/ralphdeck", "/é/ralphdeck"]
)
def test_any_program_is_written_as_valid_toml(program: str) -> None:
    table = TomlTable("mcp_servers", {"command": "{program}", "args": ["mcp"]}, program)
    data = table.merge(b'model = "x"\n')
    assert tomllib.loads(data.decode())["mcp_servers"]["ralphdeck"] == {"command": program, "args": ["mcp"]}
    assert table.merge(data) == data
    assert table.strip(data) == b'model = "x"\n'
