"""Changes that teach nothing, such as weaker tests or changes of the environment.

See docs/extraction.md#attempts and docs/extraction.md#weakened-tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from core.base.regexes import lazy_regex
from core.tasks.error_messages import is_test_file

if TYPE_CHECKING:
    from core.records.debug_sessions import Failure
    from core.records.episodes import Action
    from core.tasks.changes import Hunk

MAX_TOLERANCE: Final = 0.01  # largest tolerance of a comparison that is not weaker than an exact one
_MAX_LINE: Final = 1_000
_SKIP: Final = lazy_regex(
    r"@?(?:pytest\.(?:mark\.)?(?:skip|skipif|xfail)|unittest\.(?:skip|expectedFailure)|skipTest|importorskip"
    r"|skipIf|skipUnless|expectedFailure)\b"
    r"|\b(?:it|test|describe|context|suite)\.(?:skip|todo|failing)\b|\bx(?:it|describe|test|context)\s*\("
    r"|\bt\.Skip(?:f|Now)?\(|#\[ignore|@(?:Ignore|Disabled)\b"
    r"|\bskip:\s*(?:true|['\"])|\{\s*skip\b|\bthis\.skip\(|\bpending\b|\bskip\s+['\"]|\bmarkTestSkipped\b"
    r"|\[(?:Fact|Theory)\(Skip|GTEST_SKIP|\bDISABLED_"
)
_ASSERTS: Final = lazy_regex(
    r"\b(?:assert\w*|expect\w*|should\w*|t\.(?:Error|Fatal|Fail)\w*|require\.\w+|EXPECT_\w+|ASSERT_\w+|is|ok|raises"
    r"|verify)\b\s*[(!.\s]|\[ .* \]|\|\|\s*(?:exit|fail)"
)
_STRICT: Final = lazy_regex(
    r"===?|!==?|\bis (?!not None\b|None\b)|\bassert(?:_eq|Equals?|Is|ListEqual|DictEqual|CountEqual|Same|StrictEqual)\b"
    r"|\.to(?:Be|Equal|StrictEqual|MatchObject|HaveLength)\(|\.(?:strictE|deepE|deepStrictE|e)qual\(|\.to\.(?:deep\.)?e(?:ql?|qual)\("
    r"|\b(?:EXPECT|ASSERT)_(?:EQ|STREQ)\b|\.(?:Equal|DeepEqual|EqualValues)\(|\s-(?:eq|ne)\s|\[ .* = .* \]"
)
_LOOSE: Final = lazy_regex(
    r"[^-=<]>=?\s|\s<=?\s|\bin\b|\bis not None\b|\bisinstance\(|\babs\(|\bMath\.abs\(|\bmath\.Abs\(|\bany\(|\bor True\b"
    r"|\|\|\s*true\b|\bassert(?:True|False|In|IsNotNone|IsInstance|Greater\w*|Less\w*|Regex|_?[Nn]ot_?[Nn]ull)\b|\bassert!\("
    r"|\.to(?:BeDefined|BeTruthy|Contain\w*|BeGreaterThan\w*|BeLessThan\w*|Match|BeInstanceOf|BeTypeOf)\("
    r"|\.not\.to(?:BeNull|BeUndefined|Throw)\(|\bassert\.ok\(|\btypeof\b|\bANY\b|\bexpect\.(?:anything|any|objectContaining)\("
    r"|\b(?:EXPECT|ASSERT)_(?:TRUE|GE|LE|GT|LT|NEAR|NE)\b|\.(?:NotNil|NotEmpty|Contains|True|InDelta)\(|\s-(?:n|le|ge|lt|gt)\s"
)
_ANY_ERROR: Final = lazy_regex(
    r"raises\(\s*(?:Base)?Exception\s*[,)]|assertRaises\(\s*(?:Base)?Exception\b|\.(?:toThrow|rejects\.toThrow|throws)\(\s*\)"
    r"|assertThrows\(\s*(?:Exception|Throwable)\.class"
)
_ONE_ERROR: Final = lazy_regex(r"raises\(|assertRaises\w*\(|\.toThrow\w*\(|\.throws\(|assertThrows\(")
_TOLERANCE: Final = lazy_regex(
    r"\b(?:abs|rel|delta|abs_tol|rel_tol|atol|rtol|epsilon|tolerance)\s*=\s*(?P<tolerance>\d{0,9}\.?\d{0,9}(?:e-?\d{1,3})?)"
    r"|\babs\(.{0,300}\)\s*<=?\s*(?P<bound>\d{0,9}\.?\d{0,9}(?:e-?\d{1,3})?)"
    r"|\bplaces\s*=\s*(?P<places>\d{1,3})|toBeCloseTo\([^()]{0,200},\s*(?P<digits>-?\d{1,3})\s*\)"
)
_TRIVIAL: Final = lazy_regex(
    r"\bassert (?:True|1)\s*$|\bassert(?:True|_true)?\(\s*(?:True|true|1)\s*\)"
    r"|expect\(\s*true\s*\)\.to(?:Be|Equal)\(\s*true\s*\)"
    r"|assert\.ok\(\s*true\s*\)|assert!\(\s*true\s*\)"
)
_SWALLOWED: Final = lazy_regex(r"^\s*(?:except\b.*:|\}?\s*catch\b.*\{)|contextlib\.suppress\(|^\s*with suppress\(")
_RETURNS: Final = lazy_regex(r"\s*return\s*;?")
_TIMEOUT: Final = lazy_regex(r"(?i)time_?out|deadline|max_?(?:time|seconds|ms)")
_EXPECTED: Final = lazy_regex(r"^\s*(?:[(\[{'\"].*,\s*$|(?:const |let |var )?\w*(?:expected|want)\w*\s*:?=)")
_COMMENT: Final = lazy_regex(r"^\s*(?:#(?!\[)|//|--\s|/?\*).*")
_TEXT: Final = r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`]*`"
_QUOTED: Final = lazy_regex(_TEXT)
_LITERAL: Final = lazy_regex(
    rf"{_TEXT}|\b\d[\d_.]*\b|\b(?:True|False|None|true|false|null"
    r"|undefined|nil)\b"
)
_SNAPSHOT: Final = lazy_regex(r"(?:^|/)__snapshots__/|\.(?:snap|golden|ambr)$|\.approved\.\w+$")
_REMOVED: Final = lazy_regex(r"(?:^|[;&|]\s*)(?:git\s+rm|rm)\s(?P<files>[^;&|\n]{1,1000})")


class Weakening(StrEnum):
    """What was done to a test."""

    NONE = ""
    SKIPPED = "skipped"
    DELETED = "deleted"
    WEAKENED = "weakened"
    CHANGED = "given other expected values"


def find_weakening(hunks: Sequence[Hunk], files: Sequence[str], commands: Sequence[str] = ()) -> Weakening:
    """Return how a change only in tests, or that skips one, makes a test check less.

    `files` are those of edits without hunks, and `commands` the shell commands that changed files.
    """
    removed, added = ([line for hunk in hunks for line in changed_lines(hunk, sign) if line.strip()] for sign in "-+")
    if len(_SKIP.findall("\n".join(added))) > len(_SKIP.findall("\n".join(removed))):
        return Weakening.SKIPPED
    deleted = [
        word
        for one in commands
        for found in _REMOVED.finditer(one)
        for word in found["files"].split()
        if word[0] != "-"
    ]
    changed = [hunk.file for hunk in hunks] or [file for file in files if file] or deleted
    if not changed or not all(map(_is_test, changed)):
        return Weakening.NONE
    if any(map(_is_test, deleted)) and not added:
        return Weakening.DELETED
    if hunks and all(_SNAPSHOT.search(file) for file in changed):
        return Weakening.CHANGED
    return _compare(removed, added)


def changed_lines(hunk: Hunk, sign: str) -> list[str]:
    """Return the added (`+`) or removed (`-`) lines of a hunk."""
    return [line[1:_MAX_LINE] for line in hunk.lines if line[:1] == sign]


def _is_test(file: str) -> bool:
    name = file.rpartition("/")[2].lower()
    return is_test_file(file) or "test" in name or _SNAPSHOT.search(file) is not None


def _compare(removed: Sequence[str], added: Sequence[str]) -> Weakening:
    """Compare the removed with the added lines of tests."""
    removed, added = ([line for line in lines if not _COMMENT.fullmatch(line)] for lines in (removed, added))
    before, after = (
        [line for line in lines if _ASSERTS.search(line) and not _TRIVIAL.search(line)] for lines in (removed, added)
    )
    if removed and not added:
        return Weakening.DELETED
    if len(after) < len(before) or _is_looser(before, after):
        return Weakening.WEAKENED
    if not removed and any(_RETURNS.fullmatch(line) for line in added):
        return Weakening.SKIPPED
    if any(_SWALLOWED.search(line) for line in added) and not any(_SWALLOWED.search(line) for line in removed):
        return Weakening.WEAKENED
    if removed and sorted(map(_without_literals, removed)) == sorted(map(_without_literals, added)):
        if before or all(_EXPECTED.search(line) for line in added):
            return Weakening.CHANGED
        if any(map(_TIMEOUT.search, added)):
            return Weakening.WEAKENED
    return Weakening.NONE


def _is_looser(before: Sequence[str], after: Sequence[str]) -> bool:
    """Return whether some exact assertions became inexact ones."""
    strict, strict_after = (sum(map(_is_strict, lines)) for lines in (before, after))
    loose, loose_after = (sum(map(_is_loose, lines)) for lines in (before, after))
    return loose_after > loose and strict_after < strict


def _is_strict(line: str) -> bool:
    return not _is_loose(line) and (_STRICT.search(line) or _ONE_ERROR.search(line)) is not None


def _is_loose(line: str) -> bool:
    if match := _TOLERANCE.search(line):
        if (tolerance := match["tolerance"] or match["bound"]) is not None:
            return _number(tolerance) > MAX_TOLERANCE
        return int(match["places"] or match["digits"]) < 2
    code = _QUOTED.sub("0", line)
    return _ANY_ERROR.search(line) is not None or _LOOSE.search(code) is not None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _without_literals(line: str) -> str:
    return "".join(_LITERAL.sub("0", line).split())


_SETTINGS: Final = lazy_regex(
    r"(?:^|/)(?:pytest\.ini|tox\.ini|setup\.cfg|noxfile\.py|\.coveragerc|\.?ruff\.toml|\.?mypy\.ini|\.flake8"
    r"|\.pylintrc|pyrightconfig\.json"
    r"|requirements[\w.-]*\.(?:txt|in)|constraints[\w.-]*\.txt|Pipfile(?:\.lock)?|poetry\.lock|uv\.lock"
    r"|package-lock\.json|yarn\.lock|pnpm-lock\.yaml"
    r"|(?:jest|vitest|vite|karma|cypress|playwright|babel|eslint|prettier)\.config\.\w+|\.mocharc[\w.]*"
    r"|\.eslintrc[\w.]*|\.prettierrc[\w.]*|\.babelrc"
    r"|\.nvmrc|\.node-version|\.python-version|\.tool-versions|\.env(?:\.[\w-]+)?|\.envrc|\.npmrc|go\.sum"
    r"|Cargo\.lock|Gemfile(?:\.lock)?|\.rspec)$"
)
"""Settings of test runners and linters, lists of dependencies, and the environment."""
_MANIFEST: Final = lazy_regex(
    r"(?:^|/)(?:pyproject\.toml|package\.json|go\.mod|Cargo\.toml|composer\.json|pom\.xml|build\.gradle(?:\.kts)?)$"
)
_SUPPRESSED: Final = lazy_regex(
    r"#\s*(?:noqa|type:\s*ignore|pylint:\s*disable|pyright:\s*ignore|mypy:\s*ignore|nosec|fmt:\s*(?:off|skip)"
    r"|ruff:\s*noqa|rubocop:disable)"
    r"|//\s*(?:@ts-(?:ignore|nocheck|expect-error)|eslint-disable|nolint|NOLINT|noinspection|prettier-ignore)"
    r"|/\*\s*(?:eslint-disable|istanbul ignore)"
    r"|@SuppressWarnings|#\[allow\(|#pragma\s+(?:GCC|clang)\s+diagnostic\s+ignored|shellcheck\s+disable"
    r"|@ts-nocheck|:\s*any\b"
)
_INSTALL: Final = lazy_regex(
    r"(?:^|[;&|]\s*|\s)(?:(?:python[\d.]*\s+-m\s+)?pip3?|uv(?:\s+pip)?|poetry|pipenv|conda|npm|yarn|pnpm|bun|gem"
    r"|bundle|cargo|go|apt(?:-get)?|brew|apk|dnf|composer|pipx)"
    r"\s+(?:install|add|i|ci|sync|get|update|upgrade|restore)\b|\b(?:npm|pnpm|yarn)\s+ci\b"
    r"|\bsource\s+\S*activate\b|\bexport\s+\w+=|\bchmod\s|\bvirtualenv\b|-m\s+venv\b"
)
_NO_MODULE: Final = lazy_regex(r"No module named ['\"]?(?P<name>[\w.-]+)")
_NOT_FOUND: Final = lazy_regex(
    r"(?:^|[:\s])['\"`]?(?P<name>[\w./+-]+)['\"`]?: (?:command )?not found|(?:executable file"
    r"|command) not found(?: in \$PATH)?:? ?['\"]?(?P<other>[\w./+-]*)|is not recognized as an internal"
    r"|can't open file '(?P<file>[^']+)'|Missing script: ['\"]?(?P<script>[\w:-]+)"
)
_WORD: Final = lazy_regex(r"[\w./+-]+")
_DOCUMENT: Final = lazy_regex(
    r"(?:^|/)(?:README|CHANGELOG|CHANGES|NOTES|TODO|LICENSE)[^/]*$|\.(?:md|rst|txt|adoc)$", re.IGNORECASE
)
_TRANSIENT: Final = lazy_regex(
    r"\b(?:ETIMEDOUT|ECONNRESET|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EADDRINUSE|ENOSPC)\b"
    r"|(?i:connection (?:refused|reset|aborted|timed out)|connect(?:ion)? time-?d? ?out|failed to connect"
    r"|network is unreachable|could not resolve (?:host|proxy)"
    r"|name resolution|name or service not known|no route to host|no such host"
    r"|(?:read|operation|handshake|i/o|request|gateway) time(?:d )?-?out|timeout was reached|max retries exceeded"
    r"|(?:502|503|504|429) (?:bad gateway|service unavailable|gateway time-?out|too many requests)|rate limit"
    r"|address already in use|port \d{1,5} is (?:already )?in use|no space left on device|disk quota exceeded"
    r"|cannot allocate memory|too many open files|temporarily unavailable|temporary failure)"
)
"""Errors of the network or the machine, which may be gone at the next run."""
_CONNECTING: Final = lazy_regex(
    r"(?i)time_?out|retr(?:y|ies)|backoff|\bport\b|host|\burl|socket|proxy|connect|listen|close|bind\(|fetch|request|session"
    r"|mock|patch"
)
_UNDO: Final = lazy_regex(r"(?:^|[;&|]\s*)git\s+(?:checkout|restore|revert|reset|stash)\b(?!\s+(?:pop|apply))")


def is_environment_error(action: Action, failures: Iterable[Failure]) -> bool:
    """Return whether a command failed as a program or module it names is missing.

    An error of a script or program that the command runs is not meant, even if it is the same message.
    """
    words = set(_WORD.findall(action.command))
    names = {word.rpartition("/")[2] for word in words}
    for text in (*(one.message for one in failures), *_first_lines(action)):
        if (match := _NO_MODULE.search(text)) and match["name"].partition(".")[0] in {
            name.partition(".")[0] for name in names
        }:
            return True
        if match := _NOT_FOUND.search(text):
            missing = next(
                (name for name in (match["name"], match["other"], match["file"], match["script"]) if name), ""
            )
            if not missing or missing.rpartition("/")[2] in names:
                return True
    return False


def _first_lines(action: Action) -> list[str]:
    lines = [line for line in f"{action.error}\n{action.output}".split("\n") if line.strip()]
    return lines[:3] if len(lines) <= 6 else []


def is_install(action: Action) -> bool:
    """Return whether a command installed a dependency or changed the environment."""
    return bool(action.command) and not action.has_failed and _INSTALL.search(action.command) is not None


def teaches_nothing(hunks: Sequence[Hunk], files: Sequence[str]) -> bool:
    """Return whether a change is of the environment or only suppresses a check."""
    changed = [hunk.file for hunk in hunks] or list(files)
    if changed and all(_SETTINGS.search(file) for file in changed):
        return True
    if hunks and all(_MANIFEST.search(hunk.file) and _is_runner_section(hunk) for hunk in hunks):
        return True
    return bool(hunks) and all(
        _SUPPRESSED.search("\n".join(changed_lines(hunk, "+"))) is not None and _is_same_code(hunk) for hunk in hunks
    )


def is_document(file: str) -> bool:
    """Return whether a file is a text for people, such as README.md."""
    return _DOCUMENT.search(file) is not None


def is_unrelated(run: Action, failures: Sequence[Failure], hunks: Sequence[Hunk], files: Sequence[str]) -> bool:
    """Return whether a change has nothing to do with a failed run's later success.

    This is so for documents, and for any change if the network or the machine failed, unless the run names a changed
    file. A change of code that connects is related to an error of the network.
    """
    changed = {hunk.file for hunk in hunks} or set(files)
    printed = f"{run.command}\n{run.error}\n{run.output}"
    if any(name and name in printed for name in (file.rpartition("/")[2] for file in changed)):
        return False
    if changed and all(map(is_document, changed)):
        return True
    is_transient = any(_TRANSIENT.search(f"{one.error_type}: {one.message}") for one in failures)
    lines = "\n".join(line for hunk in hunks for sign in "-+" for line in changed_lines(hunk, sign))
    return is_transient and _CONNECTING.search(lines) is None


def is_undone(hunks: Sequence[Hunk], earlier: Iterable[Hunk], commands: Sequence[str]) -> bool:
    """Return whether a change only reverts others; `commands` are its shell edits."""
    if not hunks:
        return bool(commands) and all(_UNDO.search(command) for command in commands)
    before: dict[str, dict[str, set[str]]] = {}
    for hunk in earlier:
        lines = before.setdefault(hunk.file, {"-": set(), "+": set()})
        for sign, texts in lines.items():
            texts.update(_bare_lines(hunk, sign))
    return all(
        hunk.file in before
        and set(_bare_lines(hunk, "+")) <= before[hunk.file]["-"]
        and set(_bare_lines(hunk, "-")) <= before[hunk.file]["+"]
        for hunk in hunks
    )


def _bare_lines(hunk: Hunk, sign: str) -> list[str]:
    return [bare for line in changed_lines(hunk, sign) if (bare := line.strip())]


def _is_same_code(hunk: Hunk) -> bool:
    """Return whether only comments and type names differ."""
    bare = re.compile(r"(?:#|//).*$|/\*.*?\*/|:\s*any\b")
    old, new = (["".join(bare.sub("", line).split()) for line in changed_lines(hunk, sign)] for sign in "-+")
    return [line for line in old if line] == [line for line in new if line]


def _is_runner_section(hunk: Hunk) -> bool:
    text = "\n".join(hunk.lines)
    return (
        re.search(
            r"tool\.(?:pytest|ruff|mypy|coverage|pyright)|testpaths|pythonpath|addopts|\"(?:jest|mocha"
            r"|eslintConfig|devDependencies|dependencies)\"|dependencies|^[+-]\s*\"[@\w/-]+\": \"[\^~]?\d",
            text,
            re.MULTILINE,
        )
        is not None
    )
