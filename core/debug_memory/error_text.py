"""Parse one error message: the name of the error, the message itself and the location."""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = re.compile(r"(?:Uncaught\s+)?(?:\w{1,40}\.){0,6}([A-Z]\w{0,60}(?:Error|Exception))(?:\s*\[\w+\])?:\s*")
_PATH: Final = r"[\w.@~+/\\:-]{0,200}\.[A-Za-z]{1,6}(?::\d{1,9}){0,2}"
_LOCATION: Final = re.compile(rf"\s+(?:(?:at|in|from)\s+({_PATH})|\(({_PATH})\))$")


def split_error(text: str) -> tuple[str, str, str]:
    """Split `TypeError: x is null at a.ts:7` into error name, message and location; missing parts are empty."""
    name = ""
    if found := _NAME.match(text):
        name, text = found[1], text[found.end() :]
    first_line = text.split("\n", 1)[0].rstrip()
    located = _LOCATION.search(first_line)
    if located:
        return name, first_line[: located.start()], located[1] or located[2]
    return name, text, ""
