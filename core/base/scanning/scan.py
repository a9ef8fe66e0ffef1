"""Scan of a text or pattern: matching rules, severity and stopped sentences.

A harmless warning of something is distinguished from an instruction (docs/safety.md#warnings).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import IntEnum
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Final

from core.base.masking import mask_secrets, may_contain_secret
from core.base.polarity import NOT
from core.base.regexes import RegexTable, lazy_regex
from core.base.scanning.engine import BIDI, BROAD, HIDING, INVISIBLE, LONG, LOOKALIKE, SECRET, TAGS, Rule, get_engine
from core.base.scanning.normalization import find_odd_characters, find_scripts, list_decoded, list_readings
from core.records.patterns import PatternType, Severity, Suspicion

MAX_SCANNED: Final = 65_536  # characters of one text that are scanned; a context contains far fewer
_OVERLAP: Final = 4_096  # overlap of two parts of a longer text, in characters; longer than any match
_MAX_WARNINGS: Final = 100  # warnings of one thing that are accepted in a text; further matches count
_EXCERPT: Final = 120
_ODD: Final = {rule.id: rule for rule in (BIDI, TAGS, INVISIBLE, LOOKALIKE)}
_SENTENCE_END: Final = lazy_regex(r"(?<=[.!?;])\s+|\n+")
_LABEL: Final = lazy_regex(r"\s*(?:- )?(?:\d{1,2}\. )?(?:[A-Z][a-z]{2,11}: )?")  # number or label in front of a text


def scan_text(text: str, field: str = "", *, avoided: bool = False, happened: bool = False) -> tuple[Suspicion, ...]:
    """Find possible harm of a text: each matching rule once, most severe first.

    Scans the first `MAX_SCANNED` characters. `field` is the field name in the suspicions. `avoided`: the text names
    something to avoid, as an anti-pattern does. `happened`: it describes a failure, as an error message does.
    """
    found = [(LONG, LONG.severity, "")] if len(text) > MAX_SCANNED else []
    text = text[:MAX_SCANNED]
    found += [(_ODD[kind], _ODD[kind].severity, excerpt) for kind, excerpt in find_odd_characters(text)]
    for reading, finds in _find_in_readings(text):
        found += _judge(reading, finds, avoided, happened)
    return keep_worst(
        Suspicion(rule=rule.id, severity=severity, field=field, excerpt=excerpt[:_EXCERPT], since=rule.since)
        for rule, severity, excerpt in found
    )


def scan_whole_text(text: str) -> tuple[tuple[Suspicion, ...], str]:
    """Scan a text of any length, also for secrets; returns it with secrets masked."""
    starts = range(0, max(len(text), 1), MAX_SCANNED - _OVERLAP)
    found = [one for start in starts for one in scan_text(text[start : start + MAX_SCANNED])]
    masked = mask_secrets(text)
    if masked != text:
        found.append(Suspicion(rule=SECRET.id, severity=SECRET.severity, field="", excerpt=""))
    return keep_worst(found), masked


def keep_worst(suspicions: Iterable[Suspicion]) -> tuple[Suspicion, ...]:
    """Return each rule's most severe, then oldest suspicion; the most severe first."""
    found: dict[str, Suspicion] = {}
    for one in suspicions:
        known = found.get(one.rule)
        if known is None or (one.severity.rank, one.since) < (known.severity.rank, known.since):
            found[one.rule] = one
    return sort_suspicions(found.values())


def sort_suspicions(suspicions: Iterable[Suspicion]) -> tuple[Suspicion, ...]:
    """Sort by severity, most severe first; stable."""
    return tuple(sorted(suspicions, key=lambda one: one.severity.rank))


def count_marks(suspicions: Iterable[Suspicion]) -> tuple[int, ...]:
    """Count suspicions by severity, most severe first; a higher tuple is more risk."""
    counts = Counter(one.severity for one in suspicions)
    return tuple(counts[severity] for severity in Severity)


def is_clean(text: str) -> bool:
    """Return whether no rule matches normalized text without signs of hidden text."""
    return not get_engine().finds_any(text)


