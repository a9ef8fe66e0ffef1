"""Output of commands that agents ran: the error in it, and the counts of tests in the summary of a test runner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core.base.regexes import lazy_regex
from core.base.shell_commands import COLOUR
from core.records.debug_sessions import Results
from core.sources.adapters.values import clip

MAX_ERROR: Final = 300  # maximum length of an error
_TAIL: Final = 8_000  # characters at the end of an output that are searched
_MAX_LINE: Final = 2_000
_NAMED: Final = lazy_regex(
    r"(?:E\s{2,}|[>×✕✗●•*-]\s+)?((?:[\w.]{0,200}(?:Error|Exception|Failure|Panic)\b|panic|fatal|error)[:(\[].*)"
)
_MENTION: Final = lazy_regex(r"(?i)\b(?:error|failed|failure|fatal|not found|cannot|denied|panicked)\b")
_MAX_TEXT: Final = 40_000  # characters at the end of an output that are searched; Node.js lists failures at the end
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
    """Return the last line that names an error, else one that mentions a failure, else the last one."""
    lines = [line for line in map(str.strip, _lines(output)) if line]
    named = next((found[1] for line in reversed(lines) if (found := _NAMED.match(line))), "")
    if not named:
        named = next((line for line in reversed(lines) if _MENTION.search(line[:MAX_ERROR])), "")
    return clip(named or (lines[-1] if lines else ""), MAX_ERROR)


def _lines(output: str) -> list[str]:
    return [line[:_MAX_LINE] for line in COLOUR.sub("", output[-_TAIL:]).splitlines()]


def parse_results(output: str) -> Results | None:
    """Return the counts of the last test summary in an output; None if there is none."""
    text = COLOUR.sub("", output[-_MAX_TEXT:])
    lines = [line[:_MAX_LINE].rstrip() for line in text.splitlines()]
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
    """Count the tests that `go test` lists: all of them with -v, else only those that failed."""
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
    """Return the counts of a line such as `1 failed, 2 passed` or `failures=1`, each word once."""
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
