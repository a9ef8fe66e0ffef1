"""Masking of secrets in views, exports and logs (docs/safety.md#masks)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from core.redaction.names import MaskFormat, fold_case

_SHORTEST: Final = 8  # shortest text that can contain a recognisable secret
_HINTS: Final = (
    *("pass", "pwd", "secret", "token", "key", "auth", "credential", "cookie", "bearer", "basic", "identified"),
    *("curl", "mysql", "mariadb", "redis-cli", "ldap", "login", "setx", "://", ":\\/", "hooks.", "discord", "sig="),
    *("eyj", "-----begin", "convertto-", "sg."),
)  # lower-case hints; a text without any contains no secret other than a token
_LONG_RUN: Final = re.compile(r"[A-Za-z0-9_~.+/=|$%:-]{16}")  # part of every token with a known prefix
_CACHE_SIZE: Final = 8192
_MAX_CACHED: Final = 256  # longest text whose masked form is cached, since cells of tables are drawn repeatedly


def mask_secrets(text: str) -> str:
    """Replace secrets by masks: `[secret: GitHub token, 40 characters]`; idempotent."""
    if len(text) < _SHORTEST:
        return text
    return _masked_short(text) if len(text) <= _MAX_CACHED else replace_secrets(text, _mark)


def mask_values(value: Any) -> Any:
    """Return a JSON value with the secrets in its texts masked; keys stay."""
    if isinstance(value, str):
        return mask_secrets(value)
    if isinstance(value, Mapping):
        return {key: mask_values(inner) for key, inner in value.items()}
    return [mask_values(inner) for inner in value] if isinstance(value, list | tuple) else value


@lru_cache(_CACHE_SIZE)
def _masked_short(text: str) -> str:
    return replace_secrets(text, _mark)


def _mark(kind: str, secret: str) -> str:
    return f"[secret: {kind}, {len(secret):,} characters]"


def replace_secrets(text: str, mark: MaskFormat) -> str:
    """Replace every secret by `mark(kind, secret)`."""
    lower = fold_case(text)
    hinted = any(hint in lower for hint in _HINTS)
    if not hinted and not _LONG_RUN.search(text):
        return text
    # Compiling the patterns takes longer than most commands.
    from core.redaction.patterns import Search

    return Search().replace(text, mark) if hinted else Search().replace_tokens(text, mark)
