"""Errors in what failed commands and test runners print, and regexes for similar messages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.paths import relative_to_project
from core.base.text import MAX_PATTERN, safe_matcher
from core.retrieval.relevance import list_places
from core.tasks.command_errors import MAX_ERRORS, find_command_errors, parse_failures
from core.tasks.error_messages import (
    Names,
    StackFrame,
    generalize_message,
    is_same_file,
    is_test_file,
    location_hint,
    parse_frames,
)
from tests.factories import make_full_session

ROOT = "/home/user/project"
OUTPUTS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("command_outputs.yaml").read_text("utf-8"))


def test_the_first_error_of_each_tool_has_its_name_message_and_place() -> None:
    for recorded in OUTPUTS:
        found = find_command_errors(f"Exit code 1\n{recorded['output']}", "", ROOT)[0]
        assert (found.error_type, found.message) == (recorded["error"], recorded["message"]), recorded
        assert next(iter(list_places(found)), "") == recorded["place"], recorded


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


RED = "\x1b[31m"
JEST = {
    "numFailedTests": 1,
    "testResults": [
        {
            "name": "/app/a.test.ts",
            "status": "failed",
            "assertionResults": [
                {"fullName": "works", "status": "passed", "failureMessages": []},
                {
                    "fullName": "rejects null",
                    "status": "failed",
                    "failureMessages": [f"{RED}TypeError: x is null\x1b[39m\n    at f (/app/a.ts:7:1)"],
                },
            ],
        },
        {
            "name": "/app/b.test.ts",
            "status": "failed",
            "message": "  ● b\n\n    SyntaxError: no",
            "assertionResults": [],
        },
    ],
}
PYTEST = {
    "tests": [
        {"nodeid": "t.py::ok", "outcome": "passed", "call": {"outcome": "passed"}},
        {
            "nodeid": "t.py::broken",
            "outcome": "failed",
            "call": {"crash": {"path": "/app/t.py", "lineno": 3, "message": "KeyError: 'id'"}, "longrepr": "trace"},
        },
    ]
}
PRINTED = f"""
t.py F
>       assert f() == 4
{RED}E       assert 3 == 4\x1b[0m
E       sqlalchemy.exc.OperationalError: no database
  ● suite › case
    TypeError: x is null at src/a.ts:7
all is well, assert nothing
"""


def test_reports_of_all_test_runners_are_parsed() -> None:
    rows: list[tuple[Any, list[str]]] = [
        (make_full_session(), ["told-error-type: told-message"]),
        (make_full_session()["executions"][0], ["told-error-type: told-message"]),
        (make_full_session()["executions"][0]["failures"], ["told-error-type: told-message"]),
        ({"error_type": "TypeError", "error_message": "x"}, ["TypeError: x"]),
        ({"executions": [{"failures": [{"error_type": "A"}]}, {"failures": []}, {}]}, ["A: "]),
        (JEST, ["TypeError: x is null", "SyntaxError: no"]),
        (PYTEST, ["KeyError: 'id'"]),
        ([], []),
        ({"testResults": "none", "tests": 7}, []),
    ]
    for value, expected in rows:
        found = parse_failures(json.dumps(value).encode())
        assert [f"{failure.error_type}: {failure.message}" for failure in found] == expected, value


def test_all_details_of_a_failure_are_parsed() -> None:
    jest, _ = parse_failures(json.dumps(JEST).encode())
    assert (jest.test_name, jest.test_file) == ("rejects null", "/app/a.test.ts")
    assert "\x1b" not in jest.stack_trace and "at f (/app/a.ts:7:1)" in jest.stack_trace
    (python,) = parse_failures(json.dumps(PYTEST).encode())
    assert (python.file, python.line, python.test_name, python.stack_trace) == ("/app/t.py", 3, "t.py::broken", "trace")


def test_errors_are_found_in_console_output() -> None:
    found = [(one.error_type, one.message, one.file) for one in parse_failures(PRINTED.encode())]
    assert found == [
        ("AssertionError", "assert 3 == 4", ""),
        ("OperationalError", "no database", ""),
        ("TypeError", "x is null", "src/a.ts"),
    ]


PROJECT = "/home/me/proj"
JEST_TEXT = """\
PASS src/ok.test.ts
FAIL src/auth/validate.test.ts (5.2 s)
  ● validate › rejects null

    TypeError: Cannot read property 'id' of null

      14 |   const user = find(token);
    > 15 |   return user.id;
         |               ^

      at validate (src/auth/validate.ts:15:3)
      at Object.<anonymous> (src/auth/validate.test.ts:5:10)
      at processTicksAndRejections (node:internal/process/task_queues:95:5)

  ● validate › counts

    expect(received).toBe(expected) // Object.is equality

    Expected: 4
    Received: 3

      at Object.<anonymous> (src/auth/validate.test.ts:9:21)

Test Suites: 1 failed, 1 passed, 2 total
"""
VITEST_TEXT = """\
 FAIL  src/auth/validate.test.ts > validate > rejects null
TypeError: Cannot read properties of null (reading 'id')
 ❯ check node_modules/lib/index.js:1:1
 ❯ validate src/auth/validate.ts:15:3
 ❯ src/auth/validate.test.ts:5:10
"""
PYTEST_TEXT = """\
=================================== FAILURES ===================================
_________________________________ test_settle __________________________________

    def test_settle():
>       assert settle(None) == 3

tests/test_settlement.py:7:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

    def settle(order):
>       return order.id
E       AttributeError: 'NoneType' object has no attribute 'id'

workers/settlement.py:5: AttributeError
_________________________________ test_other ___________________________________
tests/test_settlement.py:11: in test_other
    load("x")
/usr/lib/python3.12/json/decoder.py:3: in decode
    raise
E   KeyError: 'a'
=========================== short test summary info ============================
FAILED tests/test_settlement.py::test_settle - AttributeError: 'NoneType' obj...
FAILED tests/test_settlement.py::test_other - KeyError: 'a'
FAILED tests/test_gone.py::test_gone - ValueError: no
"""
TRACEBACK = """\
Traceback (most recent call last):
  File "/home/me/proj/workers/settlement.py", line 5, in settle
    return order.id
  File "/home/me/.venv/lib/python3.12/site-packages/x.py", line 9, in get
    raise
AttributeError: 'NoneType' object has no attribute 'id'
"""
SOURCE = ("src/auth/validate.ts", 15, "validate")
JEST_TEST = "src/auth/validate.test.ts"
PY_TEST = "tests/test_settlement.py"


def _jest(frame: str) -> str:
    messages = [f"TypeError: x is null\n    at validate ({frame}:15:3)\n    at Object.<anonymous> (a.test.ts:5:1)"]
    test = {"fullName": "t", "status": "failed", "failureMessages": messages}
    return json.dumps({"testResults": [{"name": f"{PROJECT}/{JEST_TEST}", "assertionResults": [test]}]})


def test_location_is_the_innermost_frame_of_the_project() -> None:
    rows: list[tuple[str, list[Any]]] = [
        (_jest("src/auth/validate.ts"), [(*SOURCE, "t", JEST_TEST)]),
        (_jest(f"{PROJECT}/src/auth/validate.ts"), [(*SOURCE, "t", JEST_TEST)]),
        (_jest("/app/src/auth/validate.ts"), [("a.test.ts", 5, "", "t", JEST_TEST)]),
        (
            JEST_TEXT,
            [(*SOURCE, "validate › rejects null", JEST_TEST), (JEST_TEST, 9, "", "validate › counts", JEST_TEST)],
        ),
        (VITEST_TEXT, [(*SOURCE, "validate > rejects null", JEST_TEST)]),
        (
            PYTEST_TEXT,
            [
                ("workers/settlement.py", 5, "settle", f"{PY_TEST}::test_settle", PY_TEST),
                (PY_TEST, 11, "test_other", f"{PY_TEST}::test_other", PY_TEST),
                ("", None, "", "tests/test_gone.py::test_gone", "tests/test_gone.py"),
            ],
        ),
        (TRACEBACK, [("workers/settlement.py", 5, "settle", "", "")]),
    ]
    for text, expected in rows:
        found = parse_failures(text.encode(), PROJECT)
        assert [(one.file, one.line, one.function, one.test_name, one.test_file) for one in found] == expected, text
        assert all(one.stack_trace for one in found if one.file), text


@given(st.binary(max_size=100) | st.text('{}[]:", testRsulE', max_size=40).map(str.encode))
@settings(max_examples=40)
def test_invalid_input_never_raises(data: bytes) -> None:
    parse_failures(data)


SPECIAL = r"\.^$*+?{}[]|()"


def test_variable_parts_become_wildcards() -> None:
    for message, expected in (
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
    ):
        assert generalize_message(message) == expected, message
        assert safe_matcher(expected).matches(message), message


def test_quoted_names_can_stay_literal() -> None:
    assert generalize_message("Type 'a | b' has 3 errors", names=Names.ALL) == r"Type 'a \| b' has \d+ errors"


def test_too_general_message_has_no_signature() -> None:
    for message in ("", "   ", "'a' '.*'", "42", "/a/b/c", "\n\n", "E5 !!!", "...."):
        assert generalize_message(message) == "", message


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


def test_frame_files_are_relative_to_the_project() -> None:
    rows: list[tuple[str, StackFrame | None]] = [
        ("    at async Order.settle [as run] (file:///p/src/a.ts:7:1)", StackFrame("src/a.ts", 7, "Order.settle")),
        ("    at new Order (C:\\app\\a.ts:7:1)", StackFrame("C:/app/a.ts", 7, "Order")),
        ("    at src/a.ts:7:1", StackFrame("src/a.ts", 7)),
        ('  File "/p/a.py", line 7, in <module>', StackFrame("a.py", 7)),
        ("    at node:internal/process/task_queues:95:5", None),
        ("    at eval (<anonymous>:1:1)", None),
        ("    at webpack://a/b.ts:1:1", None),
        ('  File "<string>", line 1, in f', None),
        ("at all times", None),
    ]
    for line, frame in rows:
        assert parse_frames(line, "/p") == ([] if frame is None else [frame]), line


def test_test_files_are_recognized_by_name() -> None:
    tests = ["tests/a.py", "src/__tests__/a.ts", "src/a.test.ts", "a_spec.rb", "test_a.py", "conftest.py"]
    assert all(map(is_test_file, tests))
    assert not any(map(is_test_file, ["src/a.ts", "src/latest.py", "contest.py", "testing/a.py"]))
    assert relative_to_project("./a.ts", "/p") == relative_to_project("/p/a.ts", "/p/") == "a.ts"
    assert (
        is_same_file("/app/src/a.ts", "src/a.ts") and not is_same_file("/app/a.ts", "a.ts") and not is_same_file("", "")
    )
