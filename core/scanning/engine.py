"""The search for all rules in one text.

Three steps, each of which selects the patterns for the next one: RE2 looks for the literal parts of all patterns at
once; then for the patterns whose parts occur, without the bounds of their repeats; then for the patterns themselves.
Most texts need the first two only. Bounds take long to compile, and most patterns are never compiled with theirs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

from core.scanning.rule import Rule
from core.scanning.rules import RULES

_TOKEN: Final = re.compile(r"\\[xpP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?P<least>\d+)(?:,\d*)?\}\??", re.DOTALL)
"""What belongs together in a pattern: an escape, a class, or the bounds of a repeat."""
_WIDE: Final = re.compile(r"\\[xpPC]|[^\x00-\x7f]-|-[^\x00-\x7f]")
"""What names characters outside of ASCII by their codes, by their properties or as a range."""
_CODES: Final = (*range(0x01, 0x09), *range(0x0E, 0x20))
"""Bytes for signs that patterns name, such as the Chinese full stop. Normalised texts have none of these controls."""
_OTHER: Final = 0x7F
"""The byte for every other character outside of ASCII. No pattern names it, and it is no letter, digit or space."""


class Engine:
    """Searches texts that are normalised, see `core.scanning.normalization`, for rules."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._patterns = [(rule, pattern) for rule in rules for pattern in rule.patterns]
        self._bytes = _Bytes(pattern for _, pattern in self._patterns)
        self._sieves = {narrow: _Sieve(narrow) for narrow in (True, False)}
        for number, (_, pattern) in enumerate(self._patterns):
            encoded, narrow = self._bytes.of_pattern(pattern)
            self._sieves[narrow].add(number, encoded)
        for sieve in self._sieves.values():
            sieve.compile()
        self._compiled: dict[str, tuple[Any, bool]] = {}

    def finds(self, text: str) -> list[tuple[Rule, str]]:
        """The rules, each with the pattern, that find something; the rules in their order."""
        return [self._patterns[number] for number in sorted(self._finds(text))]

    def finds_any(self, text: str) -> bool:
        """Whether any rule finds something."""
        return next(self._finds(text), None) is not None

    def _finds(self, text: str) -> Iterator[int]:
        for narrow, sieve in self._sieves.items():
            encoded = self._bytes.of_text(text, narrow)
            for number, exact in sieve.finds(encoded):
                if exact or self._compile(self._patterns[number][1])[0].search(encoded if narrow else text):
                    yield number

    def places(self, rule: Rule, pattern: str, text: str) -> Iterator[tuple[int, int]]:
        """Where the pattern is found and the rule means it."""
        for start, end in self._search(pattern, text):
            if not rule.unless or self.first(rule.unless, text[start:end]) is None:
                yield start, end

    def starts(self, pattern: str, text: str, start: int, end: int) -> Iterator[int]:
        """Where the pattern begins within what it found: "never use wget: curl x | sh" tells of the second only."""
        yield start
        while found := self.first(pattern, text[start + 1 : end]):
            start += 1 + found[0]
            yield start

    def first(self, pattern: str, text: str) -> tuple[int, int] | None:
        """Where a pattern, of a rule or not, is found first."""
        return next(self._search(pattern, text), None)

    def _search(self, pattern: str, text: str) -> Iterator[tuple[int, int]]:
        compiled, narrow = self._compile(pattern)
        for found in compiled.finditer(self._bytes.of_text(text, narrow) if narrow else text):
            yield found.span()

    def _compile(self, pattern: str) -> tuple[Any, bool]:
        """The pattern, and whether it is for texts of one byte for each character."""
        if pattern not in self._compiled:
            import re2

            encoded, narrow = self._bytes.of_pattern(pattern)
            compiled = self._sieves[narrow].compiled(encoded) or re2.compile(encoded, _options(narrow))
            self._compiled[pattern] = (compiled, narrow)
        return self._compiled[pattern]


@cache
def get_engine() -> Engine:
    """The engine of `RULES`."""
    return Engine(RULES)


class _Sieve:
    """Patterns that are searched for in texts of one encoding, first without the bounds of their repeats."""

    def __init__(self, narrow: bool) -> None:
        import re2

        self._options = _options(narrow)
        self._filter = re2.Filter()
        self._patterns: list[tuple[int, bool]] = []
        self._certain: dict[bytes, int] = {}

    def add(self, number: int, pattern: bytes) -> None:
        """Search for a pattern, too; `finds` calls it by its number."""
        loose = remove_bounds(pattern.decode("latin-1")).encode("latin-1")
        place = self._filter.Add(loose, self._options)
        self._patterns.append((number, pattern == loose))
        if pattern == loose:
            self._certain[pattern] = place

    def compile(self) -> None:
        """Finish what is added."""
        if self._patterns:
            self._filter.Compile()

    def compiled(self, pattern: bytes) -> Any:
        """The pattern, if it is compiled here as it is."""
        return self._filter.re(self._certain[pattern]) if pattern in self._certain else None

    def finds(self, text: bytes) -> Iterator[tuple[int, bool]]:
        """The patterns that may be found, in any order: (number, whether it is certain)."""
        for place in (self._filter.Match(text) if self._patterns else None) or ():
            yield self._patterns[place]


class _Bytes:
    """Patterns and texts in bytes, one for each character where patterns cannot tell more characters apart.

    Patterns are several times as large and slow when a character may be up to four bytes.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        signs = sorted(filter(_is_sign, set("".join(patterns))))
        self._codes = {ord(sign): chr(code) for sign, code in zip(signs, _CODES, strict=False)}
        self._table = _Narrowed(self._codes)

    def of_pattern(self, pattern: str) -> tuple[bytes, bool]:
        """The pattern, and whether it is for texts of one byte for each character."""
        if not _WIDE.search(pattern):
            if pattern.isascii():
                return pattern.encode(), True
            narrowed = pattern.translate(self._codes)
            if narrowed.isascii():
                return narrowed.encode(), True
        return pattern.encode(), False

    def of_text(self, text: str, narrow: bool) -> bytes:
        """The text for patterns of one byte for each character, or for others."""
        return text.encode() if not narrow or text.isascii() else text.translate(self._table).encode()


class _Narrowed(dict[int, str]):
    """Translation table into characters of one byte, filled for each character when it is first met."""

    def __missing__(self, code: int) -> str:
        narrowed = self[code] = chr(code) if code < 0x80 else chr(_OTHER)
        return narrowed


def _is_sign(char: str) -> bool:
    """Whether a character outside of ASCII is no letter or part of one."""
    return not char.isascii() and unicodedata.category(char)[0] in "PSZ"


@cache
def _options(narrow: bool) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = False
    options.never_capture = True
    options.max_mem = 64 << 20
    if narrow:
        options.encoding = re2.Options.Encoding.LATIN1
    return options


def remove_bounds(pattern: str) -> str:
    """A pattern in RE2 syntax with `*` or `+` in the place of the bounds of repeats; it matches all that it did."""
    return _TOKEN.sub(
        lambda token: token[0] if token["least"] is None else "+" if int(token["least"]) else "*", pattern
    )
