"""Find earlier fixes for an error (docs/debug-memory.md#known-fixes)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.text import safe_matcher
from core.records.debug_sessions import DebugSession, Failure
from core.sources.debug_sessions import split_location
from core.tasks.debug_index import ERROR_TYPE, DebugIndex, FixCounts, fix_key, matching_spellings, newest_first
from core.tasks.error_messages import Names, generalize_message, is_same_file, split_error

MAX_FIXES: Final = 5  # maximum number of sessions that are offered
_MAX_SAME_TYPE: Final = 2  # maximum number of sessions offered if only the error type is known, not the message
_SPECIFIC_LETTERS: Final = 12  # a message with fewer letters needs the same test or file to be the same error
_WILDCARD: Final = re.compile(r"\\\S\+?|\[[^]]*\]\+")  # wildcards and escapes of `generalize_message`
_MAX_COMPARED: Final = 200  # maximum number of sessions per error type that are compared, newest first


class KnownFix(Struct, frozen=True, kw_only=True):
    """Fix of a similar error in an earlier session, and its result."""

    session: DebugSession
    failure: Failure  # the most similar failure of the session
    cause: str = ""  # cause, category and strategy are from the analysis of that run, or ""
    category: str = ""
    strategy: str = ""
    fix: str = ""  # description of the fix, or ""
    worked: bool | None = None  # None if the result is unknown
    results: FixCounts = FixCounts()  # results of this fix in all sessions
    failed: tuple[str, ...] = ()  # other fixes that the session tried without success, newest first
    times: int = 1  # number of sessions with the same fix, of which `session` is the best match
    is_similar: bool = False  # whether the messages differ only in names, paths and numbers
    is_same_error: bool = False  # whether also names and types are equal, and the message or the place is specific
    is_same_file: bool = False  # whether the error occurred in the same file

    @property
    def has_advice(self) -> bool:
        """Whether more than the error is known."""
        return bool(self.fix or self.cause or self.strategy or self.failed)


def parse_error(error: Failure) -> Failure:
    """Return the failure with error type and location split off from its message."""
    name, message, location = split_error(error.message.strip())
    file, line = split_location(location)
    parsed = replace(error, error_type=error.error_type or name, message=message or error.message)
    return replace(parsed, file=file, line=line) if file and not error.file else parsed


def find_known_fixes(
    index: DebugIndex, errors: Sequence[Failure], file_pattern: str, session: DebugSession | None
) -> tuple[KnownFix, ...]:
    """Find fixes for some errors, best first, at most one per session, and each fix once."""
    found: dict[str, KnownFix] = {}
    for row in zip_longest(*(_find_fixes(index, error, file_pattern, session) for error in errors)):
        for fix in row:
            if fix is not None:
                found.setdefault(fix.session.id, fix)
    return _drop_same(found.values())[:MAX_FIXES]


def _drop_same(fixes: Iterable[KnownFix]) -> tuple[KnownFix, ...]:
    """Return the first of all equal fixes."""
    different: dict[tuple[object, ...], KnownFix] = {}
    for fix in fixes:
        different.setdefault(_fix_key(fix), fix)
    return tuple(different.values())


def _fix_key(fix: KnownFix) -> tuple[object, ...]:
    """Return what is equal for the same fix of the same error in several sessions."""
    failure = fix.failure
    error = failure.error_type, failure.message, failure.file or fix.session.file_path
    return fix_key(fix.fix) or fix.session.id, *error


def _find_fixes(
    index: DebugIndex, error: Failure, file_pattern: str, session: DebugSession | None
) -> tuple[KnownFix, ...]:
    """Return the most informative fix of each similar session, best first.

    A session is similar if its error message is, even with another error type, since agents name types differently. If
    no message is similar, a few sessions with the same error type are used, or more if the error has no usable message.
    """
    found: dict[str, KnownFix] = {}
    signature = generalize_message(error.message) if error.message else ""
    same_type = matching_spellings(filter(None, index.keys[ERROR_TYPE]), error.error_type)
    for error_type in index.keys[ERROR_TYPE] if signature else same_type:
        for known in index.find_similar(error_type, file_pattern, _MAX_COMPARED):
            if session is not None and known.id == session.id:
                continue
            fixes = [*_make_fixes(index, known, error_type, error, signature)]
            fixes += [found[known.id]] if known.id in found else []
            if usable := [fix for fix in fixes if fix.is_similar or fix.failure.error_type in same_type]:
                best = max(reversed(usable), key=_rank_in_session)
                failed: list[str] = []
                for fix in reversed(usable):
                    failed += (fix.fix if fix.worked is False else "", *fix.failed)
                others = tuple(text for text in dict.fromkeys(failed) if text and text != best.fix)
                found[known.id] = replace(best, failed=others)
    candidates = [fix for fix in found.values() if fix.is_similar] or list(found.values())
    limit = MAX_FIXES if (candidates and candidates[0].is_similar) or not signature else _MAX_SAME_TYPE
    newest = sorted(candidates, key=lambda fix: newest_first(fix.session))
    ranked = sorted(newest, key=_rank, reverse=True)
    times = Counter(map(_fix_key, ranked))
    return tuple(replace(fix, times=times[_fix_key(fix)]) for fix in _drop_same(ranked)[:limit])


def _make_fixes(
    index: DebugIndex, session: DebugSession, error_type: str, error: Failure, signature: str
) -> Iterator[KnownFix]:
    """Yield the fixes that a session made for errors of this type."""
    for run, worked in zip(session.executions, session.verdicts, strict=True):
        analysis = run.analysis
        fix = (run.fix.description or run.fix.diff_summary) if run.fix else ""
        for failure in run.failures:
            if failure.error_type == error_type:
                yield KnownFix(
                    session=session,
                    failure=failure,
                    cause=analysis.root_cause if analysis else "",
                    category=analysis.category if analysis else "",
                    strategy=analysis.strategy if analysis else "",
                    fix=fix,
                    worked=worked,
                    results=index.fix_results.of_fix(fix),
                    is_similar=bool(signature) and safe_matcher(signature).matches(failure.message),
                    is_same_error=_is_same_error(error, failure, session),
                    is_same_file=is_same_file(error.file, failure.file or session.file_path),
                )


def _is_same_error(error: Failure, failure: Failure, session: DebugSession) -> bool:
    """Return whether a failure is most likely the error itself; only numbers, paths and IDs may differ."""
    types = {one.error_type.casefold() for one in (error, failure)} - {"", "other"}
    signature = generalize_message(error.message, names=Names.ALL)
    is_alike = safe_matcher(signature).matches(failure.message) if signature else error.message == failure.message
    if len(types) > 1 or not is_alike:
        return False
    letters = sum(map(str.isalpha, _WILDCARD.sub("", signature)))
    same_test = bool(error.test_name) and error.test_name == failure.test_name
    return letters >= _SPECIFIC_LETTERS or same_test or is_same_file(error.file, failure.file or session.file_path)


def _rank_in_session(fix: KnownFix) -> tuple[bool, ...]:
    """Return the sort key in a session: worked, similar, untested fix, any fix."""
    is_untested_fix = bool(fix.fix) and fix.worked is None
    return fix.worked is True, fix.is_similar, is_untested_fix, bool(fix.fix), fix.is_same_file


def _rank(fix: KnownFix) -> tuple[bool, ...]:
    """Return the sort key: not failed, similar message, worked, same file, any fix."""
    return fix.worked is not False, fix.is_similar, fix.worked is True, fix.is_same_file, bool(fix.fix)
