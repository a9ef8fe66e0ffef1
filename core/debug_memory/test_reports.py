"""What a test runner or an agent has written about a failing run, as failures.

JSON: a failure, an execution or a session of (4); the report of Jest and Vitest (`--json`, `--reporter=json`), or of
pytest (`pytest-json-report`). Anything else is read as what a runner prints: each line that names an error, with the
test and the frames that Jest, Vitest and pytest print around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from core.debug_memory.error_text import split_error
from core.debug_memory.frames import StackFrame, find_source_frame, follows, leads, parse_frames, project_path
from core.records.debug_sessions import Failure
from core.sources.debug_sessions import MAX_TEXT, read_failure, split_location
from core.sources.fields import Fields
from core.storage.json_reader import decode_json

_MAX_LINES: Final = 20_000
"""Lines of a text that are looked at."""
_MAX_LINE: Final = 2_000
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]{0,20}m")
_MARK: Final = re.compile(r"\s*(?:E\s+|[^\w\s]\s+)?")
"""What stands before an error in what a runner prints: `E   ` of pytest, `● ` of Jest."""
_ASSERT: Final = "assert "
_EXPECT: Final = ("expect(", "Error: expect(")
_FAILED: Final = frozenset({"failed", "error"})
_JEST_FAIL: Final = "FAIL"
_JEST_TEST: Final = "\N{BLACK CIRCLE} "
_NO_TEST: Final = "Test suite failed to run"
_TEST_SUFFIXES: Final = (".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".vue", ".svelte")
_PYTEST_TEST: Final = re.compile(r"_+ (\S.{0,500}) _+")
_PYTEST_PHASE: Final = re.compile(r"ERROR (?:at (?:setup|teardown) of|collecting) ")
_SECTION: Final = "==="
_SUMMED_UP: Final = ("FAILED ", "ERROR ")
"""What stands before the id of a test in the summary of pytest."""


def parse_failures(data: bytes, root: str = "") -> tuple[Failure, ...]:
    """The failures that `data` tells of, in their order; of a session those of its newest failing run.

    Args:
        data: What a runner or an agent has written.
        root: The folder of the project, absolute: files inside it are named from there. A failure that names no file
            of the project comes from the innermost of its frames that is in one.
    """
    decoded = decode_json(data)
    found = _in(decoded.value) if isinstance(decoded.value, dict | list) else _in_text(data.decode("utf-8", "replace"))
    return tuple(_placed(failure, root) for failure in found)


def _placed(failure: Failure, root: str) -> Failure:
    """The failure with the place that its trace tells, and with files as the project names them."""
    test_file = project_path(failure.test_file, root)
    told = [StackFrame(project_path(failure.file, root), failure.line, failure.function)] if failure.file else []
    frames = [*told, *parse_frames(failure.stack_trace, root)]
    source = find_source_frame(frames, test_file) or next(iter(told), StackFrame(""))
    function = source.function or next((one.function for one in frames if one[:2] == source[:2] and one.function), "")
    test = next((frame for frame in frames if frame.file == test_file), None)
    return replace(
        failure,
        file=source.file,
        line=source.line,
        function=function,
        test_file=test_file,
        test_line=test.line if failure.test_line is None and test is not None else failure.test_line,
    )


def _in(value: Any) -> Iterator[Failure]:
    fields = Fields("", value if isinstance(value, dict) else {"failures": value}, [])
    if "testResults" in fields.mapping:
        for _, suite in fields.objects("testResults"):
            yield from _of_suite(suite)
    elif "tests" in fields.mapping:
        for _, test in fields.objects("tests"):
            yield from _of_test(test)
    elif "executions" in fields.mapping:
        runs = [tuple(_in(run.mapping)) for _, run in fields.objects("executions") if "failures" in run.mapping]
        yield from next(filter(None, reversed(runs)), ())
    elif "failures" in fields.mapping:
        for _, entry in fields.objects("failures"):
            if failure := read_failure(entry, tested=True):
                yield failure
    elif failure := read_failure(fields):
        yield failure


def _of_suite(suite: Fields) -> Iterator[Failure]:
    """One file of Jest or Vitest: its failing tests, or why it could not be run."""
    tests = [test for _, test in suite.objects("assertionResults") if test.text("status") == "failed"]
    file = suite.text("name")
    for test in tests:
        text = "\n".join(test.texts("failureMessages"))
        yield _failure(text, test_name=test.text("fullName", "title"), test_file=file)
    if not tests and suite.text("status") == "failed" and (message := suite.text("message")):
        told = list(_in_text(message, file))
        yield from told or [_failure(message, test_name="", test_file=file)]


def _of_test(test: Fields) -> Iterator[Failure]:
    """One test of pytest, if it failed in any of its phases."""
    if test.text("outcome") in _FAILED:
        for phase in ("setup", "call", "teardown"):
            told = test.inside(phase)
            crash = told.inside("crash") if told is not None else None
            if told is not None and crash is not None:
                found = _failure(crash.text("message"), test_name=test.text("nodeid"), test_file="")
                file, _, _ = found.test_name.partition("::")
                yield Failure(
                    error_type=found.error_type,
                    message=found.message,
                    file=crash.text("path"),
                    line=crash.count("lineno"),
                    test_name=found.test_name,
                    test_file=file,
                    stack_trace=told.text("longrepr")[:MAX_TEXT],
                )


def _failure(text: str, *, test_name: str, test_file: str) -> Failure:
    """A failure of which a runner tells in a text: its first line is the message, all of it the trace."""
    text = _COLOUR.sub("", text[:MAX_TEXT]).strip()
    first = text.split("\n", 1)[0]
    name, message, location = split_error(first)
    file, line = split_location(location)
    if not name and first.startswith((_ASSERT, *_EXPECT)):
        name, message = "AssertionError", message.removeprefix("Error: ")
    return Failure(
        error_type=name,
        message=message,
        file=file,
        line=line,
        test_name=test_name[:MAX_TEXT],
        test_file=test_file[:MAX_TEXT],
        stack_trace=text if text != first else "",
    )


def _in_text(text: str, test_file: str = "") -> Iterator[Failure]:
    """The failures in what a runner prints, perhaps of one file of tests."""
    found: list[Failure] = []
    summed_up: dict[str, str] = {}
    test_name, lines = "", list[str]()
    for raw in text.split("\n", _MAX_LINES)[:_MAX_LINES]:
        line = _COLOUR.sub("", raw[:_MAX_LINE]).rstrip()
        begun = _beginning(line, test_file)
        if begun is not None:
            found += _in_block(lines, test_name, test_file)
            test_file, test_name = begun
            lines = []
        elif line.startswith(_SUMMED_UP) and (".py" in line or "::" in line):
            test, _, message = line.split(" ", 1)[1].partition(" - ")
            summed_up[test] = message
        else:
            lines.append(line)
    found += _in_block(lines, test_name, test_file)
    yield from _named_in_full(found, summed_up)


def _beginning(line: str, test_file: str) -> tuple[str, str] | None:
    """File and name of the test whose failure is told from this line on, as far as it is known; None for no such
    line."""
    text = line.strip()
    if text.startswith(_JEST_TEST):
        name = text.removeprefix(_JEST_TEST).strip()
        return test_file, "" if name == _NO_TEST else name
    label, _, rest = text.partition(" ")
    if label == _JEST_FAIL:
        file, _, name = rest.strip().partition(" > ")
        file = next((word for word in file.split() if word.endswith(_TEST_SUFFIXES)), "")
        return (file, name.strip()) if file else None
    if line.startswith(_SECTION):
        return "", ""
    pytest = _PYTEST_TEST.fullmatch(line)
    return ("", _PYTEST_PHASE.sub("", pytest[1])) if pytest and pytest[1].strip("_ ") else None


def _in_block(lines: Sequence[str], test_name: str, test_file: str) -> Iterator[Failure]:
    """What some lines tell of one test, or of nobody knows which: each line that names an error, with its frames."""
    errors = [(place, failure) for place, line in enumerate(lines) if (failure := _error_in(line))]
    first = next((place for place, line in enumerate(lines) if line.strip()), None)
    if not errors and test_name and test_file and first is not None:
        # Jest names no type of an assertion: the message stands right below the name of the test.
        errors = [(first, _failure(lines[first].strip(), test_name="", test_file=""))]
    taken = 0
    for number, (place, failure) in enumerate(errors):
        begin = next((n for n in range(taken, place) if leads(lines[n])), place)
        until = errors[number + 1][0] if number + 1 < len(errors) else len(lines)
        end = max((n + 1 for n in range(place + 1, until) if follows(lines[n])), default=place + 1)
        taken = end
        trace = "\n".join(lines[begin:end]).strip()[:MAX_TEXT] if end - begin > 1 else ""
        yield replace(failure, test_name=test_name[:MAX_TEXT], test_file=test_file[:MAX_TEXT], stack_trace=trace)


def _error_in(line: str) -> Failure | None:
    """The error that a line names."""
    told = _MARK.sub("", line, count=1)
    failure = _failure(told, test_name="", test_file="")
    named = failure.error_type and (not told.startswith((_ASSERT, *_EXPECT)) or line.startswith("E "))
    return failure if named else None


def _named_in_full(found: Iterable[Failure], summed_up: dict[str, str]) -> Iterator[Failure]:
    """The failures with the ids that the summary of pytest has for their tests, then what only the summary tells."""
    ids = {".".join(test.split("::")[1:]) or test: test for test in summed_up}
    told = set()
    for failure in found:
        test = ids.get(failure.test_name, "")
        told.add(test)
        file = test.partition("::")[0]
        yield replace(failure, test_name=test, test_file=file) if test else failure
    for test, message in summed_up.items():
        if message and test not in told:
            yield _failure(message, test_name=test, test_file=test.partition("::")[0])
