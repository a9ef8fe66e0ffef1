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


_KEY_BLOCK: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# Every repeat is bounded or stands behind literal text, so that long texts take linear time.
_TOKEN: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{16,}|[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_-]{16,}|xox[abeprs]-[A-Za-z0-9-]{10,}|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}"
    r"|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{20,}|SG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}"
    r")"
)
_CREDENTIALS: Final = re.compile(
    r"(?!(?:(?<=http)|(?<=https)|(?<=ws)|(?<=wss)):(?:\\?/){2}[^\s/:@]{1,100}:\d{1,5}[/?#])(:(?:\\?/){2})"
    r"(?:[^\s/:@\"'`<>]{0,100}:(?![{$<«]|%[(sv])[^\s\"'`<>]{1,200}|[A-Za-z0-9_-]{20,200})(?=@)"
)
"""What stands before the host of an address; the port of a page whose path has an @ is none."""
_WEBHOOK: Final = re.compile(
    r"(?i)(hooks\.slack\.com\\?/(?:services|workflows|triggers)\\?/"
    r"|discord(?:app)?\.com\\?/api(?:\\?/v\d{1,3})?\\?/webhooks\\?/)"
    r"[^\s\"'`<>{}$,;)]{4,400}"
)
_SIGNATURE: Final = re.compile(r"(?i)((?:[?&;]|\\u0026)sig=)[^\s\"'`<>{}$&;\\]{6,400}")

# Values in quotes, with or without the backslashes of JSON in a text; what is cut off need not end.
_QUOTED: Final = (
    r"(?P<quote>\\{1,7}[\"'])(?P<escaped>[^\n]+?)(?:(?<!\\)(?=(?P=quote))|\Z)"
    r"|\"(?P<double>(?:[^\"\\\n]|\\.)+)(?=\"|\\?\Z)|'(?P<single>(?:[^'\\\n]|\\.)+)(?='|\\?\Z)"
)
_VALUE: Final = rf"(?:{_QUOTED}|(?P<bare>[^\s\"',;&(){{}}\[\]<>]+))"
_GROUPS: Final = ("escaped", "double", "single", "bare")
_COMMAND: Final = r"(?:[^\n|;]|(?<=\\)\n){0,200}?\s"
"""Between a command and one of its options."""

_BEARER: Final = re.compile(
    r"(?i)(\b(?:bearer\s{1,4}(?=\S{0,40}(?:\d|(?-i:[a-z][A-Z])))|basic\s{1,4}(?=\S{0,40}\d)))[A-Z0-9+/=._~-]{12,}"
)
_AUTHORIZATION: Final = re.compile(
    r"(?i)(?<![a-z])authorization[\\\"'\]]{0,4}\s{0,4}(?:=>|[:=,])\s{0,4}[\\\"'`]{0,4}"
    r"(?:(?:token|bearer|basic|digest|apikey|negotiate)\s{1,4}|(?=[\w+/=.~-]{16})(?=\S{0,60}\d))"
    r"(?P<bare>[^\s\"'`,;(){}\[\]<>\\]+)"
)
_CRUMB_NAME: Final = r"[\w.!#%&*+^|~-]{1,128}"
_CRUMB_VALUE: Final = r"(?:\\{0,3}\")?[^\s;\"'`\\<>]{0,4096}(?:\\{0,3}\")?"
_COOKIE: Final = re.compile(
    r"(?i)(?<![a-z])(?:set-)?cookie(?:\\{0,7}[\"']\s{0,4}[:,]|:)\s{0,4}[\\\"'`]{0,4}"
    rf"(?P<first>{_CRUMB_NAME}=){_CRUMB_VALUE}(?:;\s{{0,4}}{_CRUMB_NAME}(?:={_CRUMB_VALUE})?)*"
)
_CRUMB: Final = re.compile(
    r"(?i)(?<![^\s;:,\"'`\\])(?!(?:path|domain|expires|max-age|samesite|priority|version)=)"
    + _CRUMB_NAME
    + r"=(?:\\{0,3}\")?(?P<bare>[^\s;\"'`\\<>]+)"
)
"""One value of a cookie, not its attributes."""
_OPTION: Final = re.compile(
    r"(?i)(?<![\w-])--(?!no-)(?:pass|[\w-]{0,40}?(?:pass(?:word|wd|phrase)|pwd|secret|token|(?:api|access|private)-?key))"
    rf"(?:=|\s{{1,4}}(?!-)){_VALUE}"
)
_MYSQL: Final = re.compile(rf"(?i)\b(?:mysql|mariadb)[\w-]{{0,20}}(?=\s){_COMMAND}(?-i:-p)(?!\d{{1,5}}:\d){_VALUE}")
_CURL: Final = re.compile(
    rf"(?i)\bcurl(?:\.exe)?(?=\s){_COMMAND}(?:-[a-z]{{0,5}}u\s{{0,4}}|--(?:proxy-)?user[\s=]{{1,4}})(?P<quote>\\{{0,7}}[\"'])?"
    r"(?P<bare>[^\s\"'\\:]{1,100}:(?![{$<%«]|//)(?(quote)[^\"'\\\n]|[^\s\"'\\]){0,200})"
)
_SQL: Final = re.compile(
    r"(?i)(?:(?:(?-i:\bIDENTIFIED)|\b(?:create|alter)\s{1,4}user\s[^\n;]{1,150}?\sidentified)"
    r"(?:\s{1,4}with\s{1,4}\S{1,60})?\s{1,4}(?:by|as)(?:\s{1,4}password)?|(?-i:\bPASSWORD)(?=\s{1,4}[\"'\\]))\s{1,4}"
    rf"{_VALUE}"
)
_ELEMENT: Final = re.compile(
    r"(?i)<[\w:.-]{0,60}?(?:pass(?:word|wd|phrase)|pwd|secret|token|api[_-]?key)(?:\s[^<>\n]{0,200})?>"
    r"\s{0,4}(?P<bare>[^\s<>][^<>\n]{0,400}?)\s{0,4}</"
)
_ASSIGNED: Final = re.compile(
    r"(?i)(?P<name>pass(?:word|wd|phrase)|pwd|secret|(?:api|access|private|account)[_-]?key|token|credential"
    r"|(?-i:[A-Z0-9]_PASS)|(?:db|user|admin|root|mail|smtp|sql|pg|redis|ftp|ldap|proxy|auth)[_-]?pass|(?<![a-z])pass(?==)"
    r"|(?<![a-z0-9.>])_auth(?:token)?)"
    r"s?(?:[_-]?(?:key|value|base)){0,2}(?:\\{0,7}[\"'\]]){0,2}\s{0,4}(?:=>|:=|==?|:\s{0,4}str(?:ing)?\s{0,4}=|:)\s{0,4}"
    rf"{_VALUE}"
)
_MIN_VALUE: Final = 3
_LONG: Final = 16
"""Words of code and prose are rarely as long."""
_NO_SECRET: Final = _words(
    """
    string str number int integer float bool boolean any none null undefined true false required optional
    unknown object bytes text missing expired invalid value varchar char secretstr yes no
    a an and are as at be been by can cannot for from has have if in into is it may must not of on or should that the
    then this to was when which will with you your
    auth authentication authorization flag header option parameter argument scheme switch
    async await function get lambda new return set
    """
)
"""What stands in the place of a secret and is none: types, prose, keywords."""
_PLACEHOLDER: Final = re.compile(r"\s*(?:[{$<%«,)]|(?<=\s)\+|:[a-z_]+$|\\|\.\*|\*+$|x{3,}$|your[_-])", re.IGNORECASE)
_METAVARIABLE: Final = re.compile(r"[A-Z_]{0,40}(?:PASS|PWD|SECRET|TOKEN|KEY|VALUE|STRING)[A-Z_]{0,40}")
_CODE: Final = re.compile(
    r"(?:process|os|self|this|req|request|config|settings|env|options|args|props|params)[.\[]"
    r"|[A-Za-z_.]{0,80}[._](?:pass(?:word|wd|phrase)?|pwd|secret|token|key|value|string)$"
)
_CALLED: Final = re.compile(r"[A-Za-z_.]+")

