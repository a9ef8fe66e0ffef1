"""Frames of a stack trace as Node, Vitest, Python and pytest print them, and the one in the project's own code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

_MAX_FRAMES: Final = 200
_MAX_LINE: Final = 2_000
_NODE: Final = "at "
_VITEST: Final = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT} "
_PLACE: Final = re.compile(r"(.{1,1000}?):(\d{1,9})(?::\d{1,9})?")
_PYTHON: Final = re.compile(r'\s{0,40}File "([^"]{1,1000})", line (\d{1,9})(?:, in (.{1,200}))?')
_PYTEST: Final = re.compile(r"([^\s:][^:]{0,1000}\.pyx?):(\d{1,9}):(?: (?:in (\S{1,200})|([A-Za-z_][\w.]{0,200})))?")
"""`a.py:7: in f` and `a.py:7:` lead to an error; `a.py:7: TypeError` stands below it."""
_DEF: Final = re.compile(r"(?:>\s{0,40})?\s{0,200}(?:async )?def (\w{1,200})\(.{0,1000}")
_TEST_FOLDERS: Final = frozenset({"test", "tests", "__tests__", "__mocks__", "spec", "specs", "e2e"})
_TEST_NAME: Final = re.compile(r"(?:test_.{0,200}|conftest|.{0,200}_test|.{0,200}[._-](?:test|spec))\.\w{1,8}")
_FOREIGN: Final = ("/node_modules/", "/site-packages/", "/dist-packages/", "/lib/python", "/internal/")


class StackFrame(NamedTuple):
    """One call: the file as the project names it, the line, and the function if it has a name."""

    file: str
    line: int | None = None
    function: str = ""


def parse_frames(trace: str, root: str = "") -> list[StackFrame]:
    """The frames of a trace, innermost first, at most so many; `root`: the folder of the project, absolute."""
    node: list[StackFrame] = []
    python: list[StackFrame] = []
    within = ""
    for line in trace.split("\n"):
        line = line[:_MAX_LINE].rstrip()
        if (frame := _of_node(line)) is not None:
            node.append(frame)
        elif (frame := _of_python(line, within)) is not None:
            python.append(frame)
            within = ""
        elif defined := _DEF.fullmatch(line):
            within = defined[1]
    found = node or python[::-1]
    return [frame._replace(file=project_path(frame.file, root)) for frame in found[:_MAX_FRAMES]]


def leads(line: str) -> bool:
    """Whether a line belongs to the frames that Python and pytest print above an error."""
    found = _PYTEST.fullmatch(line)
    return (found is not None and found[4] is None) or any(form.fullmatch(line) for form in (_PYTHON, _DEF))


def follows(line: str) -> bool:
    """Whether a line is a frame that stands below its error."""
    found = _PYTEST.fullmatch(line)
    return (found is not None and found[4] is not None) or _of_node(line) is not None


def _of_node(line: str) -> StackFrame | None:
    text = line.strip()
    if text.startswith(_NODE):
        function, place = "", text.removeprefix(_NODE).removeprefix("async ")
        if place.endswith(")"):
            function, _, place = place[:-1].rpartition(" (")
    elif text.startswith(_VITEST):
        function, _, place = text.removeprefix(_VITEST).rpartition(" ")
    else:
        return None
    told = _PLACE.fullmatch(place.removeprefix("file://"))
    if told is None or "://" in told[1] or told[1].startswith(("node:", "<")):
        return None
    function = function.partition(" [as ")[0].removeprefix("new ").strip()
    return StackFrame(told[1], int(told[2]), "" if "<" in function else function)


def _of_python(line: str, within: str) -> StackFrame | None:
    told = _PYTHON.fullmatch(line) or _PYTEST.fullmatch(line)
    if told is None or told[1].startswith("<"):
        return None
    function = told[3] or within
    return StackFrame(told[1], int(told[2]), "" if "<" in function else function)


def project_path(file: str, root: str) -> str:
    """A file as the project names it: from `root` on where it is inside, else as it was told."""
    path = file.replace("\\", "/") if "\\" in file else file
    if root and path.startswith(f"{root.rstrip('/')}/"):
        path = path[len(root.rstrip("/")) + 1 :]
    return path.removeprefix("./")


def is_test_file(file: str) -> bool:
    """Whether a file holds tests, by its name or by the folder that it lies in."""
    *folders, name = file.split("/")
    return not _TEST_FOLDERS.isdisjoint(folders) or _TEST_NAME.fullmatch(name[:400]) is not None


def find_source_frame(frames: Sequence[StackFrame], test_file: str = "") -> StackFrame | None:
    """The innermost frame in the project's own code, else in its tests, else in a file that may be of the project.

    An absolute file outside of it may be one where the tests ran elsewhere, such as in a container.
    """
    own = (frame for frame in frames if not any(part in f"/{frame.file}" for part in _FOREIGN))
    return min(own, key=lambda frame: _distance(frame.file, test_file), default=None)


def _distance(file: str, test_file: str) -> tuple[bool, bool]:
    elsewhere = file.startswith(("/", "../")) or file[1:2] == ":"
    return elsewhere, file == test_file or is_test_file(file)


def same_file(told: str, known: str) -> bool:
    """Whether both mean one file; `told` may be absolute, in a project that lies elsewhere."""
    return bool(told) and (told == known or ("/" in known and told.endswith(f"/{known}")))
