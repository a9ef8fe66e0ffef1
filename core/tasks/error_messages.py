"""Parse error messages and stack traces, and derive regexes for similar messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from core.base.paths import relative_to_project
from core.base.regexes import lazy_regex
from core.base.text import MAX_PATTERN, safe_matcher

_MAX_MESSAGE: Final = 400  # number of characters at the beginning of a message that are used
_MIN_LETTERS: Final = 6  # minimum number of literal letters in a regex; fewer match too many messages

_PART: Final = re.compile(
    r"(?P<quoted>(?<![\w'])'[^']*'(?!\w)|\"[^\"]*\"|`[^`\n']*[`']|`[^`]*`)"
    r"|(?P<path>(?:[A-Za-z]:)?(?:[\w.@~+-]*[/\\])+[\w.@~+-]*(?::[0-9]+){0,2}"
    r"|(?:[\w-]+\.)+(?:[cm]?[jt]sx?|pyi?|go|rs|java|kt|rb|php|cs|cpp|cc|c|h|sql|json|ya?ml|toml|md)(?![\w-])(?::[0-9]+){0,2})"
    r"|(?P<id>(?<![\w-])(?:0[xX][0-9a-fA-F]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,64})(?![\w-]))"
    r"|(?P<number>(?<![\w.])[0-9]+(?:[.,][0-9]+)*)"
)
_SYMBOL: Final = lazy_regex(r"[A-Za-z_$][\w$.:<>\[\]()*&,-]{0,100}(?: \| [\w.\[\]]{1,60}){0,5}|[^\w\s]{1,3}")
"""A quoted text that is an identifier, a type such as `list[str] | None`, or an operator."""
_FOLDER: Final = lazy_regex(r".(?:/|[A-Za-z]:[/\\])(?:[^\s'\"`]*[/\\])?(?=[^\s/\\'\"`])")
"""The folder of an absolute path in quotes, which differs between machines and runs."""
_SPECIAL: Final = frozenset("\\.^$*+?{}[]|()")
_FORMS: Final[dict[str | None, str]] = {"path": r"\S+", "id": r"[\w-]+", "number": r"\d+"}
_NAME: Final = re.compile(r"(?:Uncaught\s+)?(?:\w{1,40}\.){0,6}([A-Z]\w{0,60}(?:Error|Exception))(?:\s*\[\w+\])?:\s*")
_PATH: Final = r"[\w.@~+/\\:-]{0,200}\.[A-Za-z]{1,6}(?::\d{1,9}){0,2}"
_LOCATION: Final = re.compile(rf"\s+(?:(?:at|in|from)\s+({_PATH})|\(({_PATH})\))$")
_MAX_FRAMES: Final = 200
_MAX_LINE: Final = 2_000
_NODE: Final = "at "
_VITEST: Final = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT} "
_FRAME_LOCATION: Final = lazy_regex(r"(.{1,1000}?):(\d{1,9})(?::\d{1,9})?")
_PYTHON: Final = re.compile(r'\s{0,40}File "([^"]{1,1000})", line (\d{1,9})(?:, in (.{1,200}))?')
_PYTEST: Final = re.compile(r"([^\s:][^:]{0,1000}\.pyx?):(\d{1,9}):(?: (?:in (\S{1,200})|([A-Za-z_][\w.]{0,200})))?")
"""pytest prints `a.py:7: in f` and `a.py:7:` before an error, and `a.py:7: TypeError` after it."""
_DEF: Final = re.compile(r"(?:>\s{0,40})?\s{0,200}(?:async )?def (\w{1,200})\(.{0,1000}")
_TEST_FOLDERS: Final = frozenset({"test", "tests", "__tests__", "__mocks__", "spec", "specs", "e2e"})
_TEST_NAME: Final = re.compile(r"(?:test_.{0,200}|conftest|.{0,200}_test|.{0,200}[._-](?:test|spec))\.\w{1,8}")
_LIBRARIES: Final = ("/node_modules/", "/site-packages/", "/dist-packages/", "/lib/python", "/internal/")


class Names(Enum):
    """Which quoted texts of a message a regex keeps literally."""

    NONE = "none"
    SYMBOLS = "symbols"  # identifiers, types and operators, but not values
    ALL = "all"


def generalize_message(message: str, *, names: Names = Names.NONE) -> str:
    """Return an RE2 regex that matches similar messages; "" if it is too general.

    See docs/extraction.md#triggers. Uses only the first line.
    """
    text = message.strip().split("\n", 1)[0].rstrip()[:_MAX_MESSAGE]
    pattern, letters = "", 0
    for literal, piece in _pieces(text, names):
        if len(pattern) + len(piece) > MAX_PATTERN:
            break
        pattern += piece
        letters += sum(map(str.isalpha, literal))
    pattern = pattern.strip()
    if letters < _MIN_LETTERS:
        return ""
    compiled = safe_matcher(pattern)
    return pattern if compiled.problem is None and compiled.matches(message) else ""


def _pieces(text: str, names: Names) -> Iterator[tuple[str, str]]:
    end = 0
    for found in _PART.finditer(text):
        yield from _literal(text[end : found.start()])
        end = found.end()
        if found.lastgroup != "quoted":
            yield (
                "",
                "[0-9.,]+" if found.lastgroup == "number" and not found[0].isdecimal() else _FORMS[found.lastgroup],
            )
        elif names is Names.ALL or (names is Names.SYMBOLS and _SYMBOL.fullmatch(found[0][1:-1])):
            if folder := _FOLDER.match(found[0]):
                yield "", f"{found[0][0]}\\S*/"
            yield from _literal(found[0][folder.end() :] if folder else found[0])
        else:
            yield "", f"{found[0][0]}.*{found[0][-1]}"
    yield from _literal(text[end:])


def _literal(text: str) -> Iterator[tuple[str, str]]:
    """Yield (word, escaped word), so that a long regex can be cut between words."""
    for word in re.split(r"(?<= )", text):
        yield word, "".join(map(_escape, word))


def _escape(char: str) -> str:
    if char in _SPECIAL:
        return f"\\{char}"
    # Control and invisible characters must not occur in the regex, since it is shown to people.
    return char if char.isprintable() else "."


def location_hint(file: str, function: str) -> str:
    """Return `*.ts:function`; `*.ts:stem*` (of the file) without a function; or ""."""
    path = PurePosixPath(file[-_MAX_MESSAGE:].replace("\\", "/"))
    ending = path.suffix if re.fullmatch(r"\.\w{1,10}", path.suffix) else ""
    name = re.fullmatch(r"[\w$.-]{1,80}", function)
    stem = re.match(r"[\w$-]{1,80}", path.stem)
    if not ending or not (name or stem):
        return ""
    return f"*{ending}:{name[0]}" if name else f"*{ending}:{stem[0]}*" if stem else ""


def split_error(text: str) -> tuple[str, str, str]:
    """Split `TypeError: x is null at a.ts:7` into name, message and location."""
    name = ""
    if found := _NAME.match(text):
        name, text = found[1], text[found.end() :]
    first_line = text.split("\n", 1)[0].rstrip()
    located = _LOCATION.search(first_line)
    if located:
        return name, first_line[: located.start()], located[1] or located[2]
    return name, text, ""


class StackFrame(NamedTuple):
    """Frame of a stack trace; the path is project-relative if it is in the project."""

    file: str
    line: int | None = None
    function: str = ""


def parse_frames(trace: str, root: str = "") -> list[StackFrame]:
    """Parse the innermost 200 frames of a trace; `root` is the project folder."""
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
    """Whether a line is a frame that Python prints above its error."""
    found = _PYTEST.fullmatch(line)
    return (found is not None and found[4] is None) or any(form.fullmatch(line) for form in (_PYTHON, _DEF))


def follows_error(line: str) -> bool:
    """Whether a line is a frame that pytest or Node prints below its error."""
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
    """Whether a file contains tests, judged by its path."""
    *folders, name = file.split("/")
    return not _TEST_FOLDERS.isdisjoint(folders) or _TEST_NAME.fullmatch(name[:400]) is not None


def find_source_frame(frames: Sequence[StackFrame], test_file: str = "") -> StackFrame | None:
    """Return the innermost frame in the project's code, or in its tests, or outside.

    Paths outside of the project may be copies of its files if the tests ran elsewhere, such as in a container.
    """

    def distance(frame: StackFrame) -> tuple[bool, bool]:
        is_outside = frame.file.startswith(("/", "../")) or frame.file[1:2] == ":"
        return is_outside, frame.file == test_file or is_test_file(frame.file)

    own = (frame for frame in frames if not any(part in f"/{frame.file}" for part in _LIBRARIES))
    return min(own, key=distance, default=None)


def is_same_file(path: str, known: str) -> bool:
    """Whether two paths are the same file, maybe in different copies of the project."""
    return bool(path) and (path == known or ("/" in known and path.endswith(f"/{known}")))
