"""Texts as a language model may read them: in compatible forms, with nothing invisible, in one alphabet."""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from core.base.text import is_plain_ascii, remove_hidden

_LATIN: Final = str.maketrans(
    "аеорсухіјѕԁһքԛԝвкмнтАВЕКМНОРСТУХІЈЅαεικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɡ",
    "aeopcyxijsdhpqwbkmhtABEKMHOPCTYXIJSaeiknoptuxABEZHIKMNOPTYXig",
)
"""Letters of other alphabets that look like Latin ones."""
_CYRILLIC_IN_LATIN: Final = re.compile(r"[A-Za-z][\u0400-\u052f]|[\u0400-\u052f][A-Za-z]")
_BIDI: Final = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
_TAGS: Final = re.compile(r"[\U000e0020-\U000e007e]")
_TAG_TO_ASCII: Final = {0xE0000 + code: code for code in range(0x20, 0x7F)}
_INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001f3fb-\U0001f3ff\U000e0000-\U000e01ef"
)
"""What is odd between Latin letters; what is passed over in reading is told by `core.base.text.remove_hidden`."""
_ACCENTS: Final = re.compile("[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")
"""Marks that are drawn over a letter, or through it, and leave it the letter that it is."""
_INSIDE_WORD: Final = re.compile(f"(?<=[A-Za-z ])[{_INVISIBLE}]+(?=[A-Za-z])|[\u200b\u2060\ufeff\u2800\u3164]")
"""Joiners hold emoji and letters of other scripts together; between Latin letters nothing invisible has a use."""
_LEET: Final = re.compile(
    r"(?<![\w-])(?=[a-z0-9@$]*[a-z])(?=[a-z]*[013457@$])[a-z013457@$]{3,20}(?![\w-])", re.IGNORECASE
)
_LEET_TO_LATIN: Final = str.maketrans("013457@$", "oieastas")
_SPACED: Final = re.compile(r"(?<![^\W_])[^\W_](?:[ \t._*-]{1,8}[^\W_]){6,400}(?![^\W_])")
_GAP: Final = re.compile(r"[ \t._*-]{1,8}")
_CODED: Final = re.compile(
    r"[A-Za-z0-9+/]{24,8192}={0,2}|(?:\\x[0-9a-fA-F]{2}){6,2048}|(?:\\u00[0-9a-fA-F]{2}){4,2048}|(?:%[0-9a-fA-F]{2}){6,2048}"
    r"|(?:&#x?[0-9a-fA-F]{2,4};){4,1024}"
)
_ESCAPES: Final = re.compile(
    r"(?:\\x[0-9a-fA-F]{2}){4,2048}|(?:\\u00[0-9a-fA-F]{2}){4,2048}|(?:%[0-9a-fA-F]{2}){6,2048}|(?:&#x?[0-9a-fA-F]{2,4};){4,1024}"
)
_HEX_PAIR: Final = re.compile(r"(?:\\x|\\u00|%)([0-9a-fA-F]{2})")
_MAX_CODED: Final = 8
"""Encoded stretches of one text that are looked into."""
_MIN_PRINTABLE: Final = 0.95


def normalize_text(text: str, gap: str = "") -> str:
    """Normalize `text`: NFKC, legible, Latin letters for their look-alikes, no accents.

    Args:
        gap: What stands for a character that is passed over.
    """
    if text.isascii():
        return remove_hidden(text, gap)
    text = _TAGS.sub(lambda found: found[0].translate(_TAG_TO_ASCII), text)
    text = remove_hidden(unicodedata.normalize("NFKC", remove_hidden(text, gap)), gap)
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", bare).translate(_LATIN)


def list_readings(text: str) -> tuple[str, ...]:
    """Normalized `text`; with hidden characters also with spaces for them, since they may separate words."""
    return (text,) if is_plain_ascii(text) else tuple(dict.fromkeys((normalize_text(text), normalize_text(text, " "))))


def find_odd_characters(text: str) -> Iterator[tuple[str, str]]:
    """What kind of character should not be there, and where: `bidi`, `hidden-text`, `invisible`, `lookalike`."""
    if text.isascii():
        return
    for kind, odd in (
        ("bidi", _BIDI),
        ("hidden-text", _TAGS),
        ("invisible", _INSIDE_WORD),
        ("lookalike", _CYRILLIC_IN_LATIN),
    ):
        if found := odd.search(text):
            yield kind, text[max(found.start() - 20, 0) : found.end() + 20]


def join_spaced_words(text: str) -> str:
    """`text` with words that are s p a c e d out written as words; the same text if there are none."""
    return _SPACED.sub(_closed, text)


def _closed(found: re.Match[str]) -> str:
    """The shortest gap stands between letters, longer ones between words."""
    shortest = min(map(len, _GAP.findall(found[0])))
    return _GAP.sub(lambda gap: " " if len(gap[0]) > shortest else "", found[0])


def decode_escapes(text: str) -> str:
    """`text` with escapes such as `&#105;`, `\\u0069` and `%69` written as the characters that they encode."""
    return _ESCAPES.sub(lambda found: _from_escapes(found[0]).decode("utf-8", "replace"), text)


def decode_hidden(text: str) -> Iterator[str]:
    """What stretches in base64 or in escapes of characters say, where that is text."""
    for count, found in enumerate(_CODED.finditer(text)):
        if count >= _MAX_CODED:
            return
        said = _from_escapes(found[0]) if found[0][0] in "\\%&" else _from_base64(found[0])
        printable = sum(32 <= byte < 127 or byte in b"\t\r\n" for byte in said)
        if said and printable >= _MIN_PRINTABLE * len(said):
            yield said.decode("ascii", "replace")


def _from_base64(text: str) -> bytes:
    try:
        said = base64.b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""
    # Commands for Windows are encoded in two bytes a letter.
    return said[::2] if len(said) > 1 and not any(said[1::2]) else said


def _from_escapes(text: str) -> bytes:
    if text[0] == "&":
        return html.unescape(text).encode("utf-8", "replace")
    return bytes.fromhex("".join(_HEX_PAIR.findall(text)))


def replace_leetspeak(text: str) -> str:
    """`text` with digits in words replaced by the letters that they resemble: "1gn0r3"."""
    return _LEET.sub(lambda found: found[0].translate(_LEET_TO_LATIN), text)
