"""Comparison of instructions for agents: whether one contradicts or repeats another (docs/instructions.md#pairs).

A text is split into clauses, each a demand or a ban. The words of a clause before its first preposition are its head,
what it is about; the others are its tail, when and where it applies. Two clauses with the same head and tails that fit
together contradict each other if one is a ban, if they choose different alternatives, or if their numbers differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from core.records.instructions import Relation
from core.redaction.regex_table import LazyRegex, read_blocks
from core.retrieval.task import stem_word

MAX_CHARS: Final = 400  # characters of a text that are compared


SAME_HEAD: Final = 0.8  # share of the lighter head that both clauses contain, 0..1, from which they are about the same
SAME_TEXT: Final = 0.66  # share of all words that both texts contain, 0..1, from which one repeats the other
CLOSE_HEAD: Final = 0.67  # the same as `SAME_HEAD`, for two texts whose vectors are close
CLOSE: Final = 0.7  # cosine of two vectors, from which texts are about the same
SAME_MEANING: Final = 0.8  # cosine of two vectors, from which one text repeats the other
_SAME_REST: Final = 0.6  # the same as `SAME_HEAD`, without the alternatives of a choice
_MAX_DIFFERING: Final = 0.4  # share of the common words that one text forbids and the other demands
_OWN_UNITS: Final = frozenset({"space", "python", "node"})  # of numbers that name their subject
_INDENT: Final = 1  # number of the choice between tabs and spaces
_FEW: Final = 3  # words of a clause that is nothing but a choice
_MIN_WEIGHT: Final = 1.0  # of the words that two texts share
_WEAK, _COMMON, _NAME = 0.25, 0.5, 1.5  # weights of words; others have 1

_AREA: Final = LazyRegex(r"[a-z0-9-]+")
_REASON: Final = LazyRegex(r"\b(?:so that|because|otherwise|or else|since)\b.*", re.DOTALL)
_CLAUSE: Final = LazyRegex(
    r"\s*[;:]\s+|\s+[\u2013\u2014-]{1,2}\s+|\.\s+|,\s+(?=(?:use|run|prefer) )"
    r"|(?:,\s*|\s+)(?=(?:instead_of|rather_than|over|not|never|but|and never) )"
)
_TOKEN: Final = LazyRegex(
    r"https?://\S+|`[^`]{1,120}`|--?[a-z][\w-]*|@?[\w./*-]*[\w/*](?:\(\))?(?:['\u2019]t)?|\d+(?:\.\d+)*"
)
_ORDERS: Final = {"before": "after", "after": "before"}
_PHRASES: Final = (
    *(("instead of ", "instead_of "), ("rather than ", "rather_than "), ("at most", "max"), ("at least", "min")),
    *(("no more than", "max"), ("up to ", ""), ("do not ", "don't ")),
)
_FREE: Final = LazyRegex(r"\b(?:feel free to|you (?:may|can)|it is (?:ok|fine) to)\b")
_UNASKED: Final = LazyRegex(r"\bwithout (?:first )?(?:asking|approval|permission|confirmation|being asked)(?: first)?")
_PORT: Final = LazyRegex(r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0):(\d{2,5})")
_UNIT: Final = LazyRegex(
    r"(?:\b(?P<before>port|python|node|node\.js|java|go|php|ruby|version|typescript|react|rust)\s+v?)?"
    r"(?<![\w.#/:=-])(?P<number>\d+(?:[.,]\d+)*|\b(?:two|three|four|five|eight|ten)\b)(?:\+|(?![\w.]*[/:=]))"
    r"[- ]?(?P<after>%|[a-z]+)?"
)
_NUMBERS: Final = {"two": "2", "three": "3", "four": "4", "five": "5", "eight": "8", "ten": "10"}
_UNITS: Final = {
    "characters": "char", "character": "char", "chars": "char", "columns": "char", "spaces": "space", "space": "space",
    "percent": "%", "seconds": "second", "secs": "second", "s": "second", "minutes": "minute", "min": "minute",
    "lines": "line", "times": "time", "attempts": "time", "retries": "time", "days": "day", "hours": "hour",
    "mb": "mb", "gb": "gb", "kb": "kb", "ms": "ms", "rows": "row", "words": "word",
}  # fmt: skip


class Clause(Struct, frozen=True, gc=False):
    """One demand, or ban, of an instruction; words are stems, or names in code."""

    head: frozenset[str] = frozenset()
    tail: frozenset[str] = frozenset()
    is_ban: bool = False
    choices: tuple[tuple[int, int], ...] = ()  # (number of the choice, number of the alternative)
    numbers: tuple[tuple[str, str], ...] = ()  # (unit, number)
    order: str = ""  # "before" or "after" the tail

    @property
    def words(self) -> frozenset[str]:
        return self.head | self.tail


class ParsedInstruction(Struct, frozen=True, gc=False):
    """An instruction in comparable form.

    `words` are those of all clauses, `named` those of them in code, and `key` those that others are found by.
    """

    clauses: tuple[Clause, ...]
    words: frozenset[str]
    named: frozenset[str]
    key: frozenset[str]


class Comparison(NamedTuple):
    """How two instructions are related, how similar they are, 0..1, and the choice in which they differ, if any."""

    relation: Relation
    similarity: float
    cause: str = ""


class _Words(Struct, frozen=True):
    """The words of `instruction_words.yaml`."""

    choices: dict[str, tuple[int, int]]  # by word
    phrases: dict[tuple[str, ...], str]  # two words that are joined
    own: frozenset[int]  # choices that name their subject
    same: dict[str, str]
    weights: dict[str, float]
    negations: frozenset[str]
    openings: frozenset[str]
    prepositions: frozenset[str]
    stop: frozenset[str]


@cache
def _words() -> _Words:
    blocks = read_blocks(Path(__file__).with_name("instruction_words.yaml"))
    choices, same, own = dict[str, tuple[int, int]](), dict[str, str](), set[int]()
    for line in blocks["same"]:
        first, *others = map(_normalize, line.split())
        same |= dict.fromkeys(others, first)
    for number, line in enumerate(map(str.strip, blocks["choices"])):
        if line.startswith("!"):
            own.add(number)
        for side, words in enumerate(line.strip("! ").split("/")):
            choices |= {same.get(word, word): (number, side) for word in map(_normalize, words.split())}
    weights = dict[str, float]()
    for name, weight in (("weak", _WEAK), ("common", _COMMON)):
        stems = map(_normalize, " ".join(blocks[name]).split())
        weights |= dict.fromkeys((same.get(stem, stem) for stem in stems), weight)
    phrases = {pair: word for word in (*choices, *same) if len(pair := tuple(word.split("+"))) == 2}
    lists = (frozenset(" ".join(blocks[name]).split()) for name in ("negations", "openings", "prepositions", "stop"))
    return _Words(choices, phrases, frozenset(own), same, weights, *lists)


def _normalize(word: str) -> str:
    """Return a word as it is compared: the stems of its parts, which `+` joins."""
    return "+".join(stem_word(part) if part.replace("-", "").isalpha() else part for part in word.split("+"))


def weigh(words: Iterable[str]) -> float:
    """Return the weight of words: names in code count more, words that most instructions contain less."""
    weights = _words().weights
    return sum(_NAME if word[:1] == "`" else weights.get(word, 1.0) for word in words)


@lru_cache(8192)
def parse_instruction(text: str) -> ParsedInstruction:
    """Parse the demands of an instruction."""
    text = _REASON.compiled.sub("", text[:MAX_CHARS].lower().replace("\u2019", "'"))
    text = _PORT.compiled.sub(r" port \1 ", text)
    text, unasked = _UNASKED.compiled.subn("", text)
    text = _FREE.compiled.sub("", text)
    for phrase, word in _PHRASES:
        text = text.replace(phrase, word)
    clauses = tuple(
        clause for part in _CLAUSE.compiled.split(text) if part and (clause := _parse_clause(part, bool(unasked))).words
    )
    words = frozenset().union(*(clause.words for clause in clauses))
    table = _words()
    key = {word for word in words if weigh((word,)) >= _COMMON}
    key |= {f"choice {number}" for clause in clauses for number, _ in clause.choices if number in table.own}
    codes = (token for token in _TOKEN.compiled.findall(text) if token[0] == "`")
    named = frozenset(table.same.get(word, word) for token in codes for word in _stems(token))
    return ParsedInstruction(clauses, words, named, frozenset(key))


def _parse_clause(text: str, is_unasked: bool) -> Clause:
    table, numbers = _words(), tuple(sorted(_numbers(text)))
    head: set[str] = set()
    tail: set[str] = set()
    order, is_ban, previous, into = "", False, "", head
    for token in _TOKEN.compiled.findall(_UNIT.compiled.sub(" ", text)):
        if token in table.negations or (token in table.openings and not head and not tail):
            is_ban = True
            continue
        if token in table.prepositions:
            into = tail
            order = order or (token if token in _ORDERS else "")
            continue
        if token in table.openings:
            break
        for word in _stems(token):
            joined = table.phrases.get((previous, word), "")
            for place in (head, tail) if joined else ():
                place.discard(table.same.get(previous, previous))
            previous, word = word, joined or word
            word = table.same.get(word, word)
            # A name in code is what the clause is about, wherever it is, unless it is a path.
            is_name = word in table.choices or (word[:1] == "`" and "/" not in word)
            (head if is_name else into).add(word)
    if is_unasked:
        head, tail, is_ban, order = {*head, *tail, "ask"}, set(), not is_ban, ""
    elif "ask" in head and order == "before":
        head, tail, order = head | tail, set(), ""
    if not head:
        head, tail = tail, set()
    # A name in a list, such as of requirements, is not chosen.
    is_chosen = "`" in text or bool(tail) or len(_core(frozenset(head))) <= _FEW or _core(frozenset(head)) != head
    found = (table.choices[word] for word in sorted(head | tail) if word in table.choices)
    found = (choice for choice in found if is_chosen or choice[0] not in table.own)
    choices = (*found, *((_INDENT, 1) for unit, _ in numbers if unit == "space"))
    return Clause(frozenset(head), frozenset(tail), is_ban, tuple(dict.fromkeys(choices)), numbers, order)


def _stems(token: str) -> Iterator[str]:
    """Yield the words of a token; those of code begin with a backtick if they are not plain words."""
    if token.startswith("http"):
        return
    stop = _words().stop
    is_code = token[0] == "`"
    for part in token.strip("`").split() if is_code else (token,):
        part = part.strip("'\",()[]{}").rstrip(".,:;")
        if not part or (not is_code and (part in stop or part in _NUMBERS or part.isdigit())):
            continue
        if part.replace("'", "").replace("-", "").isalpha() and part[0] != "-":
            stem = stem_word(part)
            if is_code or stem not in stop:
                yield stem
        elif part in _words().choices or part in _words().same:
            yield part
        elif any(map(str.isalpha, part)):
            yield f"`{part.rstrip('/')}/" if "/" in part else f"`{part}"


def _numbers(text: str) -> Iterator[tuple[str, str]]:
    for found in _UNIT.compiled.finditer(text):
        number = _NUMBERS.get(found["number"], found["number"])
        unit = found["before"] or _UNITS.get(found["after"] or "", "")
        if unit:
            yield unit, number


def compare_instructions(
    one: ParsedInstruction, other: ParsedInstruction, closeness: float | None = None
) -> Comparison | None:
    """Return how two instructions are related; None if they are not.

    `closeness` is the cosine of their vectors, None if they are compared by words alone.
    """
    shared, union = _core(one.words & other.words), _core(one.words | other.words)
    score = weigh(shared) / (weigh(union) or 1.0)
    is_close = closeness is not None and closeness >= CLOSE
    for mine in one.clauses:
        for theirs in other.clauses:
            cause = _find_contradiction(mine, theirs, is_close=is_close)
            if cause is not None and not _ban_the_same(one, other, mine, theirs):
                return Comparison(Relation.CONTRADICTS, max(score, closeness or 0.0), cause)
    if closeness is not None and closeness >= SAME_MEANING:
        score = max(score, closeness)
    elif score < SAME_TEXT or weigh(shared) < _MIN_WEIGHT:
        return None
    return Comparison(Relation.REPEATS, score) if _have_same_demands(one, other) else None


def _core(words: frozenset[str]) -> frozenset[str]:
    """Return the words that say what an instruction is about; all if there are none."""
    weights = _words().weights
    return frozenset(word for word in words if weights.get(word, 1.0) > _WEAK) or words


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of the lighter set of words that both contain."""
    one, other = _core(one), _core(other)
    least = min(weigh(one), weigh(other))
    return weigh(one & other) / least if least else 0.0


