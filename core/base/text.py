"""Safe display and matching of untrusted text; texts of records, differences."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from core.base.masking import MANY, has_certainly_none, has_hint, mask_secrets
from core.base.regexes import lazy_regex

if TYPE_CHECKING:
    from core.records.patterns import Pattern


UNKNOWN_CHAR: Final = "\N{REPLACEMENT CHARACTER}"
HIDDEN_CHAR: Final = "\N{APL FUNCTIONAL SYMBOL QUAD QUESTION}"
ELLIPSIS: Final = "\N{HORIZONTAL ELLIPSIS}"

MAX_PATTERN: Final = 512  # Longest regex, in characters, that is compiled (docs/safety.md#regexes).
MAX_SUBJECT: Final = 4096
"""Longest text, in characters, that a regex from a file is matched against (docs/safety.md#regexes)."""

_SNAKE_WORD: Final = lazy_regex(r"_([a-z])")
_VARIATION_SELECTORS: Final = range(0xFE00, 0xFE10)
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)
# Blank characters whose Unicode category is not "format".
_BLANK: Final = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0}
)


class _Table(dict[int, str]):
    """Table for `str.translate` that computes and caches an entry on first use."""

    def __missing__(self, code: int) -> str:
        shown = self[code] = _shown(code)
        return shown


def _shown(code: int) -> str:
    char = chr(code)
    if char in "\n\t":
        return char
    if code < 0x20:
        return chr(0x2400 + code)
    if 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000:
        return UNKNOWN_CHAR
    if code in _VARIATION_SELECTORS or code in _SKIN_TONES:
        return ""
    category = unicodedata.category(char)
    if category in {"Cf", "Zl", "Zp"} or code in _BLANK or 0xE0100 <= code < 0xE01F0:
        return HIDDEN_CHAR
    if category == "Cn":
        return UNKNOWN_CHAR
    return char


class _HiddenTable(dict[int, str]):
    """Table that replaces hidden characters, and the signs of `_shown`, by `gap`."""

    def __init__(self, gap: str) -> None:
        super().__init__()
        self._gap = gap

    def __missing__(self, code: int) -> str:
        char, shown = chr(code), _shown(code)
        if code in _PICTURES or char in {UNKNOWN_CHAR, HIDDEN_CHAR}:
            read = " " if code in _SPACE_PICTURES else self._gap
        elif shown == char:
            read = char
        else:
            read = " " if char.isspace() else self._gap
        self[code] = read
        return read


_TABLE: Final = _Table()
_PICTURES: Final = range(0x2400, 0x2425)
# Legal inside a JSON string, but a terminal would interpret or hide them.
_INVISIBLE: Final = lazy_regex(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_SPACE_PICTURES: Final = frozenset({0x2409, 0x240A, 0x240B, 0x240C, 0x240D, 0x2424})
_hidden_table: Final = cache(_HiddenTable)
_TEXTS_AT_ONCE: Final = 100
_MARGIN: Final = 512  # Characters after a cut that are read, so that a cut secret is recognised.
_LINE_TABLE: Final = {ord("\n"): "\N{SYMBOL FOR NEWLINE}", ord("\t"): " "}


def visible(text: str, limit: int | None = None) -> str:
    """Make untrusted `text` safe for a terminal, and mask its secrets.

    Newlines and tabs stay; other control characters become control pictures. DEL, C1 controls, lone surrogates and
    unassigned characters become U+FFFD. Each bidirectional or invisible character becomes a visible sign. Variation
    selectors and skin tones are removed, because terminals disagree about their width. A text longer than `limit`
    characters is cut and ends with an ellipsis.
    """
    text = _mask_and_cut(text, limit)
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_TABLE)


def visible_line(text: str, limit: int | None = None) -> str:
    """Return `visible(text)` on one line: newlines become signs, tabs become spaces."""
    text = _mask_and_cut(text, limit)
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").strip("\n").translate(_TABLE).translate(_LINE_TABLE)


def visible_lines(texts: Iterable[str], limit: int) -> dict[str, str]:
    """Return `visible_line` by text; many plain ones take a tenth of the time."""
    rest = list(dict.fromkeys(texts))
    are_many = len(rest) > MANY
    shown: dict[str, str] = {}
    if has_hint("\n".join(rest)):
        rest.sort(key=has_hint)  # together, those with hints are in few parts
    while rest:
        part, rest = rest[:_TEXTS_AT_ONCE], rest[_TEXTS_AT_ONCE:]
        joined = "\n".join(part)
        is_plain = "".join(part).isprintable() and max(map(len, part)) <= limit
        if is_plain and has_certainly_none(joined, is_one_of_many=are_many):
            shown.update((text, text if text.isascii() else text.translate(_TABLE)) for text in part)
        else:
            shown.update((text, visible_line(text, limit)) for text in part)
    return shown


