"""Shell commands that check something (tests, types, build, lint); their output.

The output shows errors, the counts of tests in the summary of a test runner, and whether a check passed.

Reports are used where the exit code of a command is unknown or is that of another program
(docs/agents.md#results-of-commands)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from core.base.masking import clip
from core.base.regexes import lazy_regex
from core.records.debug_sessions import Results

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
    """Return a shell command's check and its arguments; empty if it is in a pipe."""
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
    """Return whether a command runs a check by `debug run`, which records it itself."""
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
    """Return whether a command succeeded; `has_succeeded` is by exit code, or None.

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
    """Return whether a check passed by its output; None without a known report.

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


MAX_ERROR: Final = 300  # maximum length of an error
_TAIL: Final = 8_000  # characters at the end of an output that are searched
_MAX_ERROR_LINE: Final = 2_000
_NAMED: Final = lazy_regex(
    r"(?:E\s{2,}|[>×✕✗●•*-]\s+)?((?:[\w.]{0,200}(?:Error|Exception|Failure|Panic)\b|panic|fatal|error)[:(\[].*)"
)
_MENTION: Final = lazy_regex(r"(?i)\b(?:error|failed|failure|fatal|not found|cannot|denied|panicked)\b")
_SUMMARY_TAIL: Final = 40_000  # characters at the end that are searched; Node.js lists failures at the end
_WORDS: Final = {
    "passed": "pass passed passing succeeded",
    "failed": "fail failed failing failure failures",
    "errors": "error errors",
    "skipped": "skip skips skipped pending ignored",
    "total": "total tests run runs examples example completed",
}
_KINDS: Final = {word: kind for kind, words in _WORDS.items() for word in words.split()}
_WORD: Final = "|".join(sorted(_KINDS, key=len, reverse=True))
_COUNT: Final = lazy_regex(
    rf"(?i)\b(?<![\d.])(\d{{1,7}})\s{{1,4}}(?:tests?\s{{1,4}}(?=passed|passing|failed|failing|completed))?({_WORD})\b"
)
_COUNT_AFTER: Final = lazy_regex(rf"(?i)\b({_WORD})[:=]\s{{0,8}}(\d{{1,7}})\b(?! [a-z])")
_OUT_OF: Final = lazy_regex(r"\bout of (\d{1,7})\b|^\s{0,8}Tests\b.{1,200}\((\d{1,7})\)$")
"""Totals of CTest and of Vitest."""
_OK: Final = lazy_regex(r"OK \((\d{1,7}) tests?\b")
_RAN: Final = lazy_regex(r"Ran (\d{1,7}) tests? in \d")
_VERDICT: Final = lazy_regex(r"(?:OK|FAILED)(?: \((.{1,200})\))?")
_NODE: Final = lazy_regex(r"(?:#|\N{INFORMATION SOURCE}) (tests|pass|fail|cancelled|skipped) (\d{1,7})")
_SHORT: Final = lazy_regex(r"\s{0,8}(\d{1,7}) (pass|fail|skip|passing|failing|pending)(?: \(.{1,40}\))?")
"""A line of Bun or Mocha, which have one line for each count."""
_CARGO: Final = lazy_regex(r"test result: \w{1,10}\. (\d{1,7}) passed; (\d{1,7}) failed; (\d{1,7}) ignored\b")
_GO: Final = lazy_regex(r"--- (PASS|FAIL|SKIP): \S")
_GO_END: Final = lazy_regex(r"(?:FAIL|ok|PASS)(?:\s|$)")


def find_error(output: str) -> str:
    """Return the last line naming an error, else mentioning a failure, else the last."""
    lines = [line for line in map(str.strip, _lines(output)) if line]
    named = next((found[1] for line in reversed(lines) if (found := _NAMED.match(line))), "")
    if not named:
        named = next((line for line in reversed(lines) if _MENTION.search(line[:MAX_ERROR])), "")
    return clip(named or (lines[-1] if lines else ""), MAX_ERROR)


def _lines(output: str) -> list[str]:
    return [line[:_MAX_ERROR_LINE] for line in COLOUR.sub("", output[-_TAIL:]).splitlines()]


def parse_results(output: str) -> Results | None:
    """Return the counts of the last test summary in an output; None if there is none."""
    text = COLOUR.sub("", output[-_SUMMARY_TAIL:])
    lines = [line[:_MAX_ERROR_LINE].rstrip() for line in text.splitlines()]
    forms = (_read_unittest, _read_node, _read_cargo, _read_go, _read_short, _read_line)
    summaries = [summary for form in forms if (summary := form(lines)) is not None]
    return max(summaries, key=lambda summary: summary[0])[1] if summaries else None