def _find_contradiction(one: Clause, other: Clause, *, is_close: bool) -> str | None:
    """Return the choice in which two clauses differ, "" if they contradict each other otherwise, else None."""
    least = CLOSE_HEAD if is_close else SAME_HEAD
    if one.order and other.order == _ORDERS[one.order] and one.is_ban is other.is_ban:
        is_same = _share(one.head, other.head) >= SAME_HEAD and _share(one.tail, other.tail) >= SAME_HEAD
        return "" if is_same else None
    names = {word for word in one.tail & other.tail if word[:1] == "`"}
    if not _fit(one.tail - names, other.tail - names):
        return None
    head, others = one.head | names, other.head | names
    shared, is_same = weigh(_core(head & others)), _share(head, others) >= least
    if one.is_ban is not other.is_ban:
        return "" if shared >= _MIN_WEIGHT and is_same else None
    if one.is_ban:
        return None
    mine, theirs = dict(one.choices), dict(other.choices)
    for choice in mine.keys() & theirs.keys():
        if mine[choice] != theirs[choice]:
            sides = {word for word, place in _words().choices.items() if place[0] == choice}
            rest = head - sides, others - sides
            has_same_rest = weigh(_core(rest[0] & rest[1])) >= _COMMON and _share(*rest) >= _SAME_REST
            if choice in _words().own or has_same_rest:
                return f"choice {choice}"
    for unit, number in one.numbers:
        values = [value for known, value in other.numbers if known == unit]
        if values and number not in values:
            return "" if unit in _OWN_UNITS or (shared >= _COMMON and is_same) else None
    return None


