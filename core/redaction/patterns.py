"""Patterns of secrets and the search for them; `core.redaction.masking` is the entry point.

Every repeat is bounded or follows literal text, so that long texts take linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Final

import yaml

from core.redaction.names import ASSIGNED_HINTS, NAME_HINTS, SPOKEN, MaskFormat, find_assigned, fold_case
from core.redaction.non_secrets import FOLDER, NUMBERED, is_non_secret
from core.redaction.value_shapes import (
    NEAR,
    is_basic_credential,
    is_credential,
    is_placeholder,
    is_sample_password,
    is_unique_value,
)

_MASK: Final = re.compile(r"\[secret: ([A-Za-z0-9 .]{1,30}), [\d,]{1,12} characters\]")
_FOUND: Final = re.compile("«\ue000(\\d{1,6})»")
"""Temporary mark of a found secret during the search."""


_KEY_BLOCK: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
TOKEN_FORMATS: Final[dict[str, list[str]]] = yaml.load(
    Path(__file__).with_name("token_formats.yaml").read_bytes(), yaml.CSafeLoader
)
"""Patterns of tokens by kind of secret."""
_TOKENS: Final = tuple((kind, pattern) for kind, patterns in TOKEN_FORMATS.items() for pattern in patterns)
_TOKEN_RUN: Final = re.compile(r"[A-Za-z0-9_~.+/=|$%:-]{16,}")
_FIRST: Final = re.compile(r"\[[^\]]+\]|\\d")
"""First characters of a pattern that does not begin with a literal."""
_TOKEN_START: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]")
_CREDENTIALS: Final = re.compile(
    r"(?!(?:(?<=http)|(?<=https)|(?<=ws)|(?<=wss)):(?:\\?/){2}[^\s/:@]{1,100}:\d{1,5}[/?#])(:(?:\\?/){2})"
    r"(?:[^\s/:@\"'`<>]{0,100}:(?![{$<«]|%[(sv])[^\s\"'`<>]{1,200}|[A-Za-z0-9_-]{20,200})(?=@)"
)
"""Credentials before the host of an address; not a port with an @ in the path."""
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
"""A command up to its end."""

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
"""Value of a cookie, not its attributes."""
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
            r"(?P<bare>[^\s\"'\\:]{0,100}:(?![{$<%«]|//)(?(quote)[^\"'\\\n]|[^\s\"'\\]){0,200})"
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
"""By hints: kind of secret, command up to its end, option with the secret."""
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
"""Name and value under separate keys."""
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
    r"|(?-i:[A-Z0-9]_PASS)|(?:db|user|admin|root|mail|smtp|sql|pg|redis|ftp|ldap|proxy|auth)[_-]?pass|(?<![a-z])pass(?==|\s?=\s?[\"'])"
    r"|(?<![a-z0-9.>])_auth(?:token)?)"
    r"s?(?:[_-]?(?:key|value|base)){0,2}(?:\\{0,7}[\"'\]]){0,2}\s{0,12}(?:=>|:=|==?|:\s{0,4}str(?:ing)?\s{0,4}=|:|-(?=\s[\"']))\s{0,4}"
    rf"{_VALUE}"
)
_MIN_VALUE: Final = 3
_LONG: Final = 16
"""Length that words of code and prose rarely have."""
_RUN: Final = re.compile(r"[A-Za-z0-9_~.+/@%!-]{20,512}={0,2}")
_FORM_REACH: Final = 16
_FORM: Final = re.compile(r"(?i)csrf|xsrf|authenticity|public[_-]?$")
"""Names of harmless tokens: form tokens and public ones."""
_SIGN_IN_PLACEHOLDER: Final = re.compile(
    r"(?i)[^:]{0,60}:(?:change(?:it|me)|pass(?:word|wd)?|pwd|secret|test|token|\*+|x+|\[[^\]]*\])"
)
_MAX_REPEATED: Final = 64
_WITH_NAME: Final = ("credentials", "user and password")


class Search:
    """Search of one text; found secrets are replaced by temporary marks, which no rule matches."""

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] = []

    def replace(self, text: str, mark: MaskFormat) -> str:
        """Replace every secret by its mask."""
        if "[secret: " in text:
            text = _MASK.sub(self._masked_before, text)
        if "-----BEGIN" in text:
            text = "".join(self._without_keys(text))
        lower = fold_case(text)
        text = self._without_tokens(text)
        for kind, (hint, rule) in _PREFIX_GROUPS.items():
            if hint in lower:
                text = rule.sub(partial(self._after_prefix, kind), text)
        if "cookie" in lower:
            text = _COOKIE.sub(self._cookie, text)
        text = self._without_arguments(text, lower)
        for kind, (hints, rule) in _LABELLED.items():
            if any(hint in lower for hint in hints):
                text = rule.sub(partial(self._replace_certain, kind), text)
        if "bearer" in lower or "basic" in lower:
            text = _BEARER.sub(self._authorized, text)
        if any(hint in lower for hint in ASSIGNED_HINTS):
            text = "".join(self._without_assigned(text))
        if any(hint in lower for hint in NAME_HINTS):
            text = _RUN.sub(partial(self._random, text), text)
        text = self._without_repeats(text)
        return _FOUND.sub(lambda found: self._marked(found, mark), text) if self._found else text

    def _number(self, kind: str, secret: str) -> str:
        self._found.append((kind, secret))
        return f"«\ue000{len(self._found) - 1}»"

    def _after_prefix(self, kind: str, found: re.Match[str]) -> str:
        secret = found[0][len(found[1]) :]
        sample = is_sample_password(secret.partition(":")[2]) if kind == "credentials" else is_placeholder(secret)
        return found[0] if sample and kind != "signature" else found[1] + self._number(kind, secret)

    def _masked_before(self, found: re.Match[str]) -> str:
        return self._number("", found[0]) if found[1] in _KINDS else found[0]

    def replace_tokens(self, text: str, mark: MaskFormat) -> str:
        """Replace every token that has a known prefix."""
        text = self._without_tokens(text)
        return _FOUND.sub(lambda found: self._marked(found, mark), self._without_repeats(text)) if self._found else text

    def _without_tokens(self, text: str) -> str:
        return _TOKEN_RUN.sub(lambda run: "".join(self._tokens(text, *run.span())), text)

    def _tokens(self, text: str, place: int, end: int) -> Iterator[str]:
        """Parts of a run of token characters with tokens replaced; a token begins at the start of a word."""
        at = place
        while start := _TOKEN_START.search(text, at, end):
            at = start.end()
            found = _token_patterns(start[0]).match(text, start.start(), end)
            if found and not is_placeholder(found[0]):
                kind = _TOKENS[int((found.lastgroup or "_0")[1:])][0]
                yield text[place : start.start()] + self._number(kind, found[0])
                place = at = found.end()
        yield text[place:end]

    def _random(self, text: str, run: re.Match[str]) -> str:
        """Replace a random value if the words before it name a credential."""
        if not is_credential(run[0], text[max(run.start() - NEAR, 0) : run.start()]):
            return run[0]
        return self._number("value", run[0])

    def _without_repeats(self, text: str) -> str:
        """Replace further occurrences of found secrets."""
        values = {_repeated(kind, value): kind for kind, value in self._found if kind}
        known = [value for value in values if is_unique_value(value) and value in text]
        if not known:
            return text
        known.sort(key=len, reverse=True)
        again = re.compile("(?<![A-Za-z0-9])(?:" + "|".join(map(re.escape, known[:_MAX_REPEATED])) + ")(?![A-Za-z0-9])")
        return again.sub(lambda found: self._number(values[found[0]], found[0]), text)

    def _marked(self, found: re.Match[str], mark: MaskFormat) -> str:
        number = int(found[1])
        if number >= len(self._found):
            return found[0]
        kind, secret = self._found[number]
        return mark(kind, secret) if kind else secret

    def _without_keys(self, text: str) -> Iterator[str]:
        """Parts outside of private keys; an unterminated key extends to the end."""
        place = 0
        while block := _KEY_BLOCK.search(text, place):
            end = _KEY_END.search(text, block.end())
            stop = end.end() if end else len(text)
            if end and not text[block.end() : end.start()].strip("- \n"):
                yield text[place:stop]
                place = stop
                continue
            yield text[place : block.start()] + self._number("private key", text[block.start() : stop])
            place = stop
        yield text[place:]

    def _without_arguments(self, text: str, lower: str) -> str:
        """Replace credentials in arguments of commands; reads each command once."""
        for hints, (kind, command, option) in _COMMANDS.items():
            if any(hint in lower for hint in hints):
                text = command.sub(partial(self._signed_in, kind, option), text)
        return text

    def _signed_in(self, kind: str, option: re.Pattern[str], command: re.Match[str]) -> str:
        return option.sub(partial(self._replace_certain, kind), command[0])

    def _authorized(self, found: re.Match[str]) -> str:
        value = found[0][len(found[1]) :]
        if found["basic"] and not is_basic_credential(value):
            return found[0]
        return found[1] + self._number("authorization", value)

    def _cookie(self, found: re.Match[str]) -> str:
        start = found.start("first") - found.start()
        return found[0][:start] + _CRUMB.sub(lambda crumb: self._replace_certain("cookie", crumb), found[0][start:])

    def _replace_certain(self, kind: str, found: re.Match[str]) -> str:
        """Replace values that certainly are secrets, except placeholders."""
        group = _group(found)
        is_none = is_non_secret(found, group) or _SIGN_IN_PLACEHOLDER.fullmatch(found[group]) or _FORM.search(found[0])
        return found[0] if is_none else self._hidden(kind, found, group)

    def _without_assigned(self, text: str) -> Iterator[str]:
        place = 0
        for found in find_assigned(_ASSIGNED, text):
            yield text[place : found.start()] + self._assigned(found)
            place = found.end()
        yield text[place:]

    def _assigned(self, found: re.Match[str]) -> str:
        group = _group(found)
        value, name = found[group], found["name"].lower()
        if (
            len(value) < _MIN_VALUE
            or is_non_secret(found, group)
            or _FORM.search(found.string[max(found.start() - _FORM_REACH, 0) : found.start()])
        ):
            return found[0]
        if FOLDER.match(value) if name == "pwd" else "pass" not in name and NUMBERED.fullmatch(value):
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


@cache
def _token_patterns(first: str) -> re.Pattern[str]:
    """Patterns of tokens that may begin with a character, each in a group named by its position."""
    fitting = (
        f"(?P<t{at}>{pattern})"
        for at, (_, pattern) in enumerate(_TOKENS)
        if pattern[0] == first or (not pattern[0].isalnum() and re.match(_FIRST.match(pattern)[0], first))  # type: ignore[index]
    )
    return re.compile(f"(?:{'|'.join((*fitting, '(?!)'))})(?![A-Za-z0-9_])")


def _repeated(kind: str, value: str) -> str:
    """Part of a secret that may be repeated: the password of a name and a password."""
    return (value.partition(":")[2] if kind in _WITH_NAME else value).strip(":\"'` ")


def _group(found: re.Match[str]) -> str:
    groups = found.groupdict()
    return next(name for name in _GROUPS if groups.get(name) is not None)


_PREFIX_GROUPS: Final = {
    "credentials": ("@", _CREDENTIALS),
    "webhook": ("hooks", _WEBHOOK),
    "signature": ("sig=", _SIGNATURE),
}
"""By kind: a lower-case literal of every match, and the pattern."""
_LABELLED: Final = {
    "authorization": (("authorization",), _AUTHORIZATION),
    "option": (("--",), _OPTION),
    "argument": (("-pass",), _PASS_ARGUMENT),
    "netrc password": (("login",), _NETRC),
    "variable": (("env", "arg", "setx"), _SET),
    "value": (("value",), _PAIR),
    "secure string": (("convertto-",), _SECURE),
    "SQL password": (("identified", "password"), _SQL),
    "element": (("</",), _ELEMENT),
    "spoken password": ((" is ",), SPOKEN),
    "sign-in": (("networkcredential",), SPOKEN),
}
"""By kind: lower-case literals, one of which every match contains, and the pattern."""
_KINDS: Final = frozenset(
    {kind for kind, _ in _TOKENS} | {kind for kind, _, _ in _COMMANDS.values()} | set(_PREFIX_GROUPS) | set(_LABELLED)
).union(("private key", "cookie", "value", "password"))
"""Kinds of secrets in masks; any other word in brackets could be a secret."""
