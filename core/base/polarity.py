"""Polarity of advice: what to avoid, what to do instead, why; English negation.

Used for everything that becomes an anti-pattern, so that a warning is never read as advice
(docs/extraction.md#polarity).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from core.base.regexes import RegexTable

MAX_TEXT: Final = 50_000  # Maximum number of characters of a text that are read.

NOT: Final = (
    r"(?:(?:ai|do|does|did|wo|would|should|could|ca|must|need|is|are|was|were|has|have|had)n['\u2019]?t"
    r"|cannot|not|never)"
)
"""A word that negates a verb."""
_NEGATION_REGEX: Final = RegexTable(Path(__file__).with_name("negation.yaml"), negator=NOT)


def is_negated(text: str) -> bool:
    """Return whether a lower-case sentence contains a negation in a known language."""
    return _NEGATION_REGEX["negated"].search(text) is not None


def find_prohibition(text: str) -> str:
    """Return the first word that forbids something, such as "never"; "" if none does.

    "No", "without" and the like count only at the beginning of a clause.
    """
    found = _NEGATION_REGEX["prohibition"].search(text)
    return found["opening"] or found["anywhere"] if found else ""


_SIGNS: Final = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u00b4", "'") | {"&": " and ", "\u2014": " ; "})
_DASHES: Final = frozenset({"-", "--", "\u2013"})


@dataclass(slots=True)
class _Negation:
    """Negation whose clause has not ended yet.

    `kind` is the group of the regex that matched. A negated verb (`kind`) reaches further than a negated noun or
    phrase. `opening` is whether the negation opens its clause: "Instead of ..., ...". `covers_phrase` is whether
    `covers` already returned True for it.
    """

    kind: str
    opening: bool
    covers_phrase: bool = False


def normalize_sentences(text: str) -> str:
    """Return lower-case `text` without markup, with spaces around punctuation.

    Each list item, and each line that begins with a capital, becomes a sentence of its own. Items below a heading such
    as "Avoid:" repeat the heading. Reads only the first `MAX_TEXT` characters.
    """
    parts: list[str] = []
    warning = ""
    text = unicodedata.normalize("NFKC", text[:MAX_TEXT].translate(_SIGNS))[:MAX_TEXT]
    for line in _NEGATION_REGEX["hidden"].sub("", text).splitlines():
        line = line.strip()
        item = _NEGATION_REGEX["item"].match(line)
        found = _NEGATION_REGEX["word"].findall(line.lower().replace("w/o", "without"), item.end() if item else 0)
        words = " ".join(";" if word in _DASHES else word for word in found)
        if item:
            words = f". {warning}{words}"
        elif words:
            heading = line.startswith("#") or words.endswith(":")
            warning = "avoid : " if heading and _NEGATION_REGEX["heading"].search(words) else ""
        parts.append(f". {words}" if not words or _NEGATION_REGEX["sentence"].match(line) else words)
    return " ".join(parts)


class Negations:
    """Finds negated phrases in a text from `normalize_sentences`, in one pass.

    A negation reaches to the end of its clause: a full stop, a semicolon, a word such as "but" or "so", or a comma or
    "and" before a new clause.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._marks = _NEGATION_REGEX["mark"].finditer(text)
        self._next = next(self._marks, None)
        self._negation: _Negation | None = None
        self._clause = 0
        self._outside: list[_Negation | None] = []

    def covers(self, end: int) -> bool:
        """Return whether the phrase ending at `end` is negated; call with rising `end`."""
        while self._next is not None and self._next.start() < end:
            self._read(self._next)
            self._next = next(self._marks, None)
        if self._negation is None:
            return _NEGATION_REGEX["refused_after"].match(self._text, end) is not None
        self._negation.covers_phrase = True
        return True

    def _read(self, mark: re.Match[str]) -> None:
        kind = mark.lastgroup
        if kind in ("phrase", "verb", "noun", "past"):
            self._negation = _Negation(kind, opening=mark.start() <= self._clause + 1)
        elif kind == "toggle":
            self._negation = None if self._negation else _Negation("phrase", opening=False)
        elif kind == "subject":
            negation = self._negation
            if negation and negation.kind == "phrase" and negation.opening and negation.covers_phrase:
                self._negation = None  # "instead of ... we ..."
        elif kind == "open":
            self._outside.append(self._negation)
        elif kind == "close":
            self._negation = self._outside.pop() if self._outside else None
        elif kind == "stop" or (kind in ("comma", "and") and self._ends(kind, mark.end())):
            self._negation = None
            self._clause = mark.end()

    def _ends(self, kind: str, at: int) -> bool:
        """Return whether the comma or "and" before offset `at` ends the negation."""
        negation = self._negation
        if negation is None or _NEGATION_REGEX["subject_next"].match(self._text, at):
            return True
        if kind == "and" and negation.kind == "verb":
            return False
        if not negation.covers_phrase:
            return True
        if kind == "comma" and _NEGATION_REGEX["list_next"].match(self._text, at):
            return False
        if kind == "comma" and negation.kind == "phrase":
            return negation.opening or not _NEGATION_REGEX["same_next"].match(self._text, at)
        return _NEGATION_REGEX["verb_next"].match(self._text, at) is not None


