"""Negation in plain English text: the words that negate, and which phrases they cover.

The safety scan, strategy detection, the comparison of learnings and the check of inverted patterns share these words.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

MAX_TEXT: Final = 50_000
"""Maximum number of characters of a text that are read."""

NOT: Final = (
    r"(?:(?:ai|do|does|did|wo|would|should|could|ca|must|need|is|are|was|were|has|have|had)n['\u2019]?t"
    r"|cannot|not|never)"
)
"""A word that negates a verb."""
OTHER_LANGUAGES: Final = (
    r"\b(?:nicht|kein\w*|nie|niemals|vermeid\w*|ne|jamais|évit\w*|nunca|evit\w*|não)\b"
    "|ない|ません|避け|禁止|不|别|勿|않|말고"
)
_NEGATED: Final = re.compile(
    rf"\b(?:{NOT}|avoid\w*|refrain\w*|forbid\w*|free of|stop \w+ing|no longer)\b|^\W*no\b|{OTHER_LANGUAGES}"
)
_PROHIBITION: Final = re.compile(
    r"(?:^|[.;:,!?(]\s*|\b(?:and|but|please|always|you should|must)\s+)"
    r"(?P<opening>avoid|no|not|do not|don['\u2019]?t|stop|refrain from|without|skip)\b"
    r"|\b(?P<anywhere>never|(?:must|should|shall|may) not|(?:must|should)n['\u2019]t)\b",
    re.IGNORECASE,
)


def is_negated(text: str) -> bool:
    """Return whether a sentence in lower case, in one of several languages, negates anything."""
    return _NEGATED.search(text) is not None


def find_prohibition(text: str) -> str:
    """Return the first word by which a text forbids something, such as "never"; "" if it forbids nothing.

    "No", "without" and the like count only where a clause begins with them.
    """
    found = _PROHIBITION.search(text)
    return found["opening"] or found["anywhere"] if found else ""


_AUXILIARY: Final = (
    r"(?:is|are|was|were|be|been|will|would|shall|should|must|can|could|may|might|need|do|does|did|has|have|had)"
)
_VERB_NOT: Final = rf"(?:{NOT}|{_AUXILIARY} not)"
_SUBJECT: Final = (
    r"(?:(?:we|i|you|they|it|he|she|let|each|every|everything|now|this|these|those|there|please|then|instead|always)\b"
    r"|(?:\w+ ){1,4}?(?:is|are|will|should|must|can|goes?|gets?|lives?|stays?|comes?|runs?|ha(?:s|ve))\b)"
)
"""Start of an independent clause."""
_VERB: Final = (
    r"(?:split|use|keep|put|handle|run|respect|follow|honou?r|maximi[sz]e|paralleli[sz]e|do|go|make|separate|define"
    r"|start|begin|execute|write|group|divide|decompose|partition|break|organi[sz]e|prefer|work|create|build|place"
    r"|give|isolate|obey|stick|slice|order|co ?locate|include|add|extract|only|just|simply|always|rather)\b"
)
"""Start of an instruction."""
_IN_CLAUSE: Final = r"[^,.;:!?()]"

_MARK: Final = re.compile(
    # Looks like a negation but affirms, or negates another negation.
    rf"(?P<assent>\b(?:{_VERB_NOT} (?:only|just|merely|simply|solely|more than|a bad idea|wrong)"
    rf"|(?:{_VERB_NOT}|without) (?:be |to )?(?:hesitat|forget|fail|neglect|omit|miss|skip|avoid|ignor|afraid|shy"
    r"|disregard|break|violat)\w*"
    r"|no (?:harm|problem|objections?|doubt|matter|question|more than|reason (?:not )?to (?:not|avoid|skip)|reason not)"
    r"|nothing (?:against|wrong with)|why not|without (?:a )?(?:doubt|question|fail|exception|hesitation|delay))\b)"
    # `verb` and `noun` forbid to the end of the clause, `phrase` excludes one phrase of it.
    rf"|(?P<phrase>\b(?:instead of|rather than|as opposed to|in place of|unlike|without|neither|nor|nobody|none"
    r"|no one(?! file)|nothing|no(?! ,)"
    r"|(?:not|never)(?= (?:so much )?(?:\w+ing|by|in|into|with|per|as|an?|one|the)\b)"
    r"|(?:over|than)(?= (?:by|splitting)\b))\b)"
    rf"|(?P<verb>\b{_VERB_NOT}\b(?: , {_IN_CLAUSE}{{1,40}} ,)?(?: :)?)"
    r"|(?P<noun>\b(?:avoid(?:s|ed|ing)?|against|refrain(?:s|ed|ing)? from|away from|anything but|skip(?:s|ped|ping)?"
    r"|stop(?:s|ped|ping)?|ignor(?:e|es|ed|ing)|disregard(?:s|ed|ing)?|regardless of|irrespective of"
    r"|neglect(?:s|ed|ing)?|violat(?:e|es|ed|ing)"
    r"|abandon(?:s|ed|ing)?|reject(?:s|ed|ing)?|forb(?:id|ids|ade|idden|idding)|prohibit(?:s|ed|ing)?"
    r"|rul(?:e|es|ed|ing) out|(?:refus(?:e|es|ed)|declin(?:e|es|ed)|wrong) to|bad idea|a mistake|pointless"
    r"|unnecessary|exclud(?:e|es|ed|ing)|drop(?:s|ped|ping)?|opt(?:s|ed|ing)? out of)\b"
    r"(?:(?: (?:these|the following)(?: \w+){0,3})? :)?)"
    # Reports what was done, not what to do.
    r"|(?P<past>\b(?:(?<!like )(?<!than )(?<!as )last time|(?:we|i|they|you|it) (?:used to|previously)"
    r"|previously(?= (?:,|(?:we|i|they|you|it)\b))|(?<!like )(?<!like in )(?<!as in )(?:past|previous|earlier|prior)"
    r" (?:attempts?|tries|runs)\b(?! (?:show|suggest|prove|teach|taught|succeed|worked)))(?: ,)?)"
    r"|(?P<toggle>\bmore than\b)"
    r"|(?P<stop>[.;:!?]|\b(?:but|so|however|therefore|hence|thus|instead|although|though|whereas|while|because|since"
    r"|if|when|unless|until|otherwise|by(?= \w+ing\b))\b)"
    r"|(?P<subject>(?<!as )(?<!what )(?<!that )(?<!than )(?<!how )\b(?:we|i|they|you|let's)\b)"
    r"|(?P<comma>,)|(?P<and>\band\b)|(?P<open>\()|(?P<close>\))"
)
_SUBJECT_NEXT: Final = re.compile(rf" {_SUBJECT}|{_IN_CLAUSE}* instead\b(?! of)")
_VERB_NEXT: Final = re.compile(rf" (?:{_VERB}|with\b)")
_LIST_NEXT: Final = re.compile(rf" (?:or|nor)\b|{_IN_CLAUSE}*, (?:or|nor)\b")
_SAME_NEXT: Final = re.compile(r" (?:by|not)\b")
_REFUSED_AFTER: Final = re.compile(
    r"(?: (?:strategy|approach|split|here))?(?:"
    rf"(?: {_AUXILIARY}){{1,3}} (?:not(?! (?:only|just|merely|enough|all))|never|no longer|avoided|forbidden"
    r"|discouraged|rejected|abandoned|ruled out|off the table|out of the question|a bad idea|a mistake|wrong|harmful"
    r"|unnecessary|overkill|an anti ?pattern)"
    r"| (?:is|are|was|were|wo|would|should|could|ca|must|does|did|has|have)n't| cannot| to be avoided| fail(?:s|ed)"
    r"| (?:never|no longer) (?:work|help|scale)\w*| but (?:\w+ )?(?:rejected|dropped|abandoned) (?:it|that)"
    r"| [?:;] no)\b"
)
"""Rejects, directly behind it, a phrase that was named: "... is not an option"."""

_HIDDEN: Final = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
_SIGNS: Final = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u00b4", "'") | {"&": " and ", "\u2014": " ; "})
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*|[.:](?=[\s\"'\u201d)\]*_]|$)|[,;!?()/]|(?<=\s)(?:-{1,2}|\u2013)(?=\s)")
_DASHES: Final = frozenset({"-", "--", "\u2013"})
_ITEM: Final = re.compile(r"(?:[-*+\u2022]|\d{1,3}[.)])\s")
_SENTENCE: Final = re.compile(r"#|[A-Z][a-z]")
_HEADING: Final = re.compile(
    r"(?:avoid|don'?ts?|do not|never|not to do|rejected|anti patterns)"
    r"(?: (?:these|the following)(?: \w+){0,3})?(?: :)?$"
)


@dataclass(slots=True)
class _Negation:
    """A negation whose clause has not ended yet.

    Attributes:
        kind: Group of `_MARK`. A verb's negation reaches further than that of a noun or a phrase.
        opening: Whether it opens its clause: "Instead of ..., ...".
        covers_phrase: Whether it already negated a phrase that was asked for.
    """

    kind: str
    opening: bool
    covers_phrase: bool = False


def normalize_sentences(text: str) -> str:
    """Return `text` in lower case without markup, with one space around each word and punctuation mark.

    A list item, and a line that begins like a sentence, is a sentence. Below a heading such as "Avoid:" each item
    repeats the heading. Only the first `MAX_TEXT` characters are read.
    """
    parts: list[str] = []
    warning = ""
    text = unicodedata.normalize("NFKC", text[:MAX_TEXT].translate(_SIGNS))[:MAX_TEXT]
    for line in _HIDDEN.sub("", text).splitlines():
        line = line.strip()
        item = _ITEM.match(line)
        found = _WORD.findall(line.lower().replace("w/o", "without"), item.end() if item else 0)
        words = " ".join(";" if word in _DASHES else word for word in found)
        if item:
            words = f". {warning}{words}"
        elif words:
            heading = line.startswith("#") or words.endswith(":")
            warning = "avoid : " if heading and _HEADING.search(words) else ""
        parts.append(f". {words}" if not words or _SENTENCE.match(line) else words)
    return " ".join(parts)


class Negations:
    """Finds negated phrases of a text from `normalize_sentences`, in one pass from left to right.

    A negation reaches to the end of its clause: a full stop, a semicolon, a word such as "but" or "so", or a comma
    or "and" before a new clause.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._marks = _MARK.finditer(text)
        self._next = next(self._marks, None)
        self._negation: _Negation | None = None
        self._clause = 0
        self._outside: list[_Negation | None] = []

    def covers(self, end: int) -> bool:
        """Return whether the phrase that ends at `end` is negated. Call it in the order of the text."""
        while self._next is not None and self._next.start() < end:
            self._read(self._next)
            self._next = next(self._marks, None)
        if self._negation is None:
            return _REFUSED_AFTER.match(self._text, end) is not None
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
        """Return whether the current negation ends at the comma or "and" that ends at `at`."""
        negation = self._negation
        if negation is None or _SUBJECT_NEXT.match(self._text, at):
            return True
        if kind == "and" and negation.kind == "verb":
            return False
        if not negation.covers_phrase:
            return True
        if kind == "comma" and _LIST_NEXT.match(self._text, at):
            return False
        if kind == "comma" and negation.kind == "phrase":
            return negation.opening or not _SAME_NEXT.match(self._text, at)
        return _VERB_NEXT.match(self._text, at) is not None