_Summary = tuple[int, Results]
"""The number of the last line of a summary, and its counts."""


def _read_unittest(lines: Sequence[str]) -> _Summary | None:
    for place in range(len(lines) - 1, -1, -1):
        if ran := _RAN.match(lines[place]):
            verdict = next(((n, line) for n, line in enumerate(lines[place + 1 : place + 5]) if line), (0, ""))
            if found := _VERDICT.fullmatch(verdict[1]):
                counts = _pairs(found[1] or "")
                return place + 1 + verdict[0], _complete({"failed": 0, **counts, "total": int(ran[1])})
    return None


def _read_node(lines: Sequence[str]) -> _Summary | None:
    """Read the summary of `node --test`: a line for each count, from `tests` on."""
    places = [n for n, line in enumerate(lines) if (found := _NODE.fullmatch(line)) and found[1] == "tests"]
    if not places:
        return None
    block = lines[places[-1] : places[-1] + 10]
    counts = {found[1]: int(found[2]) for line in block if (found := _NODE.fullmatch(line))}
    failed = counts.get("fail", 0) + counts.get("cancelled", 0)
    skipped = counts.get("skipped") or None
    return places[-1] + len(block) - 1, Results(
        total=counts["tests"], passed=counts.get("pass", 0), failed=failed, skipped=skipped
    )


def _read_cargo(lines: Sequence[str]) -> _Summary | None:
    """Read the summaries of `cargo test`, one for each test program."""
    found = [(n, one) for n, line in enumerate(lines) if (one := _CARGO.match(line))]
    if not found:
        return None
    passed, failed, ignored = (sum(int(one[place]) for _, one in found) for place in (1, 2, 3))
    return found[-1][0], Results(passed=passed, failed=failed, skipped=ignored or None)


def _read_go(lines: Sequence[str]) -> _Summary | None:
    """Count the tests that `go test` lists: all with -v, else only failed ones."""
    found = [one[1] for line in lines if (one := _GO.match(line))]
    if not found:
        return None
    last = max(n for n, line in enumerate(lines) if _GO.match(line) or _GO_END.match(line))
    is_complete = "PASS" in found or any(line.startswith("=== RUN") for line in lines)
    passed = found.count("PASS") if is_complete else None
    return last, Results(passed=passed, failed=found.count("FAIL"), skipped=found.count("SKIP") or None)


def _read_short(lines: Sequence[str]) -> _Summary | None:
    places = [(n, found) for n, line in enumerate(lines) if (found := _SHORT.fullmatch(line))]
    counts: dict[str, int] = {}
    for place, found in reversed(places):
        kind = _KINDS[found[2]]
        if kind in counts or place < places[-1][0] - 5:
            break
        counts[kind] = int(found[1])
    return (places[-1][0], Results(**counts)) if "passed" in counts or "failed" in counts else None


def _read_line(lines: Sequence[str]) -> _Summary | None:
    for place in range(len(lines) - 1, -1, -1):
        line = lines[place].strip()
        if _SHORT.fullmatch(line):
            continue
        counts = _pairs(line)
        if found := _OK.match(line):
            return place, Results(total=int(found[1]), passed=int(found[1]), failed=0)
        if "total" not in counts and (found := _OUT_OF.search(line)):
            counts["total"] = int(found[1] or found[2])
        if "passed" in counts or "failed" in counts:
            return place, _complete(counts)
    return None


def _pairs(line: str) -> dict[str, int]:
    """Return counts by word in a line such as `1 failed, 2 passed` or `failures=1`."""
    counts: dict[str, int] = {}
    after: list[tuple[str, str]] = _COUNT_AFTER.findall(line)
    for number, word in [(number, word) for word, number in after] or _COUNT.findall(line):
        counts.setdefault(_KINDS[word.lower()], int(number))
    return counts


def _complete(counts: dict[str, int]) -> Results:
    """Add the number of passed tests to counts that have only a total."""
    if "total" in counts and "passed" not in counts:
        others = sum(counts.get(kind, 0) for kind in ("failed", "errors", "skipped"))
        counts = {**counts, "passed": max(counts["total"] - others, 0)}
    return Results(**{kind: count for kind, count in counts.items() if count or kind != "skipped"})
