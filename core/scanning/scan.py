"""The scan of one text: which rules find something in it, and how grave that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from core.records.suspicions import Severity, Suspicion
from core.redaction.masking import mask_secrets
from core.scanning.engine import get_engine
from core.scanning.normalization import (
    decode_escapes,
    decode_hidden,
    find_odd_characters,
    join_spaced_words,
    list_readings,
    normalize_text,
    replace_leetspeak,
)
from core.scanning.polarity import Polarity, polarity
from core.scanning.rule import Rule
from core.scanning.rules import BIDI, INVISIBLE, LONG, LOOKALIKE, SECRET, TAGS

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
    for kind, excerpt in find_odd_characters(text):
        add(kind, _ODD[kind], excerpt)
    for said, finds in _readings(text):
        for rule, severity, excerpt in _judged(said, finds, avoided, happened):
            add(rule.id, severity, excerpt)
    return sort_suspicions(found.values())


def scan_whole_text(text: str) -> tuple[tuple[Suspicion, ...], str]:
    """What a text of any length might do to an agent, and the text with its secrets masked.

    The gravest suspicions come first, each rule once; secrets are a suspicion, too.
    """
    found: dict[str, Suspicion] = {}
    for start in range(0, max(len(text), 1), MAX_SCANNED - _OVERLAP):
        for one in scan_text(text[start : start + MAX_SCANNED]):
            known = found.get(one.rule)
            if known is None or one.severity.rank < known.severity.rank:
                found[one.rule] = one
    shown = mask_secrets(text)
    if shown != text:
        found[SECRET.id] = Suspicion(rule=SECRET.id, severity=SECRET.severity, field="", excerpt="")
    return sort_suspicions(found.values()), shown


def sort_suspicions(suspicions: Iterable[Suspicion]) -> tuple[Suspicion, ...]:
    """The gravest first, else as they come."""
    return tuple(sorted(suspicions, key=lambda one: one.severity.rank))


def is_clean(text: str) -> bool:
    """Whether no rule finds anything in a normalised text, and it cannot say more than it shows."""
    return not get_engine().finds_any(text) and not _may_hide_more(text)


def _may_hide_more(text: str) -> bool:
    return get_engine().first(_TRICK, text) is not None


def _readings(text: str) -> Iterator[tuple[str, list[tuple[Rule, str]]]]:
    """The text as it may be read, each with what is found in it: plain, with spaced words closed up, and decoded."""
    made = get_engine()
    for plain in list_readings(text):
        finds = made.finds(plain)
        if not finds and not _may_hide_more(plain):
            continue
        yield plain, finds
        others = [join_spaced_words(plain)]
        others += [
            normalize_text(spelled) for spelled in (replace_leetspeak(plain), decode_escapes(plain)) if spelled != plain
        ]
        others += map(normalize_text, decode_hidden(plain))
        for other in dict.fromkeys(others):
            if other != plain:
                yield other, made.finds(other)


def _judged(
    text: str, finds: Iterable[tuple[Rule, str]], avoided: bool, happened: bool
) -> Iterator[tuple[Rule, Severity, str]]:
    """The rules that apply to this text, how severely, and by which words."""
    made = get_engine()
    for rule, pattern in finds:
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


def find_matches(text: str) -> tuple[tuple[Rule, str], ...]:
    """What each rule that stops texts finds in one, even where the text warns of it: (rule, the words)."""
    made = get_engine()
    return tuple(
        (rule, plain[start:end])
        for plain in list_readings(text[:MAX_SCANNED])
        for rule, pattern in made.finds(plain)
        if rule.severity.stops
        for start, end in made.places(rule, pattern, plain)
    )
