"""Secrets in texts, found by their shape: one set of rules for views, exports and logs.

What stands in a file is never changed; only what is shown or passed on.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from core.redaction.names import MaskFormat, fold_case

_SHORTEST: Final = 8
"""Characters of a text that could hold a secret and what tells that it is one."""
_HINTS: Final = (
    *("pass", "pwd", "secret", "token", "key", "auth", "credential", "cookie", "bearer", "basic", "identified"),
    *("curl", "mysql", "mariadb", "redis-cli", "ldap", "login", "setx", "://", ":\\/", "hooks.", "discord", "sig="),
    *("eyj", "-----begin", "convertto-", "sg."),
)
"""A text without any of them, in lower case, holds no secret that the rules know."""
_LONG_RUN: Final = re.compile(r"[A-Za-z0-9_~.+/=|$%:-]{16}")
"""What every token with a known prefix contains."""
_KEPT: Final = 8192
_MAX_KEPT: Final = 256
"""Characters of a text whose masked form is kept: cells of tables are drawn again and again."""


def mask_secrets(text: str) -> str:
    """`text` with a mark such as `[secret: GitHub token, 40 characters]` in the place of every secret.

    What is masked is not masked again. About 1 us a short text that holds nothing like a secret.
    """
    if len(text) < _SHORTEST:
        return text
    return _masked_short(text) if len(text) <= _MAX_KEPT else replace_secrets(text, _mark)


@lru_cache(_KEPT)
def _masked_short(text: str) -> str:
    return replace_secrets(text, _mark)


def _mark(kind: str, secret: str) -> str:
    return f"[secret: {kind}, {len(secret):,} characters]"


def replace_secrets(text: str, mark: MaskFormat) -> str:
    """`text` with `mark` of it in the place of every secret."""
    lower = fold_case(text)
    hinted = any(hint in lower for hint in _HINTS)
    if not hinted and not _LONG_RUN.search(text):
        return text
    # Making the shapes takes longer than most commands.
    from core.redaction.patterns import Search

    return Search().replaced(text, mark) if hinted else Search().only_tokens(text, mark)
