"""Distinguishes instructions from warnings; a warning is harmless (docs/safety.md#warnings)."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final

from core.base.negation import NOT

_REACH: Final = 120
"""Characters before a match that are searched for a negation."""
_BREAK: Final = re.compile(r"[\n;!?,:]|\.(?=\s|$)|--\s|\b(?:but|then|and then|instead,|so that|because|however)\b")
"""End of the reach of a negation."""
_NEGATION: Final = re.compile(
    rf"\b(?:(?!never\s+mind\b){NOT}|avoid(?:s|ing)?|instead of|rather than|without|no|refuse"
    r"|reject|forbid|prevent|stop|against|beware of|no need to|anti-?pattern"
    r"|(?:unsafe|dangerous|wrong|mistake|bad idea) to)\b",
    re.IGNORECASE,
)
_TURNED: Final = re.compile(
    r"\b(?:hesitate|forget|fail|worry|afraid|shy|omit|neglect|only|wait|delay|care|mind|matter|just|problem|harm"
    r"|refrain|avoid|stop|without|until|unless)\w*\b|\b(?:by|via|through)\s+\w+ing\b|\b(?:by|via)\s*$",
    re.IGNORECASE,
)
"""After a negation, makes it an instruction: "do not hesitate to", "avoid delays by running"."""
_DOUBLED: Final = re.compile(
    r"\b(?:(?:is|was|be|seems)\s+(?:an?\s+)?(?:wrong|bad|mistake|error|foolish|unwise|unsafe|dangerous|risky)"
    rf"|(?:if|when|unless)\s+(?:you|we|it|they|one)|why|{NOT}|nothing|nobody|impossible)\b"
    r"(?![^\n]*\b(?:and|or|nor)\b)[^\n]{0,40}$",
    re.IGNORECASE,
)
"""Before a negation, makes it an instruction: "it is wrong not to", "why not", "nothing works without"."""
_ABOUT: Final = re.compile(
    r"\s*(?:(?:ever|to|to ever|be|the|a|an|any|such|use of|commands? like|things? like)\s+){0,3}(?:\w+ing\b"
    r"|(?:accept|add|allow|apply|answer|append|approve|bypass|call|catch|change|commit|copy|delete|disable|do|download"
    r"|drop|enable|execute|export|fetch|follow|force|force-push|grant|hard-?code|include|install|invoke|let|log|merge"
    r"|open|paste|pass|pip|pipe|post|print|publish|push|put|read|rely|remove|replace|resort|run|send|set|share|skip"
    r"|start|store|switch|trust|try|turn|type|upload|use|work|write)(?:ed|d)?\b|[\"'`(]*$)",
    re.IGNORECASE,
)
"""After a negation that certainly covers the match: a verb of action, or the match itself."""
_HARMS: Final = (
    r"(?:(?:is|are|was|were)\s+(?:rejected|forbidden|dangerous|unsafe|not allowed|never|bad|wrong"
    r"|blocked)|loses|lost|breaks|broke|must (?:never|not)|should (?:never|not)|destroys)\b"
)
_BAD: Final = re.compile(
    r"(?i)(?:(?!\b(?:when|if|because|since|where|while|until|unless|before|after|so|then|that|which|otherwise|else"
    rf"|or (?:the|it|this|you|your|we|our)|no|none|nobody|nothing|never)\b)[^.\n;]){{0,60}}\b{_HARMS}"
)
"""After a match that is the subject of a sentence which calls it bad."""
_BAD_AT_ONCE: Final = re.compile(rf"(?i)[\"'`)*\s]*{_HARMS}")
"""`_BAD` after a match that may be an order: in "skip the tests, the build broke" the subject is another one."""
_URGED: Final = re.compile(r"\b(?:always|please|must|should|let'?s|we|you)\s+(?:\w+\s+){0,2}$", re.IGNORECASE)
_HINDERED: Final = re.compile(
    r"\b(?:if|when|whenever|in case)\s+(?:the|a|an|this|that|your|our)\s+\w+\s*$", re.IGNORECASE
)
"""Before a negation that is a condition: "if the hook can't run, use" is an instruction."""
_PURPOSE: Final = re.compile(
    r"\W*(?:(?:in order )?to (?:avoid|prevent|stop)|rather than|instead of|without)\b", re.IGNORECASE
)
"""Start of a clause of purpose, which an order follows: "to avoid a slow build use"."""
_SENTENCE_REACH: Final = 400
"""Characters before a match that are searched for an order."""
_POINTS: Final = re.compile(r"\b(?:this|these|that|it|following|below|commands?|lines?|steps?)\W*$", re.IGNORECASE)
"""End of a sentence that announces the match: the order is in the sentence."""
_SENTENCE: Final = re.compile(r"[\n;!?]|\.(?=\s|$)")
_DIRECTIVE: Final = re.compile(
    r"\b(?:must|should|shall|ought to|(?:need|needs|have|has) to|please|always|you (?:can|could|may|might|will|want)"
    r"|let'?s|(?:make|be) sure|remember|recommended|required|advised|hint|tip|instead|next time|from now on"
    r"|to (?:fix|solve|resolve|repair|proceed|continue|recover|work around)\b"
    r"|fix(?:ed|es)? (?:it |this )?(?:by|with|is)|solved|solution|resolved|workaround|(?:works?|pass(?:es)?|succeeds?)"
    r" (?:after|with|by|once|when|if)|(?:fix|answer|remedy|cure)\s*(?::|is\b))",
    re.IGNORECASE,
)
"""Before a match in a description of a failure: an order or a recommendation."""
_COMMENDED: Final = re.compile(
    r"[\"'`)\s]*(?:(?:fixes|fixed|solves|solved|resolves|resolved|helps|helped|first|instead|from now on|next time)\b"
    r"|(?:must|should|shall|needs? to|has to|is to) be (?!avoided|rejected|forbidden|blocked|removed)\w"
    r"|works(?! around)\b|is (?:needed|required|necessary|recommended|the (?:fix|solution|answer|way)))",
    re.IGNORECASE,
)
"""A recommendation after a match."""
_VERB: Final = (
    r"(?:run|use|execute|invoke|try|type|paste|enter|call|launch|start|do|perform|apply|issue|put|add|append|write|copy"
    r"|install|download|fetch|pipe|source|evaluate|commit|push|merge|set|switch|turn|pass|export|include|open|read"
    r"|print|show|send|upload|post|share|forward|give|grant|disable|bypass|skip|circumvent|deactivate|delete|remove"
    r"|drop|comment|mark|report|replace|change|hard-?code|mute|ignore|approve|accept|confirm|answer|repeat|embed"
    r"|retry|rerun|repair|fix|force|allow|trust|follow|go|begin|proceed|continue|finish|work)"
)
_ORDER: Final = re.compile(
    r"(?:^|[,:(>*\u2013\u2014-]\s|\b(?:and|then|so|but|or|just|now|simply|also|first|next|you|to fix)\s"
    rf"|(?-i:\s(?=[A-Z][a-z]))|(?<!to)\s(?={_VERB}\s*:))[\s\"'`(*>-]*"
    rf"(?P<verb>{_VERB})\b(?P<colon>(?:\s\w+){{0,4}}\s*:)?"
    r"(?!\s+(?:of|to|failed|fails|failing|was|were|is|has|had|did|errors?|exit\w*|returned|crash\w*|step|script|\d))",
    re.IGNORECASE,
)
"""Imperative verb at the start of a clause; not "failed to run", "the run was" or "running"."""
_ORDERED: Final = re.compile(
    rf"\w\s+(?!(?:and|or|nor|to|that|which|who|they|you|we|not)\s)[\w-]+\s+[\"'`]*{_VERB}[\s\"'`]*$", re.IGNORECASE
)
"""Text that ends with an imperative verb."""
_FAILED: Final = re.compile(
    r"[\"'`)\s]*(?:(?:has |have )?(?:failed|fails|crashed|hung|broke|exited|returned|timed out)\b(?! (?:unless|until))"
    r"|:? ?(?:command )?not found|: permission denied|: no such file)",
    re.IGNORECASE,
)
"""Directly after a command that failed: an imperative before it names what was tried."""
_WORD: Final = re.compile(r"[a-zA-Z-]+(?=\s)")
_NEAR_WORDS: Final = 4
"""Highest number of words between a negation and a match that it certainly covers."""

_NEGATED_LIST: Final = rf"\b(?:{NOT}|avoid)\s+(?P<list>(?:\w+\s+){{0,2}}?\w+(?:,\s+\w+(?:\s+\w+){{0,2}}){{0,5}}"
_LISTED: Final = re.compile(_NEGATED_LIST + r",?\s+(?:or|nor)(?:\s+\w+){0,5})\s*$", re.IGNORECASE)
"""Before the last item of a negated list: "do not disable, bypass, or skip ..."."""
_LIST_BEGUN: Final = re.compile(_NEGATED_LIST + r"),\s+$", re.IGNORECASE)
_LIST_GOES_ON: Final = re.compile(r"\w+(?:\s+\w+){0,2},?\s+(?:or|nor)\s", re.IGNORECASE)
"""Before an item of a negated list that is not the last one."""
_ASIDE: Final = re.compile(
    r"\b(?:never|do not|don'?t|must not),\s+(?:ever|even|under|in|for|no matter|regardless|at)\b[^,;.:\n]{0,40},\s+"
    r"(?:\w+(?:\s+|$)){0,2}$",
    re.IGNORECASE,
)
"""Negation with an insertion between commas: "never, under any circumstances, use ..."."""
_FORBIDDEN: Final = re.compile(
    r"(?:\b(?:must|shall|should|may|do|can)\s?(?:not|n'?t)|\bcannot|\bnever|\bdon'?ts?|\bforbidden|\bprohibited|\bavoid"
    r"|\banti-?patterns?)\*{0,2}:\*{0,2}"
    r"(?:(?!\n\s*\n)(?!\b(?:instead|must|always|should|then|but)\b)[^:]){0,600}$",
    re.IGNORECASE,
)
"""List under a heading such as "agents must not:"."""
_GUARDED: Final = re.compile(
    r"\b(?:detect|block|den(?:y|ies)|disallow|prohibit|mitigat\w|protect\w* (?:against|from)"
    r"|guard\w* against|check(?:s|ing)? for|scan(?:s|ning)? for|look(?:s|ing)? for|watch for"
    r"|warns? (?:about|against|when|if)|attempts? (?:to|at)|refus\w)\w*(?:\s+|$)(?:(?!(?:and|then|by|via"
    r"|with|using|through|to|run\w*)\b)\w+\s+){0,3}[\"'`(]*$",
    re.IGNORECASE,
)
"""Directly before the object of a defence."""
_CHANGELOG: Final = re.compile(
    r"[\s*\-+\u2022]*(?:(?:security|feature|bug ?fix|perf\w*|chore|docs?|\[[^\]\n]{1,30}\]|[\w./ -]{1,20}):\s+)?"
    r"(?:fixe[sd]|added|improved|updated|changed|removed|deprecated|introduced|restored|hardened|renamed|reduced"
    r"|enhanced|resolved|reverted|bumped|extended|documented|clarified|refactored)\b",
    re.IGNORECASE,
)
"""Start of a changelog entry, which describes a change of the product and is not an order."""
_EXAMPLE: Final = re.compile(
    r"\(\s*(?:e\.g\.|i\.e\.|for example|for instance|such as|like),?\s+[\"'`\u201c]$", re.IGNORECASE
)
_QUOTED_CODE: Final = re.compile(r"`[^`\n]{0,200}`")
_MENTION_BREAK: Final = re.compile(r"[\n;!?]|(?<!e\.g)(?<!i\.e)\.(?=\s)")


class Polarity(IntEnum):
    """Certainty that a text warns of something."""

    INSTRUCTS = 0
    MAYBE_WARNS = 1
    WARNS = 2


def classify_polarity(text: str, start: int, end: int, *, avoided: bool, happened: bool = False) -> Polarity:
    """Classify the part of a text from `start` to `end`.

    Args:
        text: The whole text.
        start, end: Bounds of the part.
        avoided: The text names something to avoid: a negation in it is an instruction ("building without ..."), and so
            is an order, unless the text begins with it ("Commit with ...", the name of an approach).
        happened: The text describes a failure: as `avoided`, and any order is an instruction.
    """
    clause = _BREAK.split(text[max(start - _REACH, 0) : start])[-1]
    negations = list(_NEGATION.finditer(clause))
    if avoided or happened:
        return Polarity.INSTRUCTS if negations or _orders(text, start, end, happened) else Polarity.WARNS
    if not negations:
        before = text[max(start - _SENTENCE_REACH, 0) : start]
        if any(rule.search(before) for rule in (_GUARDED, _ASIDE, _FORBIDDEN)):
            return Polarity.WARNS
        listed = _LISTED.search(before) or (_LIST_GOES_ON.match(text, start) and _LIST_BEGUN.search(before))
        if listed and not _TURNED.search(listed["list"]):
            return Polarity.WARNS
        return (
            Polarity.MAYBE_WARNS if _is_bad(text, start, end) or _is_mention(text, start, end) else Polarity.INSTRUCTS
        )
    before, behind = clause[: negations[-1].start()], clause[negations[-1].end() :]
    if _TURNED.search(behind) or _DOUBLED.search(before) or _HINDERED.search(before):
        return Polarity.INSTRUCTS
    if _PURPOSE.match(clause):
        word = _WORD.match(text, start, end)
        if _ORDERED.search(behind) or (word and _ORDERED.search(behind + word[0])):
            return Polarity.INSTRUCTS
    near = len(behind.split()) <= _NEAR_WORDS
    return Polarity.WARNS if near and _ABOUT.match(behind) else Polarity.MAYBE_WARNS


def _is_bad(text: str, start: int, end: int) -> bool:
    """Whether the words after the part, which is not an order, call it bad."""
    if not _BAD.match(text, end):
        return False
    sentence = _SENTENCE.split(text[max(start - _SENTENCE_REACH, 0) : start])[-1]
    word = _WORD.match(text, start, end)
    ordered = _URGED.search(sentence) or _ORDER.search(sentence.lstrip() + (word[0] if word else ""))
    return not ordered or _BAD_AT_ONCE.match(text, end) is not None


def _is_mention(text: str, start: int, end: int) -> bool:
    """Whether a changelog entry or an example in parentheses only mentions the part."""
    sentence = _MENTION_BREAK.split(text[max(start - _SENTENCE_REACH, 0) : start])[-1]
    if not (_CHANGELOG.match(sentence) or _EXAMPLE.search(sentence)):
        return False
    # Options and commands between backticks are not verbs of the sentence.
    before = _QUOTED_CODE.sub(" ", sentence)
    return not _DIRECTIVE.search(before) and not _COMMENDED.match(text, end) and not _ORDER.search(before)


def _orders(text: str, start: int, end: int, happened: bool) -> bool:
    """Whether a text about a failure orders the reader to do the part."""
    before = text[max(start - _SENTENCE_REACH, 0) : start]
    if not _POINTS.search(before):
        before = _SENTENCE.split(before)[-1]
    if _DIRECTIVE.search(before) or _COMMENDED.match(text, end):
        return True
    if _FAILED.match(text, end):
        return False
    # The part may begin with the verb: "delete the failing tests".
    word = _WORD.match(text, start, end)
    named = not happened and start - len(before) <= 0
    for order in _ORDER.finditer(before.lstrip() + (word[0] if word else "")):
        if order["colon"] or order.start() > 0 or not named:
            return True
    return False
