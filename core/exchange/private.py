"""What must not leave a project: secrets, names of persons, paths of a machine. Found by shape, masked in place.

A name that stands in plain prose has no shape; only names that the records themselves tell are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

SECRET: Final = "«secret»"
PERSON: Final = "«person»"
PATH: Final = "«path»"
MASKS: Final = {SECRET: "secret", PERSON: "name or address of a person", PATH: "path"}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEY_BLOCK: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----")
_KEY_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----")
# Every repeat is bounded or stands behind literal text, so that long texts take linear time.
_TOKEN: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{16,}|[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_-]{16,}|xox[abeprs]-[A-Za-z0-9-]{10,}|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}"
    r"|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{20,}|SG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}"
    r")"
)
_CREDENTIALS: Final = re.compile(r"(://)([^\s/:@\"'<>{}$]{0,100}:[^\s/@\"'<>{}$]{1,200})(?=@)")
_BEARER: Final = re.compile(r"(?i)(\b(?:bearer|basic)\s{1,4})(?=[^\s]{0,40}\d)([A-Za-z0-9+/=._~-]{12,})")
_ASSIGNED: Final = re.compile(
    r"(?i)(?P<name>pass(?:word|wd|phrase)|pwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|token|credential)"
    r"s?(?:[_-]?(?:key|value|base))?[\"'\]]{0,2}\s{0,4}(?:=>|:=|==?|:)\s{0,4}"
    r"(?:\"(?P<double>[^\"\n]{3,})\"|'(?P<single>[^'\n]{3,})'|(?P<bare>[^\s\"',;&(){}\[\]<>]{3,}))"
)
_CERTAIN: Final = ("pass", "pwd")
_NO_SECRET: Final = _words(
    """
    string str number int integer float bool boolean any none null undefined true false required optional
    unknown object bytes text missing expired invalid
    """
)
_PLACEHOLDER: Final = re.compile(r"\s*(?:[{$<%«]|\\|\.\*|\*+$|x{3,}$)", re.IGNORECASE)
_CODE: Final = re.compile(r"(?:process|os|self|this|req|request|config|settings|env|options|args|props|params)[.\[]")

_MAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
_MENTION: Final = re.compile(r"(?<![\w@/.`\\-])@([A-Za-z0-9][\w-]{1,38})(?![\w-]|[/.(@])")
_ANNOTATIONS: Final = _words(
    """
    dataclass property override deprecated param returns return throws see media import types test before after
    staticmethod classmethod nullable notnull autowired component injectable input output entity mock bean
    service controller module pytest charset keyframes supports apply tailwind layer abstractmethod
    """
)
"""What stands behind an @ in code, and is nobody."""

_STOP: Final = r"[^\s\"'`<>|,;)\]}]"
_LOCAL: Final = re.compile(
    r"(?i)file://" + _STOP + r"{0,400}"
    r"|(?<![\w\\])[a-z]:(?:\\\\?|/)(?=[\w.~$%-])" + _STOP + r"{1,400}"
    r"|(?<![^\s\"'(=])\\\\[\w.-]{2,64}\\" + _STOP + r"{1,400}"
    r"|(?<![\w~.])~[\w.-]{0,64}[/\\]" + _STOP + r"{0,400}"
    r"|(?<![\w.}/)\]*-])/(?:home|users|root|var|tmp|private|opt|usr|mnt|media|srv|etc|volumes|workspaces?|builds?|data|run)"
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
"""The words of names of agents and parts that people play; a name made of them alone is nobody's."""
_WORD: Final = re.compile(r"[^\W_]+")
_MIN_NAME: Final = 3
"""Shorter names would be found in every text."""


class Masked(Struct, frozen=True):
    """What was masked: in which record, where, and what it was (a mask's word); never the thing itself."""

    pattern_id: str
    pointer: str
    kind: str


class Masker:
    """Masks what is private in texts.

    Args:
        names: Names of persons that are known from elsewhere.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        known = sorted({name for name in names if len(name) >= _MIN_NAME and not is_role(name)}, key=len, reverse=True)
        self._names = re.compile(r"(?i)(?<!\w)(?:" + "|".join(map(re.escape, known)) + r")(?!\w)") if known else None

    def mask(self, text: str) -> str:
        """The text with every secret, person and local path replaced by a mask."""
        text = _LOCAL.sub(PATH, _MAIL.sub(PERSON, without_secrets(text)))
        if "@" in text:
            text = _MENTION.sub(_person, text)
        return self._names.sub(PERSON, text) if self._names else text


def without_secrets(text: str) -> str:
    """The text with every secret masked."""
    if "-----BEGIN" in text:
        text = "".join(_without_keys(text))
    text = _TOKEN.sub(SECRET, text)
    if "://" in text:
        text = _CREDENTIALS.sub(rf"\1{SECRET}", text)
    return _ASSIGNED.sub(_assigned, _BEARER.sub(rf"\1{SECRET}", text))


def _without_keys(text: str) -> Iterator[str]:
    """The parts outside of private keys; one that does not end takes all the rest."""
    place = 0
    while block := _KEY_BLOCK.search(text, place):
        yield text[place : block.start()] + SECRET
        end = _KEY_END.search(text, block.end())
        place = end.end() if end else len(text)
    yield text[place:]


def kinds_of(before: str, after: str) -> tuple[str, ...]:
    """What was masked on the way from one text to the other."""
    return tuple(kind for mask, kind in MASKS.items() if after.count(mask) > before.count(mask))


def is_role(name: str) -> bool:
    """Whether a name says what somebody does, not who it is: `software-implementer`."""
    words = _WORD.findall(name.lower())
    return bool(words) and all(word in ROLES or word.isdigit() for word in words)


def _person(found: re.Match[str]) -> str:
    return found[0] if found[1].lower() in _ANNOTATIONS else PERSON


def _assigned(found: re.Match[str]) -> str:
    group = next(name for name in ("double", "single", "bare") if found[name] is not None)
    value = found[group]
    if SECRET in value or _PLACEHOLDER.match(value) or value.lower().rstrip(".") in _NO_SECRET:
        return found[0]
    certain = found["name"].lower().startswith(_CERTAIN)
    if group == "bare" and (_CODE.match(value) or not (certain or len(value) >= 16 or any(map(str.isdigit, value)))):
        return found[0]
    start = found.start(group) - found.start()
    return found[0][:start] + SECRET + found[0][start + len(value) :]
