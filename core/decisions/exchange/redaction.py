"""Masks secrets, names of persons, local paths and loop IDs in exports.

Names of persons in plain prose cannot be recognised; only names that the records list as such are masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from msgspec import Struct

from core.base.masking import replace_secrets

SECRET: Final = "«secret»"
PERSON: Final = "«person»"
PATH: Final = "«path»"
MASKS: Final = {SECRET: "secret", PERSON: "name or address of a person", PATH: "path"}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MAIL: Final = re.compile(r"[\w.+-]{1,64}@(?!\d{1,5}\.\d)[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
_MENTION: Final = re.compile(r"(?<![\w@/.`»}\\-])@([A-Za-z0-9][\w-]{1,38})(?![\w-]|[/.(@])")
_ANNOTATIONS: Final = _words(
    """
    dataclass property override deprecated param returns return throws see media import types test before after
    staticmethod classmethod nullable notnull autowired component injectable input output entity mock bean
    service controller module pytest charset keyframes supports apply tailwind layer abstractmethod
    """
)
"""Words after an @ in code that are not names."""

_STOP: Final = r"[^\s\"'`<>|,;)\]}]"
_LOCAL: Final = re.compile(
    r"(?i)file://" + _STOP + r"{0,400}"
    r"|[a-z]:\\{1,4}users\\{1,4}(?:" + _STOP + r"{1,200}(?: [\w.-]{1,32}){1,2}(?=\\))?" + _STOP + r"{1,400}"
    r"|(?<![\w\\])[a-z]:(?:\\{1,4}|/)(?=[\w.~$%-])" + _STOP + r"{1,400}"
    r"|(?<![^\s\"'(=])\\\\[\w.-]{2,64}\\" + _STOP + r"{1,400}"
    r"|(?<![\w~.])~[\w.-]{0,64}[/\\]" + _STOP + r"{0,400}"
    r"|(?<![\w.}/)\]*-])/(?:(?:[a-z]/)?users|home|root|var|tmp|private|opt|usr|mnt|cygdrive|media|srv|etc|volumes|workspaces?|builds?|data|run)"
    r"(?:/" + _STOP + r"{0,400}|(?![\w.-]))"
    r"|(?<![\w.}/)\]*-])/(?:[\w.@+-]{1,100}/){1,20}[\w@+-][\w.@+-]{0,80}\.[a-z]\w{0,9}(?!\w)"
)

ROLES: Final = _words(
    """
    agent ai analyst architect assistant auditor author bot build ci claude code coder coordinator curator data
    database debugger designer dev developer devops documentation engineer executor expert extractor frontend
    backend human implementer lead loop manager ml operator orchestrator owner performance planner qa quality
    ralph ralphdeck release requirements research researcher reviewer runner security senior software specialist
    system tech technical test tester testing user ux web worker writer
    """
)
"""Words of agent and role names; a name of only such words is not a person."""
_WORD: Final = re.compile(r"[^\W_]+")
_MIN_NAME: Final = 3  # Minimum length of a name; shorter ones would match in every text.

_PSEUDONYM: Final = re.compile(r"loop-[0-9a-f]{8}")
_LOOP_ID: Final = re.compile(r"(?<![A-Za-z0-9])ralph-[A-Za-z0-9_-]{1,100}?-[0-9a-f]{8}(?![A-Za-z0-9])")
_LOOP_NAME: Final = re.compile(r"[^\W_](?:[\w-]*[^\W_])?")  # A run of letters, digits, `-` and `_` in a text.
_LETTER: Final = re.compile(r"[^\W\d_]")
_SIGN: Final = re.compile(r"[\W\d]")
_MIN_LOOP_ID: Final = 3


class Masked(Struct, frozen=True):
    """What was masked: record, field and kind; never the content."""

    pattern_id: str
    pointer: str
    kind: str


class Masker:
    """Masks secrets, local paths and persons in texts; `names` are known persons."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        known = sorted({name for name in names if len(name) >= _MIN_NAME and not is_role(name)}, key=len, reverse=True)
        self._names = re.compile(r"(?i)(?<!\w)(?:" + "|".join(map(re.escape, known)) + r")(?!\w)") if known else None

    def mask(self, text: str) -> str:
        """Replace every secret, person and local path by a mask."""
        text = _LOCAL.sub(PATH, _MAIL.sub(PERSON, without_secrets(text)))
        if "@" in text:
            text = _MENTION.sub(lambda found: found[0] if found[1].lower() in _ANNOTATIONS else PERSON, text)
        return self._names.sub(PERSON, text) if self._names else text


def without_secrets(text: str) -> str:
    """Replace every secret by a mask of fixed length."""
    return replace_secrets(text, lambda _kind, _secret: SECRET)


def kinds_of(before: str, after: str) -> tuple[str, ...]:
    """Return the kinds of content that were masked between two versions of a text."""
    return tuple(kind for mask, kind in MASKS.items() if after.count(mask) > before.count(mask))


def is_role(name: str) -> bool:
    """Whether a name is a role, such as `software-implementer`."""
    words = _WORD.findall(name.lower())
    return bool(words) and all(word in ROLES or word.isdigit() for word in words)


def pseudonym(loop_id: str, origin: str) -> str:
    """Return the pseudonym of a loop ID in a project; pseudonyms stay unchanged."""
    if _PSEUDONYM.fullmatch(loop_id):
        return loop_id
    return f"loop-{sha256(f'{origin} {loop_id}'.encode(errors='replace')).hexdigest()[:8]}"


class LoopNames:
    """Replaces loop IDs in texts by pseudonyms, except plain words and numbers."""

    def __init__(self, origin: str, known: Iterable[str]) -> None:
        self._origin = origin
        self._known = {id for id in known if len(id) >= _MIN_LOOP_ID and _LETTER.search(id) and _SIGN.search(id)}
        odd = sorted((id for id in self._known if not _LOOP_NAME.fullmatch(id)), key=len, reverse=True)
        self._names = re.compile("|".join([*(rf"(?<!\w){re.escape(id)}(?!\w)" for id in odd), _LOOP_NAME.pattern]))

    def pseudonym(self, loop_id: str) -> str:
        return pseudonym(loop_id, self._origin)

    def without(self, text: str) -> str:
        """Replace known loop IDs, and everything that looks like one."""
        return self._names.sub(self._named, text)

    def _named(self, found: re.Match[str]) -> str:
        if found[0] in self._known:
            return self.pseudonym(found[0])
        return _LOOP_ID.sub(lambda loop: self.pseudonym(loop[0]), found[0]) if "ralph-" in found[0] else found[0]