def remove_hidden(text: str, gap: str = "") -> str:
    """Replace hidden characters and their signs by `gap`; newlines and tabs stay."""
    return text if is_plain_ascii(text) else text.replace("\r\n", "\n").translate(_hidden_table(gap))


def is_plain_ascii(text: str) -> bool:
    """Return whether all of `text` is printable ASCII, newlines or tabs."""
    return text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()


def _mask_and_cut(text: str, limit: int | None) -> str:
    if limit is None or len(text) <= limit:
        return mask_secrets(text)
    return end_with_ellipsis(mask_secrets(text[: limit + _MARGIN])[: max(limit - 1, 0)])


def end_with_ellipsis(head: str) -> str:
    """Mark a text as cut, unless it was cut after an ellipsis of its own."""
    return kept if (kept := head.rstrip()).endswith(ELLIPSIS) else head + ELLIPSIS


def escape_invisible(json_text: str) -> str:
    """Write characters that a terminal interprets or hides as `\\uXXXX` in JSON."""
    return _INVISIBLE.sub(lambda found: json.dumps(found[0])[1:-1], json_text)


def plural(count: int, noun: str, many: str | None = None) -> str:
    """Format a count with its noun: `1 loop`, `2 loops`, `3 entries`."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def continued(sentence: str) -> str:
    """Lowercase the first letter after a colon, unless the word has other capitals."""
    first = sentence.partition(" ")[0]
    return sentence[:1].lower() + sentence[1:] if first[1:] == first[1:].lower() else sentence


def capitalized(sentence: str) -> str:
    """Capitalize a sentence, unless it starts with an ID or a number."""
    return sentence[:1].upper() + sentence[1:] if sentence.partition(" ")[0].isalpha() else sentence


class Matcher:
    """Matcher of `source`: RE2, or literal text with the reason as `problem`."""

    __slots__ = ("_regex", "problem", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self.problem: str | None = None
        self._regex: Any = None
        if len(source) > MAX_PATTERN:
            self.problem = f"longer than {MAX_PATTERN} characters; matched as literal text"
            return
        try:
            self._regex = _compiler()(source)
        except Exception as error:  # RE2 raises its own error class, unicode errors, and others
            reason = visible_line(str(error), 120)
            self.problem = f"not a regex that can run safely ({reason}); matched as literal text"

    def matches(self, subject: str) -> bool:
        """Return whether the regex matches in the first `MAX_SUBJECT` characters."""
        subject = subject[:MAX_SUBJECT]
        if self._regex is None:
            return bool(self.source) and self.source in subject
        try:
            return self._regex.search(subject) is not None
        except UnicodeEncodeError:
            return self._regex.search(subject.encode("utf-8", "replace").decode()) is not None


@cache
def _compiler() -> Callable[[str], Any]:
    """Return a compiler; its options take as long to create as a short regex."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    return partial(re2.compile, options=options)


@lru_cache(maxsize=2048)  # 5 kB each; one task is compared with about 1,000
def safe_matcher(source: str) -> Matcher:
    """Return the cached safe matcher of a regex from a file."""
    return Matcher(source)


class MatchedTexts:
    """Texts that many regexes are matched with: first in chunks, as most match none."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._chunks: list[list[str]] = []
        left = 0  # free characters in the last chunk
        for text in texts:
            if left <= len(text):
                self._chunks.append([])
                left = MAX_SUBJECT
            self._chunks[-1].append(text)
            left -= len(text) + 1
        self._joined = ["\n".join(chunk) for chunk in self._chunks]

    def matching(self, regex: str) -> Iterator[str]:
        """Yield the texts that a regex matches, as `Matcher` does."""
        matcher = safe_matcher(regex)
        of_chunk = safe_matcher(f"(?m){regex}")  # in a chunk, each text is a line
        is_plain = matcher.problem is None is of_chunk.problem and "\\A" not in regex and "\\z" not in regex
        for joined, chunk in zip(self._joined, self._chunks, strict=True):
            if not is_plain or of_chunk.matches(joined):
                yield from filter(matcher.matches, chunk)


def to_camel(name: str) -> str:
    """Convert a name such as `error_signature` to `errorSignature`."""
    return _SNAKE_WORD.sub(lambda found: found[1].upper(), name)


def to_bytes(text: str) -> bytes:
    """Encode a text as it is stored; texts from files may contain lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


def from_bytes(data: bytes) -> str:
    """Decode what `to_bytes` returns."""
    return data.decode("utf-8", "surrogatepass")


MAX_LINE: Final = 300  # Longest line, in characters, of a created record.
MAX_SLUG: Final = 40

