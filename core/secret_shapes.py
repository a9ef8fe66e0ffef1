"""The shapes of secrets, and the search for them; use `core.secrets`, which looks here only where it has to.

Every repeat is bounded or stands behind literal text, so that long texts take linear time.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from functools import partial
from typing import Final

from core.secrets import Mark

_MARKED: Final = ("[secret:", "«secret»", "\ue000")
"""What tells that something stands for a secret already."""
_FOUND: Final = re.compile("«\ue000(\\d{1,6})»")
"""What stands for the secrets that were found while others are looked for."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEY_BLOCK: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_TOKENS: Final = {
    "Anthropic key": r"sk-ant-[A-Za-z0-9_-]{16,}",
    "API key": r"(?<!-)sk-(?=[A-Za-z_-]{0,60}\d)[A-Za-z0-9_-]{16,}",
    "Stripe key": r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}",
    "GitHub token": r"gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}",
    "GitLab token": r"glpat-[A-Za-z0-9_-]{16,}",
    "Slack token": r"xox[abeprs]-[A-Za-z0-9-]{10,}",
    "AWS key": r"A(?:KIA|SIA)[A-Z0-9]{16}",
    "Google key": r"AIza[A-Za-z0-9_-]{30,}",
    "npm token": r"npm_[A-Za-z0-9]{30,}",
    "PyPI token": r"pypi-(?=[a-z0-9_-]{0,60}[A-Z])[A-Za-z0-9_-]{16,}",
    "Hugging Face token": r"hf_[A-Za-z0-9]{20,}",
    "SendGrid key": r"SG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    "Telegram token": r"(?:bot)?\d{8,10}:AA[A-Za-z0-9_-]{30,}",
    "Twilio key": r"SK[0-9a-f]{32}",
    "DigitalOcean token": r"do[opr]_v1_[a-f0-9]{20,}",
    "Vault token": r"hv[sbr]\.[A-Za-z0-9_-]{16,}",
    "Databricks token": r"dapi[a-f0-9]{20,}",
    "Shopify token": r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{16,}",
    "Linear key": r"lin_(?:api|oauth)_[A-Za-z0-9]{16,}",
    "Google secret": r"GOCSPX-[A-Za-z0-9_-]{16,}",
    "Google token": r"ya29\.[A-Za-z0-9_-]{16,}",
    "Atlassian token": r"ATATT3[A-Za-z0-9_=-]{16,}",
    "age key": r"AGE-SECRET-KEY-1[A-Z0-9]{16,}",
    "JWT": r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}",
}
"""Tokens that tell by their beginning what they are."""
_TOKEN: Final = re.compile(
    "(?<![A-Za-z0-9])(?:" + "|".join(f"(?P<t{at}>{shape})" for at, shape in enumerate(_TOKENS.values())) + ")"
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
_VALUE: Final = rf"(?:{_QUOTED}|(?P<bare>(?:[^\s\"',;&(){{}}\[\]<>\\]|\\(?![\\\"'nrtu/]))+))"
_GROUPS: Final = ("escaped", "double", "single", "bare")
_NAMED: Final = r"(?:PASS(?:WORD|WD|PHRASE)?|PWD|SECRET|TOKEN|CREDENTIALS?|(?:API|ACCESS|PRIVATE)_?KEY)"
_REST: Final = r"(?=\s)(?:\"[^\"\n]*\"|'[^'\n]*'|\\\n|[^\n|;])*+"
"""A command to its end."""

_BEARER: Final = re.compile(
    r"(?i)(\b(?:bearer\s{1,4}(?=\S{0,40}(?:\d|(?-i:[a-z][A-Z])))|(?P<basic>basic\s{1,4})))[A-Z0-9+/=._~-]{12,}"
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
_COMMANDS: Final = {
    ("mysql", "mariadb"): (
        "database password",
        re.compile(rf"(?i)\b(?:mysql|mariadb)[\w-]{{0,20}}{_REST}"),
        re.compile(rf"(?<=\s)-p(?!\d{{1,5}}:\d){_VALUE}"),
    ),
    ("curl",): (
        "user and password",
        re.compile(rf"(?i)\bcurl(?:\.exe)?{_REST}"),
        re.compile(
            r"(?i)(?<=\s)(?:-[a-z]{0,5}u\s{0,4}|--(?:proxy-)?user[\s=]{1,4})(?P<quote>\\{0,7}[\"'])?"
            r"(?P<bare>[^\s\"'\\:]{1,100}:(?![{$<%«]|//)(?(quote)[^\"'\\\n]|[^\s\"'\\]){0,200})"
        ),
    ),
    ("sshpass",): ("password", re.compile(rf"\bsshpass{_REST}"), re.compile(rf"(?<=\s)-p\s{{0,4}}{_VALUE}")),
    ("login",): (
        "password",
        re.compile(rf"\b(?:docker|podman|nerdctl|buildah|skopeo|crane|oc|az|acr|registry)\s{{1,4}}login{_REST}"),
        re.compile(rf"(?<=\s)-p\s{{1,4}}{_VALUE}"),
    ),
    ("redis-cli",): ("password", re.compile(rf"\bredis-cli{_REST}"), re.compile(rf"(?<=\s)-a\s{{1,4}}{_VALUE}")),
    ("ldap",): ("password", re.compile(rf"\bldap[a-z]{{3,10}}{_REST}"), re.compile(rf"(?<=\s)-w\s{{0,4}}{_VALUE}")),
}
"""By words that tell of it: what the secret is, a command to its end, its option that holds the secret."""
_PASS_ARGUMENT: Final = re.compile(rf"(?<=\s)-pass(?:in|out)?\s{{1,4}}[\"']?pass:{_VALUE}")
_NETRC: Final = re.compile(
    r"\b(?P<machine>machine\s{1,8}\S{1,200}\s{1,8})?login\s{1,8}\S{1,200}\s{1,8}password\s{1,8}"
    r"(?(machine)|(?=\S{0,60}[\d!#$%^*+=]))(?P<bare>[^\s\"'\\]+)"
)
_SET: Final = re.compile(
    rf"(?:\b(?:ENV|ARG)|(?i:\bset(?:x|env)))\s{{1,4}}(?i:\w{{0,60}}?{_NAMED})(?:_\w{{0,20}})?\s{{1,4}}(?!=){_VALUE}"
)
_MARKS: Final = r"[\"'\\]{0,8}"
_PAIR: Final = re.compile(
    rf"(?i)\b(?:name|key){_MARKS}\s{{0,4}}[:=]\s{{0,4}}{_MARKS}\b\w{{0,60}}?{_NAMED}(?:_\w{{0,20}})?{_MARKS}\s{{0,4}},?"
    rf"\s{{0,40}}{_MARKS}value{_MARKS}\s{{0,4}}[:=]\s{{0,4}}{_VALUE}"
)
"""A name and a value, each under a key of its own."""
_SECURE: Final = re.compile(rf"(?i)\bConvertTo-SecureString\s{{1,4}}(?:-String\s{{1,4}})?(?!-){_VALUE}")
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
_PLACEHOLDER: Final = re.compile(
    r"\s*(?:[{$<%«,)]|(?<=\s)\+|:[a-z_]+$|\\|\.\*|\*+$|x{3,}$|your[_-]"
    r"|(?:required|nullable|optional|string|min|max|confirmed)[|:]|(?:pat-(?:error|success|anti|code)|tmpl)-[a-z0-9-]+$)",
    re.IGNORECASE,
)
_METAVARIABLE: Final = re.compile(r"[A-Z_]{0,40}(?:PASS|PWD|SECRET|TOKEN|KEY|VALUE|STRING)[A-Z_]{0,40}")
_CODE: Final = re.compile(
    r"(?:process|os|self|this|req|request|config|settings|env|options|args|props|params)[.\[]"
    r"|[A-Za-z_.]{0,80}[._](?:pass(?:word|wd|phrase)?|pwd|secret|token|key|value|string)$"
)
_NUMBERED: Final = re.compile(
    r"[\^~<>=v]{0,3}\d+(?:\.(?:\d+|x|\*)){1,3}(?:[-+][\w.-]+)?|\d[\d.,_]{0,12}[a-z%]{0,3}/[a-z]{1,8}"
)
"""Versions of packages that have such names, and rates."""
_FOLDER: Final = re.compile(r"[\\\"']*(?:~?/|\.{1,2}/|[A-Za-z]:[\\/])")
"""What PWD is a name of, too."""
_CALLED: Final = re.compile(r"[A-Za-z_.]+")


class Search:
    """The secrets of one text. While it is searched each is replaced by its number, which no rule takes for one."""

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] = []

    def replaced(self, text: str, mark: Mark) -> str:
        """The text with `mark` of it in the place of every secret."""
        if "-----BEGIN" in text:
            text = "".join(self._without_keys(text))
        text = _TOKEN.sub(lambda found: self._number(_KINDS[found.lastgroup or ""], found[0]), text)
        for kind, rule in _KEPT_BEFORE.items():
            text = rule.sub(lambda found, kind=kind: found[1] + self._number(kind, found[0][len(found[1]) :]), text)  # type: ignore[misc]
        text = _COOKIE.sub(self._cookie, text)
        lower = text.lower()
        text = self._without_arguments(text, lower)
        for kind, (hint, rule) in _TOLD.items():
            if hint in lower:
                text = rule.sub(partial(self._told, kind), text)
        text = _BEARER.sub(self._authorized, text)
        text = _ASSIGNED.sub(self._assigned, text)
        return _FOUND.sub(lambda found: self._marked(found, mark), text) if self._found else text

    def _number(self, kind: str, secret: str) -> str:
        self._found.append((kind, secret))
        return f"«\ue000{len(self._found) - 1}»"

    def _marked(self, found: re.Match[str], mark: Mark) -> str:
        number = int(found[1])
        return mark(*self._found[number]) if number < len(self._found) else found[0]

    def _without_keys(self, text: str) -> Iterator[str]:
        """The parts outside of private keys; one that does not end takes all the rest."""
        place = 0
        while block := _KEY_BLOCK.search(text, place):
            end = _KEY_END.search(text, block.end())
            stop = end.end() if end else len(text)
            yield text[place : block.start()] + self._number("private key", text[block.start() : stop])
            place = stop
        yield text[place:]

    def _without_arguments(self, text: str, lower: str) -> str:
        """Without what commands are given to sign in; each command is looked at once, whatever it holds."""
        for hints, (kind, command, option) in _COMMANDS.items():
            if any(hint in lower for hint in hints):
                text = command.sub(partial(self._signed_in, kind, option), text)
        return text

    def _signed_in(self, kind: str, option: re.Pattern[str], command: re.Match[str]) -> str:
        return option.sub(partial(self._told, kind), command[0])

    def _authorized(self, found: re.Match[str]) -> str:
        value = found[0][len(found[1]) :]
        if found["basic"] and not _is_basic(value):
            return found[0]
        return found[1] + self._number("authorization", value)

    def _cookie(self, found: re.Match[str]) -> str:
        start = found.start("first") - found.start()
        return found[0][:start] + _CRUMB.sub(lambda crumb: self._told("cookie", crumb), found[0][start:])

    def _told(self, kind: str, found: re.Match[str]) -> str:
        """What certainly holds a secret, unless something else stands in its place."""
        group = _group(found)
        return found[0] if _is_none(found, group) else self._hidden(kind, found, group)

    def _assigned(self, found: re.Match[str]) -> str:
        group = _group(found)
        value, name = found[group], found["name"].lower()
        if len(value) < _MIN_VALUE or _is_none(found, group):
            return found[0]
        if _FOLDER.match(value) if name == "pwd" else "pass" not in name and _NUMBERED.fullmatch(value):
            return found[0]
        npmrc = name.startswith("_auth") and found.string.startswith("=", found.end("name"))
        certain = npmrc or name == "pwd" or ("pass" in name and name != "pass")
        if group == "bare" and not certain and len(value) < _LONG and not value.endswith("="):
            counted = name in ("pass", "token") and not any(map(str.isalpha, value))
            if counted or not any(map(str.isdigit, value)):
                return found[0]
        return self._hidden("password" if "pass" in name or name == "pwd" else "value", found, group)

    def _hidden(self, kind: str, found: re.Match[str], group: str) -> str:
        start, end = found.span(group)
        number = self._number(kind, found[group])
        return found[0][: start - found.start()] + number + found[0][end - found.start() :]


def _group(found: re.Match[str]) -> str:
    groups = found.groupdict()
    return next(name for name in _GROUPS if groups.get(name) is not None)


def _is_none(found: re.Match[str], group: str) -> bool:
    """Whether a value is no secret: masked already, a type, a word of prose, a placeholder, a piece of code."""
    value = found[group].rstrip(":.") if group == "bare" else found[group]
    if any(mark in value for mark in _MARKED) or _PLACEHOLDER.match(value) or value.lower().rstrip(".:") in _NO_SECRET:
        return True
    if group != "bare":
        return False
    called = found.string[found.end() : found.end() + 1] in ("(", "[") and _CALLED.fullmatch(value)
    return bool(called or _METAVARIABLE.fullmatch(value) or _CODE.match(value))


def _is_basic(value: str) -> bool:
    """Whether it is a name and a password as `Basic` writes them; prose has long words too."""
    whole = value.rstrip("=.")[: len(value.rstrip("=.")) // 4 * 4]
    try:
        return b":" in b64decode(whole, validate=True)
    except ValueError:
        return False


_KINDS: Final = {f"t{at}": kind for at, kind in enumerate(_TOKENS)}
_KEPT_BEFORE: Final = {"credentials": _CREDENTIALS, "webhook": _WEBHOOK, "signature": _SIGNATURE}
_TOLD: Final = {
    "authorization": ("authorization", _AUTHORIZATION),
    "option": ("--", _OPTION),
    "argument": ("-pass", _PASS_ARGUMENT),
    "netrc password": ("login", _NETRC),
    "variable": ("", _SET),
    "value": ("value", _PAIR),
    "secure string": ("convertto-", _SECURE),
    "SQL password": ("", _SQL),
    "element": ("</", _ELEMENT),
}
"""What each finds, what stands in lower case in every text that holds it, and its shape."""
