"""Error messages as regexes, location hints, and stack frames."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.paths import relative_to_project
from core.base.text import MAX_PATTERN, safe_matcher
from core.tasks.error_messages import (
    Names,
    StackFrame,
    generalize_message,
    is_same_file,
    is_test_file,
    location_hint,
    parse_frames,
)

SPECIAL = r"\.^$*+?{}[]|()"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Cannot read property 'email' of null", "Cannot read property '.*' of null"),
        ("Type 'string | undefined' is not assignable to type 'string'", "Type '.*' is not assignable to type '.*'"),
        (
            "Cannot read properties of undefined (reading 'id')",
            r"Cannot read properties of undefined \(reading '.*'\)",
        ),
        ("Exceeded timeout of 5000 ms for a test", r"Exceeded timeout of \d+ ms for a test"),
        ("Timeout of 2.5s exceeded", r"Timeout of [0-9.,]+s exceeded"),
        ('violates unique constraint "webhook_keys_pkey"', 'violates unique constraint ".*"'),
        ("ENOENT: cannot open /srv/app/a.txt", r"ENOENT: cannot open \S+"),
        ("failing tests in mailer.spec.ts:12:3", r"failing tests in \S+"),
        ("no commit 5d41402abc4b2a76 on the branch", r"no commit [\w-]+ on the branch"),
        ("segmentation fault at 0xDEADBEEF", r"segmentation fault at [\w-]+"),
        ("job 3f2504e0-4f89-41d3-9a0c-0305e82c3301 is gone", r"job [\w-]+ is gone"),
        ("it doesn't know what isn't there", "it doesn't know what isn't there"),
        ("sha256 and utf8 stay", "sha256 and utf8 stay"),
        ("first line counts\n    at somewhere", "first line counts"),
    ],
)
def test_variable_parts_become_wildcards(message: str, expected: str) -> None:
    assert generalize_message(message) == expected
    assert safe_matcher(expected).matches(message)


def test_quoted_names_can_stay_literal() -> None:
    assert generalize_message("Type 'a | b' has 3 errors", names=Names.ALL) == r"Type 'a \| b' has \d+ errors"


@pytest.mark.parametrize("message", ["", "   ", "'a' '.*'", "42", "/a/b/c", "\n\n", "E5 !!!", "...."])
def test_too_general_message_has_no_signature(message: str) -> None:
    assert generalize_message(message) == ""


def test_metacharacters_are_escaped() -> None:
    message = f"unexpected {SPECIAL} here"
    signature = generalize_message(message)
    assert safe_matcher(signature).matches(message)
    assert not safe_matcher(signature).matches("unexpected  here")
    assert re.fullmatch(signature, message)


def test_control_and_invisible_characters_are_not_in_signatures() -> None:
    message = "fatal\x1b]52;c;AAAA\x07 \u202eerror\u2069 \ud800 seen"
    signature = generalize_message(message)
    assert signature.isprintable()
    assert safe_matcher(signature).matches(message)


@given(
    st.lists(
        st.one_of(
            st.text(max_size=40),
            st.sampled_from(
                ["'email'", '"x y"', "/a/b.ts:4", "0xff", "12.5", SPECIAL, "undefined", "\x1b[2J", "(a|a)*"]
            ),
        ),
        max_size=12,
    ).map(" ".join)
)
def test_signature_matches_its_own_message(message: str) -> None:
    for names in Names:
        signature = generalize_message(message, names=names)
        assert len(signature) <= MAX_PATTERN
        assert not signature or (
            safe_matcher(signature).problem is None and safe_matcher(signature).matches(message.strip())
        )


def test_only_the_beginning_of_a_huge_message_is_used() -> None:
    signature = generalize_message("cannot open " + "a" * 10_000_000)
    assert len(signature) <= MAX_PATTERN and signature.startswith("cannot open aaaa")


@pytest.mark.parametrize(
    ("file", "function", "expected"),
    [
        ("src/auth/validate.ts", "", "*.ts:validate*"),
        ("src/auth/validate.ts", "validateInput", "*.ts:validateInput"),
        ("C:\\app\\mailer.test.py", "", "*.py:mailer*"),
        ("Makefile", "", ""),
        ("", "f", ""),
        ("a/**/*.ts", "", ""),
        ("a.ts", "x\n## System", "*.ts:a*"),
    ],
)
def test_location_hints(file: str, function: str, expected: str) -> None:
    assert location_hint(file, function) == expected


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ("    at async Order.settle [as run] (file:///p/src/a.ts:7:1)", StackFrame("src/a.ts", 7, "Order.settle")),
        ("    at new Order (C:\\app\\a.ts:7:1)", StackFrame("C:/app/a.ts", 7, "Order")),
        ("    at src/a.ts:7:1", StackFrame("src/a.ts", 7)),
        ('  File "/p/a.py", line 7, in <module>', StackFrame("a.py", 7)),
        ("    at node:internal/process/task_queues:95:5", None),
        ("    at eval (<anonymous>:1:1)", None),
        ("    at webpack://a/b.ts:1:1", None),
        ('  File "<string>", line 1, in f', None),
        ("at all times", None),
    ],
)
def test_frame_files_are_relative_to_the_project(line: str, frame: StackFrame | None) -> None:
    assert parse_frames(line, "/p") == ([] if frame is None else [frame])


def test_test_files_are_recognized_by_name() -> None:
    tests = ["tests/a.py", "src/__tests__/a.ts", "src/a.test.ts", "a_spec.rb", "test_a.py", "conftest.py"]
    assert all(map(is_test_file, tests))
    assert not any(map(is_test_file, ["src/a.ts", "src/latest.py", "contest.py", "testing/a.py"]))
    assert relative_to_project("./a.ts", "/p") == relative_to_project("/p/a.ts", "/p/") == "a.ts"
    assert (
        is_same_file("/app/src/a.ts", "src/a.ts") and not is_same_file("/app/a.ts", "a.ts") and not is_same_file("", "")
    )
