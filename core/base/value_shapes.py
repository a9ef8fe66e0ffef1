"""Shapes of secrets: names, and values (placeholder, code, random or public)."""

from __future__ import annotations

import math
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from core.base.regexes import RegexTable

MaskFormat = Callable[[str, str], str]  # writes the mask of a secret: (kind of the secret, the secret) -> mask
ASSIGNED_HINTS: Final = ("pass", "pwd", "secret", "key", "token", "credential", "_auth")  # parts of names
NAME_HINTS: Final = ("pass", "secret", "key", "token", "credential", "auth", "bearer", "api")
"""Lower-case parts of words for a credential before a value."""
_CASES: Final = {"k": "kK\u212a", "s": "sS\u017f"}  # characters that match a letter without case, if more than two
_REACH: Final = len("private_")  # characters of a name before the hint


def find_assigned(rule: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a rule that begins with a name, faster than `finditer`."""
    place = 0
    for hint in _hints().finditer(text):
        for start in range(max(hint.start() - _REACH, place), hint.start() + 1):
            if found := rule.match(text, start):
                yield found
                place = found.end()
                break


@cache
def _hints() -> re.Pattern[str]:
    """Any of `ASSIGNED_HINTS`, in both cases: several times faster than the flag."""
    return re.compile(
        "|".join("".join(f"[{_CASES.get(char, char + char.upper())}]" for char in hint) for hint in ASSIGNED_HINTS)
    )


def fold_case(text: str) -> str:
    """Lower-case `text` for hints; also folds the long s, which `(?i)s` matches."""
    return text.lower() if text.isascii() else text.lower().replace("\u017f", "s")


REGEX: Final = RegexTable(Path(__file__).with_name("secret_patterns.yaml"))  # expressions of this package
_MARKED: Final = ("[secret:", "«secret»", "\ue000")  # mask or placeholder in the place of a secret
_TEXT: Final = """
    string str number int integer float bool boolean any none null undefined true false required optional
    unknown object bytes text missing expired invalid value varchar char secretstr yes no
    a an and are as at be been by can cannot for from has have if in into is it may must not of on or should that the
    then this to was when which will with you your
    auth authentication authorization flag header option parameter argument scheme switch
    async await function get lambda new return set
"""
_NO_SECRET: Final = frozenset(_TEXT.split())  # words that are not secrets: types, prose, keywords
_MIN_REPEATED: Final = 8
_LONG_REPEATED: Final = 16  # length that words of code and prose rarely have
_LONG: Final = 12
_MIN_DISTINCT: Final = 4  # different characters of a value of `_LONG` characters that is not filler
_MIN_SEGMENT: Final = 8
_MAX_NUMBER: Final = 4  # digits that a name may end with
_MIN_HEX: Final = 32  # shortest hexadecimal secret; shorter values are numbers, colours or abbreviated hashes
_MIN_MIXED: Final = 20  # shortest secret with letters and digits
_MIN_ENTROPY: Final = 3.0
_LONG_LETTERS: Final = 24  # shortest random value of letters that are not camel-case words

_SAMPLE_PASSWORDS: Final = frozenset(("password", "mypassword", "passwd", "pass", "pwd", "secret"))

NEAR: Final = 48  # characters before a random value that are searched for the name of a credential
_PREFIX: Final = 12
_MIN_SPOKEN: Final = 6  # shortest password without quotes in a sentence
_SPOKEN_MARKS: Final = frozenset("!#$%&*+=?@^~|")  # characters of passwords that words and names do not have


def is_non_secret(found: re.Match[str], group: str) -> bool:
    """Return whether a value is a mask, a type, a word, a placeholder or code."""
    value = found[group].rstrip(":.") if group == "bare" else found[group]
    if (
        any(mark in found[group] for mark in _MARKED)
        or REGEX["placeholder"].match(value)
        or is_placeholder(found[group])
        or value.lower().rstrip(".:") in _NO_SECRET
    ):
        return True
    if group != "bare":
        return False
    called = found.string[found.end() : found.end() + 1] in ("(", "[") and REGEX["called"].fullmatch(value)
    return bool(called or REGEX["metavariable"].fullmatch(value) or REGEX["code"].match(value))


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder: `your-key`, `xxxx`, `AKIA...EXAMPLE`."""
    if REGEX["filler"].search(value) or REGEX["documented"].search(value) or REGEX["delimited"].search(value):
        return True
    if len(value) >= _LONG and len(set(value.lower())) < _MIN_DISTINCT:
        return True
    if any(map(str.isdigit, value)):
        return False
    return bool(REGEX["delimited_letters"].search(value) or (value.isalpha() and REGEX["example_word"].search(value)))


def is_sample_password(value: str) -> bool:
    """Return whether a password in a URL is an example from documentation."""
    return bool(value) and (value.lower() in _SAMPLE_PASSWORDS or is_placeholder(value))


def is_spoken_password(value: str, *, is_certain: bool) -> bool:
    """Return whether an unquoted value may be a password, not words, numbers or code.

    `is_certain` is whether "password is" precedes it; then letters with digits are enough.
    """
    bare = value.rstrip("!?")
    if len(bare) < _MIN_SPOKEN or REGEX["not_spoken"].match(value):
        return False
    has_digit, has_letter = any(map(str.isdigit, bare)), any(map(str.isalpha, bare))
    has_mark = not _SPOKEN_MARKS.isdisjoint(bare)
    if is_certain:
        return has_digit + has_letter + has_mark > 1 or bare.isdigit()
    return has_digit and has_letter and has_mark


def is_random(value: str) -> bool:
    """Return whether a value looks random, unlike words, versions, paths and UUIDs."""
    if len(value) < _MIN_MIXED or REGEX["uuid"].fullmatch(value) or REGEX["slug"].fullmatch(value):
        return False
    bare = value.strip("=")
    if REGEX["hexadecimal"].fullmatch(bare):
        return len(bare) >= _MIN_HEX and not bare.isdigit() and entropy(bare.lower()) >= _MIN_ENTROPY
    if len(bare) < _MIN_MIXED or entropy(bare) < _MIN_ENTROPY or is_placeholder(value):
        return False
    return any(map(_is_random_segment, REGEX["segment"].findall(bare)))


def is_credential(value: str, before: str) -> bool:
    """Return whether the `NEAR` characters before a random value name a credential."""
    lower = fold_case(before)
    if not any(hint in lower for hint in NAME_HINTS):
        return False
    if not (
        is_random(value)
        or (REGEX["uuid"].fullmatch(value) and REGEX["key_before"].search(before) and not is_placeholder(value))
    ):
        return False
    names = list(REGEX["names_it"].finditer(before))
    return bool(names) and not REGEX["public"].search(before, max(names[-1].start() - _PREFIX, 0))


def is_unique_value(value: str) -> bool:
    """Return whether a value is too special to occur by chance, unlike `postgres`."""
    if len(value) < _MIN_REPEATED:
        return False
    return len(value) >= _LONG_REPEATED or (any(map(str.isdigit, value)) and any(map(str.isalpha, value)))


def is_basic_credential(value: str) -> bool:
    """Return whether a value is name and password in Base64 (`Basic` authentication)."""
    whole = value.rstrip("=.")[: len(value.rstrip("=.")) // 4 * 4]
    try:
        return b":" in b64decode(whole, validate=True)
    except ValueError:
        return False


def _is_random_segment(segment: str) -> bool:
    if len(segment) < _MIN_SEGMENT:
        return False
    if segment.isdigit():
        return False
    parts = REGEX["wordlike"].findall(segment)
    whole = sum(map(len, parts)) == len(segment)
    if segment.isalpha():
        return len(segment) >= _LONG_LETTERS and not whole
    numbers = re.findall(r"\d+", segment)
    if segment.islower() or segment.isupper():
        return not whole or len(numbers) > 1 or len(numbers[0]) > _MAX_NUMBER
    # `ultraPictureBox1` is words and a number; random text often changes the kind of character.
    return not whole or len(parts) > max(len(segment) // 4, 2) or sum(map(len, numbers)) > _MAX_NUMBER


def entropy(value: str) -> float:
    """Return the entropy in bits per character."""
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values()) if total else 0.0
