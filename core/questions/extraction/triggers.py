"""Errors of a loop, and triggers of error patterns; docs/extraction.md#triggers.

A trigger is a regex for the message of an error, and maybe the places in which it applies. It generalizes what varies,
such as numbers and paths. A trigger that also matches common messages of test runners and compilers keeps its names;
if that is not enough, it is limited to the test or function of the error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from core.base.masking import mask_secrets
from core.base.regexes import lazy_regex
from core.base.text import MatchedTexts, one_line, safe_matcher, visible_line
from core.records.debug_sessions import Failure
from core.records.loops import Iteration, Outcome
from core.retrieval.relevance import list_places
from core.retrieval.task import analyse_task
from core.sources.debug_sessions import split_location
from core.tasks.error_messages import Names, generalize_message, split_error

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
    """Return whether a type only repeats a message's: `RuntimeError` for a KeyError."""
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
        if sighting := parse_error(failure, where, iteration.number, iteration.at):
            yield sighting


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
    match = _COUNT.search(iteration.result[:_MAX_TEXT])
    return int(match[1]) if match else None


_MAX_PLACES: Final = 5
_MIN_LETTERS: Final = 10  # letters of a message, without quoted texts, below which the name of the error is kept
_MIN_NAME: Final = 3  # shorter names are common
_QUOTED: Final = lazy_regex(r"'[^']*'|\"[^\"]*\"|`[^`]*[`']|\u2018[^\u2019]*\u2019|<[^<>]*>")
_ASSERTED: Final = lazy_regex(r"Assertion `[^'\n]+' failed")
"""The message of `assert` in C, which quotes the expression, not its values."""
_WORD: Final = lazy_regex(r"[A-Za-z_$][\w$]*")
_SLOT: Final = lazy_regex(r"\{(\w+)\}")


class Trigger(Struct, frozen=True):
    """A regex for error messages and the places of its limit; "" if none is specific."""

    pattern: str
    places: tuple[str, ...] = ()


def describe_failure(failure: Failure) -> str:
    """Return a failure's message with the name of its error, as tools print it."""
    name, message = failure.error_type, failure.message.strip()
    return f"{name}: {message}" if name and not message.startswith(name) and message != name else message


def clean_message(failure: Failure) -> str:
    """Return a failure's message in one line, without secrets or hidden characters."""
    return visible_line(mask_secrets(one_line(describe_failure(failure))))


def make_trigger(failures: Sequence[Failure], known: Iterable[str] = ()) -> Trigger:
    """Return the first failure's trigger; others with the same fix may add places.

    `known` are other messages of the project.
    """
    failure = failures[0]
    is_compared = is_comparison(describe_failure(failure))
    is_short = sum(map(str.isalpha, _QUOTED.sub("", failure.message))) < _MIN_LETTERS
    text = describe_failure(failure) if is_compared or is_short else failure.message
    narrow = generalize_message(text, names=Names.ALL)
    if not is_compared:
        others = _other_messages(narrow, known)
        for names in (Names.SYMBOLS, Names.ALL):
            pattern = _bounded(generalize_message(text, names=names))
            if (
                pattern
                and is_specific(pattern)
                and not has_common_names(text)
                and not any(map(safe_matcher(pattern).matches, others))
            ):
                return Trigger(pattern)
    has_values = is_compared and not _ASSERTED.match(text)
    pattern = generalize_message(text, names=Names.NONE if has_values else Names.ALL)
    if not pattern:
        pattern = generalize_message(describe_failure(failure), names=Names.ALL)
    alike = [one for one in failures if one is failure or is_comparison(describe_failure(one)) is is_compared]
    places = dict.fromkeys(place for one in alike[:_MAX_PLACES] for place in _own_places(one, is_compared))
    if not places and (narrow := _bounded(narrow)) and is_distinctive(text) and not _is_common(narrow):
        return Trigger(narrow)
    return Trigger(_bounded(pattern), tuple(places)[:_MAX_PLACES]) if pattern and places else Trigger("")


