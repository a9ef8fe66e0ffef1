"""Masking of secrets in views, exports and logs (docs/safety.md#masks)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache, lru_cache
from itertools import chain
from typing import Any, Final

from core.base.value_shapes import ASSIGNED_HINTS, NAME_HINTS, REGEX, MaskFormat, fold_case

_SHORTEST: Final = 8  # shortest text that can contain a recognisable secret
_HINTS: Final = (
    *("pass", "pwd", "secret", "token", "key", "auth", "credential", "cookie", "bearer", "basic", "identified"),
    *("curl", "mysql", "mariadb", "redis-cli", "ldap", "login", "setx", "://", ":\\/", "hooks.", "discord", "sig="),
    *("eyj", "-----begin", "convertto-", "sg."),
)  # lower-case hints; a text without any contains no secret other than a token
_LONG_RUN: Final = re.compile(r"[A-Za-z0-9_~.+/=|$%:-]{16}")  # part of every token with a known prefix
_MARGIN: Final = 512  # characters after a cut in which a secret ends
_TEXTS_AT_ONCE: Final = 100
MANY: Final = 3_000  # texts, of which masking those with hints takes longer than preparing a search for all secrets
_CACHE_SIZE: Final = 8192
_MAX_CACHED: Final = 256  # longest text whose masked form is cached, since cells of tables are drawn repeatedly


def mask_secrets(text: str) -> str:
    """Replace secrets by masks: `[secret: GitHub token, 40 characters]`; idempotent."""
    if len(text) < _SHORTEST:
        return text
    return _masked_short(text) if len(text) <= _MAX_CACHED else replace_secrets(text, _mark)


def mask_values(value: Any, name: str = "") -> Any:
    """Return a JSON value with the secrets in its texts masked; keys stay.

    `name` is the key of the value: a text under a name such as `db_password` is a secret like one that is assigned to
    it. In `{"name": "DB_PASSWORD", "value": ...}`, the name is that of the value.
    """
    if isinstance(value, str):
        return _mask_named(name, value)
    if isinstance(value, Mapping):
        named = value.get("name", value.get("key"))
        names = {"value": named} if isinstance(named, str) else {}
        return {key: mask_values(inner, str(names.get(key, key))) for key, inner in value.items()}
    return [mask_values(inner, name) for inner in value] if isinstance(value, list | tuple) else value


def _mask_named(name: str, value: str) -> str:
    masked = mask_secrets(value)
    lower = fold_case(name)
    if masked != value or not any(hint in lower for hint in ASSIGNED_HINTS):
        return masked
    assigned = f"{name}={json.dumps(value, ensure_ascii=False)}"
    shown = mask_secrets(assigned)
    if shown == assigned:
        return value
    try:
        return str(json.loads(shown.removeprefix(f"{name}=")))
    except ValueError:  # the name contains a part of the mask
        return _mark("value", value)


def clip(text: str, limit: int) -> str:
    """Return a text's start; mask a secret that the cut would make unrecognisable."""
    return text if len(text) <= limit else mask_secrets(text[: limit + _MARGIN])[:limit]


def find_secrets(texts: Collection[str]) -> dict[str, str]:
    """Mask texts with secrets, by text; many plain ones take a tenth of the time."""
    rest = list(texts)
    if has_hint("\n".join(rest)):
        rest.sort(key=has_hint)  # together, those with hints are in few parts
    found: dict[str, str] = {}
    for start in range(0, len(rest), _TEXTS_AT_ONCE):
        part = rest[start : start + _TEXTS_AT_ONCE]
        if not has_certainly_none("\n".join(part), is_one_of_many=len(texts) > MANY):
            found.update((text, masked) for text in part if (masked := mask_secrets(text)) != text)
    return found


