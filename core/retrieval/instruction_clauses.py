"""Comparable clauses of instructions for agents (docs/instructions.md#pairs).

A text has one expression for each meaning, and is split into clauses, each a demand or a ban. The words of a clause
before its first preposition are its head, what it is about; the others are its tail, when and where it applies. Words
are stems; words and expressions with one meaning have one name (`instruction_words.yaml`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from core.base.regexes import lazy_regex, read_blocks
from core.retrieval.task import stem_word

MAX_CHARS: Final = 400  # characters of a text that are compared
UNASKED: Final = "unasked!"
"""Mark of a clause that something is done, or forbidden, without asking first."""
UNLESS_ASKED: Final = "unlessasked!"
"""Mark of a clause that something is forbidden unless the user asks for it."""

_CODE: Final = lazy_regex(r"`[^`]{1,120}`")
_SPACED: Final = lazy_regex(r"([.,:;])\s+")
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
    (lazy_regex(what), replacement)
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
_CLAUSE: Final = lazy_regex(
    rf"\s*[;:]\s+|\s+[\u2013\u2014-]{{1,2}}\s+|\.\s+|,\s+(?:and )?(?=(?:{_VERB}|{_OTHER_VERB}) )|,?\s+then\s+"
    rf"|\s+and\s+(?=(?:{_NEXT}|{_VERB}|{_BAN}) )|,\s*(?:and |but )?(?=(?:{_BAN}|{_FORBIDDEN}) )"
    r"|\s+(?=(?:instead_of|rather_than|but) )|\s+(?=not (?:\S+\s+){0,2}\S+$)"
)


def normalize_text(text: str) -> str:
    """Lower the case, straighten apostrophes, cut spaces after punctuation in code."""
    text = text[:MAX_CHARS].lower().replace("\u2019", "'")
    return _CODE.sub(lambda code: _SPACED.sub(r"\1", code[0]), text)


def split_clauses(text: str) -> Iterator[str]:
    """Yield the clauses of a normalized text, without reasons and examples."""
    for regex, replacement in _REWRITES:
        text = regex.sub(replacement, text)
    return filter(None, _CLAUSE.split(text[: 2 * MAX_CHARS]))


_STEP: Final = r"[^,.;:]{3,150}?"
_END: Final = r"(?=$|[.;])"
# (how two steps are ordered, the step that the sentence demands or forbids, "" if it is both)
_STEPS: Final = tuple(
    (lazy_regex(regex), main)
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
_NEGATED: Final = lazy_regex(r"\b(?:never|not?|cannot)\b|n't\b")


def split_steps(text: str) -> tuple[str, str] | None:
    """Return the two steps that a normalized text orders, first step first, or None."""
    for regex, main in _STEPS:
        if match := regex.search(text):
            # "Never X before Y" and "no X until Y" demand Y first; "X until Y" states no order.
            is_ban = bool(main) and _NEGATED.search(match[main]) is not None
            if not is_ban and match.groupdict().get("until"):
                return None
            return (match["then"], match["first"]) if is_ban else (match["first"], match["then"])
    return None


WEAK: Final = 0.25  # weight of words that say little
COMMON: Final = 0.5  # weight of words that many instructions contain; others have 1
_NAME: Final = 1.5  # weight of names in code
_INDENT: Final = 1  # number of the choice between tabs and spaces
_CLAUSAL: Final = frozenset({"onc", "that", "which", "who", "when", "if", "wher", "whil", "whenev", "where", "while"})
_FEW: Final = 4  # words of a clause that is nothing but a choice
_KEPT: Final = frozenset({"not", "no", "on", "in"})
_NOT: Final = "!not"
_OPENING: Final = "!opening"
_TOKEN: Final = lazy_regex(
    r"https?://\S+|`[^`]{1,120}`|--?[a-z][\w-]*|@?[\w./*-]*[\w/*](?:\(\))?(?:['\u2019](?:t|ve|s|re|d)\b)?|\d+(?:\.\d+)*"
)
_NEEDS: Final = frozenset({"without", "until", "unles"})
_ORDERS: Final = {"befor": "before", "aft": "after", "after": "after"}
_SOFT: Final = lazy_regex(
    r"\b(?:prefer|favou?r|ideally|by default|(?:where|when|if) possible|usually|generally|consider"
    r"|only (?:when|if|where|add))\b"
)
_NOUN: Final = lazy_regex(r"\W*\w+\s+(?:must|should|is|are|has|have|needs?|can|may|will|shall|belongs?|goe?s?)\b")
_LIST: Final = lazy_regex(r"[a-z-]+(?:/[a-z-]+)+")
_CONTRAST: Final = lazy_regex(r"(?:not|rather_than|instead_of) ")
_EXCEPT: Final = lazy_regex(r"\bexcept\b[^.;]*")
_PRONOUN: Final = lazy_regex(r"\b(?:it|them)\b(?!')")
_UNIT: Final = lazy_regex(
    r"(?:\b(?P<before>port|python|node|node\.js|nodejs|java|go|php|ruby|version|typescript|react|rust|\.net|c\+\+)"
    r"\s+(?:v|version )?|(?<![\w.#/:=-]))"
    rf"(?P<number>\d+(?:[.,]\d+)*|\b(?:{'|'.join(NUMBER_WORDS)})\b)"
    r"(?:\+|(?![\w.]*[/:=]))[- ]?(?P<after>%|[a-z]+)?"
)
_UNITS: Final = {
    "characters": "char", "character": "char", "chars": "char", "char": "char", "columns": "char", "column": "char",
    "cols": "char", "spaces": "space", "space": "space", "percent": "%", "%": "%", "pct": "%", "seconds": "second",
    "second": "second", "secs": "second", "s": "second", "minutes": "minute", "minute": "minute", "min": "minute",
    "mins": "minute", "lines": "line", "line": "line", "loc": "line", "times": "time", "attempts": "time",
    "retries": "time", "days": "day", "day": "day", "hours": "hour", "weeks": "week", "months": "month", "mb": "mb",
    "gb": "gb", "kb": "kb", "ms": "ms", "rows": "row", "words": "word", "approvals": "approval",
    "approval": "approval", "approvers": "approval", "reviewers": "approval", "reviews": "approval",
    "approving": "approval", "levels": "level", "parameters": "parameter", "arguments": "parameter",
    "params": "parameter", "args": "parameter", "sentences": "sentence", "items": "item", "decimals": "decimal",
    "commits": "commit", "files": "file", "px": "px", "entries": "item",
}  # fmt: skip
_SECONDS: Final = {"ms": 0.001, "second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_SAME_UNITS: Final = {"node.js": "node", "nodejs": "node"}

Area = tuple[str, int]  # its kind and its number


class Clause(Struct, frozen=True, gc=False):
    """One demand, or ban, of an instruction."""

    head: frozenset[str] = frozenset()
    tail: frozenset[str] = frozenset()
    is_ban: bool = False
    choices: tuple[tuple[int, int], ...] = ()  # (number of the choice, number of the alternative)
    numbers: tuple[tuple[str, str], ...] = ()  # (unit, number)
    order: str = ""  # "before" or "after" the tail
    actions: frozenset[int] = frozenset()  # what is done, by the verbs that it begins with
    is_soft: bool = False  # whether it is a preference, or for some cases only
    is_asked: bool = False  # whether it forbids something unless the user asks for it
    is_condition: bool = False  # whether it only says what something else needs
    names: frozenset[str] = frozenset()  # words of the head or tail that are in code
    context: frozenset[str] | None = None  # of "Y" in "X, not Y": the words of "X"; None for other clauses

    @property
    def words(self) -> frozenset[str]:
        return self.head | self.tail

    @property
    def facts(self) -> frozenset[tuple[str | int, str | int]]:
        """The numbers and choices, by unit or number of the choice."""
        return frozenset((*self.numbers, *self.choices))


class ParsedInstruction(Struct, frozen=True, gc=False):
    """An instruction in comparable form.

    `words` are those of all clauses, `named` those of them in code, and `key` those that others are found by. `areas`
    are what it is about, such as languages. `steps` are the words of two steps that it orders, the first one first.
    """

    clauses: tuple[Clause, ...]
    words: frozenset[str]
    named: frozenset[str]
    key: frozenset[str]
    areas: frozenset[Area]
    steps: tuple[frozenset[str], frozenset[str]] | None = None


class _Token(NamedTuple):
    """A word, or a part of a name in code, as it is compared."""

    word: str
    is_code: bool
    is_participle: bool = False  # a verb with "ing" that more words follow


class WordTable(Struct, frozen=True):
    """Words of `instruction_words.yaml`; `expressions` by first word, longest first."""

    choices: dict[str, tuple[tuple[int, int], ...]]  # by word
    expressions: dict[str, tuple[tuple[tuple[str, ...], str], ...]]
    own: frozenset[int]  # choices that name their subject
    known: frozenset[str]  # words with a known meaning
    weights: dict[str, float]
    verbs: dict[str, int]  # what they do
    kinds: dict[str, str]  # of tools
    prepositions: frozenset[str]
    stop: frozenset[str]


@cache
def word_table() -> WordTable:
    """Read `instruction_words.yaml`."""
    blocks = read_blocks(Path(__file__).with_name("instruction_words.yaml"))
    tokens: dict[tuple[str, ...], str] = {}
    for line in blocks["same"]:
        name, _, others = line.partition(":")
        tokens |= dict.fromkeys((_key(one) for one in (name, *others.split(","))), " ".join(_key(name)))
    choices, own = dict[str, tuple[tuple[int, int], ...]](), set[int]()
    for number, line in enumerate(map(str.strip, blocks["choices"])):
        if line.startswith("!"):
            own.add(number)
        for side, words in enumerate(line.strip("! ").split(" / ")):
            first = ""
            for key in map(_key, words.split(",")):
                first = first or tokens.get(key, " ".join(key))
                tokens.setdefault(key, first)
                if (number, side) not in (places := choices.get(tokens[key], ())):
                    choices[tokens[key]] = *places, (number, side)
    for name, token in (("negations", _NOT), ("openings", _OPENING)):
        tokens |= dict.fromkeys(map(_key, ",".join(blocks[name]).split(",")), token)
    expressions: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for key, word in sorted(tokens.items(), key=lambda one: -len(one[0])):
        if key and key != (word,):
            expressions.setdefault(key[0], []).append((key, word))
    weights = dict[str, float]()
    for name, weight in (("weak", WEAK), ("common", COMMON)):
        weights |= dict.fromkeys((tokens.get(key, key[0]) for key in map(_key, " ".join(blocks[name]).split())), weight)
    verbs = {_stem(word): number for number, line in enumerate(blocks["verbs"]) for word in line.split()}
    verbs |= {tokens[key]: verbs[key[0]] for key in tokens if len(key) == 1 and key[0] in verbs}
    kinds = {
        _stem(tool): " ".join(_key(kind))
        for kind, _, tools in (line.partition(":") for line in blocks["kinds"])
        for tool in tools.split()
    }
    lists = (frozenset(map(_stem, " ".join(blocks[name]).split())) for name in ("prepositions", "stop"))
    areas = (word for line in blocks["areas"] for word in line.split()[1:])
    nouns = frozenset(
        (*tokens.values(), *map(_stem, areas), *(word for word, weight in weights.items() if weight > WEAK))
    )
    expressions_of = {word: tuple(keys) for word, keys in expressions.items()}
    return WordTable(choices, expressions_of, frozenset(own), nouns, weights, verbs, kinds, *lists)


def _key(text: str) -> tuple[str, ...]:
    """Return the words of an expression as they are compared."""
    return tuple(_stem(part) for part in text.split())


def _stem(part: str) -> str:
    """Stem a word twice, so that "docstring" and "docstrings" have one stem."""
    if not part.replace("-", "").isalpha() or part[0] == "-":
        return part
    stem = stem_word(stem_word(part))
    if stem in _KEPT:
        return part  # "note" is not "not"
    return f"{stem[:-1]}y" if stem[-1] == "i" and len(stem) > 3 else stem


def weigh(words: Iterable[str]) -> float:
    """Return the weight of words: names in code count more, common words less."""
    weights = word_table().weights
    return sum(_NAME if word[:1] == "`" else weights.get(word, 1.0) for word in words)


@lru_cache(8192)
def parse_instruction(text: str) -> ParsedInstruction:
    """Parse the demands of an instruction."""
    text = normalize_text(text)
    areas = find_areas(_EXCEPT.sub("", text))
    clauses = _parse_clauses(text)
    words = _all_words(clauses)
    table = word_table()
    key = {word for word in words if weigh((word,)) >= COMMON}
    key |= {f"choice {number}" for clause in clauses for number, _ in clause.choices if number in table.own}
    key |= {f"unit {unit}" for clause in clauses for unit, _ in clause.numbers}
    named = frozenset().union(*(clause.names for clause in clauses))
    return ParsedInstruction(tuple(clauses), words, named, frozenset(key), areas, _find_steps(text))


def _find_steps(text: str) -> tuple[frozenset[str], frozenset[str]] | None:
    """Return the own words of two ordered steps: "deploy X before you deploy Y"."""
    if (steps := split_steps(text)) is None:
        return None
    first, then = (_all_words(_parse_clauses(step)) for step in steps)
    if "ask" in first | then or first <= then or then <= first:
        return None  # "ask before X" is a demand of its own
    return first - then, then - first


def _all_words(clauses: Iterable[Clause]) -> frozenset[str]:
    return frozenset().union(*(clause.words for clause in clauses))


def _parse_clauses(text: str) -> list[Clause]:
    clauses: list[Clause] = []
    for part in split_clauses(text):
        plain = part.replace(UNASKED, "").replace(UNLESS_ASKED, "")
        clause = _parse_clause(plain, is_unasked=UNASKED in part)
        clause = replace(clause, is_asked=clause.is_asked or UNLESS_ASKED in part)
        if clauses and not core_words(clause.words) - _known_verbs() and _PRONOUN.search(part):
            clause = replace(clause, head=clause.head | clauses[-1].head - _known_verbs())
        if clauses and clause.is_ban and _CONTRAST.match(part) and not clause.actions:
            clause = replace(clause, context=clauses[-1].words)
        if clause.words:
            clauses.append(clause)
    return clauses


def _known_verbs() -> frozenset[str]:
    return frozenset(word_table().verbs)


def _parse_clause(text: str, *, is_unasked: bool) -> Clause:
    table, numbers = word_table(), tuple(sorted(_numbers(text)))
    head: set[str] = set()
    tail: set[str] = set()
    names: set[str] = set()
    actions: set[int] = set()
    is_condition = is_condition_part = needs = False
    order, is_ban, into, is_limit, is_noun = "", False, head, False, bool(_NOUN.match(text))
    for word, is_code, is_participle in _join(list(_split(_UNIT.sub(_keep_subject, text)))):
        if word in (_NOT, _OPENING) and not is_code:
            if is_condition_part or (word == _OPENING and (head or tail) and not is_ban and into is tail):
                continue
            is_ban = not is_ban if word == _OPENING else True
            if needs:
                is_ban, is_condition = False, True  # "images without alt text are not accepted"
            continue
        if word in ("abov", "max", "min") and not is_code:
            is_limit = True
            continue
        if word in table.prepositions and not is_code:
            if word in _NEEDS and is_ban:
                is_ban, is_condition = False, True  # "never merge without a review" demands a review
                continue
            needs = needs or word == "without"
            into = tail
            is_condition_part |= bool(head) and word in _CLAUSAL
            order = order or _ORDERS.get(word, "")
            continue
        if not is_code and word in table.stop:
            continue
        if len(actions) == len(head) and not tail and word in table.verbs and not is_code and not is_noun:
            actions.add(table.verbs[word])
        # A name in code is what the clause is about, wherever it is, unless it is a path.
        is_name = (is_code or word[:1] == "`" or word in table.choices) and "/" not in word
        if is_participle and into is head and weigh((word,)) > WEAK and weigh(core_words(frozenset(head))) >= COMMON:
            into = tail  # "comments explaining your changes"
        (head if is_name and not (is_ban and into is tail and not is_code) else into).add(word)
        if is_code:
            names.add(word)
    is_ban = is_ban and not is_limit
    is_asked = False
    if is_unasked:
        is_asked = is_ban
        head, tail, is_ban, order = {*head, *tail, "ask"}, set(), not is_ban, ""
    elif "ask" in head and order == "before":
        is_asked = not is_ban
        head, tail, order = head | tail, set(), ""
    if all(table.weights.get(word, 1.0) <= WEAK for word in head):
        head, tail = head | tail, set()
    # A name in a list, such as of requirements, is not chosen.
    content = core_words(frozenset(head))
    is_chosen = "`" in text or bool(tail) or len(content) <= _FEW or content != head
    options = (choice for word in sorted(head | tail) for choice in table.choices.get(word, ()))
    options = (choice for choice in options if is_chosen or choice[0] not in table.own)
    choices = (*options, *((_INDENT, 1) for unit, _ in numbers if unit == "space"))
    return Clause(
        head=frozenset(head),
        tail=frozenset(tail),
        is_ban=is_ban,
        choices=tuple(dict.fromkeys(choices)),
        numbers=numbers,
        order=order,
        actions=frozenset(actions),
        is_soft=bool(_SOFT.search(text)),
        is_asked=is_asked,
        is_condition=is_condition,
        names=frozenset(names),
    )


def _keep_subject(match: re.Match[str]) -> str:
    """Replace a number with its subject, such as the language of that version."""
    before, after = match["before"] or "", match["after"] or ""
    if _unit_of(match):
        return f" {before} "
    return f" {before} {after} " if match["number"] not in NUMBER_WORDS else match[0]


def _split(text: str) -> Iterator[_Token]:
    """Yield the words of a text; code other than plain words begins with a backtick."""
    for token in _TOKEN.findall(text):
        if token.startswith("http"):
            continue
        is_code = token[0] == "`"
        parts = token.strip("`").split() if is_code else token.split("/") if _LIST.fullmatch(token) else [token]
        for part in parts:
            # "docstring" is not a verb
            has_object = (
                not is_code
                and part.endswith("ing")
                and not part.endswith("string")
                and not text.rstrip(" .!").endswith(part)
            )
            part = part.strip("'\",()[]{}<>").rstrip(".,:;").lstrip(":")
            if not is_code and part.endswith(("'s", "'ve", "'re", "'d")):
                part = part.rpartition("'")[0]
            if part.endswith("n't"):
                yield _Token(_NOT, is_code=False)
                continue
            if not (any(map(str.isalpha, part)) or (is_code and part and not part.isdigit())):
                continue
            if len(part) == 1 and not is_code:
                continue
            stem = _stem(part) if part.replace("'", "").replace("-", "").isalpha() else part
            yield _Token(stem, is_code, has_object)


def _join(tokens: Sequence[_Token]) -> Iterator[_Token]:
    """Replace words and expressions by the names of their meanings."""
    expressions, place = word_table().expressions, 0
    words = [token.word for token in tokens]
    while place < len(tokens):
        word, is_code, is_participle = tokens[place]
        for key, name in expressions.get(word, ()):
            if tuple(words[place : place + len(key)]) == key and not (name in (_NOT, _OPENING) and is_code):
                yield _Token(name, is_code)
                if name.endswith((" test", " branch")):  # what is for tests is for unit tests
                    yield _Token(name.rpartition(" ")[2], is_code)
                place += len(key)
                break
        else:
            is_plain = word.replace("'", "").replace("-", "").isalpha() and word[0] != "-"
            is_known = is_plain or word[0] == "!" or word in word_table().choices
            name = f"`{word.rstrip('/*')}/" if "/" in word else f"`{word}"
            yield _Token(word if is_known else name, is_code, is_participle)
            place += 1


def _numbers(text: str) -> Iterator[tuple[str, str]]:
    for match in _UNIT.finditer(text):
        number = NUMBER_WORDS.get(match["number"], match["number"])
        if unit := _unit_of(match):
            is_duration = unit in _SECONDS and number.replace(".", "", 1).isdecimal()
            yield ("second", f"{float(number) * _SECONDS[unit]:g}") if is_duration else (unit, number)


def _unit_of(match: re.Match[str]) -> str:
    before = match["before"] or ""
    return _SAME_UNITS.get(before, before) or _UNITS.get(match["after"] or "", "")


@cache
def language_words() -> frozenset[str]:
    """Return the words for languages."""
    return frozenset(_stem(word) for word, (kind, _) in _areas().items() if kind == "language")


def core_words(words: frozenset[str]) -> frozenset[str]:
    """Return the words that say what an instruction is about; all if there are none."""
    weights = word_table().weights
    return frozenset(word for word in words if weights.get(word, 1.0) > WEAK) or words


def heavy_words(words: frozenset[str]) -> frozenset[str]:
    """Return the words that are not weak."""
    return frozenset(word for word in words if weigh((word,)) > WEAK)


def share_of_lighter(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of the lighter set of words that both contain, 0..1."""
    one, other = core_words(one), core_words(other)
    least = min(weigh(one), weigh(other))
    return weigh(one & other) / least if least else 0.0