_REGEX: Final = RegexTable(Path(__file__).with_name("polarity.yaml"))
_MAX_READ: Final = 600  # characters of a text that are read
_MAX_CLAUSE: Final = 300  # characters of the clause behind a comma that are read
_AVOID: Final = "Avoid"


class Warned(NamedTuple):
    """A demand to avoid something, and what the same text recommends."""

    text: str  # the demand: `Never edit generated files by hand`
    approach: str  # what the demand forbids, for comparisons: `Edit generated files by hand`
    better: str = ""  # what to do instead: `change the template`; "" if not stated
    why: str = ""


def parse_warning(text: str) -> Warned | None:
    """Parse a text that begins with a demand to avoid something; None for others.

    `Do not forget to ...` demands to do something. `Use X, not Y` is advice, and remains right in its own words.
    """
    return _parse(text[:_MAX_READ])


def read_warning(text: str) -> Warned:
    """Parse a text that names something to avoid, in whatever words.

    A bare instruction (`Add retries`) and a noun (`Global state`) are what to avoid.
    """
    text = text[:_MAX_READ]
    return _parse(text) or _parse_comparison(text) or _parse_later_demand(text) or _parse_plain(text)


@lru_cache(4096)
def _parse(text: str) -> Warned | None:
    text = text.strip()
    if ban := _REGEX["ban"].match(text):
        if _REGEX["request"].match(ban["then"]):
            return None
        word = "do not" if _REGEX["modal"].match(ban["word"]) else ban["word"].lower()
        return _with_rest(f"{ban['lead'] or ''}{word}", ban["lead"] or "", ban["then"])
    if wrong := _REGEX["wrong_to"].match(text):
        return _with_rest("Do not", "", wrong["then"])
    if (replaced := _REGEX["instead_of"].match(text)) and _REGEX["instruction"].match(replaced["better"]):
        return _avoid(replaced["what"], replaced["better"])
    if (wrong := _REGEX["wrong"].match(text)) and _REGEX["gerund"].match(wrong["what"]):
        return _with_wrong(wrong)
    return None


def _parse_comparison(text: str) -> Warned | None:
    """Parse `Use X, not Y`, `Prefer X over Y` and `X is wrong because Y`."""
    text = text.strip()
    two = _REGEX["better_than"].match(_mask_quoted(text))
    if two is not None and (two["word"].strip() != "over" or _REGEX["choice"].match(two["verb"])):
        better, verb, what = (text[two.start(name) : two.end(name)] for name in ("better", "verb", "what"))
        if _REGEX["gerund"].match(what):
            warned = _with_rest(_AVOID, "", what)
        elif _is_bare(what):
            warned = _with_rest("Do not", "", what)
        elif two["word"].endswith("not"):
            warned = _with_rest("Do not", "", f"{verb} {what}")
        else:
            warned = _with_rest(_AVOID, "", what)
        return warned._replace(better="; ".join(filter(None, (_trim(better), warned.better))))
    wrong = _REGEX["wrong"].match(text)
    return _with_wrong(wrong) if wrong else None


def _parse_later_demand(text: str) -> Warned | None:
    """Parse a demand in a later clause: `Pass the session; never use global state`."""
    clauses = list(_split_clauses(text))
    for place, (_, clause) in enumerate(clauses):
        if place and (warned := _parse(clause)):
            before = [_trim(one) for _, one in clauses[:place]]
            after = " ".join(f"{one}." for _, one in clauses[place + 1 :])
            whole = _parse(f"{_trim(clause)}. {after}") if after else warned
            warned = whole or warned
            advice = [one for one in before if _is_instruction(one)]
            reasons = [one for one in before if not _is_instruction(one)]
            better, why = (
                "; ".join(filter(None, parts)) for parts in ((*advice, warned.better), (*reasons, warned.why))
            )
            return warned._replace(better=better, why=why)
    return None


def _parse_plain(text: str) -> Warned:
    """Parse a description of what to avoid; `instead` may introduce an alternative."""
    clauses = list(_split_clauses(text))
    split = next((n for n, (_, one) in enumerate(clauses) if n and _REGEX["instead"].search(one)), 0)
    what, better = (_trim(text), "")
    if split:
        what = _trim("; ".join(one for _, one in clauses[:split]))
        better = "; ".join(_strip_link(one) for _, one in clauses[split:])
    elif len(clauses) > 1 and (reason := _REGEX["reason"].match(clauses[-1][1])):
        return Warned(describe_avoided(_trim(clauses[0][1])), _capitalize(clauses[0][1]), "", reason.string)
    return Warned(describe_avoided(what), _capitalize(what), better)


