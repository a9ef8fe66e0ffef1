"""Find errors in output of failed commands: tests, compilers, linters, scripts.

The hook that answers a failed command and the extraction both use this, so that an error is always parsed the same
way. Reports of pytest, Jest and Vitest, and tracebacks, are parsed by `core.tasks.command_errors`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise, takewhile
from typing import Any, Final

from msgspec.structs import replace

from core.base.paths import relative_to_project
from core.base.regexes import lazy_regex
from core.base.shell_commands import COLOUR
from core.files.file_reader import decode_json
from core.records.debug_sessions import Failure
from core.sources.debug_sessions import MAX_TEXT, read_failure, split_location
from core.sources.normalize import Fields
from core.tasks.error_messages import (
    StackFrame,
    find_source_frame,
    follows_error,
    is_test_file,
    parse_frames,
    precedes_error,
    split_error,
)
from core.tasks.log_summary import pick_error_line

MAX_ERRORS: Final = 20  # maximum number of errors of one command
_MAX_LINES: Final = 2_000
_MAX_LINE: Final = 1_000
_MAX_BLOCK: Final = 59  # lines below the header of a failed test that are searched
_MAX_TEXT: Final = 40_000
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_EXIT: Final = re.compile(r"(?:Exit code|Process exited with code|Exit code:) ?-?\d{1,6}$", re.IGNORECASE)
_TAP: Final = re.compile(r"(?P<indent>\s{0,40})not ok \d{1,6}(?: - | )?(?P<name>.{0,300})$")
_TAP_KEY: Final = lazy_regex(r"\s{0,40}(?P<key>location|failureType|error|code|name|stack): ?(?P<value>.{0,900})$")
_TAP_FILE: Final = lazy_regex(r"(?:at |\(in test file )(\S{1,300}?),? line \d")
_UNITTEST: Final = re.compile(r"(?:FAIL|ERROR): (?P<name>[\w.]{1,200}) \((?P<place>[\w.]{1,300})\)")
_GO: Final = re.compile(r"\s{0,40}--- FAIL: (?P<name>\S{1,200})")
_GO_LINE: Final = lazy_regex(r"\s{0,40}(?P<file>\S{1,200}\.go):(?P<line>\d{1,7}): (?P<message>.{1,900})")
_RUST: Final = re.compile(r"---- (?P<name>\S{1,200}) stdout ----")
_PANIC: Final = lazy_regex(r"thread '.{1,200}'.{0,40} panicked at (?P<file>[^:]{1,300}):(?P<line>\d{1,7}):\d{1,7}:?$")
_NUMBERED: Final = re.compile(r"\s{1,8}\d{1,4}\) (?P<name>.{1,300})$")
_MOCHA: Final = re.compile(r"\s{0,8}\d{1,6} failing\b")
_SPEC_PLACE: Final = lazy_regex(r"test at (?P<file>.{1,300}):(?P<line>\d{1,7}):\d{1,7}$")
_SPEC_TEST: Final = lazy_regex(r"\s{0,40}\N{HEAVY MULTIPLICATION X} (?P<name>.{1,300}?)(?: \([\d.]{1,20}ms\))?$")
_RSPEC: Final = re.compile(r"\s{1,20}Failure/Error: (?P<code>.{1,300})$")
_MINITEST: Final = re.compile(r"(?P<name>[\w:]{1,200}#\w{1,200}) \[(?P<file>[^\]:]{1,300}):(?P<line>\d{1,7})\]:$")
_PHPUNIT: Final = re.compile(r"\d{1,4}\) (?P<name>[\w\\]{1,200}::\w{1,200})")
_DOCTEST: Final = re.compile(r'File "(?P<file>[^"]{1,300})", line \d{1,7}, in (?P<name>[\w.]{1,200})$')
_DOTNET: Final = re.compile(r"\s{0,8}(?:Failed|\[FAIL\]) (?P<name>[\w.]{1,300})(?:\(.{0,200}\))? \[")
_SHELLCHECK_PLACE: Final = re.compile(r"In (?P<file>\S{1,300}) line \d{1,7}:$")
_SHELLCHECK: Final = lazy_regex(r"\s{0,200}\^.{0,200}? (?P<code>SC\d{4}) \(\w{1,10}\): (?P<message>.+)")
_BARE: Final = lazy_regex(r"[A-Za-z_][\w.]{0,100}(?:Error|Exception|Warning|Interrupt|Exit)")
_LEGEND: Final = lazy_regex(r"[+-] \w{1,20} [+-] \w{1,20}$")
_JAVA_FRAME: Final = lazy_regex(
    r"\s{0,20}at (?!java\.|javax\.|jdk\.|sun\."
    r"|org\.junit)(?P<function>[\w.$<>]{1,300})\((?P<file>\w{1,200}\.\w{1,8}):\d{1,7}\)"
)
_PYTHON_FRAME: Final = re.compile(r'\s{0,40}File "[^"]{1,300}", line \d{1,7}')
_FRAME: Final = lazy_regex(r"\s{0,40}(?:at |from |\d{1,4}: |# )")
_IN_FUNCTION: Final = lazy_regex(
    r"(?:\S{1,40}: )?(?P<file>[^\s:]{1,300}):? [Ii]n (?:member )?function [\u2018'`\"](?P<name>.{1,200}?)[\u2019'\"]:?$"
)
_FILE: Final = r"(?P<file>[^\s:()\[\]'\"][^:()\n'\"]{0,299})"
_AT: Final = rf"{_FILE}[:(](?P<line>\d{{1,7}})(?:[:,]\d{{1,7}})?\)?"
_DIAGNOSTICS: Final = tuple(
    re.compile(form)
    for form in (
        rf"(?:ERROR: |\[ERROR\] )?{_AT}:? ?(?:- )?(?:fatal )?error(?: (?P<code>[A-Z]{{1,5}}\d{{1,6}}))?:"
        rf" (?P<message>.+)",
        rf"{_FILE}:(?P<line>\d{{1,7}}):\d{{1,7}}: (?P<code>[A-Z]{{1,5}}\d{{2,5}}):? (?P<message>.+)",
        r"\S{1,200}: (?P<file>[^\s:]{1,300}):(?P<line>\d{1,7}): (?P<function>.{1,200}?): (?P<message>Assertion"
        r" .+ failed\.)",
        r"(?:\S{1,200}: )?(?P<file>\S{1,300}\.\w{1,4}):\(\.\w{1,20}\+0x[0-9a-f]{1,16}\): (?P<message>.+)",
        r"(?:\S{0,200}/)?ld: (?:error: )?(?P<message>(?:undefined|multiple|duplicate|cannot) .+)",
        rf"(?:vet: )?{_FILE}\.go:(?P<line>\d{{1,7}})(?::\d{{1,7}})?: (?P<message>.+)",
        r"(?P<file>\S{1,300}?):(?P<line>\d{1,7}):in [`'](?P<function>[^']{1,200})': (?P<message>.+)"
        r" \((?P<name>[\w:]+)\)$",
        r"(?:PHP )?(?:Fatal|Parse) error: {1,4}(?:Uncaught )?(?P<message>.+?) in (?P<file>\S{1,300}?)(?: on line"
        r" |:)(?P<line>\d{1,7})",
        r"\[ERROR\] {1,4}(?P<function>[\w.$]{1,200}):(?P<line>\d{1,7})(?:->\S{1,200})? (?P<message>.+)",
        r"(?P<file>[^\s:]{1,300}): (?:line )?(?P<line>\d{1,7}): (?P<message>.+)",
        r"(?:awk|gawk|mawk|sed|jq|sqlite3|perl|ruby|tar|cp|mv|rm|cat|ls|cd|mkdir|ln|find|grep|git"
        r"|curl): (?P<message>.+)",
        r"(?P<message>.{3,400}) at (?P<file>\S{1,300}) line (?P<line>\d{1,7})[.,]",
        r"(?:Parse |Runtime )?[Ee]rror(?:: near line (?P<line>\d{1,7}): | near line \d{1,7}: )(?P<message>.+)",
        r"(?:Exception in thread \"[^\"]{0,100}\" |Caused by: |Uncaught (?:exception )?|Unhandled exception[.:] )"
        r"(?P<message>[\w.$]{1,200}(?:Exception|Error)\b.*)",
        r"SUMMARY: (?P<message>\w{1,40}Sanitizer: \S{1,80}) (?P<file>\S{1,300}?):(?P<line>\d{1,7})(?::\d{1,7})?"
        r" in (?P<function>\S{1,200})",
        r"(?:==\d{1,9}==)?ERROR: (?P<message>\w{1,40}Sanitizer: .+)",
        r"(?:\S{1,40}: )?(?P<file>[^\s:]{1,300}\.\w{1,5}):(?P<line>\d{1,7}): (?P<message>(?!in \S{1,100}$).+)",
        r"(?:panic|fatal error): (?P<message>.+)",
        r"(?:.{0,200}[ :(])?(?P<message>Segmentation fault|Bus error|Floating point exception)\b",
        r"g?make(?:\[\d{1,3}\])?: \*\*\* (?P<message>(?:No rule|missing|commands|Recursive).+)",
    )
)
"""Forms of one-line diagnostics, the most specific first."""
_CODED: Final = lazy_regex(
    r"(?:error(?:\[(?P<number>E\d{1,5})\])?: |(?P<code>[A-Z]{1,5}\d{2,5}) (?:\[\*\] )?)(?P<message>.+)"
)
_ARROW: Final = lazy_regex(r"\s{0,20}--> (?P<file>[^:]{1,300}):(?P<line>\d{1,7})")
_ESLINT: Final = lazy_regex(
    r"\s{1,8}(?P<line>\d{1,7}):\d{1,7}\s{1,8}error\s{1,8}(?P<message>.+?)\s{2,}(?P<code>\S{1,120})$"
)
_PATH_LINE: Final = lazy_regex(r"(?:[A-Za-z]:)?[\w./\\@~+-]{1,300}\.\w{1,8}$")
_WORDED: Final = lazy_regex(
    r"(?:[\w./-]{1,80}: )?(?:error|fatal|fatal error|Error|ERROR|FAIL|FAILED|Failed|Failure|not ok"
    r"|\N{MULTIPLICATION SIGN}|\N{HEAVY BALLOT X}|\N{BALLOT X}|\N{HEAVY MULTIPLICATION X})"
    r"(?: [A-Z]{1,5}\d{1,6})?(?::| -|(?<=[^\w])) {0,4}(?P<message>\S.{2,900})"
)
_COMPARED: Final = lazy_regex(
    r"(?i)(?=.{0,300}\b(?:expected|want(?:ed)?|should)\b)(?=.{0,300}\b(?:got|was|but|actual|received|is|be)\b).{8,900}"
)
_NOISE: Final = lazy_regex(
    r"(?:g?make(?:\[\d{1,3}\])?: \*\*\* \[|npm (?:ERR!|error)|error: could not compile|error: aborting due to"
    r"|collect2: "
    r"|error: test failed|Found \d{1,7} error|FAILED \(|FAIL\t|FAIL$|exit status |Error: Process completed|ELIFECYCLE"
    r"|error Command failed|error: script \"|clang: error: linker|.{0,80}ld returned \d)"
)


def find_command_errors(error: str, output: str = "", root: str = "") -> tuple[Failure, ...]:
    """Return the errors in a failed command's texts, the most specific first.

    `root` is the absolute project folder; files in it become project-relative paths. Empty if no line is an error.
    """
    both = error if output and output in error else f"{error}\n{output}"
    if len(both) > _MAX_TEXT:
        both = f"{both[: _MAX_TEXT // 2]}\n{both[-_MAX_TEXT // 2 :]}"
    lines = [_COLOUR.sub("", line[:_MAX_LINE]).rstrip() for line in both.split("\n")[:_MAX_LINES]]
    lines = [line for line in lines if not _EXIT.match(line)]
    for parse in _PARSERS:
        if found := [one for one in parse(lines, root) if one.message.strip()]:
            return _drop_repeated(_locate(one, root) for one in found)[:MAX_ERRORS]
    return ()


def find_failures(error: str, output: str = "", root: str = "") -> tuple[Failure, ...]:
    """Return a failed command's errors; in unknown form, its most informative line."""
    return find_command_errors(error, output, root) or (Failure(message=pick_error_line(error, output)),)


