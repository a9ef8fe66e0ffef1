"""Scripts of a text other than Latin, and which of them a project uses (docs/safety.md#scripts)."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import islice
from typing import Final

from core.base.regex_table import LazyRegex

_SYMBOLS: Final = "\u2000-\u2bff\ufb00-\ufb06\uff00-\uff5a\U0001d400-\U0001d7ff"  # letters of formulas among them
_LETTER: Final = rf"[^\W\d_\x00-\u036f\u1d00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff{_SYMBOLS}]"
_UNSPACED: Final = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_WORDS: Final = LazyRegex(rf"{_LETTER}{{2,}}\W{{1,3}}{_LETTER}{{2,}}|{_UNSPACED}{{5,}}")
"""Two words in a row, or five characters of a script without spaces: not a name or a sign alone."""
_SAME: Final = {"Hiragana": "Cjk", "Katakana": "Cjk", "Cjk": "Cjk"}  # scripts that one language mixes
_NAMES: Final = {"Cjk": "Chinese or Japanese"}
_TASKS: Final = 100  # newest tasks that show which scripts a project uses
_SHARE: Final = 0.1  # part of the tasks that must be written in a script


def find_scripts(text: str) -> tuple[str, ...]:
    """Find the scripts other than Latin in which a text has words, such as `("Cyrillic", "Greek")`."""
    if text.isascii():
        return ()
    names = {unicodedata.name(found[0][0], "").partition(" ")[0].title() for found in _WORDS.compiled.finditer(text)}
    scripts = {_SAME.get(name, name) for name in names - {""}}
    return tuple(sorted(_NAMES.get(script, script) for script in scripts))


def find_common_scripts(tasks: Iterable[str]) -> frozenset[str]:
    """Return the scripts of at least a tenth of the first 100 texts that are not empty."""
    texts = list(islice(filter(None, tasks), _TASKS))
    counts = Counter(script for text in texts for script in find_scripts(text))
    return frozenset(script for script, count in counts.items() if count >= _SHARE * len(texts))


def find_unused_scripts(scripts: Iterable[str], used: Collection[str]) -> tuple[str, ...]:
    return tuple(script for script in scripts if script not in used)
