"""Patterns of secrets and the search for them; call `core.base.masking`.

Every repeat is bounded or follows literal text, so that the search of long texts takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Final

from core.base.regexes import read_blocks
from core.base.value_shapes import (
    ASSIGNED_HINTS,
    NAME_HINTS,
    NEAR,
    REGEX,
    MaskFormat,
    find_assigned,
    fold_case,
    is_basic_credential,
    is_credential,
    is_non_secret,
    is_placeholder,
    is_sample_password,
    is_spoken_password,
    is_unique_value,
)

_FOUND: Final = re.compile("«\ue000(\\d{1,6})»")  # temporary mark of a found secret during the search


TOKEN_FORMATS: Final = read_blocks(Path(__file__).with_name("token_formats.yaml"))  # patterns by kind of secret
_TOKENS: Final = tuple((kind, pattern) for kind, patterns in TOKEN_FORMATS.items() for pattern in patterns)
_TOKEN_RUN: Final = re.compile(r"[A-Za-z0-9_~.+/=|$%:-]{16,}")
_TOKEN_START: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]")
_PREFIX: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-](?![?*+{]))*")  # literal beginning of a format
MIN_UNPREFIXED: Final = 36  # length of the shortest token whose format does not begin with a literal

_GROUPS: Final = ("escaped", "double", "single", "bare")
_COMMANDS: Final = (
    (("mysql", "mariadb"), "database password", "mysql"),
    (("curl",), "user and password", "curl"),
    (("sshpass",), "password", "sshpass"),
    (("login",), "password", "login"),
    (("redis-cli",), "password", "redis"),
    (("ldap",), "password", "ldap"),
)  # hints, kind of secret, and prefix of the expressions for a command up to its end and for its option
_MIN_VALUE: Final = 3
_LONG: Final = 16  # length that words of code and prose rarely have
_FORM_REACH: Final = 16
_MAX_REPEATED: Final = 64
_WITH_NAME: Final = ("credentials", "user and password")


class Search:
    """Search of one text; replaces secrets by temporary marks that no rule matches."""

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] = []

    def replace(self, text: str, mark: MaskFormat) -> str:
        if "[secret: " in text:
            text = REGEX["mask"].sub(lambda known: self._number("", known[0]) if known[1] in _KINDS else known[0], text)
        if "-----BEGIN" in text:
            text = "".join(self._without_keys(text))
        lower = fold_case(text)
        text = self._without_tokens(text)
        for kind, hint in _AFTER_PREFIX.items():
            if hint in lower:
                text = REGEX[kind].sub(partial(self._after_prefix, kind), text)
        if "cookie" in lower:
            text = REGEX["cookie"].sub(self._cookie, text)
        for literals, kind, command in _COMMANDS:
            if any(literal in lower for literal in literals):
                text = REGEX[f"{command}_command"].sub(partial(self._signed_in, kind, command), text)
        for kind, (hints, name) in _LABELLED.items():
            if any(hint in lower for hint in hints):
                text = REGEX[name].sub(partial(self._replace_certain, kind), text)
        if any(hint in lower for hint in _PROSE_HINTS):
            text = REGEX["prose"].sub(self._spoken, text)
        if "bearer" in lower or "basic" in lower:
            text = REGEX["bearer"].sub(self._authorized, text)
        if any(hint in lower for hint in ASSIGNED_HINTS):
            text = "".join(self._without_assigned(text))
        if any(hint in lower for hint in NAME_HINTS):
            text = REGEX["random_run"].sub(partial(self._random, text), text)
        return self._insert_masks(text, mark)

    def _number(self, kind: str, secret: str) -> str:
        self._found.append((kind, secret))
        return f"«\ue000{len(self._found) - 1}»"

    def _after_prefix(self, kind: str, found: re.Match[str]) -> str:
        secret = found[0][len(found[1]) :]
        sample = is_sample_password(secret.partition(":")[2]) if kind == "credentials" else is_placeholder(secret)
        return found[0] if sample and kind != "signature" else found[1] + self._number(kind, secret)

    def replace_tokens(self, text: str, mark: MaskFormat) -> str:
        """Replace every token that has a known prefix."""
        return self._insert_masks(self._without_tokens(text), mark)

    def _insert_masks(self, text: str, mark: MaskFormat) -> str:
        def shown(found: re.Match[str]) -> str:
            number = int(found[1])
            if number >= len(self._found):
                return found[0]
            kind, secret = self._found[number]
            return mark(kind, secret) if kind else secret

        return _FOUND.sub(shown, self._without_repeats(text)) if self._found else text

    def _without_tokens(self, text: str) -> str:
        return _TOKEN_RUN.sub(lambda run: "".join(self._tokens(text, *run.span())), text)

    def _tokens(self, text: str, place: int, end: int) -> Iterator[str]:
        """Yield the parts of a run, with tokens at the start of a word replaced."""
        at = place
        while start := _TOKEN_START.search(text, at, end):
            at = start.end()
            found = _match_token(text, start.start(), end)
            if found and not is_placeholder(found[0]):
                kind = _TOKENS[_format_number(found)][0]
                yield text[place : start.start()] + self._number(kind, found[0])
                place = at = found.end()
        yield text[place:end]

    def _random(self, text: str, run: re.Match[str]) -> str:
        """Replace a random-looking value if the words before it name a credential."""
        if not is_credential(run[0], text[max(run.start() - NEAR, 0) : run.start()]):
            return run[0]
        return self._number("value", run[0])

    def _without_repeats(self, text: str) -> str:
        """Replace further occurrences of the secrets found so far."""
        values = {_repeated(kind, value): kind for kind, value in self._found if kind}
        known = [value for value in values if is_unique_value(value) and value in text]
        if not known:
            return text
        known.sort(key=len, reverse=True)
        again = re.compile("(?<![A-Za-z0-9])(?:" + "|".join(map(re.escape, known[:_MAX_REPEATED])) + ")(?![A-Za-z0-9])")
        return again.sub(lambda found: self._number(values[found[0]], found[0]), text)

    def _without_keys(self, text: str) -> Iterator[str]:
        """Yield the parts outside of private keys; a key may lack its end marker."""
        place = 0
        while block := REGEX["key_block"].search(text, place):
            end = REGEX["key_end"].search(text, block.end())
            stop = end.end() if end else len(text)
            if end and not text[block.end() : end.start()].strip("- \n"):
                yield text[place:stop]
                place = stop
                continue
            yield text[place : block.start()] + self._number("private key", text[block.start() : stop])
            place = stop
        yield text[place:]

    def _signed_in(self, kind: str, name: str, command: re.Match[str]) -> str:
        return REGEX[f"{name}_option"].sub(partial(self._replace_certain, kind), command[0])

    def _authorized(self, found: re.Match[str]) -> str:
        value = found[0][len(found[1]) :]
        if found["basic"] and not is_basic_credential(value):
            return found[0]
        return found[1] + self._number("authorization", value)

    def _spoken(self, found: re.Match[str]) -> str:
        value = found["bare"].rstrip(".,;:")
        certain = found["password"] is not None and found["verb"] is not None
        if is_non_secret(found, "bare") or not is_spoken_password(value, is_certain=certain):
            return found[0]
        start = found.start("bare") - found.start()
        return found[0][:start] + self._number("password", value) + found["bare"][len(value) :]

    def _cookie(self, found: re.Match[str]) -> str:
        start = found.start("first") - found.start()
        return found[0][:start] + REGEX["crumb"].sub(
            lambda crumb: self._replace_certain("cookie", crumb), found[0][start:]
        )

    def _replace_certain(self, kind: str, found: re.Match[str]) -> str:
        """Replace values that are certainly secrets, except placeholders."""
        group = _group(found)
        is_none = (
            is_non_secret(found, group)
            or REGEX["sign_in_placeholder"].fullmatch(found[group])
            or REGEX["harmless_token"].search(found[0])
        )
        return found[0] if is_none else self._hidden(kind, found, group)

    def _without_assigned(self, text: str) -> Iterator[str]:
        place = 0
        for found in find_assigned(REGEX["assigned"], text):
            yield text[place : found.start()] + self._assigned(found)
            place = found.end()
        yield text[place:]

    def _assigned(self, found: re.Match[str]) -> str:
        group = _group(found)
        value, name = found[group], found["name"].lower()
        if (
            len(value) < _MIN_VALUE
            or is_non_secret(found, group)
            or REGEX["harmless_token"].search(found.string[max(found.start() - _FORM_REACH, 0) : found.start()])
        ):
            return found[0]
        if REGEX["folder"].match(value) if name == "pwd" else "pass" not in name and REGEX["numbered"].fullmatch(value):
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


def _match_token(text: str, start: int, end: int) -> re.Match[str] | None:
    """Match the first token format at a place; compile only those that may match."""
    found = []
    if text.startswith(_prefixes(text[start]), start, end):
        found.append(_token_patterns(text[start]).match(text, start, end))
    if end - start >= MIN_UNPREFIXED:
        found.append(_token_patterns("").match(text, start, end))
    return min(filter(None, found), key=_format_number, default=None)


def _format_number(found: re.Match[str]) -> int:
    """Return the place in `_TOKENS` of the format that matched."""
    return int((found.lastgroup or "_0")[1:])


def may_contain_token(text: str) -> bool:
    """Return whether a text has a prefixed token, or a run as long as one without."""
    starts, long_run = _anywhere()
    if long_run.search(text):
        return True
    places = ((found.start(), found.end(1)) for found in starts.finditer(text))
    return any(_match_token(text, start, end) for start, end in places)


@cache
def _anywhere() -> tuple[re.Pattern[str], re.Pattern[str]]:
    firsts = sorted({pattern[0] for _, pattern in _TOKENS if pattern[0].isalnum()})
    starts = "|".join(re.escape(prefix) for first in firsts for prefix in dict.fromkeys(_prefixes(first)))
    run = _TOKEN_RUN.pattern.partition("{")[0]
    # Nothing is consumed, so that a prefix inside another one is found, too.
    return re.compile(f"(?<![A-Za-z0-9])(?=(?:{starts}))(?=({run}+))"), re.compile(f"{run}{{{MIN_UNPREFIXED}}}")


@cache
def _prefixes(first: str) -> tuple[str, ...]:
    """Return the literal beginnings of formats that begin with a character."""
    return tuple(_PREFIX.match(pattern)[0] for _, pattern in _TOKENS if pattern[0] == first)  # type: ignore[index]


@cache
def _token_patterns(first: str) -> re.Pattern[str]:
    """Return formats that begin with `first` in numbered groups; "" means no literal."""
    fitting = (
        f"(?P<t{at}>{pattern})"
        for at, (_, pattern) in enumerate(_TOKENS)
        if (pattern[0] if pattern[0].isalnum() else "") == first
    )
    return re.compile(f"(?:{'|'.join(fitting)})(?![A-Za-z0-9_])")


def _repeated(kind: str, value: str) -> str:
    """Return the part of a secret to search elsewhere: without the name of the user."""
    return (value.partition(":")[2] if kind in _WITH_NAME else value).strip(":\"'` ")


def _group(found: re.Match[str]) -> str:
    groups = found.groupdict()
    return next(name for name in _GROUPS if groups.get(name) is not None)


_AFTER_PREFIX: Final = {"credentials": "@", "webhook": "hooks", "signature": "sig="}  # by kind: a literal of each match
_LABELLED: Final = {
    "authorization": (("authorization",), "authorization"),
    "option": (("--",), "option"),
    "argument": (("-pass",), "pass_argument"),
    "netrc password": (("login",), "netrc"),
    "variable": (("env", "arg", "setx"), "set"),
    "value": (("value",), "pair"),
    "secure string": (("convertto-",), "secure"),
    "SQL password": (("identified", "password"), "sql"),
    "element": (("</",), "element"),
    "spoken password": ((" is ",), "spoken"),
    "sign-in": (("networkcredential",), "spoken"),
}  # by kind: lower-case literals, one of which every match contains, and the name of the expression
_PROSE_HINTS: Final = ("pass", "secret", "token", "key")
_KINDS: Final = frozenset(
    {kind for kind, _ in _TOKENS} | {kind for _, kind, _ in _COMMANDS} | _AFTER_PREFIX.keys() | _LABELLED.keys()
).union(("private key", "cookie", "value", "password"))
"""Kinds of secrets in masks; any other word in brackets could be a secret."""
COMMAND_RULES: Final = tuple(name for _, _, name in _COMMANDS)  # prefixes of expressions, as in `_COMMANDS`
RULES: Final = (*_AFTER_PREFIX, *(name for _, name in _LABELLED.values()), "cookie", "bearer", "prose", "assigned")
"""Names of the other expressions; only a text that one of all expressions matches contains a secret."""
