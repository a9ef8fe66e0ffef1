"""Detect the encoding of text files, and convert them to UTF-8."""

from __future__ import annotations

import codecs
import re
from typing import Final

UTF8: Final = "utf-8"
_MARKS: Final = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NAMES: Final = {
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "utf-32-le": "UTF-32",
    "utf-32-be": "UTF-32",
    "cp1252": "Windows-1252 or Latin-1",
}
_MULTIBYTE: Final = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH: Final = re.compile(rb"(?<=[A-Za-z0-9 ])[\x80-\xff]{1,4}(?=[A-Za-z0-9 .,;:!?\"'])|(?<=\")[\x80-\xff](?=[a-z])")
_ANY_HIGH: Final = re.compile(rb"[\x80-\xff]+")
_PUNCTUATION: Final = frozenset("‘’“”–—…€§°«»·±²³µ¿¡£¥©®™•")


def encoding_of(data: bytes) -> str:
    """Name of the codec of a text; `utf-8` unless another one is certain.

    UTF-16 and UTF-32 are detected by their byte order mark or zero bytes, Windows-1252 (and so Latin-1) if no byte
    sequence is UTF-8 and all other bytes are letters or punctuation inside words.
    """
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return codec
    head = data[:4]
    if b"\0" in head and len(head) == 4:
        for codec, zeros in (
            ("utf-32-le", b"\1\0\0\0"),
            ("utf-32-be", b"\0\0\0\1"),
            ("utf-16-le", b"\1\0\1\0"),
            ("utf-16-be", b"\0\1\0\1"),
        ):
            if all((byte != 0) == (wanted != 0) for byte, wanted in zip(head, zeros, strict=True)):
                return codec
    if data.isascii():
        return UTF8
    try:
        data.decode()
    except UnicodeDecodeError:
        return "cp1252" if _is_windows_1252(data) else UTF8
    return UTF8


def as_utf8(data: bytes) -> tuple[bytes, str]:
    """Convert a text to UTF-8; returns it and the name of its encoding for people.

    The name is "" if the text was UTF-8 or cannot be converted.
    """
    codec = encoding_of(data)
    if codec == UTF8:
        return data, ""
    try:
        return data.decode(codec).lstrip("\N{ZERO WIDTH NO-BREAK SPACE}").encode(), _NAMES[codec]
    except UnicodeError:
        return data, ""


def _is_windows_1252(data: bytes) -> bool:
    """Whether the bytes beyond ASCII are plausible as Windows-1252, not as UTF-8."""
    if _MULTIBYTE.search(data) or len(_HIGH.findall(data)) < len(_ANY_HIGH.findall(data)):
        return False
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return all(char.isalpha() or char in _PUNCTUATION for char in text if not char.isascii())