def has_certainly_none(lines: str, *, is_one_of_many: bool = False) -> bool:
    """Return whether no line has a secret, by one search; False means unknown.

    `is_one_of_many` is whether more than `MANY` texts are searched, and a search for all secrets may be prepared.
    """
    if has_hint(lines):
        if not is_one_of_many:
            return False
        from core.base.masking import may_contain_secret

        return not may_contain_secret(lines)
    if not _LONG_RUN.search(lines):
        return True
    from core.base.secret_patterns import Search, may_contain_token

    # Tokens never span lines, and no rule for them reads the text around.
    return not may_contain_token(lines) or Search().replace_tokens(lines, _mark) == lines


@lru_cache(_CACHE_SIZE)
def _masked_short(text: str) -> str:
    return replace_secrets(text, _mark)


def _mark(kind: str, secret: str) -> str:
    return f"[secret: {kind}, {len(secret):,} characters]"


def replace_secrets(text: str, mark: MaskFormat) -> str:
    """Replace every secret by `mark(kind, secret)`."""
    hinted = has_hint(text)
    if not hinted and not _LONG_RUN.search(text):
        return text
    # Compiling the patterns takes longer than most commands.
    from core.base.secret_patterns import Search

    return Search().replace(text, mark) if hinted else Search().replace_tokens(text, mark)


def has_hint(text: str) -> bool:
    """Return whether a text contains what secrets other than tokens have near them."""
    return any(map(fold_case(text).__contains__, _HINTS))  # a generator takes twice as long


_PART: Final = re.compile(
    r"(?P<flags>\(\?[a-z]+\))|(?P<assertion>\(\?<?[=!])|(?P<open>\((?:\?(?:P<\w+>|\(\w+\)|[a-z-]*:))?)|(?P<close>\))"
    r"|(?P<anchor>\\Z|[$^])|\{(?P<least>\d+)(?:,\d*)?\}\+?|(?P<repeat>[*+?])\+?|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.",
    re.DOTALL,
)  # part of an expression of the module `re`
_MOST_REPEATS: Final = 20  # further repeats are not required, since counting makes the search slow
_ODD: Final = r"[^\t\n\f\r -~]"  # RE2 has other classes than `re` for these characters
_ANY: Final = r"(?s:.)*"


def may_contain_secret(text: str) -> bool:
    """Return False only if no expression for secrets matches; True proves nothing."""
    return not text.isascii() or _search()(text.encode()) is not None


@cache
def _search() -> Any:
    """Search for all expressions at once, loosened: no assertions, no upper bounds."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    return re2.compile("|".join(_list_expressions()).encode(), options).search


def _list_expressions() -> Iterator[str]:
    # Loading the patterns takes several milliseconds.
    from core.base.secret_patterns import COMMAND_RULES, RULES, TOKEN_FORMATS

    yield from (_ODD, r"\[secret: ", "-----BEGIN")
    # Sorted, so that RE2 can share what several tokens begin with.
    yield f"(?:^|[^A-Za-z0-9]){loosen('|'.join(sorted(chain.from_iterable(TOKEN_FORMATS.values()))))}"
    yield from (loosen(REGEX.sources[name]) for name in RULES)
    for command in COMMAND_RULES:
        yield f"{loosen(REGEX.sources[f'{command}_command'])}{_ANY}{loosen(REGEX.sources[f'{command}_option'])}"
    yield f"(?i:{'|'.join(NAME_HINTS)}){_ANY}{loosen(REGEX.sources['random_run'])}"


def loosen(expression: str) -> str:
    """Return an RE2 expression that matches every plain ASCII text matched by `re`."""
    parts: list[str] = []
    depth = 0  # number of open groups, from an assertion on
    for part in _PART.finditer(expression):
        if depth or part["assertion"]:
            depth += bool(part["open"] or part["assertion"]) - bool(part["close"])
        elif part["open"]:
            parts.append(part[0] if part[0].endswith((":", "(")) else "(?:")
        elif part["least"]:
            parts.append(f"{{{min(int(part['least']), _MOST_REPEATS)},}}")
        elif not part["anchor"]:
            parts.append(part["repeat"] or part[0])
    return f"(?:{''.join(parts)})"
