"""Parse failures from the output of a test runner or a record of an agent.

JSON may be a failure, an execution, a debug session, or a report of Jest, Vitest or pytest (`pytest-json-report`). Any
other text is parsed as console output: each line with an error, and the test and stack frames around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from core.base.check_reports import COLOUR
from core.base.paths import relative_to_project
from core.base.regexes import lazy_regex
from core.files.file_reader import decode_json
from core.records.debug_sessions import Failure
from core.sources.debug_sessions import MAX_TEXT, read_failure, split_location
from core.sources.fields import Fields
from core.tasks.error_messages import (
    StackFrame,
    find_source_frame,
    follows_error,
    parse_frames,
    precedes_error,
    split_error,
)

_MAX_LINES: Final = 20_000  # maximum number of lines of console output that are parsed
_MAX_LINE: Final = 2_000
_PREFIX: Final = re.compile(
    r"\s*(?:E\s+|[^\w\s]\s+)?"
)  # prefix of a line with an error: `E   ` of pytest, `● ` of Jest
_REPORTED: Final = lazy_regex(r"E {3,}\S")  # a line that pytest reports
_ASSERT: Final = "assert "
_EXPECT: Final = ("expect(", "Error: expect(")
_FAILED: Final = frozenset({"failed", "error"})
_JEST_FAIL: Final = "FAIL"
_JEST_TEST: Final = "\N{BLACK CIRCLE} "
_NO_TEST: Final = "Test suite failed to run"
_TEST_SUFFIXES: Final = (".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".vue", ".svelte")
_PYTEST_TEST: Final = re.compile(r"_+ (\S.{0,500}) _+")
_PYTEST_PHASE: Final = lazy_regex(r"ERROR (?:at (?:setup|teardown) of|collecting) ")
_SECTION: Final = "==="
_SUMMARY: Final = ("FAILED ", "ERROR ")  # prefixes of the test IDs in the summary of pytest


def parse_failures(data: bytes, root: str = "") -> tuple[Failure, ...]:
    """Parse the failures in a report; for a session, those of its newest failing run.

    `root` is the absolute project folder. Files in it become project-relative paths. The location of a failure is that
    of the frame that `find_source_frame` selects.
    """
    decoded = decode_json(data)
    is_report = isinstance(decoded.value, dict | list)
    found = _parse_json(decoded.value) if is_report else _parse_text(data.decode("utf-8", "replace"))
    return tuple(_locate(failure, root) for failure in found)


def _locate(failure: Failure, root: str) -> Failure:
    test_file = relative_to_project(failure.test_file, root)
    own = [StackFrame(relative_to_project(failure.file, root), failure.line, failure.function)] if failure.file else []
    frames = [*own, *parse_frames(failure.stack_trace, root)]
    source = find_source_frame(frames, test_file) or next(iter(own), StackFrame(""))
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


def _parse_json(value: Any) -> Iterator[Failure]:
    fields = Fields("", value if isinstance(value, dict) else {"failures": value}, [])
    if "testResults" in fields.mapping:
        for _, suite in fields.objects("testResults"):
            yield from _parse_suite(suite)
    elif "tests" in fields.mapping:
        for _, test in fields.objects("tests"):
            yield from _parse_pytest(test)
    elif "executions" in fields.mapping:
        runs = [tuple(_parse_json(run.mapping)) for _, run in fields.objects("executions") if "failures" in run.mapping]
        yield from next(filter(None, reversed(runs)), ())
    elif "failures" in fields.mapping:
        for _, entry in fields.objects("failures"):
            if failure := read_failure(entry, tested=True):
                yield failure
    elif failure := read_failure(fields):
        yield failure


def _parse_suite(suite: Fields) -> Iterator[Failure]:
    """Parse a test file of Jest or Vitest: its failing tests, or why it did not run."""
    tests = [test for _, test in suite.objects("assertionResults") if test.text("status") == "failed"]
    file = suite.text("name")
    for test in tests:
        text = "\n".join(test.texts("failureMessages"))
        yield _make_failure(text, test_name=test.text("fullName", "title"), test_file=file)
    if not tests and suite.text("status") == "failed" and (message := suite.text("message")):
        found = list(_parse_text(message, file))
        yield from found or [_make_failure(message, test_file=file)]


def _parse_pytest(test: Fields) -> Iterator[Failure]:
    if test.text("outcome") not in _FAILED:
        return
    for phase in ("setup", "call", "teardown"):
        report = test.inside(phase)
        crash = report.inside("crash") if report is not None else None
        if report is not None and crash is not None:
            found = _make_failure(crash.text("message"), test_name=test.text("nodeid"))
            yield replace(
                found,
                file=crash.text("path"),
                line=crash.count("lineno"),
                test_file=found.test_name.partition("::")[0],
                stack_trace=report.text("longrepr")[:MAX_TEXT],
            )


def _make_failure(text: str, *, test_name: str = "", test_file: str = "") -> Failure:
    """Create a failure: the first line is the message, the whole text the trace."""
    text = COLOUR.sub("", text[:MAX_TEXT]).strip()
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


def _parse_text(text: str, test_file: str = "") -> Iterator[Failure]:
    found: list[Failure] = []
    summary: dict[str, str] = {}
    test_name, lines = "", list[str]()
    for raw in text.split("\n", _MAX_LINES)[:_MAX_LINES]:
        line = COLOUR.sub("", raw[:_MAX_LINE]).rstrip()
        heading = _parse_heading(line, test_file)
        if heading is not None:
            found += _parse_block(lines, test_name, test_file)
            test_file, test_name = heading
            lines = []
        elif line.startswith(_SUMMARY) and (".py" in line or "::" in line):
            test, _, message = line.split(" ", 1)[1].partition(" - ")
            summary[test] = message
        else:
            lines.append(line)
    found += _parse_block(lines, test_name, test_file)
    yield from _add_summary(found, summary)


def _parse_heading(line: str, test_file: str) -> tuple[str, str] | None:
    """Return file and name of the test in a heading; None if it is not a heading."""
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


def _parse_block(lines: Sequence[str], test_name: str, test_file: str) -> Iterator[Failure]:
    """Parse the failures in the output of one test, with the frames around them."""
    errors = [(n, failure) for n, line in enumerate(lines) if (failure := _parse_error(line))]
    first = next((n for n, line in enumerate(lines) if line.strip()), None)
    if not errors and test_name and test_file and first is not None:
        # Jest prints the message of an assertion without a type, directly below the name of the test.
        errors = [(first, _make_failure(lines[first].strip()))]
    if not errors and test_name and (place := next((n for n, line in enumerate(lines) if _REPORTED.match(line)), None)):
        errors = [(place, _make_failure(_PREFIX.sub("", lines[place], count=1)))]
    used = 0
    for number, (place, failure) in enumerate(errors):
        begin = next((n for n in range(used, place) if precedes_error(lines[n])), place)
        until = errors[number + 1][0] if number + 1 < len(errors) else len(lines)
        used = max((n + 1 for n in range(place + 1, until) if follows_error(lines[n])), default=place + 1)
        trace = "\n".join(lines[begin:used]).strip()[:MAX_TEXT] if used - begin > 1 else ""
        yield replace(failure, test_name=test_name[:MAX_TEXT], test_file=test_file[:MAX_TEXT], stack_trace=trace)


def _parse_error(line: str) -> Failure | None:
    text = _PREFIX.sub("", line, count=1)
    failure = _make_failure(text)
    is_error = failure.error_type and (not text.startswith((_ASSERT, *_EXPECT)) or line.startswith("E "))
    return failure if is_error else None


def _add_summary(found: Iterable[Failure], summary: dict[str, str]) -> Iterator[Failure]:
    """Set test IDs from the summary; then yield failures that only the summary has."""
    ids = {".".join(test.split("::")[1:]) or test: test for test in summary}
    used = set()
    for failure in found:
        test = ids.get(failure.test_name, "")
        used.add(test)
        yield replace(failure, test_name=test, test_file=test.partition("::")[0]) if test else failure
    for test, message in summary.items():
        if message and test not in used:
            yield _make_failure(message, test_name=test, test_file=test.partition("::")[0])
