"""Shell commands that check something (a test, type check, build or lint), and reports that show whether they passed.

Reports are used where the exit code of a command is unknown or is that of another program
(docs/agents.md#results-of-commands)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from core.base.regexes import lazy_regex

_MAX_WORDS: Final = 100
_RUNNER: Final = lazy_regex(r"pytest|unittest|tox|nox|jest|vitest|mocha|tsc|mypy|pyright|ruff|flake8|eslint")
"""Test runners, type checkers and linters."""
_BUILDER: Final = lazy_regex(r"npm|yarn|pnpm|bun|deno|cargo|go|mvn|gradle|gradlew|make|dotnet|mix|rake")
_CHECK: Final = lazy_regex(r"test|spec|check|build|lint|type|vet|clippy|verify|compile", re.IGNORECASE)
"""Targets of a build tool that check the work; other targets install or publish."""
_LAUNCHER: Final = lazy_regex(r"npx|bunx|uv|poetry|pipenv|hatch|run|exec|bundle|python(?:3(?:\.\d{1,2})?)?|-m|time|env")
_QUIET: Final = lazy_regex(r"-q|-v|-vv|-s|-x|--|--quiet|--verbose|--silent|--run")  # they do not affect the result
_TESTS: Final = lazy_regex(r"pytest|unittest|tox|nox|jest|vitest|mocha|.*(?:test|spec|verify).*|check", re.IGNORECASE)
"""Test runners, and targets of a build tool that run tests."""
_OWN_RUN: Final = lazy_regex(r"\bralphdeck\s+debug\s+run\s+[^;&|]{1,200}?\s--\s+")
"""Prefix of a command that `debug run` runs; its exit code is that of the command."""
_READ_ONLY: Final = lazy_regex(
    r"(?:ls|cat|head|tail|less|grep|rg|ag|find|fd|pwd|echo|printf|wc|which|type|tree|stat|file|diff|date|true|jq|ps)"
    r"(?:\s|$)|(?:sed\s+-n|git\s+(?:status|log|diff|show|branch|blame|grep|ls-files))\b"
)  # commands that change nothing, unless their output is redirected to a file
_EVERYTHING: Final = frozenset((".", "./..."))  # arguments that select everything, as if there were no argument


@lru_cache(1024)  # agents repeat their commands
def is_test_run(text: str) -> bool:
    """Return whether a shell command runs tests and its exit code is theirs."""
    return any(_TESTS.fullmatch(word) for word in parse_check(text[:_MAX_COMMAND])[0])


@lru_cache(1024)
def parse_check(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the check in a shell command and its arguments; empty if it is in a pipe."""
    for part in _OWN_RUN.sub("", text).split("&&"):
        words = part.split()[:_MAX_WORDS]
        while words and (_LAUNCHER.fullmatch(words[0].rpartition("/")[2]) or "=" in words[0]):
            del words[0]
        name = words[0].rpartition("/")[2] if words else ""
        name_length = 0
        if _RUNNER.fullmatch(name):
            name_length = 1
        elif words[:2] == ["node", "--test"]:
            name_length = 2
        elif _BUILDER.fullmatch(name):
            name_length = 3 if words[1:2] == ["run"] else 2
        rest = words[name_length:]
        is_complete = 0 < name_length <= len(words)
        if not is_complete or (name_length > 1 and not _CHECK.search(words[name_length - 1])):
            continue
        if any(sign in word for word in rest for sign in "|;"):
            return (), ()
        given = (word.rstrip("/") or word for word in rest if not _QUIET.fullmatch(word) and ">" not in word)
        return (name, *words[1:name_length]), tuple(word for word in given if word not in _EVERYTHING)
    return (), ()


def is_recorded_run(text: str) -> bool:
    """Return whether a shell command runs a check with `debug run`, which records it itself."""
    return _OWN_RUN.search(text[:_MAX_COMMAND]) is not None


