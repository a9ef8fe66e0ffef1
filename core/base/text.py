"""Untrusted text becomes displayable text; untrusted regexes become safe matchers."""

from __future__ import annotations

import unicodedata
from functools import cache, lru_cache
from typing import Any, Final

from core.redaction.masking import mask_secrets

UNKNOWN_CHAR: Final = "\N{REPLACEMENT CHARACTER}"
HIDDEN_CHAR: Final = "\N{APL FUNCTIONAL SYMBOL QUAD QUESTION}"
ELLIPSIS: Final = "\N{HORIZONTAL ELLIPSIS}"

MAX_PATTERN: Final = 512
"""Longest regex, in characters, that is compiled (safety.md)."""
MAX_SUBJECT: Final = 4096
"""Longest text, in characters, that a regex from a file is matched against (safety.md)."""

_VARIATION_SELECTORS: Final = range(0xFE00, 0xFE10)
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)
# Letters and marks that draw nothing although Unicode does not file them under "format".
_BLANK: Final = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0}
)


class _Table(dict[int, str]):
    """Translation table for `str.translate`, filled for each character when it is first met."""

    def __missing__(self, code: int) -> str:
        shown = self[code] = _shown(code)
        return shown


def _shown(code: int) -> str:
    char = chr(code)
    if char in "\n\t":
        return char
    if code < 0x20:
        return chr(0x2400 + code)
    if 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000:
        return UNKNOWN_CHAR
    if code in _VARIATION_SELECTORS or code in _SKIN_TONES:
        return ""
    category = unicodedata.category(char)
    if category in {"Cf", "Zl", "Zp"} or code in _BLANK or 0xE0100 <= code < 0xE01F0:
        return HIDDEN_CHAR
    if category == "Cn":
        return UNKNOWN_CHAR
    return char


class _Overlooked(dict[int, str]):
    """Translation table that puts `gap` for what `_shown` drops or marks, and for the marks themselves."""

    def __init__(self, gap: str) -> None:
        super().__init__()
        self._gap = gap

    def __missing__(self, code: int) -> str:
        char, shown = chr(code), _shown(code)
        if code in _PICTURES or char in {UNKNOWN_CHAR, HIDDEN_CHAR}:
            read = " " if code in _SPACE_PICTURES else self._gap
        elif shown == char:
            read = char
        else:
            read = " " if char.isspace() else self._gap
        self[code] = read
        return read


_TABLE: Final = _Table()
_PICTURES: Final = range(0x2400, 0x2425)
_SPACE_PICTURES: Final = frozenset({0x2409, 0x240A, 0x240B, 0x240C, 0x240D, 0x2424})
_overlooked: Final = cache(_Overlooked)
_MARGIN: Final = 512
"""Characters behind a cut that are looked at, so that half a secret is known for one."""
_LINE_TABLE: Final = {ord("\n"): "\N{SYMBOL FOR NEWLINE}", ord("\t"): " "}


def visible(text: str, limit: int | None = None) -> str:
    """`text` as it may reach a terminal: what would act or hide is shown as a mark instead.

    Control characters except newline and tab become control pictures; DEL, C1, lone surrogates and
    unassigned characters U+FFFD; bidirectional and invisible characters one visible mark; variation
    selectors and skin tones are dropped, since terminals disagree about their width. Secrets are masked, see
    `core.redaction.masking.mask_secrets`.

    Args:
        text: Anything read from a file, a name, or an exception.
        limit: Cut to this many characters, the last one an ellipsis, before anything is translated.
    """
    text = _shareable(text, limit)
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_TABLE)


def visible_line(text: str, limit: int | None = None) -> str:
    """`visible(text)` on one line: newlines are shown as a mark, tabs as one space."""
    text = _shareable(text, limit)
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").strip("\n").translate(_TABLE).translate(_LINE_TABLE)


def remove_hidden(text: str, gap: str = "") -> str:
    """`text` as it is read by who overlooks all that `visible` drops or marks, and the marks of `visible` too.

    What hides inside of a word hides the word from nobody: `Ig\u200bnore` reads as `Ignore`, before and after
    `visible`. What parts lines or words becomes a space, newlines and tabs stay.

    Args:
        gap: What such a character becomes.
    """
    return text if is_plain_ascii(text) else text.replace("\r\n", "\n").translate(_overlooked(gap))


def is_plain_ascii(text: str) -> bool:
    """Whether `text` is ASCII without any control character but newline and tab: nothing in it can be overlooked."""
    return text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()


def _shareable(text: str, limit: int | None) -> str:
    """`text` without secrets, cut to `limit` characters."""
    if limit is None or len(text) <= limit:
        return mask_secrets(text)
    seen = mask_secrets(text[: limit + _MARGIN])
    return seen[: max(limit - 1, 0)] + ELLIPSIS


def plural(count: int, noun: str, many: str | None = None) -> str:
    """`1 loop`, `2 loops`, `3 entries`: the noun that fits the count."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


class Matcher:
    """A regex from a file, made safe: RE2 where RE2 can, else the literal text.

    Attributes:
        source: The regex as it stands in the file.
        problem: Why it is matched literally, or None where RE2 took it.
    """

    __slots__ = ("_regex", "problem", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self.problem: str | None = None
        self._regex: Any = None
        if len(source) > MAX_PATTERN:
            self.problem = f"longer than {MAX_PATTERN} characters; matched as literal text"
            return
        try:
            self._regex = _compile(source)
        except Exception as error:  # RE2 raises its own error class, unicode errors, and others
            reason = visible_line(str(error), 120)
            self.problem = f"not a regex that can run safely ({reason}); matched as literal text"

    def matches(self, subject: str) -> bool:
        """Whether the regex is found anywhere in the first `MAX_SUBJECT` characters of `subject`."""
        subject = subject[:MAX_SUBJECT]
        if self._regex is None:
            return bool(self.source) and self.source in subject
        try:
            return self._regex.search(subject) is not None
        except UnicodeEncodeError:
            return self._regex.search(subject.encode("utf-8", "replace").decode()) is not None


def _compile(source: str) -> Any:
    import re2

    return re2.compile(source, options=_options())


@cache
def _options() -> Any:
    """Made once: to make them takes as long as to compile a short regex."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    return options


@lru_cache(maxsize=4096)
def safe_matcher(source: str) -> Matcher:
    """The (cached) safe matcher for a regex that came from a file."""
    return Matcher(source)
