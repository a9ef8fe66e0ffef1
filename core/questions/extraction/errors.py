"""Errors of a loop, from fields, result texts and the error log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Final

from msgspec import Struct

from core.records.debug_sessions import Failure
from core.records.loops import Iteration, Outcome
from core.retrieval.task import analyse_task
from core.sources.debug_sessions import split_location
from core.tasks.error_messages import generalize_message, split_error

ERROR_TYPES: Final = (
    *("TypeError", "ReferenceError", "AssertionError", "SyntaxError", "RuntimeError", "TimeoutError"),
    *("ValidationError", "Other"),
)
"""Error types of the pattern file format."""
_MAX_TEXT: Final = 2_000
_BY_TYPE: Final = {
    "TypeError": "AttributeError NullPointerException ClassCastException",
    "ReferenceError": "NameError UnboundLocalError ImportError ModuleNotFoundError",
    "SyntaxError": "IndentationError ParseError JSONDecodeError",
    "ValidationError": "ValueError ZodError SchemaError IllegalArgumentException",
    "RuntimeError": "IllegalStateException RangeError IndexError KeyError RecursionError UnhandledPromiseRejection",
}
_TYPES: Final = {name: error_type for error_type, names in _BY_TYPE.items() for name in names.split()}
"""Error type by the name of the exception in a programming language."""
_ASSERTION: Final = re.compile(r"\bexpected\b.{1,200}?\b(?:to|but|got|received|found)\b", re.IGNORECASE)
_PREAMBLE: Final = re.compile(r"\b(?:failing|failed|fails|errors?)\b[^:\n]{0,40}:\s+", re.IGNORECASE)
_REMARK: Final = re.compile(r"\s+\([^()'\"`]*\)$")
_COUNT: Final = re.compile(r"(?i)\b(\d{1,7})(?:\s+of\s+\d{1,7})?\s+(?:tests?\s+)?(?:failing|failed|errors?)\b")


class Sighting(Struct, frozen=True, kw_only=True):
    """One occurrence of an error."""

    error_type: str  # one of `ERROR_TYPES`
    message: str
    signature: str  # the generalised message; occurrences with the same signature are the same error
    where: str  # location for display: `iteration 2`
    file: str = ""
    function: str = ""
    iteration: int | None = None  # number of the iteration; None outside of one
    at: datetime | None = None


def classify_error_type(name: str, message: str) -> str:
    """Return the error type by the name of an error, or else by its message."""
    if name in ERROR_TYPES and name != "Other":
        return name
    if name in _TYPES:
        return _TYPES[name]
    if "Timeout" in name:
        return "TimeoutError"
    if _ASSERTION.search(message):
        return "AssertionError"
    return next((likely for likely in analyse_task(message).error_types if likely in ERROR_TYPES), "Other")


def is_named_in(error_type: str, message: str) -> bool:
    """Return whether an error type only repeats the error that a message names: `RuntimeError` for a KeyError."""
    name, text, _ = split_error(message)
    return bool(name) and error_type == classify_error_type(name, text)


def parse_error(failure: Failure, where: str, iteration: int | None, at: datetime | None) -> Sighting | None:
    """Parse a failure; None if its message is not specific."""
    text = failure.message.strip()[:_MAX_TEXT]
    name, message, location = split_error(text)
    signature = generalize_message(message)
    if not signature:
        return None
    named = failure.error_type not in ("", "Other")
    return Sighting(
        error_type=classify_error_type(failure.error_type if named else name, message),
        message=message,
        signature=signature,
        where=where,
        file=failure.file or split_location(location)[0],
        function=failure.function,
        iteration=iteration,
        at=at,
    )


def find_errors(iteration: Iteration) -> Iterator[Sighting]:
    """Yield the errors of an iteration from its fields, or else from its result text."""
    where = f"iteration {iteration.number}" if iteration.number is not None else "an iteration without a number"
    failures: Iterable[Failure] = iteration.failures
    if not failures and iteration.outcome is not Outcome.SUCCESS and (message := extract_message(iteration.result)):
        failures = (Failure(message=message),)
    for failure in failures:
        if found := parse_error(failure, where, iteration.number, iteration.at):
            yield found


@lru_cache(maxsize=65_536)
def extract_message(result: str) -> str:
    """Return the error message in a result such as `2 failing: TypeError: x`, or ""."""
    text = result.strip()[:_MAX_TEXT].split("\n", 1)[0]
    preamble = _PREAMBLE.search(text)
    if preamble:
        text = text[preamble.end() :]
    elif not split_error(text)[0]:
        return ""
    return _REMARK.sub("", text.strip())


def count_failing(iteration: Iteration) -> int | None:
    """Return the number of failed tests or checks of an iteration; None if unknown."""
    if iteration.results is not None and iteration.results.failed is not None:
        return iteration.results.failed
    if iteration.outcome is Outcome.SUCCESS:
        return 0
    found = _COUNT.search(iteration.result[:_MAX_TEXT])
    return int(found[1]) if found else None
