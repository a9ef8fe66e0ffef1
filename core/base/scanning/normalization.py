"""Normalization of texts (forms, hidden characters, alphabets); scripts of texts."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Final

from core.base.regexes import lazy_regex
from core.base.text import is_plain_ascii, remove_hidden

_LATIN: Final = str.maketrans(
    "аеорсухіјѕԁһքԛԝвкмнтАВЕКМНОРСТУХІЈЅαεικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɡ",
    "aeopcyxijsdhpqwbkmhtABEKMHOPCTYXIJSaeiknoptuxABEZHIKMNOPTYXig",
)  # letters of other alphabets that look like Latin ones
_CYRILLIC_IN_LATIN: Final = lazy_regex(r"[A-Za-z][\u0400-\u052f]|[\u0400-\u052f][A-Za-z]")
_BIDI: Final = lazy_regex(r"[\u202a-\u202e\u2066-\u2069]")
_TAGS: Final = lazy_regex(r"[\U000e0020-\U000e007e]")
_TAG_TO_ASCII: Final = {0xE0000 + code: code for code in range(0x20, 0x7F)}
_INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001f3fb-\U0001f3ff\U000e0000-\U000e01ef"
)  # characters that are suspicious between Latin letters
_ACCENTS: Final = lazy_regex("[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")
"""Combining marks that are drawn over or through a letter."""
_INSIDE_WORD: Final = lazy_regex(f"(?<=[A-Za-z ])[{_INVISIBLE}]+(?=[A-Za-z])|[\u200b\u2060\ufeff\u2800\u3164]")
"""Joiners are needed in emoji and other scripts; between Latin letters hidden characters have no use."""
_ODD: Final = {"bidi": _BIDI, "hidden-text": _TAGS, "invisible": _INSIDE_WORD, "lookalike": _CYRILLIC_IN_LATIN}
_LEET: Final = lazy_regex(
    r"(?<![\w-])(?=[a-z0-9@$]*[a-z])(?=[a-z]*[013457@$])[a-z013457@$]{3,20}(?![\w-])", re.IGNORECASE
)
_LEET_TO_LATIN: Final = str.maketrans("013457@$", "oieastas")
_SPACED: Final = lazy_regex(r"(?<![^\W_])[^\W_](?:[ \t._*-]{1,8}[^\W_]){6,400}(?![^\W_])")
_GAP: Final = lazy_regex(r"[ \t._*-]{1,8}")
_CODED: Final = lazy_regex(
    r"[A-Za-z0-9+/]{24,8192}={0,2}|(?:\\x[0-9a-fA-F]{2}){6,2048}|(?:\\u00[0-9a-fA-F]{2}){4,2048}|(?:%[0-9a-fA-F]{2}){6,2048}"
    r"|(?:&#x?[0-9a-fA-F]{2,4};){4,1024}"
)
_ESCAPES: Final = lazy_regex(
    r"(?:\\x[0-9a-fA-F]{2}){4,2048}|(?:\\u00[0-9a-fA-F]{2}){4,2048}|(?:%[0-9a-fA-F]{2}){6,2048}|(?:&#x?[0-9a-fA-F]{2,4};){4,1024}"
)
_HEX_PAIR: Final = lazy_regex(r"(?:\\x|\\u00|%)([0-9a-fA-F]{2})")
_MAX_CODED: Final = 8  # encoded parts of one text that are decoded
_MIN_PRINTABLE: Final = 0.95


def normalize_text(text: str, gap: str = "") -> str:
    """Normalize to NFKC, without accents or look-alikes; `gap` for hidden characters."""
    if text.isascii():
        return remove_hidden(text, gap)
    text = _TAGS.sub(lambda found: found[0].translate(_TAG_TO_ASCII), text)
    text = remove_hidden(unicodedata.normalize("NFKC", remove_hidden(text, gap)), gap)
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", bare).translate(_LATIN)


def list_readings(text: str) -> tuple[str, ...]:
    """List `text` normalized; if it has hidden characters, also with spaces for them."""
    return (text,) if is_plain_ascii(text) else tuple(dict.fromkeys((normalize_text(text), normalize_text(text, " "))))


def list_decoded(text: str) -> list[str]:
    """List further readings: with joined words, digits as letters, or decoded parts."""
    # Both "1gn0r3" and "&#105;gnore" become "ignore".
    spelled = (
        _LEET.sub(lambda found: found[0].translate(_LEET_TO_LATIN), text),
        _ESCAPES.sub(lambda found: _from_escapes(found[0]).decode("utf-8", "replace"), text),
    )
    readings = [join_spaced_words(text), *(normalize_text(other) for other in spelled if other != text)]
    readings += map(normalize_text, decode_hidden(text))
    return [reading for reading in dict.fromkeys(readings) if reading != text]


def find_odd_characters(text: str) -> Iterator[tuple[str, str]]:
    """List (rule ID, excerpt) of hidden, bidirectional and look-alike characters."""
    if text.isascii():
        return
    for kind, odd in _ODD.items():
        if found := odd.search(text):
            yield kind, text[max(found.start() - 20, 0) : found.end() + 20]


def join_spaced_words(text: str) -> str:
    """Join words that are s p a c e d out; longer gaps separate words."""

    def join(found: re.Match[str]) -> str:
        shortest = min(map(len, _GAP.findall(found[0])))
        return _GAP.sub(lambda gap: " " if len(gap[0]) > shortest else "", found[0])

    return _SPACED.sub(join, text)


def decode_hidden(text: str) -> Iterator[str]:
    """Decode the parts in base64 or escapes that contain text."""
    for count, found in enumerate(_CODED.finditer(text)):
        if count >= _MAX_CODED:
            return
        if found[0][0] in "\\%&":
            content = _from_escapes(found[0])
        else:
            try:
                content = base64.b64decode(found[0] + "=" * (-len(found[0]) % 4))
            except (binascii.Error, ValueError):
                continue
            # Commands for Windows are encoded with two bytes per letter.
            content = content[::2] if len(content) > 1 and not any(content[1::2]) else content
        printable = sum(32 <= byte < 127 or byte in b"\t\r\n" for byte in content)
        if content and printable >= _MIN_PRINTABLE * len(content):
            yield content.decode("ascii", "replace")


def _from_escapes(text: str) -> bytes:
    if text[0] == "&":
        import html

        return html.unescape(text).encode("utf-8", "replace")
    return bytes.fromhex("".join(_HEX_PAIR.findall(text)))


_SYMBOLS: Final = "\u2000-\u2bff\ufb00-\ufb06\uff00-\uff5a\U0001d400-\U0001d7ff"  # letters of formulas among them
_LETTER: Final = rf"[^\W\d_\x00-\u036f\u1d00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff{_SYMBOLS}]"
_UNSPACED: Final = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_WORDS: Final = lazy_regex(rf"{_LETTER}{{2,}}\W{{1,3}}{_LETTER}{{2,}}|{_UNSPACED}{{5,}}")
"""Two words in a row, or five characters of a script without spaces: not a name or a sign alone."""
_SAME: Final = {"Hiragana": "Cjk", "Katakana": "Cjk", "Cjk": "Cjk"}  # scripts that one language mixes
_NAMES: Final = {"Cjk": "Chinese or Japanese"}
_TASKS: Final = 100  # newest tasks that show which scripts a project uses
_SHARE: Final = 0.1  # part of the tasks that must be written in a script


def find_scripts(text: str) -> tuple[str, ...]:
    """Find scripts of a text's words except Latin, such as `("Cyrillic", "Greek")`."""
    if text.isascii():
        return ()
    names = {unicodedata.name(found[0][0], "").partition(" ")[0].title() for found in _WORDS.finditer(text)}
    scripts = {_SAME.get(name, name) for name in names - {""}}
    return tuple(sorted(_NAMES.get(script, script) for script in scripts))


def find_common_scripts(tasks: Iterable[str]) -> frozenset[str]:
    """Return the scripts in at least a tenth of the first 100 nonempty texts."""
    texts = list(islice(filter(None, tasks), _TASKS))
    counts = Counter(script for text in texts for script in find_scripts(text))
    return frozenset(script for script, count in counts.items() if count >= _SHARE * len(texts))


def find_unused_scripts(scripts: Iterable[str], used: Collection[str]) -> tuple[str, ...]:
    return tuple(script for script in scripts if script not in used)
