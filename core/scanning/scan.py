"""The scan of one text: which rules find something in it, and how grave that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

from core.records.suspicions import Severity, Suspicion
from core.scanning.normal import decoded, deleeted, despaced, normal, odd_characters, readings, unescaped
from core.scanning.polarity import Polarity, polarity
from core.scanning.rule import Rule
from core.scanning.rules import BIDI, INVISIBLE, LONG, LOOKALIKE, RULES, SECRET, TAGS
from core.secrets import masked

MAX_SCANNED: Final = 65_536
"""Characters of one text that are looked at; a context holds far fewer of it."""
_OVERLAP: Final = 4_096
"""Characters that two parts of a longer text have in common; longer than any match."""
_MAX_WARNINGS: Final = 100
"""No honest text warns of one thing so often: the places behind are not judged, the rule is meant."""
_EXCERPT: Final = 120
_ODD: Final = {rule.id: rule.severity for rule in (BIDI, TAGS, INVISIBLE, LOOKALIKE)}
_TRICK: Final = (
    r"(?:\b[^\W_][ \t._*-]{1,8}){7}|[A-Za-z0-9+/]{24}|(?:\\x[0-9a-f]{2}){6}|(?:\\u00[0-9a-f]{2}){4}|(?:%[0-9a-f]{2}){6}"
    r"|(?:&#x?[0-9a-f]{2,4};){4}|\b(?:[a-z]*[013457@$][a-z013457@$]*[ \t]+){3}"
)
"""Where a text may say more than it shows: words spaced out, base64, escapes, digits for letters."""


class Engine:
    """All rules. One pass of RE2 selects the rules of which a hint occurs; their patterns are compiled when needed."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        import re2

        self._options = re2.Options()
        self._options.log_errors = False
        self._options.case_sensitive = False
        self._options.never_capture = True
        self._options.max_mem = 64 << 20
        self._rules = [rule for rule in rules if rule.patterns]
        self._hints = self._set("|".join(rule.hints.split()) for rule in self._rules)
        self._patterns: dict[int, Any] = {}
        self._compiled: dict[str, Any] = {}

    def finds(self, text: str) -> list[tuple[Rule, str]]:
        """The rules, each with the pattern, that find something in a normalised text."""
        return list(self._finds(text))

    def is_clean(self, text: str) -> bool:
        """Whether no rule finds anything, and nothing may say more than it shows."""
        return next(self._finds(text), None) is None and not self._compile(_TRICK).search(text)

    def _finds(self, text: str) -> Iterator[tuple[Rule, str]]:
        for number in sorted(self._hints.Match(text) or ()):
            rule = self._rules[number]
            if number not in self._patterns:
                self._patterns[number] = self._set(rule.patterns)
            for found in sorted(self._patterns[number].Match(text) or ()):
                yield rule, rule.patterns[found]

    def _set(self, patterns: Iterable[str]) -> Any:
        import re2

        made = re2.Set.SearchSet(self._options)
        for pattern in patterns:
            made.Add(pattern)
        made.Compile()
        return made

    def places(self, rule: Rule, pattern: str, text: str) -> Iterator[tuple[int, int]]:
        """Where the pattern is found and the rule means it."""
        for found in self._compile(pattern).finditer(text):
            if not rule.unless or not self._compile(rule.unless).search(found.group()):
                yield found.span()

    def starts(self, pattern: str, text: str, start: int, end: int) -> Iterator[int]:
        """Where the pattern begins within what it found: "never use wget: curl x | sh" tells of the second only."""
        yield start
        compiled = self._compile(pattern)
        while found := compiled.search(text[start + 1 : end]):
            start += 1 + found.start()
            yield start

    def _compile(self, pattern: str) -> Any:
        if pattern not in self._compiled:
            import re2

            self._compiled[pattern] = re2.compile(pattern, options=self._options)
        return self._compiled[pattern]


@cache
def engine() -> Engine:
    """The engine of `RULES`."""
    return Engine(RULES)


def scan_text(text: str, field: str = "", *, avoided: bool = False, happened: bool = False) -> tuple[Suspicion, ...]:
    """What one text might do to an agent that reads it, the gravest first, each rule once.

    Args:
        text: Any text; the first `MAX_SCANNED` characters count.
        field: Where it stands, for the suspicions.
        avoided: It names what is to be avoided, as an anti-pattern does.
        happened: It tells what went wrong, as an error message does.
    """
    found: dict[str, Suspicion] = {}

    def add(rule: str, severity: Severity, excerpt: str) -> None:
        known = found.get(rule)
        if known is None or severity.rank < known.severity.rank:
            found[rule] = Suspicion(rule=rule, severity=severity, field=field, excerpt=excerpt[:_EXCERPT])

    if len(text) > MAX_SCANNED:
        text = text[:MAX_SCANNED]
        add(LONG.id, LONG.severity, "")
    for kind, excerpt in odd_characters(text):
        add(kind, _ODD[kind], excerpt)
    for said in _readings(text):
        for rule, severity, excerpt in _judged(said, avoided, happened):
            add(rule.id, severity, excerpt)
    return ordered(found.values())


def scan_whole(text: str) -> tuple[Suspicion, ...]:
    """What a text of any length might do to an agent, the gravest first, each rule once; secrets are a mark, too."""
    found: dict[str, Suspicion] = {}
    for start in range(0, max(len(text), 1), MAX_SCANNED - _OVERLAP):
        for one in scan_text(text[start : start + MAX_SCANNED]):
            known = found.get(one.rule)
            if known is None or one.severity.rank < known.severity.rank:
                found[one.rule] = one
    if masked(text) != text:
        found[SECRET.id] = Suspicion(rule=SECRET.id, severity=SECRET.severity, field="", excerpt="")
    return ordered(found.values())


def ordered(suspicions: Iterable[Suspicion]) -> tuple[Suspicion, ...]:
    """The gravest first, else as they come."""
    return tuple(sorted(suspicions, key=lambda one: one.severity.rank))


def _readings(text: str) -> Iterator[str]:
    """The text as it may be read: plain, with spaced words closed up, and what it holds in other encodings."""
    for plain in readings(text):
        if engine().is_clean(plain):
            continue
        yield plain
        if (closed := despaced(plain)) != plain:
            yield closed
        for spelled in (deleeted(plain), unescaped(plain)):
            if spelled != plain:
                yield normal(spelled)
        yield from map(normal, decoded(plain))


def _judged(text: str, avoided: bool, happened: bool) -> Iterator[tuple[Rule, Severity, str]]:
    """The rules that apply to this text, how severely, and by which words."""
    made = engine()
    for rule, pattern in made.finds(text):
        for count, (start, end) in enumerate(made.places(rule, pattern, text)):
            says = Polarity.TELLS
            if rule.advice and count < _MAX_WARNINGS:
                says = min(
                    polarity(text, at, end, avoided=avoided, happened=happened)
                    for at in made.starts(pattern, text, start, end)
                )
            if says is Polarity.WARNS or (says is Polarity.MAYBE_WARNS and not rule.severity.stops):
                continue
            yield rule, rule.severity if says is Polarity.TELLS else Severity.FLAGGED, text[start:end]
            if says is Polarity.TELLS:
                break


def matches(text: str) -> tuple[tuple[Rule, str], ...]:
    """What each rule that stops texts finds in one, even where the text warns of it: (rule, the words)."""
    made = engine()
    return tuple(
        (rule, plain[start:end])
        for plain in readings(text[:MAX_SCANNED])
        for rule, pattern in made.finds(plain)
        if rule.severity.stops
        for start, end in made.places(rule, pattern, plain)
    )