def _ban_the_same(one: ParsedInstruction, other: ParsedInstruction, mine: Clause, theirs: Clause) -> bool:
    """Return whether the ban of two clauses is also in the other text: "Put X in Y, never in Z"."""
    if mine.is_ban is theirs.is_ban:
        return False
    ban, parsed = (mine, other) if mine.is_ban else (theirs, one)
    return any(_core(clause.words) <= ban.words for clause in parsed.clauses if clause.is_ban and clause.words)


def _fit(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether two tails can be about the same case: one of them has no word of weight that the other lacks."""
    return weigh(one - other) < 1.0 or weigh(other - one) < 1.0


def _have_same_demands(one: ParsedInstruction, other: ParsedInstruction) -> bool:
    """Return whether shared words are demanded, or forbidden, by both, with the same numbers and choices."""
    if one.named - other.words and other.named - one.words:
        return False
    shared = one.words & other.words
    differing = sum(weigh((word,)) for word in shared if _is_banned(one, word) is not _is_banned(other, word))
    if differing > _MAX_DIFFERING * weigh(shared):
        return False
    pairs = [
        {pair for clause in parsed.clauses for pair in (*clause.numbers, *clause.choices)} for parsed in (one, other)
    ]
    subjects = {subject for subject, _ in pairs[0]} & {subject for subject, _ in pairs[1]}
    return all(any(subject == key for key, _ in pairs[0] & pairs[1]) for subject in subjects)


def _is_banned(parsed: ParsedInstruction, word: str) -> bool:
    return all(clause.is_ban for clause in parsed.clauses if word in clause.words)


def find_areas(text: str) -> frozenset[int]:
    """Return the numbers of the areas that a text names, such as languages."""
    areas = _areas()
    words = _AREA.compiled.findall(text[:MAX_CHARS].lower())
    return frozenset(areas[word] for word in map(stem_word, words) if word in areas)


@cache
def _areas() -> dict[str, int]:
    lines = read_blocks(Path(__file__).with_name("instruction_words.yaml"))["areas"]
    return {stem_word(word): number for number, line in enumerate(lines) for word in line.split()}
