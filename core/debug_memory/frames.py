"""Parse stack traces of Node, Vitest, Python and pytest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from core.config.paths import relative_to_project

_MAX_FRAMES: Final = 200
_MAX_LINE: Final = 2_000
_NODE: Final = "at "
_VITEST: Final = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT} "
_FRAME_LOCATION: Final = re.compile(r"(.{1,1000}?):(\d{1,9})(?::\d{1,9})?")
_PYTHON: Final = re.compile(r'\s{0,40}File "([^"]{1,1000})", line (\d{1,9})(?:, in (.{1,200}))?')
_PYTEST: Final = re.compile(r"([^\s:][^:]{0,1000}\.pyx?):(\d{1,9}):(?: (?:in (\S{1,200})|([A-Za-z_][\w.]{0,200})))?")
"""`a.py:7: in f` and `a.py:7:` come before an error; `a.py:7: TypeError` comes after it."""
_DEF: Final = re.compile(r"(?:>\s{0,40})?\s{0,200}(?:async )?def (\w{1,200})\(.{0,1000}")
_TEST_FOLDERS: Final = frozenset({"test", "tests", "__tests__", "__mocks__", "spec", "specs", "e2e"})
_TEST_NAME: Final = re.compile(r"(?:test_.{0,200}|conftest|.{0,200}_test|.{0,200}[._-](?:test|spec))\.\w{1,8}")
_LIBRARIES: Final = ("/node_modules/", "/site-packages/", "/dist-packages/", "/lib/python", "/internal/")


class StackFrame(NamedTuple):
    """One call; the file is relative to the project if it is inside."""

    file: str
    line: int | None = None
    function: str = ""


def parse_frames(trace: str, root: str = "") -> list[StackFrame]:
    """The innermost 200 frames of a trace; `root` is the absolute project folder."""
    node: list[StackFrame] = []
    python: list[StackFrame] = []
    function = ""
    for line in trace.split("\n"):
        line = line[:_MAX_LINE].rstrip()
        if (frame := _parse_node_frame(line)) is not None:
            node.append(frame)
        elif (frame := _parse_python_frame(line, function)) is not None:
            python.append(frame)
            function = ""
        elif definition := _DEF.fullmatch(line):
            function = definition[1]
    found = node or python[::-1]
    return [frame._replace(file=relative_to_project(frame.file, root)) for frame in found[:_MAX_FRAMES]]


def precedes_error(line: str) -> bool:
    """Whether a line is one of the frames that Python prints above an error."""
    found = _PYTEST.fullmatch(line)
    return (found is not None and found[4] is None) or any(form.fullmatch(line) for form in (_PYTHON, _DEF))


def follows_error(line: str) -> bool:
    """Whether a line is a frame that is printed below its error."""
    found = _PYTEST.fullmatch(line)
    return (found is not None and found[4] is not None) or _parse_node_frame(line) is not None


def _parse_node_frame(line: str) -> StackFrame | None:
    text = line.strip()
    if text.startswith(_NODE):
        function, location = "", text.removeprefix(_NODE).removeprefix("async ")
        if location.endswith(")"):
            function, _, location = location[:-1].rpartition(" (")
    elif text.startswith(_VITEST):
        function, _, location = text.removeprefix(_VITEST).rpartition(" ")
    else:
        return None
    found = _FRAME_LOCATION.fullmatch(location.removeprefix("file://"))
    if found is None or "://" in found[1] or found[1].startswith(("node:", "<")):
        return None
    function = function.partition(" [as ")[0].removeprefix("new ").strip()
    return StackFrame(found[1], int(found[2]), "" if "<" in function else function)


def _parse_python_frame(line: str, enclosing_function: str) -> StackFrame | None:
    found = _PYTHON.fullmatch(line) or _PYTEST.fullmatch(line)
    if found is None or found[1].startswith("<"):
        return None
    function = found[3] or enclosing_function
    return StackFrame(found[1], int(found[2]), "" if "<" in function else function)


def is_test_file(file: str) -> bool:
    """Whether a file contains tests, judged by its name and its folders."""
    *folders, name = file.split("/")
    return not _TEST_FOLDERS.isdisjoint(folders) or _TEST_NAME.fullmatch(name[:400]) is not None


def find_source_frame(frames: Sequence[StackFrame], test_file: str = "") -> StackFrame | None:
    """The innermost frame in the project's code, else in its tests, else outside.

    A file outside may belong to the project all the same if the tests ran elsewhere, such as in a container.
    """
    own = (frame for frame in frames if not any(part in f"/{frame.file}" for part in _LIBRARIES))
    return min(own, key=lambda frame: _distance(frame.file, test_file), default=None)


def _distance(file: str, test_file: str) -> tuple[bool, bool]:
    is_outside = file.startswith(("/", "../")) or file[1:2] == ":"
    return is_outside, file == test_file or is_test_file(file)


def is_same_file(path: str, known: str) -> bool:
    """Whether both name one file, perhaps in another copy of the project."""
    return bool(path) and (path == known or ("/" in known and path.endswith(f"/{known}")))