def parse_report(data: bytes, root: str = "") -> tuple[Failure, ...]:
    """Return the failures in a test runner's JSON report, agent's record, or text."""
    if isinstance(decode_json(data).value, dict | list):
        return parse_failures(data, root)
    return find_command_errors(data.decode("utf-8", "replace"), root=root)


def _drop_repeated(failures: Iterable[Failure]) -> tuple[Failure, ...]:
    """Return each failure once; agents may report the same text as error and output."""
    different: dict[tuple[object, ...], Failure] = {}
    for one in failures:
        different.setdefault((one.test_name, one.test_file, one.error_type, one.message, one.file, one.line), one)
    return tuple(different.values())


def _blocks(
    lines: Sequence[str], head: re.Pattern[str], most: int | None = None
) -> Iterator[tuple[re.Match[str], list[str]]]:
    """Yield each header with at most `most` lines below it, up to the next header."""
    headers = {n: found for n, line in enumerate(lines) if (found := head.match(line))}
    for n, end in pairwise([*headers, len(lines)]):
        yield headers[n], [*lines[n + 1 : end]][:most]


def _parse_tap(lines: Sequence[str], root: str) -> Iterator[Failure]:
    """Parse the Test Anything Protocol, as Node.js and Perl print it."""
    headers = {n: found for n, line in enumerate(lines) if (found := _TAP.match(line))}
    for place, until in pairwise([*headers, len(lines)]):
        found, block = headers[place], lines[place + 1 : until]
        name = found["name"].strip()
        keys, stack = _tap_keys(block)
        if keys.get("failureType") == "subtestsFailed":
            continue
        message, file = keys.get("error", ""), keys.get("location", "").rpartition(":")[0].rpartition(":")[0]
        if not message and (own := [line.strip()[1:].strip() for line in block if line.strip().startswith("#")]):
            compared = [line for line in own if re.match(r"(?:got|expected|actual)\b", line)]
            reported = next(
                (line for line in own if line and not line.startswith(("(in test file", "Failed test"))), ""
            )
            message = " ".join(compared[:2]) or reported
            file = next((found[1] for line in own if (found := _TAP_FILE.match(line))), "")
        is_uninformative = not message or re.fullmatch(r"test failed|Process exited.*|.*exited with code.*", message)
        if is_uninformative and (printed := [*_parse_comments(lines[:place], root)]):
            yield replace(printed[-1], test_name=printed[-1].test_name or _test_of(name))
            continue
        error_type = keys.get("name", "")
        if error_type in ("Error", "TestError") or not error_type:
            error_type, message, _ = split_error(message)
        trace = "\n".join(stack)
        yield Failure(
            error_type=error_type,
            message=message or name,
            test_name=_test_of(name),
            test_file=relative_to_project(file.removeprefix("file://"), root),
            stack_trace="\n".join(f"at {line.strip()}" for line in stack) if trace else "",
        )


