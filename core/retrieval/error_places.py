"""Places of an error: tests, functions and files in which a trigger applies (docs/extraction.md#triggers)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from core.base.text import safe_matcher

if TYPE_CHECKING:
    from core.records.debug_sessions import Failure
    from core.records.patterns import Pattern

_SEPARATOR: Final = "::"
_PARAMETERS: Final = re.compile(r"\[.{0,200}\]$")
MAX_PLACE: Final = 200  # characters of a place


def list_places(failure: Failure) -> tuple[str, ...]:
    """Return the places of a failure as `file::name` or `file`: its test, its function, then its files."""
    test = _PARAMETERS.sub("", failure.test_name.rpartition(_SEPARATOR)[2].rpartition(" > ")[2]).strip()
    test_file = failure.test_file or failure.test_name.partition(_SEPARATOR)[0] * (_SEPARATOR in failure.test_name)
    is_file = test == test_file
    named = [f"{test_file}{_SEPARATOR}{test}"] if test and not is_file else []
    named += [f"{failure.file}{_SEPARATOR}{failure.function}"] if failure.function else []
    places = (*named, failure.file, test_file)
    return tuple(dict.fromkeys(place[:MAX_PLACE] for place in places if place.strip(_SEPARATOR)))


def matches_failure(pattern: Pattern, failure: Failure) -> bool:
    """Return whether the trigger of an error pattern matches a failure, and the failure is in one of its places.

    A failure of unknown place needs the same message as the one from which the trigger was made.
    """
    texts = (failure.message, f"{failure.error_type}: {failure.message}" if failure.error_type else "")
    regex = safe_matcher(pattern.error_pattern) if pattern.error_pattern else None
    if regex is None or not any(regex.matches(text) for text in texts if text):
        return False
    own = list_places(failure)
    if not own and pattern.error_message:
        return any(f": {pattern.error_message}".endswith(f": {text}") for text in texts if text)
    return not pattern.places or any(_is_same(one, other) for one in pattern.places for other in own)


def occurs_in(places: Iterable[str], text: str) -> bool:
    """Return whether a text names the file and the test or function of one of the places."""
    return any(all(part.rpartition("/")[2] in text for part in place.split(_SEPARATOR) if part) for place in places)


def _is_same(one: str, other: str) -> bool:
    """Return whether two places are the same, maybe in different copies of the project."""
    (file, _, name), (other_file, _, other_name) = one.rpartition(_SEPARATOR), other.rpartition(_SEPARATOR)
    if not file and not other_file:
        return name == other_name or name.endswith(f"/{other_name}") or other_name.endswith(f"/{name}")
    is_same_file = file == other_file or file.endswith(f"/{other_file}") or other_file.endswith(f"/{file}")
    return name == other_name and is_same_file
