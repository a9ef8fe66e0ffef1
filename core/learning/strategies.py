"""Which strategies a description of a decomposition uses, in whatever words (2) Pattern Extraction."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

MAX_DESCRIPTION: Final = 50_000
"""Longest description, in characters, that is read; what follows is left out."""

# All patterns below meet plain text (`_plain`): lower case, punctuation marks standing alone, one space between
# any two words. Every repetition in them is bounded, so that no text can make them slow.

_TASK: Final = r"(?:sub ?tasks?|tasks?|beads?|agents?|workers?)"
_ONE: Final = r"(?:one|1|single)"
_A: Final = r"(?:(?:a|an|the|their|its|one) )?"
_OWN: Final = r"(?:own|separate|another|dedicated|distinct|different|extra|individual|single)"
_THE: Final = r"(?:the|a|an|each|every|all|its|their|our|individual|user|facing|app|application|ui|react|business)"
_FEW: Final = r"(?:(?!(?:and|or|but|then|so)\b)\w[\w']* )"

_FILE_TYPE: Final = r"(?:file ?(?:types?|kinds?|extensions?)|(?:types?|kinds?) of files?)"
_COMPONENT: Final = r"components?"
_LAYER: Final = r"(?:architectur(?:e|al) )?layers?"
_FEATURE: Final = r"features?"
_FILE: Final = r"files?(?! (?:types?|kinds?|extensions?|names?|formats?)\b)"
_PARTS: Final = rf"(?:{_FILE_TYPE}|{_COMPONENT}|{_LAYER}|{_FEATURE})"
_WHOLE: Final = r"(?! (?:flags?|toggles?|branch(?:es)?|names?|requests?|teams?|librar(?:y|ies))\b)"
"""What follows must not make another thing of it: features are not feature flags."""
_SPLIT: Final = (
    r"(?:split(?:s|ting)?|divid(?:e|es|ed|ing)|decompos(?:e|es|ed|ing)|partition(?:s|ed|ing)?|group(?:s|ed|ing)?"
    r"|br(?:eak|eaks|eaking|oken)|organi[sz](?:e|es|ed|ing)|separat(?:e|es|ed|ing)|slic(?:e|es|ed|ing)|structured)"
)

_TYPES: Final = (
    r"(?:(?:shared|common) (?:\w+ )?(?:types?|typings|type definitions|interfaces|models|schemas|contracts)"
    r"|(?<!file )(?:types|typings|type definitions))"
)
_ROUTES: Final = r"(?:(?:api|rest|http) (?:api )?(?:routes?|endpoints?)|routes|endpoints|api)"
_TESTS: Final = r"(?:(?:unit |integration )?(?:tests?|testing))"
_CODE: Final = r"(?:code|implementations?|implementing|sources?|features?|components?|files?|modules?)"
_TESTED: Final = rf"(?:{_THE} ){{0,2}}(?:\w+ )?(?:{_CODE}|what they test|they test|it|them)"
_PARALLEL: Final = r"(?:parallelism|paralleli[sz]ation|concurrency|parallel (?:work|execution))"
_AT_ONCE: Final = r"(?:in parallel|concurrently|simultaneously|at the same time)"
_NEEDS: Final = r"(?:dependency|dependencies)"


def _per(noun: str) -> tuple[str, ...]:
    """Wordings of one subtask for each `noun`."""
    return (
        rf"{_TASK} (?:per|for each|for every) (?:{_THE} )?{noun}",
        rf"per {noun} (?:{_TASK}|split|basis|decomposition|breakdown)",
        rf"(?:{_ONE}|an?) (?:{_THE} )?{noun} (?:per|for each|for every|in each) {_TASK}",
        rf"(?:each|every) {noun} {_FEW}{{1,3}}?(?:{_OWN}|one|an?) (?:{_OWN} )?{_TASK}",
        rf"(?:each|every|no) {_TASK} {_FEW}{{1,4}}?{_ONE} {noun}",
        rf"(?:{_ONE}) {noun} {_TASK}",
        rf"{noun} (?:based|level) (?:split|splitting|decomposition|breakdown|strategy|approach|{_TASK})",
    )


def _split_by(noun: str) -> tuple[str, ...]:
    """Wordings of a split along `noun`; "by" alone is enough, but not "required by"."""
    by = rf"by (?:{_THE} |{_PARTS} (?:and|or|then|,|/) (?:and |or |then )?){{0,4}}{noun}{_WHOLE}"
    return (
        rf"(?<!ed )(?<!en ){by}",
        rf"{_SPLIT} (?:\w+ ){{0,2}}{by}",
        rf"{_SPLIT} (?:\w+ ){{0,4}}?(?:into|along|across|on|per) (?:{_THE} ){{0,2}}{noun}{_WHOLE}",
        rf"{noun} wise",
        *_per(rf"{noun}{_WHOLE}"),
    )


_WORDINGS: Final[dict[str, tuple[str, ...]]] = {
    "Split by file type": (*_split_by(_FILE_TYPE), r"files by (?:their )?(?:type|extension|kind)"),
    "Split by component": _split_by(_COMPONENT),
    "Split by layer (UI/logic/data)": (
        *_split_by(_LAYER),
        r"(?:ui|front ?end|presentation) (?:[,/] and |[,/] |and )(?:business )?logic (?:[,/] and |[,/] |and )data",
        r"horizontal (?:slices|slicing|layers)",
    ),
    "Split by feature": (*_split_by(_FEATURE), r"vertical (?:feature )?(?:slices|slicing)"),
    "One file per subtask": _per(_FILE),
    "Handle shared types first": (
        rf"{_TYPES} {_FEW}{{0,4}}?(?:first|up ?front)",
        rf"{_TYPES} {_FEW}{{0,4}}?before (?:anything|everything|all|any|other|the rest|(?:the )?implement\w*)",
        rf"(?:start|begin)(?:s|ning|ing)? (?:off )?(?:with|by) (?:\w+ )?(?:{_THE} ){{0,2}}{_TYPES}",
        rf"first (?:, )?{_FEW}{{0,4}}?{_TYPES}",
    ),
    "Separate API routes": (
        rf"(?:separat|isolat)(?:e|es|ed|ing) (?:out )?(?:{_THE} ){{0,2}}{_ROUTES}",
        rf"(?:split|splitting) (?:out |off )(?:{_THE} ){{0,2}}{_ROUTES}",
        rf"(?:split|splitting) (?:{_THE} ){{0,2}}{_ROUTES} (?:out|off)",
        rf"{_ROUTES} {_FEW}{{0,3}}?(?:separate|separated|separately|apart|isolated)",
        rf"{_ROUTES} {_FEW}{{0,4}}?{_A}{_OWN} {_TASK}",
        rf"{_OWN} {_TASK} for (?:{_THE} ){{0,2}}{_ROUTES}",
        rf"{_TASK} (?:per|for each|for every) (?:api )?(?:route|endpoint)",
        rf"(?:each|every) (?:api )?(?:route|endpoint) {_FEW}{{1,3}}?(?:{_OWN}|one|a) (?:{_OWN} )?{_TASK}",
    ),
    "Tests alongside implementation": (
        rf"{_TESTS} {_FEW}{{0,4}}?(?:alongside|beside|next to|along with|together with|close to|near) {_TESTED}",
        rf"(?:but|instead|rather|them|they \w+) (?:right )?(?:alongside|beside|next to|together with) {_TESTED}",
        rf"{_TESTS} {_FEW}{{0,4}}?(?:alongside|side by side)(?: with\b)?",
        rf"{_TESTS} {_FEW}{{0,3}}?with (?:the|their|its|each|every) (?:\w+ )?{_CODE}",
        rf"{_TESTS} with (?:implementation|code)",
        rf"{_TESTS} {_FEW}{{0,3}}?in the same {_TASK}",
        rf"{_TESTS} {_FEW}{{0,3}}?co ?located|co ?locat(?:e|es|ed|ing) (?:{_THE} )?{_TESTS}",
        rf"{_CODE} and (?:{_THE} )?{_TESTS} {_FEW}{{0,3}}?(?:together|in (?:the same|one) {_TASK})",
        rf"{_TESTS} and (?:{_THE} )?{_CODE} {_FEW}{{0,3}}?(?:together|in (?:the same|one) {_TASK})",
        rf"(?:each|every) {_TASK} {_FEW}{{1,3}}?(?:its|their|the) (?:own )?{_TESTS}",
        rf"{_TESTS} (?:in|with|to|inside) (?:each|every) {_TASK}",
        rf"{_TESTS} (?:as|while) (?:we|you|they) (?:go|implement|code|build)|{_TESTS} while implementing",
        rf"(?:{_CODE}|implement\w*) (?:\w+ )?(?:together )?with (?:its|their|the) (?:own )?{_TESTS}",
    ),
    "Tests in separate subtask": (
        rf"{_TESTS} {_FEW}{{0,5}}?{_OWN} {_TASK}",
        rf"{_TESTS} {_FEW}{{0,4}}?{_TASK} of (?:its|their) own",
        rf"{_TASK} (?:just |only )?(?:for|to write|to add|with) (?:all |only |writing |{_THE} ){{0,3}}{_TESTS}",
        rf"{_OWN} {_TESTS} {_TASK}",
        rf"separat(?:e|es|ed|ing) (?:out )?(?:{_THE} )?{_TESTS} (?:from|into)",
        rf"(?:split|splitting) (?:out |off )(?:{_THE} )?{_TESTS}",
        rf"{_TESTS} {_FEW}{{0,3}}?(?:separately|(?:separate|separated|apart) from)",
    ),
    "Maximize parallelization": (
        rf"max(?:imum|imal|imi[sz](?:e|es|ed|ing|ation of))? (?:the |possible |degree of ){{0,2}}{_PARALLEL}",
        rf"maximi[sz](?:e|es|ing) {_FEW}{{1,5}}?{_AT_ONCE}|{_PARALLEL} {_FEW}{{0,3}}?maximi[sz]ed",
        r"paralleli[sz](?:e|es|ed|ing) (?:\w+ ){0,3}?(?:all|everything|as (?:much|many|far|heavily)|where(?:ver)?"
        rf"|whenever|fully|heavily|aggressively|maximally|(?:the )?work|{_TASK})",
        rf"as (?:parallel|much {_PARALLEL}|(?:much|many) (?:\w+ ){{0,2}}{_AT_ONCE}) as",
        rf"as (?:much|many) (?:\w+ )?as (?:possible|we can) {_FEW}{{0,3}}?{_AT_ONCE}",
        rf"(?:all|everything|everyone|{_TASK}|them|(?:what|any|every)\w* (?:that )?can) {_FEW}{{0,4}}?{_AT_ONCE}",
        rf"{_AT_ONCE} (?:as much|where|wherever|whenever) (?:as )?possible",
        r"(?:full|fully|highly|massively) (?:parallel|paralleli[sz]ed|parallelism)|parallel (?:all|everything)",
    ),
    "Sequential execution order": (
        r"sequentially|serially|in sequence|in series",
        rf"(?:sequential|serial) (?:execution|order|ordering|processing|plan|approach|steps?|runs?|{_TASK})",
        r"(?:execution|order) (?:is|stays|must be|should be) sequential",
        rf"one (?:{_TASK} )?(?:at a time|by one|after (?:the other|another|the next))",
        rf"strictly (?:in order|sequential)|run {_FEW}{{1,3}}?in order(?! (?:to|of|that))|in (?:a )?(?:strict|fixed) order",
    ),
    "Respect dependency chain": (
        rf"{_NEEDS} (?:chains?|order|ordering)",
        r"(?:respect|follow|honou?r|obey|observ|mind|preserv|maintain|keep|stick|adher)(?:e|s|es|ed|ing)? (?:to )?"
        rf"(?:{_THE} |task |subtask |order of ){{0,3}}{_NEEDS}",
        rf"(?:in|along|according to|based on|order of|order(?:ed|ing)? {_FEW}{{0,3}}?by)"
        rf" (?:{_THE} |order of ){{0,2}}{_NEEDS}",
        rf"(?:dependencies|prerequisites) {_FEW}{{0,2}}?first",
        r"(?:after|wait(?:s|ing)? for|until) (?:its|their|all|the) (?:\w+ )?dependencies",
        r"topological(?:ly)? (?:order|sort)(?:ed|ing)?",
    ),
}
"""The strategies by the titles of (2) Detected strategies; each is found by any of its wordings."""
_MENTIONS: Final = {title: re.compile(rf"\b(?:{'|'.join(found)})\b") for title, found in _WORDINGS.items()}

_AUXILIARY: Final = (
    r"(?:is|are|was|were|be|been|will|would|shall|should|must|can|could|may|might|need|do|does|did|has|have|had)"
)
_NOT: Final = (
    r"(?:(?:do|does|did|wo|would|should|could|ca|must|need|is|are|was|were|has|have|had)n'?t|cannot"
    rf"|{_AUXILIARY} not|not|never)"
)
_SUBJECT: Final = (
    r"(?:(?:we|i|you|they|it|he|she|let|each|every|everything|this|these|those|there|please|then|instead|always)\b"
    r"|(?:\w+ ){1,4}?(?:is|are|will|should|must|can|goes?|gets?|lives?|stays?|comes?|runs?|ha(?:s|ve))\b)"
)
_VERB: Final = (
    r"(?:split|use|keep|put|handle|run|respect|follow|honou?r|maximi[sz]e|paralleli[sz]e|do|go|make|separate|define"
    r"|start|begin|execute|write|group|divide|decompose|partition|break|organi[sz]e|prefer|work|create|build|place"
    r"|give|isolate|obey|stick|slice|order|co ?locate|include|add|extract|only|just|simply|always|rather)\b"
)
_IN_CLAUSE: Final = r"[^,.;:!?()]"

_MARK: Final = re.compile(
    # What looks like a negation and is none, or is one negated.
    rf"(?P<assent>\b(?:{_NOT} (?:only|just|merely|simply|solely|more than|a bad idea|wrong)"
    rf"|{_NOT} (?:be )?(?:hesitat|forget|fail|neglect|omit|miss|skip|avoid|ignor|afraid|shy|disregard|break)\w*"
    r"|no (?:harm|problem|objections?|doubt|matter|question|more than|reason (?:not )?to (?:not|avoid|skip)|reason not)"
    r"|nothing (?:against|wrong with)|why not|without (?:a )?(?:doubt|question|fail|exception|hesitation|delay))\b)"
    # What forbids to the end of the clause, and what only takes one phrase out of it.
    rf"|(?P<phrase>\b(?:instead of|rather than|as opposed to|in place of|unlike|without|neither|nor|nobody|none|no one(?! file)"
    r"|nothing|no(?! ,)"
    r"|(?:not|never)(?= (?:so much )?(?:\w+ing|by|in|into|with|per|as|an?|one|the)\b)|over(?= (?:by|splitting)\b))\b)"
    rf"|(?P<verb>\b{_NOT}\b(?: , {_IN_CLAUSE}{{1,40}} ,)?(?: :)?)"
    r"|(?P<noun>\b(?:avoid(?:s|ed|ing)?|against|refrain(?:s|ed|ing)? from|away from|anything but|skip(?:s|ped|ping)?"
    r"|stop(?:s|ped|ping)?|ignor(?:e|es|ed|ing)|disregard(?:s|ed|ing)?|regardless of|irrespective of"
    r"|abandon(?:s|ed|ing)?|reject(?:s|ed|ing)?|forb(?:id|ids|ade|idden|idding)|prohibit(?:s|ed|ing)?"
    r"|rul(?:e|es|ed|ing) out|(?:refus(?:e|es|ed)|declin(?:e|es|ed)|wrong) to|bad idea|a mistake|pointless|unnecessary)\b"
    r"(?:(?: (?:these|the following)(?: \w+){0,3})? :)?)"
    r"|(?P<toggle>\bmore than\b)"
    r"|(?P<stop>[.;:!?]|\b(?:but|so|however|therefore|hence|thus|instead|although|though|whereas|while|because|since"
    r"|if|when|unless|until|otherwise|by(?= \w+ing\b))\b)"
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
    r"| (?:never|no longer) (?:work|help|scale)\w*| but (?:\w+ )?(?:rejected|dropped|abandoned) (?:it|that))\b"
)

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
    """A negation in force.

    Attributes:
        kind: Group of `_MARK`: a verb's reaches further than that of a noun or a phrase.
        opening: It opens its clause: "Instead of ..., ...".
        spoken: A strategy was mentioned under it.
    """

    kind: str
    opening: bool
    spoken: bool = False


def extract_strategies(description: str) -> list[str]:
    """The strategies of (2) Detected strategies that a description uses, by the document's titles.

    A mention that is negated within its clause ("don't split by file type", "by feature instead of by layer",
    "one file per subtask is not an option") is not a use.

    Args:
        description: Free text; only its first `MAX_DESCRIPTION` characters are read.

    Returns:
        Each title once, in the order in which the text first uses them.
    """
    text = _plain(description)
    mentions = sorted((found.end(), title) for title, regex in _MENTIONS.items() for found in regex.finditer(text))
    scope = _Scope(text)
    used = {title: None for end, title in mentions if not scope.negated_at(end) and not _REFUSED_AFTER.match(text, end)}
    return list(used)


def _plain(description: str) -> str:
    """The text that the patterns of this module are written for; a new line of a list is a new sentence.

    Below a heading such as "Avoid:" each item of the list repeats it.
    """
    parts: list[str] = []
    warning = ""
    text = unicodedata.normalize("NFKC", description[:MAX_DESCRIPTION].translate(_SIGNS))[:MAX_DESCRIPTION]
    for line in _HIDDEN.sub("", text).splitlines():
        line = line.strip()
        item = _ITEM.match(line)
        found = _WORD.findall(line.lower(), item.end() if item else 0)
        words = " ".join(";" if word in _DASHES else word for word in found)
        if item:
            words = f". {warning}{words}"
        elif words:
            heading = line.startswith("#") or words.endswith(":")
            warning = "avoid : " if heading and _HEADING.search(words) else ""
        parts.append(f". {words}" if not words or _SENTENCE.match(line) else words)
    return " ".join(parts)


class _Scope:
    """Reads a text from left to right and knows whether a negation is in force."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._marks = _MARK.finditer(text)
        self._next = next(self._marks, None)
        self._negation: _Negation | None = None
        self._clause = 0
        self._outside: list[_Negation | None] = []

    def negated_at(self, end: int) -> bool:
        """Whether a mention that ends at `end` is negated; asked in the order of the text."""
        while self._next is not None and self._next.start() < end:
            self._read(self._next)
            self._next = next(self._marks, None)
        if self._negation is None:
            return False
        self._negation.spoken = True
        return True

    def _read(self, mark: re.Match[str]) -> None:
        kind = mark.lastgroup
        if kind in ("phrase", "verb", "noun"):
            opening = not self._text[self._clause : mark.start()].strip()
            self._negation = _Negation(kind, opening)
        elif kind == "toggle":
            self._negation = None if self._negation else _Negation("phrase", False)
        elif kind == "open":
            self._outside.append(self._negation)
        elif kind == "close":
            self._negation = self._outside.pop() if self._outside else None
        elif kind == "stop" or (kind in ("comma", "and") and self._ends(kind, mark.end())):
            self._negation = None
            self._clause = mark.end()

    def _ends(self, kind: str, at: int) -> bool:
        """Whether the negation in force ends at a comma or an "and" that ends at `at`."""
        negation = self._negation
        if negation is None or _SUBJECT_NEXT.match(self._text, at):
            return True
        if kind == "and" and negation.kind == "verb":
            return False
        if not negation.spoken:
            return True
        if kind == "comma" and _LIST_NEXT.match(self._text, at):
            return False
        if kind == "comma" and negation.kind == "phrase":
            return negation.opening or not _SAME_NEXT.match(self._text, at)
        return _VERB_NEXT.match(self._text, at) is not None