def _test_of(name: str) -> str:
    return "" if "/" in name else name


def _tap_keys(block: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the keys of the YAML block of a failed test, and the lines of its stack."""
    keys: dict[str, str] = {}
    stack: list[str] = []
    n = 0
    while n < len(block):
        found = _TAP_KEY.match(block[n])
        n += 1
        if found is None:
            if block[n - 1].strip() == "...":
                break
            continue
        value = found["value"].strip()
        if value.startswith("|"):
            rest = _indented_block(block[n:], _indent(block[n - 1]))
            n += len(rest)
            if found["key"] == "stack":
                stack = [line for line in rest if line.strip()]
                continue
            value = _first_lines(rest)
        keys.setdefault(found["key"], value.strip("'\"") if value[:1] == value[-1:] else value)
    return keys, stack


def _indented_block(lines: Sequence[str], indent: int) -> list[str]:
    return [*takewhile(lambda line: not line.strip() or _indent(line) > indent, lines)]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _first_lines(lines: Iterable[str]) -> str:
    """Join a message's first line with compared values below, if it ends with `:`."""
    own = [line.strip() for line in lines if line.strip()]
    if not own or not own[0].endswith(":"):
        return own[0] if own else ""
    legend = next((n for n, line in enumerate(own) if _LEGEND.match(line)), len(own))
    values = own[1:legend] or own[legend + 1 :]
    changed = [" ".join(line.split()) for line in values if re.match(r"[+-]\s", line)]
    return " ".join((own[0], *(changed[:4] or values[:3])))[:_MAX_LINE]


def _parse_comments(lines: Sequence[str], root: str) -> Iterator[Failure]:
    printed = [line.strip().removeprefix("# ") for line in lines if line.strip().startswith("# ")]
    for one in parse_failures("\n".join(printed).encode("utf-8", "replace"), root):
        file = next(
            (found[1] for line in printed if (found := re.match(r"(?:file://)?(\S{1,300}):\d{1,7}$", line))), ""
        )
        yield one if one.file else replace(one, file=relative_to_project(file, root))


def _parse_node_spec(lines: Sequence[str], root: str) -> Iterator[Failure]:
    start = next((n for n, line in enumerate(lines) if line.strip().endswith("failing tests:")), None)
    if start is None:
        return
    place = ""
    rest = lines[start + 1 :]
    for n, line in enumerate(rest):
        if found := _SPEC_PLACE.match(line.strip()):
            place = found["file"]
        elif place and (found := _SPEC_TEST.match(line)):
            block = [*takewhile(lambda text: not _SPEC_PLACE.match(text.strip()), rest[n + 1 :])]
            text = [one for one in block if one.strip()]
            message = _first_lines(takewhile(lambda one: not _FRAME.match(one), text))
            if message in (
                "'test failed'",
                "'Promise resolution is still pending but the event loop has already resolved'",
            ):
                printed = [*_parse_plain(lines[:start], root)]
                yield from (replace(one, test_file=relative_to_project(place, root)) for one in printed[:1])
            else:
                name, message, _ = split_error(message)
                yield Failure(
                    error_type=name,
                    message=message,
                    test_name=_test_of(found["name"]),
                    test_file=relative_to_project(place, root),
                    stack_trace="\n".join(one.strip() for one in text if _FRAME.match(one)),
                )
            place = ""


def _parse_unittest(lines: Sequence[str], root: str) -> Iterator[Failure]:
    for found, below in _blocks(lines, _UNITTEST):
        block = [*takewhile(lambda line: not line.startswith("Ran "), below)]
        raised = [n for n, line in enumerate(block) if re.match(r"[A-Za-z_][\w.]{0,200}(?:: |$)", line)]
        if not raised:
            continue
        first = next((n for n in raised if "Traceback" not in block[n]), raised[-1])
        name, message, _ = split_error(block[first])
        if not name:
            name, _, message = block[first].rpartition(": ")[0], "", block[first].partition(": ")[2] or block[first]
        where, test = found["place"], found["name"]
        module = where.removesuffix(f".{test}").rpartition(".")[0] or where
        is_module = found["name"].startswith("test") or "." in module
        file = f"{module.replace('.', '/')}.py" if is_module else ""
        if where.startswith("unittest.loader"):
            file, test = "", ""
            inner = [n for n in raised if split_error(block[n])[0] and n != first]
            if inner:
                name, message, _ = split_error(block[inner[-1]])
        yield Failure(
            error_type=name.rpartition(".")[2],
            message=message or name,
            test_name=test,
            test_file=file,
            stack_trace="\n".join(line for line in block[:first] if line.strip("-")),
        )


def _parse_go(lines: Sequence[str], root: str) -> Iterator[Failure]:
    for found, block in _blocks(lines, _GO, _MAX_BLOCK):
        own = next((one for text in block if (one := _GO_LINE.match(text))), None)
        panic = next((text for text in block if text.startswith("panic: ")), "")
        message = own["message"] if own else panic.removesuffix(" [recovered]")
        if own and own["message"].endswith(":"):
            after = (text.strip() for text in block[block.index(own.string) + 1 :])
            message = " ".join((message, next(filter(None, after), "")))
        if message:
            yield Failure(message=message, test_name=found["name"], test_file=own["file"] if own else "")


def _parse_rust(lines: Sequence[str], root: str) -> Iterator[Failure]:
    for found, block in _blocks(lines, _RUST, _MAX_BLOCK):
        panics = ((n, at["file"]) for n, text in enumerate(block) if (at := _PANIC.match(text.strip())))
        for place, file in islice(panics, 1):
            text = [one.strip() for one in block[place + 1 : place + 4] if one.strip() and not one.startswith("note:")]
            own = text if text[1:] and re.match(r"left:|right:", text[1]) else text[:1]
            name = found["name"].rpartition("::")[2]
            yield Failure(message=" ".join(own), test_name=name, test_file=file, file=file)


def _parse_mocha(lines: Sequence[str], root: str) -> Iterator[Failure]:
    start = next((n for n, line in enumerate(lines) if _MOCHA.match(line)), None)
    for found, block in _blocks(lines[start + 1 :] if start is not None else (), _NUMBERED):
        titles = [*takewhile(lambda text: text.strip(), block)]
        title = next((k for k, text in enumerate(titles) if text.endswith(":")), None)
        if title is None:
            continue
        text = [one for one in block[title + 1 :] if one.strip()]
        name, message, _ = split_error(_first_lines(takewhile(lambda one: not _FRAME.match(one), text)))
        trace = "\n".join(one.strip() for one in text if _FRAME.match(one))
        test = titles[title].strip().removesuffix(":")
        yield Failure(error_type=name, message=message, test_name=test or found["name"], stack_trace=trace)


def _parse_rspec(lines: Sequence[str], root: str) -> Iterator[Failure]:
    name = ""
    for n, line in enumerate(lines):
        if found := _NUMBERED.match(line):
            name = found["name"]
        elif found := _RSPEC.match(line):
            block = lines[n + 1 : n + 30]
            text = [one.strip() for one in takewhile(lambda one: not one.strip().startswith("#"), block) if one.strip()]
            at = next((one.strip() for one in block if re.match(r"\s*# \S+:\d+", one)), "")
            message = text[0] if text else found["code"]
            if (text[1:] and message.endswith(":")) or message.startswith(("expected", "Expected")):
                message = " ".join(text[:2])
            file = at[2:].partition(":")[0].removeprefix("./")
            yield Failure(message=message, test_name=name, test_file=file)


def _parse_minitest(lines: Sequence[str], root: str) -> Iterator[Failure]:
    for found, block in _blocks([line.strip() for line in lines], _MINITEST, 3):
        text = [*filter(None, block)]
        has_values = bool(text) and text[0].startswith("Expected")
        name, message, _ = split_error(" ".join(text[: 2 if has_values else 1]))
        test = found["name"].rpartition("#")[2]
        yield Failure(error_type=name, message=message, test_name=test, test_file=found["file"])


def _parse_phpunit(lines: Sequence[str], root: str) -> Iterator[Failure]:
    for found, block in _blocks(lines, _PHPUNIT, 7):
        text = [one.strip() for one in block if one.strip()]
        name, message, _ = split_error(text[0] if text else "")
        file = next((at[1] for one in text if (at := re.match(r"(\S{1,300}\.php):\d{1,7}$", one))), "")
        yield Failure(error_type=name, message=message, test_name=found["name"], test_file=file)


def _parse_doctest(lines: Sequence[str], root: str) -> Iterator[Failure]:
    for found, block in _blocks(lines, _DOCTEST, 13):
        text = [*takewhile(lambda one: not one.startswith("***"), (one.strip() for one in block))]
        message = " ".join(one for one in text if one and one != "Failed example:")
        yield Failure(message=message[:_MAX_LINE], test_name=found["name"], test_file=found["file"])


def _parse_dotnet(lines: Sequence[str], root: str) -> Iterator[Failure]:
    for found, block in _blocks(lines, _DOTNET, 19):
        start = next((k for k, one in enumerate(block) if one.strip() == "Error Message:"), None)
        if start is not None:
            text = [one.strip() for one in takewhile(lambda one: "Stack Trace:" not in one, block[start + 1 :])]
            name, message, _ = split_error(" ".join(filter(None, text[:4])))
            yield Failure(error_type=name, message=message, test_name=found["name"])


def _parse_shellcheck(lines: Sequence[str], root: str) -> Iterator[Failure]:
    file = ""
    for line in lines:
        if found := _SHELLCHECK_PLACE.match(line):
            file = found["file"]
        elif file and (found := _SHELLCHECK.match(line)):
            yield Failure(message=f"{found['code']}: {found['message']}", file=file)


def _parse_reports(lines: Sequence[str], root: str) -> Iterator[Failure]:
    """Parse pytest, Jest, Vitest and tracebacks; add the values that Jest compares."""
    for one in parse_failures("\n".join(lines).encode("utf-8", "replace"), root):
        compared: list[str] = []
        place = next((n for n, line in enumerate(lines) if line.strip() == one.message), None)
        if place is not None and one.message.startswith("expect("):
            below = (line.strip() for line in lines[place + 1 : place + 8])
            compared = [line for line in below if re.match(r"(?:Expected|Received)\b.{0,40}:", line)][:2]
        code = _code_above(lines, f"{one.error_type}: {one.message}")
        if code and not any(map(str.isalpha, one.message)):
            yield replace(one, message=f"{code} ({one.message})")
        else:
            yield replace(one, message=" ".join((one.message, *compared)))


def _parse_bare(lines: Sequence[str], root: str) -> Iterator[Failure]:
    """Parse Python tracebacks without a message; the code that raised becomes it."""
    for n, line in enumerate(lines):
        if _BARE.fullmatch(line.strip()) and (code := _code_above(lines[: n + 1], line.strip())):
            trace = "\n".join(lines[max(n - 40, 0) : n])
            yield Failure(error_type=line.strip().rpartition(".")[2], message=code, stack_trace=trace)


def _code_above(lines: Sequence[str], last: str) -> str:
    """Return the code line above the last line of a traceback, "" if there is none."""
    place = next((n for n, line in enumerate(lines) if line.strip() == last), 0)
    above = [line.strip() for line in lines[max(place - 3, 0) : place]]
    code = [line for line in above if line and not re.fullmatch(r"[\^~ ]+", line)]
    is_traced = any(_PYTHON_FRAME.match(line) for line in above)
    return code[-1] if is_traced and code and not _PYTHON_FRAME.match(code[-1]) else ""


def _parse_plain(lines: Sequence[str], root: str) -> Iterator[Failure]:
    """Parse diagnostics of compilers, linters, shells, and tracebacks between them."""
    function, header = ("", ""), ""
    for n, line in enumerate(lines):
        text = line.strip()
        if not text or _NOISE.match(text) or _FRAME.match(line) or text.startswith(("warning:", "note:")):
            continue
        if found := _IN_FUNCTION.match(text):
            function = (found["file"], found["name"])
        elif found := _ESLINT.match(line):
            yield Failure(message=f"{found['message']} ({found['code']})", file=header)
        elif _PATH_LINE.fullmatch(text):
            header = text
        elif failure := _parse_diagnostic(text, lines[n + 1 : n + 8]):
            if not failure.function and function[0]:
                failure = replace(failure, function=function[1])
            yield failure


def _parse_diagnostic(text: str, below: Sequence[str]) -> Failure | None:
    for form in _DIAGNOSTICS:
        if found := form.match(text):
            groups = found.groupdict()
            message = groups["message"].strip()
            if re.match(r"(?:warning|note|info|remark)\b", message) or message.startswith("In function"):
                return None
            name, rest, _ = split_error(message)
            if symbol := next((one.strip() for one in below[:4] if re.match(r"\s{2,}symbol:\s", one)), ""):
                rest = f"{rest} ({' '.join(symbol.split())})"
            code = (
                found[0][found.start("code") - found.start() : found.start("message") - found.start()]
                if groups.get("code")
                else ""
            )
            frame = next((one for line in below if (one := _JAVA_FRAME.match(line))), None)
            if frame is not None and not groups.get("file"):
                groups |= {"file": frame["file"], "function": frame["function"]}
            file = groups.get("file") or ""
            if form.pattern.endswith(r"\.go:(?P<line>\d{1,7})(?::\d{1,7})?: (?P<message>.+)"):
                file = f"{file}.go"
            return Failure(
                error_type=groups.get("name") or name,
                message=f"{code}{rest}",
                file=file.removeprefix("./"),
                line=int(groups["line"]) if groups.get("line") else None,
                function=groups.get("function") or "",
            )
    if found := _CODED.fullmatch(text):
        arrow = next((one for line in below[:2] if (one := _ARROW.match(line))), None)
        if arrow is not None:
            file = arrow["file"].removeprefix("./")
            return Failure(message=text.removeprefix("error: ").replace(" [*] ", " "), file=file)
    return None


def _parse_words(lines: Sequence[str], root: str) -> Iterator[Failure]:
    """Parse lines that begin with a word such as `error`, or compare a value."""
    for line in lines:
        text = line.strip()
        if not text or _NOISE.match(text) or _FRAME.match(line):
            continue
        if found := _WORDED.match(text):
            name, message, _ = split_error(found["message"])
            yield Failure(error_type=name, message=message)
        elif _COMPARED.match(text):
            yield Failure(message=text)


_PARSERS: Final[tuple[Callable[[Sequence[str], str], Iterator[Failure]], ...]] = (
    *(_parse_tap, _parse_node_spec, _parse_unittest, _parse_go, _parse_rust, _parse_mocha, _parse_rspec),
    *(_parse_minitest, _parse_phpunit, _parse_doctest, _parse_dotnet, _parse_shellcheck, _parse_reports),
    *(_parse_bare, _parse_plain, _parse_words),
)


def _locate(failure: Failure, root: str) -> Failure:
    """Add the source frame of the stack; make paths project-relative."""
    test_file, file = (relative_to_project(one, root) for one in (failure.test_file, failure.file))
    function, line = failure.function, failure.line
    frames = parse_frames(failure.stack_trace, root) if failure.stack_trace else []
    if not file and (source := find_source_frame(frames, test_file)) is not None:
        same = (frame.function for frame in frames if frame[:2] == source[:2])
        file, line = source.file, line or source.line
        function = function or next(filter(None, same), "")  # an inner one may be a comprehension
    own = StackFrame(file, line, function)
    function = "" if function in ("<module>", "Object.<anonymous>") else function
    test_name = failure.test_name
    if is_test_file(own.file) and function:
        test_name, test_file, function = test_name or function, test_file or own.file, ""
    return replace(failure, file=file, line=line, test_file=test_file, test_name=test_name, function=function)


# Reports of pytest, Jest and Vitest, and tracebacks

_MAX_REPORT_LINES: Final = 20_000  # maximum number of lines of console output that are parsed
_MAX_REPORT_LINE: Final = 2_000
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
    return tuple(_locate_in_report(failure, root) for failure in found)


def _locate_in_report(failure: Failure, root: str) -> Failure:
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
    for raw in text.split("\n", _MAX_REPORT_LINES)[:_MAX_REPORT_LINES]:
        line = COLOUR.sub("", raw[:_MAX_REPORT_LINE]).rstrip()
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
