"""Distinction of instructions and harmless warnings (docs/safety.md#warnings)."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import Final

from core.base.negation import NOT
from core.base.regexes import RegexTable
from core.records.patterns import Severity

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
    """Return the highest severity of a part that a text forbids or quotes; None if it does neither.

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
    """Return whether the part is only mentioned in a changelog, in parentheses or in a description of an option."""
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