def is_substituted(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether one known thing replaces another: "add tests", "add types"."""
    things, shared = word_table().known, one & other
    return all(any(weigh((word,)) >= COMMON for word in words & things) for words in (one - shared, other - shared))


def do_the_same(one: Clause, other: Clause) -> bool:
    """Return whether two clauses may do the same: not "add X" and "edit X"."""
    return not one.actions or not other.actions or not one.actions.isdisjoint(other.actions)


def have_same_case(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether two tails may be one case: one adds no word of weight."""
    return not heavy_words(one - other) or not heavy_words(other - one)


_AREA: Final = lazy_regex(r"\.?[a-z0-9#-]+")


def find_areas(text: str) -> frozenset[Area]:
    """Return the kinds and numbers of the areas that a text names, such as languages."""
    areas = _areas()
    words = _AREA.findall(text[:MAX_CHARS].lower())
    return frozenset(areas[word] for word in map(stem_word, words) if word in areas)


def have_common_area(one: frozenset[Area], other: frozenset[Area]) -> bool:
    """Return whether texts may be about the same: no different areas of one kind."""
    for kind in {kind for kind, _ in one} & {kind for kind, _ in other}:
        if {area for area in one if area[0] == kind}.isdisjoint(area for area in other if area[0] == kind):
            return False
    return True


@cache
def _areas() -> dict[str, Area]:
    lines = read_blocks(Path(__file__).with_name("instruction_words.yaml"))["areas"]
    return {
        stem_word(word): (kind, number) for number, (kind, *words) in enumerate(map(str.split, lines)) for word in words
    }