@lru_cache(1024)
def is_read_only(text: str) -> bool:
    """Whether all programs in a shell command are known to change nothing."""
    parts = re.split(r"&&|\|\||[;|\n]", text[:_MAX_COMMAND])
    commands = [part.strip() for part in parts if part.strip() and not re.match(r"\s*cd(?:\s|$)", part)]
    return ">" not in text and all(_READ_ONLY.match(part) for part in commands)


_MAX_TEXT: Final = 20_000  # end of an output that is searched, in characters
_MAX_COMMAND: Final = 20_000
_MAX_LINE: Final = 400
COLOUR: Final = lazy_regex(r"\x1b\[[0-9;]{0,20}m")
_MARK: Final = r"[ \t=#>│✖✔✗✓×ℹ•-]{0,80}"  # decoration before a summary
_FAILED: Final = lazy_regex(
    rf"^{_MARK}(?:"
    r"(?:FAILED|ERROR) \S.{0,200}\.py\b"  # pytest
    r"|(?:\d{1,7} \w{1,20}, ){0,9}[1-9]\d{0,6} (?:failed|errors?)\b.{0,80}\bin [\d.:]{1,12} ?s"
    r"|FAILED \((?:failures|errors|unexpected)"  # unittest
    r"|FAILED$|FAIL(?:URES)?!|ERRORS!|FAIL(?:\t| {1,4}\S)|FAIL$|--- FAIL: "  # Go, PHPUnit, Jest
    r"|Test(?:s| Suites| Files)?:? {1,12}(?:\d{1,7} \w{1,12},? ?\|? ?){0,4}[1-9]\d{0,6} failed\b"  # Jest, Vitest
    r"|[1-9]\d{0,6} failing\b|fail [1-9]\d{0,6}$|not ok \d{1,7}(?! .{0,200}# (?:SKIP|TODO))"  # Mocha, Node, TAP
    r"|test result: FAILED|error(?:\[E\d{1,5}\])?: "  # Cargo
    r"|(?:\S{1,200}: )?error TS\d{1,6}: |Found [1-9]\d{0,6} errors?\b(?!.{0,40}\b0 remaining)"  # tsc, mypy, ruff
    r"|\S{1,200}: error TS\d{1,6}: |[1-9]\d{0,6} errors?,|.{0,20}problems? \([1-9]\d{0,6} errors?"  # pyright, ESLint
    r"|\S{1,300}:\d{1,7}(?::\d{1,7})?: (?:fatal )?error\b"  # compilers
    r"|\./\S{1,300}\.go:\d{1,7}:\d{1,7}: |\S{1,300}\.py:\d{1,7}:\d{1,7}: [EFWC]\d{1,4} "  # go vet, flake8
    r"|[1-9]\d{0,6} errors?$|(?:g?make|ninja)(?:\[\d{1,3}\])?: \*\*\* |ninja: build stopped"  # javac, make
    r"|(?:\[\w{1,7}\] )?BUILD FAIL(?:URE|ED)|Build FAILED|Failed! {1,3}- "  # Maven, Gradle, .NET
    r"|(?:\[\w{1,7}\] )?Tests run: \d{1,7}, Failures: (?:[1-9]|0, Errors: [1-9])"
    r"|\d{1,7} (?:examples?|tests?|runs?|scenarios?).{0,40}, ?[1-9]\d{0,6} (?:failures?|errors?|failed)\b"  # RSpec, mix
    r"|\d{1,7} runs?, \d{1,7} assertions?, 0 failures, [1-9]\d{0,6} errors"  # minitest
    r"|\d{1,3}% tests passed, [1-9]\d{0,6} tests? failed|Executed \d{1,7} tests?, with [1-9]"  # CTest, Swift
    r"|FAILED \| \d|npm (?:ERR!|error) |exit status [1-9]\d{0,2}$|Would reformat: |would reformat "  # Deno, npm, Go
    r"|thread '.{1,80}' .{0,20}panicked at |panic: |Segmentation fault"
    r"|(?:ba|z|da)?sh: .{1,200}: not found$"
    r"|.{1,200}: command not found$|Node\.js v\d{1,3}\."
    r")",
    re.MULTILINE,
)
_PASSED: Final = lazy_regex(
    rf"^{_MARK}(?:"
    r"(?:\d{1,7} (?:skipped|deselected|xfailed|xpassed|warnings?), ){0,4}[1-9]\d{0,6} passed\b"
    r".{0,80}\bin [\d.:]{1,12} ?s"
    r"|OK(?: \(.{1,80}\))?$|PASS$|ok {0,4}\t?\S{1,200}\s{1,4}(?:[\d.]{1,9}s|\(cached\))"
    r"|Tests:? {1,12}(?:\d{1,7} (?:skipped|todo),? ?\|? ?){0,3}[1-9]\d{0,6} passed\b"
    r"|[1-9]\d{0,6} passing\b|pass [1-9]\d{0,6}$|test result: ok\. |Finished .{0,80} target\(s\) in "
    r"|Success: no issues found|All checks passed|Found \d{1,7} errors? \(\d{1,7} fixed, 0 remaining\)"
    r"|Found 0 errors|0 errors, |.{0,20}problems? \(0 errors"
    r"|(?:\[\w{1,7}\] )?BUILD SUCCESS|Build succeeded|Passed! {1,3}- "
    r"|(?:\[\w{1,7}\] )?Tests run: [1-9]\d{0,6}, Failures: 0, Errors: 0"
    r"|[1-9]\d{0,6} (?:examples?|tests?|runs?).{0,40}, ?0 failures(?:, 0 errors)?"
    r"|100% tests passed|Executed [1-9]\d{0,6} tests?, with 0 failures|ok \| [1-9]"
    r"|\d{1,7} files? (?:already formatted|would be left unchanged|left unchanged)"
    r")",
    re.MULTILINE,
)
_TRACEBACK: Final = "Traceback (most recent call last):"
_RAISED: Final = lazy_regex(r"[A-Za-z_][\w.]{0,200}(?:Error|Exception|Interrupt|Exit)\b")
_EXIT: Final = lazy_regex(r"(?i)\b(?:exit|rc|status|code)\b[ _:=a-z]{0,12}(\d{1,3})\W{0,3}$|^(\d{1,3})$")
_QUOTED: Final = lazy_regex(r"'[^']{0,5000}'|\"(?:[^\"\\]|\\.){0,5000}\"|\\.")
_PIPE_FAILS: Final = lazy_regex(r"\bset\s{1,4}-\w{0,5}o?\s{0,4}pipefail|-o\s{1,4}pipefail", literals=("pipefail",))