def keeps_rules(trigger: Trigger, message: str = "", matched: Iterable[str] = ()) -> bool:
    """Return whether a trigger on file keeps the rules of `make_trigger`.

    `message` is the error that it was made of, "" if unknown; `matched` are the known messages that it matches.
    """
    pattern = trigger.pattern
    if trigger.places or not pattern:
        return True
    if not is_specific(pattern):
        is_usable = safe_matcher(pattern).problem is None and is_distinctive(_unescape(pattern))
        return is_usable and not _is_common(pattern)
    return not _other_messages(generalize_message(message, names=Names.ALL), matched)


def is_specific(pattern: str) -> bool:
    """Return whether a regex matches no common message and has words of its own."""
    regex = safe_matcher(pattern)
    if regex.problem is not None or is_comparison(_unescape(pattern)):
        return False
    return not _is_common(pattern)


def _other_messages(narrow: str, known: Iterable[str]) -> list[str]:
    """Return messages that the narrowest regex does not match; none if that is ""."""
    return [message for message in known if not safe_matcher(narrow).matches(message)] if narrow else []


def _unescape(pattern: str) -> str:
    return re.sub(r"\\(.)", r"\1", pattern)


def has_common_names(message: str) -> bool:
    """Return whether a message has a common form, and only common names."""
    names = {name for quoted in _QUOTED.findall(message) for name in _WORD.findall(quoted)}
    common = _lists()["name"] | _lists()["types"] | _lists()["values"]
    is_known = bool(names) and all(name in common or len(name) < _MIN_NAME for name in names)
    return is_known and _is_common(generalize_message(message))


def is_distinctive(message: str) -> bool:
    """Return whether a message has a word that is not common, nor of test frameworks."""
    common = {word for words in _lists().values() for word in words}
    return any(
        len(word) >= _MIN_NAME and word.lower() not in common and word not in common for word in _WORD.findall(message)
    )


@lru_cache(4096)
def _is_common(pattern: str) -> bool:
    return bool(pattern) and any(True for _ in _common_texts().matching(pattern))


def _bounded(pattern: str) -> str:
    """Return a regex that matches no longer word at its end."""
    return rf"{pattern}\b" if re.search(r"(?<!\\)[A-Za-z0-9_]$", pattern) and not pattern.endswith(r"\d+") else pattern


def is_comparison(message: str) -> bool:
    """Return whether a message only compares values, in words of test frameworks."""
    text = _QUOTED.sub(" ", message)
    words = {word.lower() for word in _WORD.findall(text)}
    asserting = _lists()["asserting"]
    return not words or (bool(words & asserting) and words <= asserting | _lists()["values"])


@cache
def common_errors() -> tuple[str, ...]:
    """Return the shipped common messages of test runners, compilers and programs."""
    return tuple(dict.fromkeys(message for line in _sections()["messages"] for message in _expand(line)))


@cache
def _common_texts() -> MatchedTexts:
    return MatchedTexts(common_errors())


def _own_places(failure: Failure, is_compared: bool) -> tuple[str, ...]:
    places = list_places(failure)
    named = [place for place in places if "::" in place]
    if is_compared:
        return tuple(named[:1])
    code = [place for place in named if failure.function and place.endswith(f"::{failure.function}")]
    return tuple((code or named or list(places))[:1])


@cache
def _lists() -> dict[str, frozenset[str]]:
    return {name: frozenset(" ".join(lines).split()) for name, lines in _sections().items() if name != "messages"}


@cache
def _sections() -> dict[str, list[str]]:
    """Read `common_errors.txt`: headings in brackets, lines, and `#` comments."""
    sections: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("common_errors.txt").read_text("utf-8").splitlines():
        if heading := re.fullmatch(r"\[(\w+)\]", line):
            sections[heading[1]] = []
        elif line.strip() and not line.startswith("# "):
            sections[next(reversed(sections))].append(line)
    return sections


def _expand(line: str) -> list[str]:
    """Replace a slot such as `{name}` by each word of the section of this name."""
    if (slot := _SLOT.search(line)) is None or slot[1] not in _sections():
        return [line]
    return [more for word in sorted(_lists()[slot[1]]) for more in _expand(line.replace(slot[0], word))]
