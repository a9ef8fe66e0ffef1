r"""Safety scan rules; all are searched in a text in three steps of rising cost.

`python -m tests.reference` writes `rules.jsonl` from `rule_tables/*.yaml`, and finds the literal parts of all patterns.
RE2 has no look-around, so the exceptions of a rule are in `unless`. `\W+(?:\w+\W+){0,3}?` is a gap of few words.
Patterns match case-insensitively in normalized text, see `core.base.scanning.normalization`.

First, the literal parts of all patterns are searched at once. Then RE2 matches the patterns with these parts, with the
bounds of their repeats removed, and last the patterns themselves. Most texts need only the first step, and most
patterns are never compiled. Patterns without literal parts are matched all at once, first without upper bounds, which
would need many states.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, cached_property, lru_cache
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from core.records.patterns import Severity

VERSION: Final = 2
"""Version of the rules; an approval of a text does not cover what later rules block (docs/safety.md#approvals)."""
TABLE: Final = Path(__file__).with_name("rules.jsonl")

Literals = tuple[tuple[tuple[str, ...], ...], ...]
"""Literal parts of a pattern in lower case: a match contains a text of each group of an alternative; () if unknown."""


class Rule(Struct, frozen=True, omit_defaults=True):
    """Kind of harm that a text could do to an agent."""

    id: str  # name in files and JSON
    meaning: str  # what the text does, in words that follow "this text"
    severity: Severity  # severity of a match
    patterns: tuple[str, ...] = ()  # RE2 patterns, any of which matches
    unless: str = ""  # pattern of matches to ignore
    advice: bool = False  # whether a warning of the thing is harmless: "never use --no-verify"
    literals: tuple[Literals, ...] = ()  # of each pattern; only for speed
    cited: bool = False  # whether it is harmless to forbid or to quote the thing: 'texts such as "ignore the rules"'
    since: int = 1  # version of the rules that added it

    @property
    def critical(self) -> bool:
        return self.severity is Severity.BLOCKED


BIDI: Final = Rule("bidi", "turns the direction of text, so that it reads differently", Severity.BLOCKED)
TAGS: Final = Rule("hidden-text", "contains invisible letters", Severity.BLOCKED)
INVISIBLE: Final = Rule("invisible", "contains invisible characters", Severity.FLAGGED)
LOOKALIKE: Final = Rule("lookalike", "mixes letters of other alphabets into words", Severity.FLAGGED)
SECRET: Final = Rule("secret", "contains what looks like a secret", Severity.FLAGGED)
BROAD: Final = Rule("broad-trigger", "has a trigger that matches nearly every message", Severity.FLAGGED)
LONG: Final = Rule("unscanned", "is too long to be scanned completely", Severity.FLAGGED)
COUNTS: Final = Rule("counts", "states many uses that no other record confirms", Severity.FLAGGED)
FOREIGN_SCRIPT: Final = Rule(
    "foreign-script", "is written in letters that this project does not use", Severity.HELD, since=2
)
_HIDING: Final = (
    r"(?:\b[^\W_][ \t._*-]{1,8}){7}|[A-Za-z0-9+/]{24}|(?:[\\]x[0-9a-f]{2}){6}|(?:[\\]u00[0-9a-f]{2}){4}"
    r"|(?:%[0-9a-f]{2}){6}|(?:&#x?[0-9a-f]{2,4};){4}|\b(?:[a-z]*[013457@$][a-z013457@$]*[ \t]+){3}"
)
HIDING: Final = Rule("hiding", "may hide text", Severity.FLAGGED, (_HIDING,), literals=((),))
"""Signs of hidden text: spaced-out words, base64, escapes, digits for letters. Not a suspicion by itself."""
_WITHOUT_PATTERNS: Final = (BIDI, TAGS, INVISIBLE, LOOKALIKE, SECRET, BROAD, LONG, COUNTS, FOREIGN_SCRIPT)


@cache
def load_rules() -> tuple[Rule, ...]:
    """Return all rules with patterns, most severe first; loads them once."""
    return tuple(msgspec.json.Decoder(Rule).decode_lines(TABLE.read_bytes()))


@cache
def rule_meanings() -> dict[str, str]:
    return {rule.id: rule.meaning for rule in (*load_rules(), *_WITHOUT_PATTERNS)}


_TOKEN: Final = re.compile(
    r"\\[xpP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?P<least>\d+)(?P<most>,\d*)?\}\??", re.DOTALL
)
"""A token of a pattern: an escape, a class, or the bounds of a repeat."""
_WIDE: Final = re.compile(r"\\[xpPC]|[^\x00-\x7f]-|-[^\x00-\x7f]")  # non-ASCII by code or range
_CODES: Final = (*range(0x01, 0x09), *range(0x0E, 0x20))  # bytes for signs in patterns, such as the Chinese full stop
_MEMORY: Final = 64 << 20  # most bytes for a pattern and its automaton
_SET_MEMORY: Final = 4 << 20  # bytes for the automaton of the short patterns
_LITERALS_MEMORY: Final = 8 << 20  # bytes for the automaton of all literal parts
_FEW: Final = 1 << 16  # characters of texts, after which making the set of all literal parts pays
_BEGINNING: Final = 3  # characters by which literal parts are looked up
_OTHER: Final = 0x7F  # byte for other characters beyond ASCII; not a letter, digit or space


class Engine:
    """Searches texts that `core.base.scanning.normalization` has normalized."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        found = [
            (rule, pattern, literals)
            for rule in rules
            for pattern, literals in zip(rule.patterns, rule.literals or repeat(()), strict=False)
        ]
        self._patterns = [(rule, pattern) for rule, pattern, _ in found]
        self._bytes = _Bytes(pattern for _, pattern in self._patterns)
        self._sieves = {narrow: _Sieve(narrow, self._bytes) for narrow in (True, False)}
        for number, (_, pattern, literals) in enumerate(found):
            encoded, narrow = self._bytes.of_pattern(pattern)
            self._sieves[narrow].add(number, encoded, literals)
        for sieve in self._sieves.values():
            sieve.compile()
        self._compiled: dict[str, tuple[Any, bool]] = {}

    def finds(self, text: str) -> list[tuple[Rule, str]]:
        """Return (rule, pattern) of each pattern that matches, in the order of the rules."""
        return [self._patterns[number] for number in sorted(self._finds(text))]

    def finds_any(self, text: str) -> bool:
        return next(self._finds(text), None) is not None

    def _finds(self, text: str) -> Iterator[int]:
        for narrow, sieve in self._sieves.items():
            encoded = self._bytes.of_text(text, narrow)
            for number, is_certain in sieve.find_possible(encoded, text):
                if is_certain or self._compile(self._patterns[number][1])[0].search(encoded if narrow else text):
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
            self._compiled[pattern] = (re2.compile(encoded, _options(narrow)), narrow)
        return self._compiled[pattern]


@cache
def get_engine() -> Engine:
    return Engine((*load_rules(), HIDING))


class _Sieve:
    """Filter for the patterns of one encoding, without the bounds of their repeats.

    Of short patterns, only the upper bounds are removed.
    """

    def __init__(self, narrow: bool, encoding: _Bytes) -> None:
        self._narrow = narrow
        self._set = _new_set(narrow, _SET_MEMORY)
        self._literals = _LiteralSearch(narrow, encoding)
        self._short: list[tuple[int, bool]] = []
        """Patterns without literal parts, and whether they have no upper bounds."""
        self._others: defaultdict[str, list[tuple[int, Sequence[tuple[str, ...]]]]] = defaultdict(list)
        """By literal part, the patterns with it in the first group, and their other groups."""
        self._encoded: dict[int, bytes] = {}
        self._loose: dict[int, tuple[Any, bool]] = {}

    def add(self, number: int, pattern: bytes, literals: Literals) -> None:
        """Add a pattern."""
        if not literals:
            loose = _loosen(pattern, keep_least=True)
            self._set.Add(loose)
            self._short.append((number, pattern == loose))
            return
        self._encoded[number] = pattern
        for first, *others in literals:
            for text in first:
                self._others[text].append((number, others))
            self._literals.texts |= dict.fromkeys(chain(first, *others))

    def compile(self) -> None:
        """Compile what was added."""
        if self._short:
            self._set.Compile()

    def find_possible(self, encoded: bytes, text: str) -> list[tuple[int, bool]]:
        """Return (number, is_certain) of each pattern that may match, unordered."""
        found = [self._short[place] for place in self._set.Match(encoded) or ()] if self._short else []
        present = self._literals.find(encoded, text)
        numbers = {
            number
            for literal in present & self._others.keys()
            for number, groups in self._others[literal]
            if not any(map(present.isdisjoint, groups))
        }
        for number in numbers:
            loose, is_certain = self._loose.get(number) or self._compile_loose(number)
            if loose.Match(encoded):
                found.append((number, is_certain))
        return found

    def _compile_loose(self, number: int) -> tuple[Any, bool]:
        """Compile a pattern without bounds, as a set (faster), and whether it had none."""
        pattern = self._encoded[number]
        loose = _loosen(pattern)
        compiled = _new_set(self._narrow)
        compiled.Add(loose)
        compiled.Compile()
        self._loose[number] = compiled, pattern == loose
        return self._loose[number]


class _LiteralSearch:
    """Finds which literal parts a text contains; some that it returns may be absent."""

    def __init__(self, narrow: bool, encoding: _Bytes) -> None:
        self.texts: dict[str, None] = {}
        self._narrow = narrow
        self._encoding = encoding
        self._searched = 0

    def find(self, encoded: bytes, text: str) -> Set[str]:
        # A hook searches a few contexts: it would wait 15 ms for the set of RE2, which is several times as fast.
        self._searched += len(text)
        if self._searched <= _FEW:
            folded, beginnings = _fold(text)
            return {
                literal
                for beginning in beginnings & self._by_beginning.keys()
                for literal, needed in self._by_beginning[beginning]
                if needed in folded
            }
        if not self.texts:
            return frozenset()
        found, texts = self._set
        return {texts[place] for place in found.Match(encoded) or ()}

    @cached_property
    def _by_beginning(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Pairs of literal part and its folded text, by the beginning of the folded text."""
        found: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for text in self.texts:
            folded = text.casefold()
            found[folded[:_BEGINNING]].append((text, folded))
        return found

    @cached_property
    def _set(self) -> tuple[Any, Sequence[str]]:
        made = _new_set(self._narrow, _LITERALS_MEMORY)
        for text in self.texts:
            is_plain = text.isascii() and text.isalnum()
            made.Add(text.encode() if is_plain else self._encoding.of_pattern(re.escape(text))[0])
        made.Compile()
        return made, tuple(self.texts)


@lru_cache(1)  # both encodings of a text are searched
def _fold(text: str) -> tuple[str, Set[str]]:
    """Return a text without case, and the beginnings of all of its parts."""
    folded = text.casefold()
    return folded, {folded[at : at + size] for size in range(1, _BEGINNING + 1) for at in range(len(folded))}


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
        # Translating every pattern would take a tenth of the time of making the engine.
        narrowed = pattern if pattern.isascii() else pattern.translate(self._codes)
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


def _new_set(narrow: bool, memory: int = _MEMORY) -> Any:
    import re2

    return re2.Set.SearchSet(_options(narrow, memory))


@cache
def _options(narrow: bool, memory: int = _MEMORY) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = False
    options.never_capture = True
    options.max_mem = memory
    if narrow:
        options.encoding = re2.Options.Encoding.LATIN1
    return options


def _loosen(pattern: bytes, *, keep_least: bool = False) -> bytes:
    return remove_bounds(pattern.decode("latin-1"), keep_least=keep_least).encode("latin-1")


def remove_bounds(pattern: str, *, keep_least: bool = False) -> str:
    """Loosen repeat bounds to `*` or `+`; `keep_least` removes only upper ones."""

    def loosen(token: re.Match[str]) -> str:
        if token["least"] is None or (keep_least and not token["most"]):
            return token[0]
        least = int(token["least"])
        return f"{{{least},}}" if keep_least and least > 1 else "+" if least else "*"

    return _TOKEN.sub(loosen, pattern)
