"""Search for all rules in one text, in three steps of increasing cost.

RE2 first searches for the literal parts of all patterns at once. Then it matches the patterns with these parts, with
the bounds of their repeats removed, and last the patterns themselves. Most texts need only two steps, and most patterns
are never compiled with their bounds, which is slow. Patterns without literal parts are matched all at once, first
without upper bounds, which would need many states.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from core.scanning.rules import HIDING, Rule, load_rules

_TOKEN: Final = re.compile(
    r"\\[xpP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?P<least>\d+)(?P<most>,\d*)?\}\??", re.DOTALL
)
"""A token of a pattern: an escape, a class, or the bounds of a repeat."""
_WIDE: Final = re.compile(r"\\[xpPC]|[^\x00-\x7f]-|-[^\x00-\x7f]")  # non-ASCII by code or range
_CODES: Final = (*range(0x01, 0x09), *range(0x0E, 0x20))  # bytes for signs in patterns, such as the Chinese full stop
_SET_MEMORY: Final = 4 << 20  # bytes for the automaton of the short patterns
_OTHER: Final = 0x7F  # byte for other characters beyond ASCII; not a letter, digit or space


class Engine:
    """Searches texts that `core.scanning.normalization` has normalized."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._patterns = [(rule, pattern) for rule in rules for pattern in rule.patterns]
        self._bytes = _Bytes(pattern for _, pattern in self._patterns)
        encoded = [self._bytes.of_pattern(pattern) for _, pattern in self._patterns]
        short = {number for number, (rule, pattern) in enumerate(self._patterns) if pattern in rule.short}
        self._sieves = {
            narrow: _Sieve(
                {number: part for number, (part, kind) in enumerate(encoded) if kind is narrow}, short, narrow
            )
            for narrow in (True, False)
        }
        self._compiled: dict[str, tuple[Any, bool]] = {}

    def finds(self, text: str) -> list[tuple[Rule, str]]:
        """Return (rule, pattern) of each pattern that matches, in the order of the rules."""
        return [self._patterns[number] for number in sorted(self._finds(text))]

    def finds_any(self, text: str) -> bool:
        return next(self._finds(text), None) is not None

    def _finds(self, text: str) -> Iterator[int]:
        for narrow, sieve in self._sieves.items():
            encoded = self._bytes.of_text(text, narrow)
            for number, exact in sieve.finds(encoded):
                if exact or self._compile(self._patterns[number][1])[0].search(encoded if narrow else text):
                    yield number

    def places(self, rule: Rule, pattern: str, text: str) -> Iterator[tuple[int, int]]:
        """Yield (start, end) of each match that the exception of the rule does not cover."""
        for start, end in self._search(pattern, text):
            if not rule.unless or self.first(rule.unless, text[start:end]) is None:
                yield start, end

    def starts(self, pattern: str, text: str, start: int, end: int) -> Iterator[int]:
        """Yield each start of the pattern: "never use wget: curl x | sh" has two starts."""
        yield start
        while found := self.first(pattern, text[start + 1 : end]):
            start += 1 + found[0]
            yield start

    def first(self, pattern: str, text: str) -> tuple[int, int] | None:
        """Return (start, end) of the first match of a pattern."""
        return next(self._search(pattern, text), None)

    def _search(self, pattern: str, text: str) -> Iterator[tuple[int, int]]:
        compiled, narrow = self._compile(pattern)
        for found in compiled.finditer(self._bytes.of_text(text, narrow) if narrow else text):
            yield found.span()

    def _compile(self, pattern: str) -> tuple[Any, bool]:
        """Compile a pattern; returns it and whether its text has one byte per character."""
        if pattern not in self._compiled:
            import re2

            encoded, narrow = self._bytes.of_pattern(pattern)
            compiled = self._sieves[narrow].compiled(encoded) or re2.compile(encoded, _options(narrow))
            self._compiled[pattern] = (compiled, narrow)
        return self._compiled[pattern]


@cache
def get_engine() -> Engine:
    return Engine((*load_rules(), HIDING))


class _Sieve:
    """Filter for the patterns of one encoding; the bounds of repeats are removed, of short patterns the upper ones."""

    def __init__(self, patterns: Mapping[int, bytes], short: Collection[int], narrow: bool) -> None:
        import re2

        self._filter = re2.Filter()
        self._set = re2.Set.SearchSet(_options(narrow, _SET_MEMORY))
        self._patterns: list[tuple[int, bool]] = []
        self._short: list[tuple[int, bool]] = []
        self._certain: dict[bytes, int] = {}
        for number, pattern in patterns.items():
            loose = remove_bounds(pattern.decode("latin-1"), keep_least=number in short).encode("latin-1")
            if number in short:
                self._set.Add(loose)
                self._short.append((number, pattern == loose))
                continue
            place = self._filter.Add(loose, _options(narrow))
            self._patterns.append((number, pattern == loose))
            if pattern == loose:
                self._certain[pattern] = place
        if self._patterns:
            self._filter.Compile()
        if self._short:
            self._set.Compile()

    def compiled(self, pattern: bytes) -> Any:
        """Return the compiled pattern if it has no bounds, otherwise None."""
        return self._filter.re(self._certain[pattern]) if pattern in self._certain else None

    def finds(self, text: bytes) -> Iterator[tuple[int, bool]]:
        """Yield (number, is_certain) of each pattern that may match, unordered."""
        for place in (self._filter.Match(text) if self._patterns else None) or ():
            yield self._patterns[place]
        for place in (self._set.Match(text) if self._short else None) or ():
            yield self._short[place]


class _Bytes:
    """Encoding of patterns and texts, if possible one byte per character, for speed."""

    def __init__(self, patterns: Iterable[str]) -> None:
        signs = sorted(
            char for char in set("".join(patterns)) if not char.isascii() and unicodedata.category(char)[0] in "PSZ"
        )
        self._codes = {ord(sign): chr(code) for sign, code in zip(signs, _CODES, strict=False)}
        self._table = _Narrowed(self._codes)

    def of_pattern(self, pattern: str) -> tuple[bytes, bool]:
        """Encode a pattern; returns it and whether its text has one byte per character."""
        narrowed = pattern.translate(self._codes)
        is_narrow = narrowed.isascii() and not _WIDE.search(pattern)
        return (narrowed if is_narrow else pattern).encode(), is_narrow

    def of_text(self, text: str, narrow: bool) -> bytes:
        """Encode a text: `narrow` for patterns with one byte per character."""
        return text.encode() if not narrow or text.isascii() else text.translate(self._table).encode()


class _Narrowed(dict[int, str]):
    """Table for `str.translate` to one-byte characters; caches entries on first use."""

    def __missing__(self, code: int) -> str:
        narrowed = self[code] = chr(code) if code < 0x80 else chr(_OTHER)
        return narrowed


@cache
def _options(narrow: bool, memory: int = 64 << 20) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = False
    options.never_capture = True
    options.max_mem = memory
    if narrow:
        options.encoding = re2.Options.Encoding.LATIN1
    return options


def remove_bounds(pattern: str, *, keep_least: bool = False) -> str:
    """Replace bounds of repeats by `*` or `+`, so that an RE2 pattern matches more; `keep_least` only upper bounds."""

    def loosen(token: re.Match[str]) -> str:
        if token["least"] is None or (keep_least and not token["most"]):
            return token[0]
        least = int(token["least"])
        return f"{{{least},}}" if keep_least and least > 1 else "+" if least else "*"

    return _TOKEN.sub(loosen, pattern)