def _find_in_readings(text: str) -> Iterator[tuple[str, list[tuple[Rule, str]]]]:
    """Yield (reading, matches) of each reading: plain, with joined words, decoded."""
    made = get_engine()
    for plain in list_readings(text):
        if finds := made.finds(plain):
            yield plain, finds
            for other in list_decoded(plain):
                yield other, made.finds(other)


def _judge(
    text: str, finds: Iterable[tuple[Rule, str]], avoided: bool, happened: bool
) -> Iterator[tuple[Rule, Severity, str]]:
    """Return (rule, severity, words) of each match that is not a warning."""
    made = get_engine()
    for rule, pattern in finds:
        if rule is HIDING:
            continue
        for count, (start, end) in enumerate(made.places(rule, pattern, text)):
            sense = Polarity.INSTRUCTS
            if rule.advice and count < _MAX_WARNINGS:
                sense = min(
                    classify_polarity(text, at, end, avoided=avoided, happened=happened)
                    for at in made.starts(pattern, text, start, end)
                )
            if sense is Polarity.WARNS or (sense is Polarity.MAYBE_WARNS and not rule.severity.stops):
                continue
            severity = rule.severity if sense is Polarity.INSTRUCTS else Severity.FLAGGED
            if rule.cited and count < _MAX_WARNINGS and (cited := find_cited_severity(text, start, end)) is not None:
                severity = max(severity, cited, key=lambda one: one.rank)
            yield rule, severity, text[start:end]
            if severity is rule.severity:
                break


def find_matches(text: str) -> tuple[tuple[Rule, str], ...]:
    """Return (rule, words) of the matches of rules that stop texts, with warnings."""
    made = get_engine()
    return tuple(
        (rule, plain[start:end])
        for plain in list_readings(text[:MAX_SCANNED])
        for rule, pattern in made.finds(plain)
        if rule.severity.stops
        for start, end in made.places(rule, pattern, plain)
    )


def find_stopped_sentences(text: str, rules: Collection[str]) -> tuple[tuple[int, int], ...]:
    """Find (start, end) of each sentence that rules (IDs) stop, else of the text."""
    edges = [0, *(end.end() for end in _SENTENCE_END.finditer(text)), len(text)]
    found = [(start, end) for start, end in pairwise(edges) if _is_stopped(text[start:end], rules)]
    if not found and _is_stopped(text, rules):
        found = [(0, len(text))]
    trimmed = []
    for start, end in found:
        label = _LABEL.match(text, start, end)
        trimmed.append((label.end() if label else start, start + len(text[start:end].rstrip())))
    return tuple(trimmed)


def _is_stopped(text: str, rules: Collection[str]) -> bool:
    return any(one.rule in rules and one.severity.stops for one in scan_text(text))


TRIGGERS: Final = ("error_pattern", "task_pattern")
_AVOIDED: Final = frozenset({"title", "description", "category"})  # what an anti-pattern avoids
_HARM: Final = frozenset({"symptoms", "why_it_fails", "limitations"})  # these describe failures
_NOT_LITERAL: Final = re.compile(r"\(\?[a-z]{1,8}\)|\\[a-zA-Z]|\[[^\]]{0,100}\]|\{[^}]{0,20}\}|[^\w|]|_")
_MIN_LITERAL: Final = 3  # letters and digits in a trigger below which it matches nearly any text
_MAX_TRIGGER: Final = 2_000  # characters of a trigger that are checked


def scan_pattern(kind: PatternType, title: str, text: Mapping[str, Any]) -> tuple[Suspicion, ...]:
    """Find possible harm of a pattern, given by field name as in `content_hash`."""
    fields = [("title", title), *_fields(text)]
    joined = "\n".join(part for _, part in fields)
    found: list[Suspicion] = []
    if len(joined) > MAX_SCANNED or not joined.isascii() or not all(map(is_clean, list_readings(joined))):
        across = {one.rule: one for one in _across(kind, joined)}
        avoided = _AVOIDED if kind is PatternType.ANTI else ()
        by_field = keep_worst(
            one
            for name, part in fields
            for one in scan_text(part, name, avoided=name in avoided, happened=name in _HARM)
        )
        stopping = {one.rule for one in by_field if one.severity.stops or one.rule not in across}
        found += [one for one in by_field if one.rule in stopping]
        found += [one for rule, one in across.items() if rule not in stopping]
    if _has_secret(joined):
        field = next((name for name, part in fields if _has_secret(part)), "")
        found.append(Suspicion(rule=SECRET.id, severity=Severity.FLAGGED, field=field, excerpt=""))
    for name in TRIGGERS:
        trigger = text.get(name)
        if trigger and is_broad(trigger):
            found.append(Suspicion(rule=BROAD.id, severity=Severity.FLAGGED, field=name, excerpt=trigger[:60]))
    return sort_suspicions(found)