def command_result(command: str, output: str, has_succeeded: bool | None) -> bool | None:
    """Return whether a command succeeded; `has_succeeded` is what its exit code proves, None if that is unknown.

    The exit code of a pipe, or of a list that goes on after a failure, is that of its last program. A report in the
    output then decides; without one the result is unknown, unless all programs only read.
    """
    if has_succeeded is False or (has_succeeded and not hides_result(command)) or is_read_only(command):
        return has_succeeded
    return read_report(output, command)


def hides_result(command: str) -> bool:
    """Return whether a shell command may succeed although a program in it failed."""
    text = _QUOTED.sub("", command[:_MAX_COMMAND])
    if re.search(r"\|\||;|\n|&(?![&>\d])(?<!&&)(?<!>&)", text.strip().rstrip(";")):
        return True
    return "|" in text and not _PIPE_FAILS.search(text)


def read_report(output: str, command: str = "") -> bool | None:
    """Return whether the check that printed an output passed; None if it has no known report.

    One failure among several reports is a failure. A command that prints `$?` has its exit code on the last line.
    """
    text = COLOUR.sub("", output[-_MAX_TEXT:])
    lines = [line[:_MAX_LINE].rstrip() for line in text.splitlines()]
    last = next((line for line in reversed(lines) if line.strip()), "")
    text = "\n".join(lines)
    if _FAILED.search(text) or (_TRACEBACK in text and _RAISED.match(last)):
        return False
    if "$?" in command or "PIPESTATUS" in command:
        found = _EXIT.search(last.strip())
        if found is not None:
            return int(found[1] or found[2]) == 0
    return True if _PASSED.search(text) else None