_WORD: Final = lazy_regex(r"[A-Za-z][A-Za-z0-9]*")
_MAX_SLUG_WORDS: Final = 4
_SMALL: Final = frozenset(
    {"the", "an", "of", "to", "and", "or", "for", "in", "on", "with", "is", "are", "was", "it", "its", "by", "at"}
    | {"from", "so", "that", "this", "be", "as", "all", "one", "their", "then", "when", "while"}
)
"""Words left out of slugs."""
_LABEL: Final = lazy_regex(r"\s*(?:attempt|iteration|step)\s+\d{1,6}\s*[:.-]\s*", re.IGNORECASE)


def one_line(text: str, limit: int = MAX_LINE) -> str:
    """Return `text` as one line of at most `limit` characters."""
    whole = " ".join(replace_surrogates(text[: limit * 4]).split())
    return whole if len(whole) <= limit else f"{whole[: limit - 1]}…"


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def strip_label(text: str) -> str:
    """Return `text` on one line without its label: `Attempt 2: guard` -> `guard`."""
    label = _LABEL.match(text)
    return one_line(text[label.end() :] if label else text)


def lesson_name(text: str) -> str:
    """Return a short name of a lesson that an agent wrote down, for people."""
    return f"the lesson “{visible_line(one_line(text), 60)}”"


def make_slug(text: str, fallback: str) -> str:
    """Return a slug of the meaningful words, of `a-z`, `0-9` and `-`; 40 at most."""
    words: list[str] = []
    for word in _WORD.findall(text[: MAX_LINE * 2]):
        if len(word) > 1 and word.lower() not in _SMALL and word.lower() not in words:
            words.append(word.lower())
        if len(words) == _MAX_SLUG_WORDS:
            break
    while len(words) > 1 and len("-".join(words)) > MAX_SLUG:
        words.pop()
    return "-".join(words)[:MAX_SLUG] or fallback


EQUAL: Final = "same"
DELETED: Final = "gone"
INSERTED: Final = "come"
MAX_COMPARED: Final = 400  # Words and blanks, or lines, that are compared: at most about 0.2 s.
_WORDS: Final = re.compile(r"\S+|\s+")


class DiffPiece(NamedTuple):
    """Piece of a compared text: some words, or a whole line with its line end."""

    mark: Literal["same", "gone", "come"]
    text: str


class FieldChange(NamedTuple):
    """Field that differs between two patterns; a list has one line per item."""

    name: str
    before: str
    after: str


def word_changes(before: str, after: str) -> tuple[DiffPiece, ...]:
    """Compare words; `before` has all but inserted pieces, `after` all but deleted."""
    pieces = _changes(_WORDS.findall(before), _WORDS.findall(after))
    return tuple(DiffPiece(mark, "".join(parts)) for mark, parts in pieces)


def line_changes(before: str, after: str) -> tuple[DiffPiece, ...]:
    """Compare two texts line by line, one piece per line; see `word_changes`."""
    pieces = _changes(before.splitlines(keepends=True), after.splitlines(keepends=True))
    return tuple(DiffPiece(mark, line) for mark, lines in pieces for line in lines)


def field_changes(before: Pattern, after: Pattern) -> tuple[FieldChange, ...]:
    """Find the injected fields in which two patterns differ."""
    return tuple(
        FieldChange(name, one, two)
        for name in _FIELDS
        if (one := _field_text(getattr(before, name))) != (two := _field_text(getattr(after, name)))
    )


_FIELDS: Final = (
    *("title", "error_type", "error_message", "error_pattern", "places", "task_pattern", "description", "category"),
    *("steps", "tools", "preconditions", "benefits", "limitations", "symptoms", "location_hints"),
    *("why_it_fails", "better_alternative", "better_pattern_id", "use_case"),
    *("template_language", "template_code", "placeholders", "diff_pattern"),
)


def _field_text(value: str | Sequence[str | tuple[str, str]]) -> str:
    if isinstance(value, str):
        return value
    return "\n".join(item if isinstance(item, str) else ": ".join(item) for item in value)


def _changes(
    before: Sequence[str], after: Sequence[str]
) -> Iterator[tuple[Literal["same", "gone", "come"], Sequence[str]]]:
    """Compare two sequences.

    That takes quadratic time. Therefore the common beginning and end are removed first, and if more than `MAX_COMPARED`
    items remain, they count as replaced.
    """
    start = next((n for n, (one, two) in enumerate(zip(before, after, strict=False)) if one != two), None)
    if start is None:
        start = min(len(before), len(after))
    left = min(len(before), len(after)) - start
    end = next((n for n in range(left) if before[-1 - n] != after[-1 - n]), left)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if start:
        yield EQUAL, before[:start]
    if max(len(old), len(new)) > MAX_COMPARED:
        yield DELETED, old
        yield INSERTED, new
    else:
        from difflib import SequenceMatcher  # few commands compare texts

        for tag, one, two, three, four in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag == "equal":
                yield EQUAL, old[one:two]
                continue
            if one < two:
                yield DELETED, old[one:two]
            if three < four:
                yield INSERTED, new[three:four]
    if end:
        yield EQUAL, before[len(before) - end :]
