"""Parse failures from the output of test runners."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.tasks.command_errors import parse_failures
from tests.factories import make_full_session

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


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (make_full_session(), ["told-error-type: told-message"]),
        (make_full_session()["executions"][0], ["told-error-type: told-message"]),
        (make_full_session()["executions"][0]["failures"], ["told-error-type: told-message"]),
        ({"error_type": "TypeError", "error_message": "x"}, ["TypeError: x"]),
        ({"executions": [{"failures": [{"error_type": "A"}]}, {"failures": []}, {}]}, ["A: "]),
        (JEST, ["TypeError: x is null", "SyntaxError: no"]),
        (PYTEST, ["KeyError: 'id'"]),
        ([], []),
        ({"testResults": "none", "tests": 7}, []),
    ],
)
def test_reports_of_all_test_runners_are_parsed(value: Any, expected: list[str]) -> None:
    found = parse_failures(json.dumps(value).encode())
    assert [f"{failure.error_type}: {failure.message}" for failure in found] == expected


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


ROOT = "/home/me/proj"
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
    return json.dumps({"testResults": [{"name": f"{ROOT}/{JEST_TEST}", "assertionResults": [test]}]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_jest("src/auth/validate.ts"), [(*SOURCE, "t", JEST_TEST)]),
        (_jest(f"{ROOT}/src/auth/validate.ts"), [(*SOURCE, "t", JEST_TEST)]),
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
    ],
)
def test_location_is_the_innermost_frame_of_the_project(text: str, expected: list[Any]) -> None:
    found = parse_failures(text.encode(), ROOT)
    assert [(one.file, one.line, one.function, one.test_name, one.test_file) for one in found] == expected
    assert all(one.stack_trace for one in found if one.file)


@given(st.binary(max_size=100) | st.text('{}[]:", testRsulE', max_size=40).map(str.encode))
@settings(max_examples=40)
def test_invalid_input_never_raises(data: bytes) -> None:
    parse_failures(data)