def describe_avoided(what: str) -> str:
    """Describe what to avoid, such as a failed fix, so that it is not an instruction."""
    is_advice = _REGEX["instruction"].match(what) and not _REGEX["ban"].match(what)
    return f"{_AVOID}: {what}" if is_advice else _capitalize(what)


def _with_wrong(wrong: re.Match[str]) -> Warned:
    """Return the demand not to do what is called wrong."""
    found = _with_rest(_AVOID, "", wrong["what"])
    rest = wrong["then"].lstrip(" ,;:.-")
    if not rest:
        return found
    more = _with_rest(_AVOID, "", f"{wrong['what']}. {rest}")
    return more._replace(text=found.text, approach=found.approach)


def _avoid(what: str, better: str) -> Warned:
    demand = "Do not" if _is_bare(what) else _AVOID
    warned = _with_rest(demand, "", what)
    others = _with_rest(demand, "", f"{what}; {better}")
    return warned._replace(better=others.better or _trim(better), why=others.why)


def _with_rest(demand: str, lead: str, rest: str) -> Warned:
    """Divide what follows a demand into what to avoid, what to do instead, and why."""
    (_, avoided), *others = _split_clauses(rest) or [("", rest)]
    avoided = _trim(avoided)
    better: list[str] = []
    why: list[str] = []
    for separator, clause in others:
        clause = _trim(clause)
        if not clause:
            continue
        if _REGEX["exception"].match(clause):
            avoided = f"{avoided}, {clause[0].lower()}{clause[1:]}"
        elif separator == ":" and _REGEX["list_follows"].search(avoided):
            avoided = f"{avoided}: {clause}"
        elif _REGEX["reason"].match(clause):
            why.append(clause)
        elif (ban := _REGEX["ban"].match(clause)) and not _REGEX["request"].match(ban["then"]):
            avoided = f"{avoided}. {_capitalize(clause)}"
        elif _REGEX["instead"].search(clause) or _is_instruction(clause):
            better.append(_strip_link(clause))
        elif _REGEX["statement"].match(clause):
            why.append(clause)
        else:
            better.append(clause)
    is_common = _REGEX["common"].match(avoided) and not avoided[:2].isupper()
    text = f"{_capitalize(demand)} {avoided[:1].lower() if is_common else avoided[:1]}{avoided[1:]}"
    return Warned(text, _capitalize(f"{lead}{avoided}"), "; ".join(better), "; ".join(why))


def _split_clauses(text: str) -> list[tuple[str, str]]:
    """Split a text into clauses after separators; quotes and parentheses stay whole."""
    masked = _mask_quoted(text)
    clauses: list[tuple[str, str]] = []
    start, separator = 0, ""
    for end in _REGEX["end"].finditer(masked):
        if end.start() < start:
            continue
        is_list = separator == ":" and bool(clauses) and _REGEX["list_follows"].search(clauses[-1][1])
        before, after = masked[start : end.start()], masked[end.end() : end.end() + _MAX_CLAUSE]
        if end["comma"] and (is_list or not _ends_clause(before, after)):
            continue
        if clause := text[start : end.start()].strip():
            clauses.append((separator, clause))
        start, separator = end.end(), end[0].strip()
    if clause := text[start:].strip():
        clauses.append((separator, clause))
    return clauses


def _ends_clause(before: str, after: str) -> bool:
    """Return whether a comma between texts precedes an instruction outside a list."""
    clause = re.split(r"[;:!?]|\.(?:\s|$)", after, maxsplit=1)[0]
    if _REGEX["instead"].search(clause.split(",", 1)[0]):
        return True
    if _REGEX["turn"].match(clause) or _REGEX["ban"].match(clause):
        return True
    if len(before.split()) < 2 or _REGEX["series"].search(f", {clause}") or _REGEX["series"].search(clause):
        return False
    return not _REGEX["only_condition"].match(f"{before.strip()}, ") and _is_instruction(clause)


def _mask_quoted(text: str) -> str:
    return _REGEX["quoted"].sub(lambda found: "x" * len(found[0]), text)


def _is_instruction(clause: str) -> bool:
    return _REGEX["instruction"].match(clause) is not None


def _is_bare(what: str) -> bool:
    """Return whether a text begins with the base form of a verb."""
    return _REGEX["bare"].match(what) is not None and _REGEX["gerund"].match(what) is None


def _strip_link(clause: str) -> str:
    return _trim(_REGEX["link"].sub("", _trim(clause)))


def _trim(text: str) -> str:
    return text.strip().rstrip(".!;:, ").strip()


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
