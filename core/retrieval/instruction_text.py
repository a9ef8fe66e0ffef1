"""Text of instructions in a form that can be parsed: one expression for each meaning, split into clauses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from core.base.regex_table import LazyRegex

MAX_CHARS: Final = 400  # characters of a text that are compared
UNASKED: Final = "unasked!"
"""Mark of a clause that something is done, or forbidden, without asking first."""
UNLESS_ASKED: Final = "unlessasked!"
"""Mark of a clause that something is forbidden unless the user asks for it."""

_CODE: Final = LazyRegex(r"`[^`]{1,120}`")
_SPACED: Final = LazyRegex(r"([.,:;])\s+")
NUMBER_WORDS: Final = {
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
    "nine": "9", "ten": "10", "twelve": "12", "fifteen": "15", "twenty": "20", "thirty": "30", "forty": "40",
    "fifty": "50", "sixty": "60", "eighty": "80", "ninety": "90", "hundred": "100",
}  # fmt: skip
_NUMBER: Final = rf"(?=(?:the |an? )?(?:\d|(?:{'|'.join(NUMBER_WORDS)})\b))"
_MODAL: Final = "do|does|did|must|should|shall|may|might|can|could|will|would|need|is|are|was|were|be|has|have|had"
_REPOSITORY: Final = r"(?:the )?(?:git|version control|repo(?:sitory)?|codebase)\b"
_ASKED: Final = "asked|asks|requested|requests|told|instructed|directed|approved|says|necessary|required"
_VERB: Final = (
    "(?:always |please )?(?:use|run|prefer|write|keep|put|make|add|call|return|create|let|choose|favou?r|ask|pick)"
)
_OTHER_VERB: Final = (
    "(?:pass|raise|give|split|fix|delete|remove|leave|show|store|set|start|move|look|push|merge|rebase|do|bind|return)"
    " (?:it|them|the|an?|that|this|your|its|their|each)"
)
_NEXT: Final = "open|push|create|merge|submit"
_BAN: Final = "never|not|don't|avoid|skip|no|instead_of|rather_than"

# (what, its replacement), applied in this order.
_REWRITES: Final = tuple(
    (LazyRegex(what), replacement)
    for what, replacement in (
        (r"[!?]+(?=\s|$)", "."),
        # Asides: examples and explanations are left out, exceptions become clauses.
        (
            r"\bwithout (?:\w+ ){0,2}?(?:asking|approval|permission|confirmation|confirming|consent|instructions?"
            r"|authori[sz]ation|being (?:asked|told))\b(?: first)?(?: for (?:permission|confirmation|approval))?",
            UNASKED,
        ),
        (
            r"\b(?:for|in|on|during) (?:this|these|those|our) "
            r"(?:tasks?|projects?|repo|repository|codebase|session|case|cases|purpose)\b",
            "",
        ),
        (r"\((?=(?:never|not|no|don't|do not|avoid|instead|rather) )", ", "),
        (r"\((?:e\.g\.|i\.e\.|such as|like|`)[^()]{0,120}\)|\b(?:e\.g\.|such as)[^.;]*(?:\.\w[^.;]*)*", ""),
        (r"\((?![^()]{0,80}\d)[^()]{0,200}\)", " "),
        (r"\s[\u2013\u2014-]{1,2}\s(?:they|it|this|that|we|these|there|you|its|the|nobody)\b[^.;]*", ""),
        (rf"\bunless (?:[\w']+ ){{0,4}}?(?:{_ASKED})(?: to| otherwise| one)?\b", UNLESS_ASKED),
        (r"\bon behalf of (?:the user|me|anyone)\b|\b(?:yourself|on your own)\b", ""),
        (r",? (?:or|and) (?:any )?other [^.;,]*", ""),
        (r",? (?:whatever|regardless of|no matter|however \w+|at any) [^.;,]*", ""),
        # A label is a part of what follows it: "Line length: 100".
        (
            r"(^|[.;]\s+)(?!(?:never|don't|do not|avoid|always|use|run|note|no|not|example)\b)"
            r"([\w/-]{1,30}(?: [\w/-]{1,30}){0,2}):\s+(?!(?:always|never|don't|do not|add|use|create|write)\b)",
            r"\1\2 ",
        ),
        # Bans
        (rf"\b({_MODAL}) (?:not|never)\b", r"\1n't"),
        (r"\binstead of\b", "instead_of"),
        (r"\brather than\b", "rather_than"),
        (r"\b(prefer|favou?r|choose|pick)\b([^.;]{1,80}?)\bover\b", r"\1\2 rather_than"),
        (
            r"(^|[.;]\s+)(?!(?:loop|iterate|go|hand|run|connect|take|send|map)\b)"
            r"((?:[\w`'/-]{1,40} ){1,3})over (?!\d|the |a )",
            r"\1\2rather_than ",
        ),
        (r"\bleave ([^.;,]{1,60}?) (?:alone|untouched|as (?:it is|they are|is))\b", r"don't edit \1"),
        (
            rf"([^.;,]{{1,60}}?) (?:must |should )?(?:be kept|stays?|kept|remains?) out of {_REPOSITORY}",
            r"never commit \1",
        ),
        (rf"\b(?:go(?:es)?|belongs?) in(?:to)? {_REPOSITORY}", "commit"),
        (rf"\bkeep ([^.;,]{{1,60}}?) out of {_REPOSITORY}", r"never commit \1"),
        (r"\bkeep ([^.;,]{1,60}?) out of ", r"never put \1 in "),
        (r"\b(?:feel free to|you(?:'re| are) free to|(?:it is|it's) (?:ok|okay|fine) to|you (?:may|can))\b", ""),
        (r"\blacking\b", "without"),
        (r"\btreat ([^.;,]{1,60}?) as (?:immutable|read-only|frozen)\b", r"don't edit \1"),
        (
            r"([^.;,]{1,60}?) (?:is|are|must be|stays?) (?:immutable|read-only|frozen)\b(?: for (?:you|agents))?",
            r"don't edit \1",
        ),
        # Numbers
        (r"\b\d+\s?[-\u2013]\s?\d+\s?(?:%|percent)", ""),
        (r"\b\d+\s?[-\u2013]\s?(\d+)\b", r"\1"),
        (r"\b(?:https?://)?(?:localhost|127\.0\.0\.1|0\.0\.0\.0):(\d{2,5})\b", r" port \1 "),
        (r"\b(on|at) (\d{4,5})\b", r"\1 port \2"),
        (r"\b(?:no|not) (?:longer|more|larger|greater|higher|wider) than\b", "max"),
        (rf"\b(?:don't|mustn't|mayn't|shouldn't|cannot|can't|never) exceed\b {_NUMBER}", "max "),
        (rf"\b(?:at most|up to|below|under|fewer than|less than|limited to|limit of|within) {_NUMBER}", "max "),
        (
            rf"\b(?:past|beyond|over|more than|longer than|larger than|exceed(?:s|ing)?|above) {_NUMBER}",
            "above ",
        ),
        (rf"\b(?:at least|no less than|not less than|minimum of) {_NUMBER}", "min "),
        # Words with a meaning of their own
        (r"\basked for\b", "wanted"),
        (r"\btest (?:that|which) would(?:'ve| have) (?:caught|failed|found)[^.;,]*", "regression test"),
        (r"\b(?:tests?|specs?) first\b|\btest-first\b", "tests before implementation"),
        # Reasons
        (
            r"(?s)(?:\b(?:so (?:that|the|we|you|it|they)|because|otherwise|or else|since(?! the (?:unix )?epoch)"
            r"|in order to)\b"
            r"|,\s+(?:so|as|which|even)\s|\bto (?:avoid|prevent|ensure|keep|reduce|make sure|minimi[sz]e)\b)"
            r".*?(?=\.\s|;|$)",
            "",
        ),
        # The condition follows what it is for: "When you commit, run X" becomes "run X when you commit".
        (
            r"(^|\.\s+)((?:when|if|before|after|while|once|whenever|for|during|unless|instead_of|rather_than|in|on) "
            r"[^,.;`]{2,80}(?:`[^`]{1,60}`[^,.;]{0,40})?)(?:,\s+|\s+(?=(?:don't|never|always|use) ))([^.;]+)",
            r"\1\3 \2",
        ),
    )
)
_FORBIDDEN: Final = (
    r"(?:\S+ ){1,3}?(?:mustn't|isn't|aren't|can't|cannot|shouldn't|mayn't|may never|must never"
    r"|(?:is|are) (?:off[ -]limits|forbidden|banned|prohibited|disallowed))"
)
_CLAUSE: Final = LazyRegex(
    rf"\s*[;:]\s+|\s+[\u2013\u2014-]{{1,2}}\s+|\.\s+|,\s+(?:and )?(?=(?:{_VERB}|{_OTHER_VERB}) )|,?\s+then\s+"
    rf"|\s+and\s+(?=(?:{_NEXT}|{_VERB}|{_BAN}) )|,\s*(?:and |but )?(?=(?:{_BAN}|{_FORBIDDEN}) )"
    r"|\s+(?=(?:instead_of|rather_than|but) )|\s+(?=not (?:\S+\s+){0,2}\S+$)"
)


def normalize_text(text: str) -> str:
    """Return a text in lower case, with straight apostrophes and without spaces after punctuation in code."""
    text = text[:MAX_CHARS].lower().replace("\u2019", "'")
    return _CODE.compiled.sub(lambda code: _SPACED.compiled.sub(r"\1", code[0]), text)


def split_clauses(text: str) -> Iterator[str]:
    """Yield the clauses of a normalized text, without reasons and examples."""
    for regex, replacement in _REWRITES:
        text = regex.compiled.sub(replacement, text)
    return filter(None, _CLAUSE.compiled.split(text[: 2 * MAX_CHARS]))


_STEP: Final = r"[^,.;:]{3,150}?"
_END: Final = r"(?=$|[.;])"
# (how two steps are ordered, the step that the sentence demands or forbids, "" if it is both)
_STEPS: Final = tuple(
    (LazyRegex(regex), main)
    for regex, main in (
        (rf"^before (?P<then>{_STEP}),\s*(?P<first>{_STEP}){_END}", "first"),
        (rf"^(?:after|once) (?P<first>{_STEP}),\s*(?P<then>{_STEP}){_END}", "then"),
        (
            rf"(?:^|[:;.] )(?P<first>{_STEP}) first,? (?:and |only )?(?:then )?(?P<then>{_STEP})"
            rf"(?: after (?:it|that))?{_END}",
            "",
        ),
        (
            rf"^(?P<first>{_STEP}),? and,? (?:then,? )?(?:once|after) (?:it|they|this|that)\b[^,.;]{{0,60}}, "
            rf"(?P<then>{_STEP}){_END}",
            "",
        ),
        (rf"^(?P<first>{_STEP}),? (?:and |only |but only )?then (?P<then>{_STEP}){_END}", ""),
        (rf"^(?P<first>{_STEP}),? (?:before|(?P<until>until)) (?P<then>{_STEP}){_END}", "first"),
        (rf"^(?P<then>{_STEP}),? (?:only )?(?:after|once) (?P<first>{_STEP}){_END}", "then"),
    )
)
_NOT: Final = LazyRegex(r"\b(?:never|not?|cannot)\b|n't\b")


def split_steps(text: str) -> tuple[str, str] | None:
    """Return two steps that a normalized text orders, the first one first, None if it states no order."""
    for regex, main in _STEPS:
        if found := regex.compiled.search(text):
            # "Never X before Y" and "no X until Y" demand Y first; "X until Y" states no order.
            is_ban = bool(main) and _NOT.compiled.search(found[main]) is not None
            if not is_ban and found.groupdict().get("until"):
                return None
            return (found["then"], found["first"]) if is_ban else (found["first"], found["then"])
    return None
