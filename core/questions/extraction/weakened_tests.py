"""Changes after which a test passes because it checks less (docs/extraction.md#weakened-tests)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from core.base.regexes import lazy_regex
from core.tasks.error_messages import is_test_file

if TYPE_CHECKING:
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
    """Return how a change makes a test check less; the change is only in tests, or skips one of them.

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
    if found := _TOLERANCE.search(line):
        if (tolerance := found["tolerance"] or found["bound"]) is not None:
            return _number(tolerance) > MAX_TOLERANCE
        return int(found["places"] or found["digits"]) < 2
    code = _QUOTED.sub("0", line)
    return _ANY_ERROR.search(line) is not None or _LOOSE.search(code) is not None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _without_literals(line: str) -> str:
    return "".join(_LITERAL.sub("0", line).split())
