"""Fast search for texts without secrets: one RE2 pass instead of one per expression.

RE2 searches for all expressions at once, each in a form that matches more: without assertions and upper bounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Any, Final

from core.base.secret_names import NAME_HINTS
from core.base.value_shapes import REGEX

_PART: Final = re.compile(
    r"(?P<flags>\(\?[a-z]+\))|(?P<assertion>\(\?<?[=!])|(?P<open>\((?:\?(?:P<\w+>|\(\w+\)|[a-z-]*:))?)|(?P<close>\))"
    r"|(?P<anchor>\\Z|[$^])|\{(?P<least>\d+)(?:,\d*)?\}\+?|(?P<repeat>[*+?])\+?|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.",
    re.DOTALL,
)  # part of an expression of the module `re`
_MOST_REPEATS: Final = 20  # further repeats are not required, since counting makes the search slow
_ODD: Final = r"[^\t\n\f\r -~]"  # RE2 has other classes than `re` for these characters
_ANY: Final = r"(?s:.)*"


def may_contain_secret(text: str) -> bool:
    """Return False only if no expression for secrets matches; may return True for any text."""
    return not text.isascii() or _search()(text.encode()) is not None


@cache
def _search() -> Any:
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
    """Return an RE2 expression that matches in every plain ASCII text in which one of `re` does."""
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