def find_pattern_scripts(title: str, text: Mapping[str, Any]) -> tuple[str, ...]:
    """Find scripts other than Latin in the texts of a pattern; see `find_scripts`."""
    parts = [title, *(part for _, part in _fields(text))]
    return () if all(map(str.isascii, parts)) else find_scripts("\n".join(parts)[:MAX_SCANNED])


def is_broad(trigger: str) -> bool:
    """Return whether a regex or a branch of it matches nearly everything."""
    branches = _NOT_LITERAL.sub("", trigger[:_MAX_TRIGGER]).split("|")
    return any(len(branch) < _MIN_LITERAL for branch in branches) and (
        len(branches) == 1 or any(not branch for branch in branches)
    )


def _fields(text: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in text.items():
        if isinstance(value, str):
            if value:
                yield name, value
        elif isinstance(value, tuple):
            parts = (chain.from_iterable(value) if name == "placeholders" else value) if value else ()
            for part in parts:
                yield name, part


def _across(kind: PatternType, joined: str) -> Iterator[Suspicion]:
    """Return matches that span several fields."""
    made = get_engine()
    for plain in list_readings(joined[:MAX_SCANNED]):
        for rule, pattern in made.finds(plain):
            if rule is HIDING or (rule.advice and kind is PatternType.ANTI):
                continue
            for start, end in made.places(rule, pattern, plain):
                if "\n" in plain[start:end]:
                    yield Suspicion(rule.id, rule.severity, "", plain[start:end][:60], rule.since)
                    break


def _has_secret(text: str) -> bool:
    start = text[:MAX_SCANNED]
    return may_contain_secret(start) and mask_secrets(start) != start


_REACH: Final = 120  # characters before a match that are searched for a negation
_REGEX: Final = RegexTable(Path(__file__).with_name("polarity.yaml"), negator=NOT)
_SENTENCE_REACH: Final = 400  # characters before a match that are searched for an order
_SENTENCE_WORDS: Final = 3  # words around a quotation that make a sentence about it
_NEAR_WORDS: Final = 4  # highest number of words between a negation and a match that it certainly covers


class Polarity(IntEnum):
    """Certainty that a text warns of something."""

    INSTRUCTS = 0
    MAYBE_WARNS = 1
    WARNS = 2


def classify_polarity(text: str, start: int, end: int, *, avoided: bool, happened: bool = False) -> Polarity:
    """Classify the part from `start` to `end` as an instruction or a warning.

    `avoided`: the text names something to avoid. A negation in it is then an instruction ("building without ..."), and
    so is an order, unless the text begins with it ("Commit with ...", the name of an approach). `happened`: the text
    describes a failure. It is treated like `avoided`, and any order is an instruction.
    """
    clause = _REGEX["break"].split(text[max(start - _REACH, 0) : start])[-1]
    negations = list(_REGEX["negation"].finditer(clause))
    if avoided or happened:
        return Polarity.INSTRUCTS if negations or _orders(text, start, end, happened) else Polarity.WARNS
    if not negations:
        before = text[max(start - _SENTENCE_REACH, 0) : start]
        if any(rule.search(before) for rule in (_REGEX["guarded"], _REGEX["aside"], _REGEX["forbidden"])):
            return Polarity.WARNS
        listed = _REGEX["listed"].search(before) or (
            _REGEX["list_goes_on"].match(text, start) and _REGEX["list_begun"].search(before)
        )
        if listed and not _REGEX["turned"].search(listed["list"]):
            return Polarity.WARNS
        return (
            Polarity.MAYBE_WARNS if _is_bad(text, start, end) or _is_mention(text, start, end) else Polarity.INSTRUCTS
        )
    before, behind = clause[: negations[-1].start()], clause[negations[-1].end() :]
    if _REGEX["turned"].search(behind) or _REGEX["doubled"].search(before) or _REGEX["hindered"].search(before):
        return Polarity.INSTRUCTS
    if _REGEX["purpose"].match(clause):
        word = _REGEX["word"].match(text, start, end)
        if _REGEX["ordered"].search(behind) or (word and _REGEX["ordered"].search(behind + word[0])):
            return Polarity.INSTRUCTS
    near = len(behind.split()) <= _NEAR_WORDS
    return Polarity.WARNS if near and _REGEX["about"].match(behind) else Polarity.MAYBE_WARNS


def find_cited_severity(text: str, start: int, end: int) -> Severity | None:
    """Return the highest severity of a forbidden or quoted part; None if neither.

    A part is flagged if the text forbids it, or quotes it in a sentence about texts or attacks. It is held if the text
    quotes it in another sentence. A quotation that the text orders to comply with is none.
    """
    before = text[max(start - _REACH, 0) : start]
    negation = _REGEX["negated_order"].search(before)
    if negation and not _REGEX["doubled"].search(before[: negation.start()]):
        return Severity.FLAGGED
    first = max(text.rfind("\n", 0, start) + 1, start - _SENTENCE_REACH)
    for quoted in _REGEX["quotation"].finditer(text, first, end + _SENTENCE_REACH):
        if quoted.start() < start and end <= quoted.end():
            behind = text[quoted.end() : end + _SENTENCE_REACH]
            prose = f"{text[max(start - _SENTENCE_REACH, 0) : quoted.start()]} {behind}"
            if _REGEX["complies"].search(prose) or len(prose.split()) < _SENTENCE_WORDS:
                return None
            return Severity.FLAGGED if _REGEX["about_quotation"].search(prose) else Severity.HELD
    return None


def _is_bad(text: str, start: int, end: int) -> bool:
    """Return whether the words after the part, which is not an order, call it bad."""
    if not _REGEX["bad"].match(text, end):
        return False
    sentence = _REGEX["sentence"].split(text[max(start - _SENTENCE_REACH, 0) : start])[-1]
    word = _REGEX["word"].match(text, start, end)
    ordered = _REGEX["urged"].search(sentence) or _REGEX["order"].search(sentence.lstrip() + (word[0] if word else ""))
    return not ordered or _REGEX["bad_at_once"].match(text, end) is not None


def _is_mention(text: str, start: int, end: int) -> bool:
    """Return whether a changelog, parentheses or an option text only mention a part."""
    sentence = _REGEX["mention_break"].split(text[max(start - _SENTENCE_REACH, 0) : start])[-1]
    is_described = _REGEX["option"].search(text[start:end]) and _REGEX["described"].match(text, end)
    if not (is_described or _REGEX["changelog"].match(sentence) or _REGEX["example"].search(sentence)):
        return False
    # Options and commands between backticks are not verbs of the sentence.
    before = _REGEX["quoted_code"].sub(" ", sentence)
    return (
        not _REGEX["directive"].search(before)
        and not _REGEX["commended"].match(text, end)
        and not _REGEX["order"].search(before)
    )


def _orders(text: str, start: int, end: int, happened: bool) -> bool:
    """Return whether a text about a failure orders the reader to do the part."""
    before = text[max(start - _SENTENCE_REACH, 0) : start]
    if not _REGEX["points"].search(before):
        before = _REGEX["sentence"].split(before)[-1]
    if _REGEX["directive"].search(before) or _REGEX["commended"].match(text, end):
        return True
    if _REGEX["failed"].match(text, end):
        return False
    # The part may begin with the verb: "delete the failing tests".
    word = _REGEX["word"].match(text, start, end)
    named = not happened and start - len(before) <= 0
    for order in _REGEX["order"].finditer(before.lstrip() + (word[0] if word else "")):
        if order["colon"] or order.start() > 0 or not named:
            return True
    return False
