"""What a value that could be a secret looks like: a placeholder, a random token, or something that is public anyway."""

from __future__ import annotations

import math
import re
from base64 import b64decode
from collections import Counter
from typing import Final

from core.redaction.names import NAME_HINTS, fold_case

_MIN_REPEATED: Final = 8
_LONG_REPEATED: Final = 16
"""Words of code and prose are rarely as long."""
_DELIMITED: Final = re.compile(
    r"(?i)(?:^|[^a-z0-9])(?:example|sample|placeholder|change[_-]?(?:me|it)|replace[_-]?(?:me|with|this)|your|dummy|fake"
    r"|redacted|todo|tbd|foobar|lorem)(?=[^a-z0-9]|$)"
)
_DELIMITED_LETTERS: Final = re.compile(
    r"(?i)(?:^|[^a-z0-9])(?:insert|put|my[_-][a-z_-]{0,20}(?:key|token|secret)|here|goes|mock|foo|masked|hidden)(?=[^a-z0-9]|$)"
)
"""Words that mark a placeholder only in a value without digits."""
_EMBEDDED: Final = re.compile(r"(?i)example|placeholder|changeme|dummy|fake|redacted")
"""Words that mark a placeholder also in the middle of a value that is made of letters only."""
_DOCUMENTED: Final = re.compile(r"EXAMPLE(?:KEY)?$|(?i:abcdefghijkl)")
_FILLED: Final = re.compile(r"(?i)x{4,}|\*{3,}|\.{3}|#{4,}|_{4,}|-{6,}|0{8,}|(?:xx+[-_.]){2}")
_MIN_DISTINCT: Final = 4
_LONG: Final = 12
"""Fewer different characters in a value of this length are filling."""
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
"""Hexadecimal digits; fewer are a number, a colour or an abbreviated hash."""
_MIN_MIXED: Final = 20
"""Characters of a value with letters and digits."""
_MIN_ENTROPY: Final = 3.0
_LONG_LETTERS: Final = 24
"""Letters without digits are random from this length on, if they are not words in camel case."""

_SAMPLE_PASSWORDS: Final = frozenset(("password", "mypassword", "passwd", "pass", "pwd", "secret"))

NEAR: Final = 48
"""Characters before a random value that may contain the name of a credential."""
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
"""Names of what is public or not a secret by itself."""
_KEY_OF: Final = re.compile(r"(?i)(?:key|token|secret)\d?[\"'`\]]{0,2}\s{0,3}(?:=>|:=|[:=,])\s{0,3}[\"'`]?$")
"""Directly before a value: it is assigned to a credential. A UUID is one only then."""


def is_placeholder(value: str) -> bool:
    """Whether a value only shows where a secret belongs: `your-key`, `xxxx`, `AKIA...EXAMPLE`."""
    if _FILLED.search(value) or _DOCUMENTED.search(value) or _DELIMITED.search(value):
        return True
    if len(value) >= _LONG and len(set(value.lower())) < _MIN_DISTINCT:
        return True
    if any(map(str.isdigit, value)):
        return False
    return bool(_DELIMITED_LETTERS.search(value) or (value.isalpha() and _EMBEDDED.search(value)))


def is_sample_password(value: str) -> bool:
    """Whether it is what documentation writes in the place of the password of an address."""
    return bool(value) and (value.lower() in _SAMPLE_PASSWORDS or is_placeholder(value))


def is_random(value: str) -> bool:
    """Whether a value without spaces looks generated: not words, not a version, not a path, not a UUID."""
    if len(value) < _MIN_MIXED or _UUID.fullmatch(value) or _SLUG.fullmatch(value):
        return False
    bare = value.strip("=")
    if _HEX.fullmatch(bare):
        return len(bare) >= _MIN_HEX and not bare.isdigit() and entropy(bare.lower()) >= _MIN_ENTROPY
    if len(bare) < _MIN_MIXED or entropy(bare) < _MIN_ENTROPY or is_placeholder(value):
        return False
    return any(map(_is_random_segment, _SEGMENT.findall(bare)))


def is_credential(value: str, before: str) -> bool:
    """Whether the text directly before a value that looks generated names a credential.

    Args:
        value: Without spaces.
        before: The last `NEAR` characters before it.
    """
    lower = fold_case(before)
    if not any(hint in lower for hint in NAME_HINTS):
        return False
    if not (is_random(value) or (_UUID.fullmatch(value) and _KEY_OF.search(before) and not is_placeholder(value))):
        return False
    names = list(_NAMES_IT.finditer(before))
    return bool(names) and not _PUBLIC.search(before, max(names[-1].start() - _PREFIX, 0))


def is_distinct(value: str) -> bool:
    """Whether a value is found elsewhere by no accident: a password `postgres` is a word as well."""
    if len(value) < _MIN_REPEATED:
        return False
    return len(value) >= _LONG_REPEATED or (any(map(str.isdigit, value)) and any(map(str.isalpha, value)))


def is_basic(value: str) -> bool:
    """Whether a value is a name and a password as `Basic` writes them; prose has long words too."""
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
    # `ultraPictureBox1` is words with a number; random text changes its kind of character often.
    return not whole or len(parts) > max(len(segment) // 4, 2) or sum(map(len, numbers)) > _MAX_NUMBER


def entropy(value: str) -> float:
    """Bits for each character."""
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values()) if total else 0.0