_MAIL: Final = re.compile(r"[\w.+-]{1,64}@(?!\d{1,5}\.\d)[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
_MENTION: Final = re.compile(r"(?<![\w@/.`»}\\-])@([A-Za-z0-9][\w-]{1,38})(?![\w-]|[/.(@])")
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
    for kept in (_CREDENTIALS, _WEBHOOK, _SIGNATURE):
        text = kept.sub(rf"\1{SECRET}", text)
    text = _COOKIE.sub(_cookie, text)
    for told in (_AUTHORIZATION, _OPTION, _MYSQL, _CURL, _SQL, _ELEMENT):
        text = told.sub(_told, text)
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


def _cookie(found: re.Match[str]) -> str:
    start = found.start("first") - found.start()
    return found[0][:start] + _CRUMB.sub(_told, found[0][start:])


def _told(found: re.Match[str]) -> str:
    """What certainly holds a secret, unless something else stands in its place."""
    group = _group(found)
    return found[0] if _is_none(found, group) else _masked(found, group)


def _assigned(found: re.Match[str]) -> str:
    group = _group(found)
    value, name = found[group], found["name"].lower()
    if len(value) < _MIN_VALUE or _is_none(found, group):
        return found[0]
    npmrc = name.startswith("_auth") and found.string.startswith("=", found.end("name"))
    certain = npmrc or name == "pwd" or ("pass" in name and name != "pass")
    if group == "bare" and not certain and len(value) < _LONG and not value.endswith("="):
        counted = name in ("pass", "token") and not any(map(str.isalpha, value))
        if counted or not any(map(str.isdigit, value)):
            return found[0]
    return _masked(found, group)


def _group(found: re.Match[str]) -> str:
    groups = found.groupdict()
    return next(name for name in _GROUPS if groups.get(name) is not None)


def _is_none(found: re.Match[str], group: str) -> bool:
    """Whether a value is no secret: a type, a word of prose, a placeholder, a piece of code."""
    value = found[group]
    if SECRET in value or _PLACEHOLDER.match(value) or value.lower().rstrip(".:") in _NO_SECRET:
        return True
    if group != "bare":
        return False
    called = found.string[found.end() : found.end() + 1] in ("(", "[") and _CALLED.fullmatch(value)
    return bool(called or _METAVARIABLE.fullmatch(value) or _CODE.match(value))


def _masked(found: re.Match[str], group: str) -> str:
    start, end = found.span(group)
    return found[0][: start - found.start()] + SECRET + found[0][end - found.start() :]
