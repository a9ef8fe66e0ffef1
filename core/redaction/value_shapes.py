"""Classification of values that could be secrets: placeholder, random token, or public."""

from __future__ import annotations

import math
import re
from base64 import b64decode
from collections import Counter
from typing import Final

from core.redaction.names import NAME_HINTS, fold_case

_MIN_REPEATED: Final = 8
_LONG_REPEATED: Final = 16
"""Length that words of code and prose rarely have."""
_DELIMITED: Final = re.compile(
    r"(?i)(?:^|[^a-z0-9])(?:example|sample|placeholder|change[_-]?(?:me|it)|replace[_-]?(?:me|with|this)|your|dummy|fake"
    r"|redacted|todo|tbd|foobar|lorem)(?=[^a-z0-9]|$)"
)
_DELIMITED_LETTERS: Final = re.compile(
    r"(?i)(?:^|[^a-z0-9])(?:insert|put|my[_-][a-z_-]{0,20}(?:key|token|secret)|here|goes|mock|foo|masked|hidden)(?=[^a-z0-9]|$)"
)
"""Words that mark a placeholder only in a value without digits."""
_EMBEDDED: Final = re.compile(r"(?i)example|placeholder|changeme|dummy|fake|redacted")
"""Words that mark a placeholder anywhere in a value of letters."""
_DOCUMENTED: Final = re.compile(r"EXAMPLE(?:KEY)?$|(?i:abcdefghijkl)")
_FILLED: Final = re.compile(r"(?i)x{4,}|\*{3,}|\.{3}|#{4,}|_{4,}|-{6,}|0{8,}|(?:xx+[-_.]){2}")
_MIN_DISTINCT: Final = 4
_LONG: Final = 12
"""Different characters below which a value of this length is filler."""
_SEGMENT: Final = re.compile(r"[A-Za-z0-9]+")
_MIN_SEGMENT: Final = 8
_WORDLIKE: Final = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}|\d{1,4}")
_NUMBER: Final = re.compile(r"\d+")
_MAX_NUMBER: Final = 4
"""Digits that a name may end with."""
_UUID: Final = re.compile(r"(?i)[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_HEX: Final = re.compile(r"(?i)(?:0x)?[0-9a-f]+")
_SLUG: Final = re.compile(r"(?:(?:[a-z]{1,14}\d{0,2}|\d{1,3})-{1,2}){2,}[0-9a-f]{6,8}")
"""A name of words and a short hash, as loops, branches and deployments have: `ralph-fix-the-login-2370cb66`."""
_MIN_HEX: Final = 32
"""Shortest hexadecimal secret; shorter values are numbers, colours or abbreviated hashes."""
_MIN_MIXED: Final = 20
"""Shortest secret with letters and digits."""
_MIN_ENTROPY: Final = 3.0
_LONG_LETTERS: Final = 24
"""Shortest random value of letters that are not camel-case words."""

_SAMPLE_PASSWORDS: Final = frozenset(("password", "mypassword", "passwd", "pass", "pwd", "secret"))

NEAR: Final = 48
"""Characters before a random value that are searched for the name of a credential."""
_PREFIX: Final = 12
_NAMES_IT: Final = re.compile(
    r"(?i)(?<![a-z])(?:[a-z0-9]{0,20}[_-]?)?(?:key|token|secret|passw(?:or)?d|credential|auth|bearer|apikey|api)s?(?![a-z])"
    r"|(?-i:[a-z](?:Key|Token|Secret|Password|Credential|Auth|Api)s?\d?(?![a-z]))"
)
"""Words that name a credential, also as the last part of a longer name."""
_PUBLIC: Final = re.compile(
    r"(?i)(?:public[_-]?token|(?:public|primary|foreign|natural|sort|partition|cache|bucket|idx|hot|schema|sequence|row|group|map|object)[_-]?key)"
    r"|key[_ -]?(?:id|name|alias|size|length|pair|ring|path|file|hash|words?|board|frame)|(?:csrf|xsrf|authenticity)"
    r"|(?:commit|sha\d{0,3}|rev(?:ision)?|hash|digest|checksum|md5|integrity|fingerprint|blob|etag|uuid|guid|version|author"
    r"|audience|client_?id|tenant|subscription|accessor|access_?id|credentials?_?id|secrets?_?(?:id|name)|url|uri|endpoint"
    r"|path|file|image|module|package)\W{0,4}$|https?://\S*$"
)
"""Names of public values."""
_KEY_OF: Final = re.compile(r"(?i)(?:key|token|secret)\d?[\"'`\]]{0,2}\s{0,3}(?:=>|:=|[:=,])\s{0,3}[\"'`]?$")
"""Directly before a value assigned to a credential; only there a UUID is a secret."""


def is_placeholder(value: str) -> bool:
    """Whether a value is a placeholder: `your-key`, `xxxx`, `AKIA...EXAMPLE`."""
    if _FILLED.search(value) or _DOCUMENTED.search(value) or _DELIMITED.search(value):
        return True
    if len(value) >= _LONG and len(set(value.lower())) < _MIN_DISTINCT:
        return True
    if any(map(str.isdigit, value)):
        return False
    return bool(_DELIMITED_LETTERS.search(value) or (value.isalpha() and _EMBEDDED.search(value)))


def is_sample_password(value: str) -> bool:
    """Whether a password in an address is an example of documentation."""
    return bool(value) and (value.lower() in _SAMPLE_PASSWORDS or is_placeholder(value))


def is_random(value: str) -> bool:
    """Whether a value without spaces looks random, unlike words, versions, paths and UUIDs."""
    if len(value) < _MIN_MIXED or _UUID.fullmatch(value) or _SLUG.fullmatch(value):
        return False
    bare = value.strip("=")
    if _HEX.fullmatch(bare):
        return len(bare) >= _MIN_HEX and not bare.isdigit() and entropy(bare.lower()) >= _MIN_ENTROPY
    if len(bare) < _MIN_MIXED or entropy(bare) < _MIN_ENTROPY or is_placeholder(value):
        return False
    return any(map(_is_random_segment, _SEGMENT.findall(bare)))


def is_credential(value: str, before: str) -> bool:
    """Whether the text before a random value names a credential.

    Args:
        value: Value without spaces.
        before: The `NEAR` characters before the value.
    """
    lower = fold_case(before)
    if not any(hint in lower for hint in NAME_HINTS):
        return False
    if not (is_random(value) or (_UUID.fullmatch(value) and _KEY_OF.search(before) and not is_placeholder(value))):
        return False
    names = list(_NAMES_IT.finditer(before))
    return bool(names) and not _PUBLIC.search(before, max(names[-1].start() - _PREFIX, 0))


def is_unique_value(value: str) -> bool:
    """Whether other occurrences of a value are the same secret, unlike a password `postgres`."""
    if len(value) < _MIN_REPEATED:
        return False
    return len(value) >= _LONG_REPEATED or (any(map(str.isdigit, value)) and any(map(str.isalpha, value)))


def is_basic_credential(value: str) -> bool:
    """Whether a value is name and password in the encoding of `Basic` authentication."""
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
    parts = _WORDLIKE.findall(segment)
    whole = sum(map(len, parts)) == len(segment)
    if segment.isalpha():
        return len(segment) >= _LONG_LETTERS and not whole
    numbers = _NUMBER.findall(segment)
    if segment.islower() or segment.isupper():
        return not whole or len(numbers) > 1 or len(numbers[0]) > _MAX_NUMBER
    # `ultraPictureBox1` is words and a number; random text often changes the kind of character.
    return not whole or len(parts) > max(len(segment) // 4, 2) or sum(map(len, numbers)) > _MAX_NUMBER


def entropy(value: str) -> float:
    """Entropy in bits per character."""
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values()) if total else 0.0
