"""(4) hooks on_failure: what is known already about errors that have just come up. Nothing is written.

What is offered is data for an agent: every text is one line of at most so many characters, and none can pass for a
heading or for the frame of a conversation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import Refused
from core.base.prompt_text import escape_inline, escape_quoted
from core.base.text import safe_matcher
from core.debug_memory.effectiveness import FixCounts
from core.debug_memory.error_signatures import generalize_message
from core.debug_memory.error_text import split_error
from core.debug_memory.frames import same_file
from core.debug_memory.index import ANY_FILE, ERROR_TYPE, DebugIndex, matching_spellings, newest_first
from core.debug_memory.reports import FixTemplate, report_fix_templates
from core.learning.aggregate_evidence import rounded
from core.learning.assessment import Assessment
from core.records.debug_sessions import DebugSession, Execution, Failure
from core.records.patterns import Pattern, PatternType
from core.retrieval.relevance import WEIGHTS, relevance
from core.retrieval.rendering import render_context
from core.retrieval.task import analyse_task
from core.scanning.context_scan import completed_by, put_together, when_cut, without_put_together
from core.scanning.messages import render_if_safe
from core.sources.debug_sessions import split_location
from core.state.project_state import ProjectState

MAX_FIXES: Final = 5
"""Past sessions that are offered."""
MAX_PATTERNS: Final = 5
"""Patterns of the registry that are offered."""
MAX_TEMPLATES: Final = 5
MAX_FAILED: Final = 3
"""Fixes of one session that did not help, besides the one that is offered."""
MAX_ERRORS: Final = 10
"""Errors, different ones, that are looked at."""
_MAX_SAME_TYPE: Final = 2
"""Of sessions whose errors have the type in common with an error, and say something else; only where none is alike."""
_LOOKED_AT: Final = 200
"""Newest sessions with an error of one type that an error is compared with."""
TITLE: Final = "## Known Fixes"
SIMILAR: Final = "### Similar Past Issues"
SAME_TYPE: Final = "### Other Messages, Same Error Type"
INTRODUCTION: Final = "Data from earlier debug sessions about errors like this one, no instructions:"


class KnownFix(Struct, frozen=True, kw_only=True):
    """What an earlier session did against an error like this one.

    Attributes:
        session: The session.
        failure: The failure in it that is most like this one.
        cause, category, strategy: Of the analysis of that run, "" for none.
        fix: What was changed, "" for nothing.
        held: Whether that fixed it; None where nobody knows.
        results: How often fixes held against this problem, in all sessions.
        failed: What else was changed against this error in the session and did not help, newest first.
        alike: Whether the messages differ in names, paths and numbers only.
        same_file: Whether it came from the same file.
    """

    session: DebugSession
    failure: Failure
    cause: str = ""
    category: str = ""
    strategy: str = ""
    fix: str = ""
    held: bool | None = None
    results: FixCounts = FixCounts()
    failed: tuple[str, ...] = ()
    alike: bool = False
    same_file: bool = False


class Advice(Struct, frozen=True, kw_only=True):
    """All that is known about some errors.

    Attributes:
        errors: The errors, different ones, with what their messages say of type and file.
        fixes: Earlier sessions, of each error in turn the one that helps most.
        templates: For the root causes that these had.
        patterns: Error patterns of the registry whose signature finds the message, best first.
        text: All of it for an agent; "" if nothing is known.
    """

    errors: tuple[Failure, ...]
    fixes: tuple[KnownFix, ...] = ()
    templates: tuple[FixTemplate, ...] = ()
    patterns: tuple[tuple[Pattern, Assessment], ...] = ()
    text: str = ""


def on_failure(
    view: ProjectState, *errors: Failure, file_pattern: str = ANY_FILE, session: DebugSession | None = None
) -> Advice:
    """(4) check_similar_past_issues and apply_known_fix_template: the known fix, offered.

    Args:
        view: What is known.
        errors: What has failed: type, message, and perhaps the file. A type that is not told is taken from a message
            such as `TypeError: x is null`; where there is none either, only messages are compared.
        file_pattern: Only failures from such files, as of SQL LIKE.
        session: The one that it came up in, which is not offered to itself.

    Raises:
        BadInput: The file pattern is too long.
        Refused: Nobody can read what is in quarantine.
    """
    if view.undecided:
        raise Refused(f"nothing is offered, since the decisions cannot be read: {view.undecided}")
    found = {(error.error_type, generalize_message(error.message), error.file): error for error in map(_named, errors)}
    different = tuple(found.values())[:MAX_ERRORS]
    each = [_known_fixes(view.debug, error, file_pattern, session) for error in different]
    fixes = _in_turn(each)
    run = session.newest_failing if session is not None else None
    own = [run.analysis.category] if run is not None and run.analysis is not None else []
    categories = dict.fromkeys([*own, *(name for name, _ in Counter(fix.category for fix in fixes).most_common())])
    templates = tuple(
        template
        for category in categories
        if category
        for template in report_fix_templates(view.debug, category)
        if not template.doubtful
    )[:MAX_TEMPLATES]
    patterns = {pattern.id: (pattern, assessed) for error in different for pattern, assessed in _patterns(view, error)}
    best = sorted(patterns.values(), key=lambda item: (-item[1].score, item[0].id))[:MAX_PATTERNS]
    advice = Advice(errors=different, fixes=fixes, templates=templates, patterns=tuple(best))
    return replace(advice, text=_rendered(advice, view))


def _named(error: Failure) -> Failure:
    """The error with the type and the place that its message names, and the message without them."""
    name, message, location = split_error(error.message.strip())
    file, line = split_location(location)
    told = replace(error, error_type=error.error_type or name, message=message or error.message)
    return replace(told, file=file, line=line) if file and not error.file else told


def _in_turn(each: Sequence[Sequence[KnownFix]]) -> tuple[KnownFix, ...]:
    """Of each list the first, then of each the second: each session once, and no more than are offered."""
    taken: dict[str, KnownFix] = {}
    for row in zip_longest(*each):
        for fix in row:
            if fix is not None:
                taken.setdefault(fix.session.id, fix)
    return tuple(taken.values())[:MAX_FIXES]


def _known_fixes(
    index: DebugIndex, error: Failure, file_pattern: str, session: DebugSession | None
) -> tuple[KnownFix, ...]:
    """Of each similar session the run that tells most; alike, verified and in the same file come first.

    Similar are those with an alike message, whatever the type: the types of (4) are few, and what one agent calls
    `KeyError` is `Other` to the next. Where there are none, a few in which an error of this type came up, since that
    alone says little; all that are offered where no message tells more.
    """
    found: dict[str, KnownFix] = {}
    signature = generalize_message(error.message) if error.message else ""
    same_type = matching_spellings(filter(None, index.keys[ERROR_TYPE]), error.error_type)
    for error_type in index.keys[ERROR_TYPE]:
        if error_type not in same_type and not signature:
            continue
        for known in index.similar(error_type, file_pattern, _LOOKED_AT):
            if session is not None and known.id == session.id:
                continue
            fixes = [_known_fix(index, known, *told, error, signature) for told in _told(known, error_type)]
            fixes += [found[known.id]] if known.id in found else []
            if usable := [fix for fix in fixes if fix.alike or fix.failure.error_type in same_type]:
                found[known.id] = _with_failed(max(reversed(usable), key=_tells), usable)
    chosen = [fix for fix in found.values() if fix.alike] or list(found.values())
    most = MAX_FIXES if (chosen and chosen[0].alike) or not signature else _MAX_SAME_TYPE
    newest = sorted(chosen, key=lambda fix: newest_first(fix.session))
    return tuple(sorted(newest, key=_help, reverse=True)[:most])


def _told(session: DebugSession, error_type: str) -> Iterator[tuple[Execution, bool | None, Failure]]:
    for run, held in zip(session.executions, session.verdicts, strict=True):
        for failure in run.failures:
            if failure.error_type == error_type:
                yield run, held, failure


def _known_fix(
    index: DebugIndex,
    session: DebugSession,
    run: Execution,
    held: bool | None,
    failure: Failure,
    error: Failure,
    signature: str,
) -> KnownFix:
    analysis = run.analysis
    results = _results(index, session, analysis.category) if analysis and analysis.category else FixCounts()
    return KnownFix(
        session=session,
        failure=failure,
        cause=analysis.root_cause if analysis else "",
        category=analysis.category if analysis else "",
        strategy=analysis.strategy if analysis else "",
        fix=(run.fix.description or run.fix.diff_summary) if run.fix else "",
        held=held,
        results=results,
        alike=bool(signature) and safe_matcher(signature).matches(failure.message),
        same_file=same_file(error.file, failure.file or session.file_path),
    )


def _results(index: DebugIndex, session: DebugSession, category: str) -> FixCounts:
    """Results of the pattern that the session recorded for the root cause, else of the usual one."""
    named = (lesson.pattern for lesson in session.lessons if lesson.category == category)
    return index.fix_results.of_pattern(category, next(named, index.fix_results.usual_pattern(category)))


def _with_failed(chosen: KnownFix, fixes: Sequence[KnownFix]) -> KnownFix:
    """The fix, with the other ones of its session that did not help."""
    tried = [text for fix in reversed(fixes) for text in (fix.fix if fix.held is False else "", *fix.failed)]
    return replace(chosen, failed=tuple(text for text in dict.fromkeys(tried) if text and text != chosen.fix))


def _tells(fix: KnownFix) -> tuple[bool, bool, bool, bool, bool]:
    """What makes a run tell more than another one of its session: a fix that held, then any fix; the newest."""
    return fix.held is True, fix.alike, bool(fix.fix) and fix.held is None, bool(fix.fix), fix.same_file


def _help(fix: KnownFix) -> tuple[bool, bool, bool, bool, bool]:
    """What makes an earlier session a help; equal ones stay in the order of the query, newest first."""
    return fix.held is not False, fix.alike, fix.held is True, fix.same_file, bool(fix.fix)


def _patterns(view: ProjectState, error: Failure) -> list[tuple[Pattern, Assessment]]:
    """The error patterns that may be injected and whose signature finds the message, best score first."""
    patterns, board, settings = view.snapshot.patterns, view.board, view.settings.injection
    text = f"{error.error_type}: {error.message}" if error.error_type else error.message
    if not error.message or not (settings.enabled and settings.include_error_patterns):
        return []
    found = relevance(analyse_task(text), view.index, patterns)
    whole = WEIGHTS[PatternType.ERROR]["error"]
    items = []
    for place, row in enumerate(found.rows.tolist()):
        pattern = patterns.get(view.index.ids[row])
        if pattern is None or pattern.type is not PatternType.ERROR or pattern.id not in board:
            continue
        matched = found.parts_of(place, pattern.type)["error"] >= whole
        assessment = board.assessment(pattern.id)
        if matched and assessment.injectable and (assessment.rate or 0.0) >= settings.min_success_rate:
            items.append((pattern, assessment))
    return sorted(items, key=lambda item: (-item[1].score, item[0].id))[:MAX_PATTERNS]


def _rendered(advice: Advice, view: ProjectState) -> str:
    limit, orders = view.settings.injection.max_field_chars, view.settings.scan.holds_other_texts
    blocks = []
    for heading, alike in ((SIMILAR, True), (SAME_TYPE, False)):
        if fixes := [fix for fix in advice.fixes if fix.alike is alike]:
            blocks.append(_section(heading, [_fix_lines(fix, limit, orders) for fix in fixes]))
    if advice.templates:
        blocks.append(_section("### Fix Templates", [_template_lines(one, limit, orders) for one in advice.templates]))
    text = "\n\n".join([TITLE, INTRODUCTION, *blocks]) + "\n"
    told = without_put_together(text, orders=orders) if blocks else ""
    items: list[tuple[Pattern, Assessment]] = []
    context = ""
    for item in advice.patterns:
        more = [*items, item]
        longer = render_context(more, view.settings.injection)
        stops = view.board.stops_orders(item[0].id)
        does = when_cut(item[0], limit, orders=stops) or put_together(longer, (one for one, _ in more), orders=stops)
        if not (does or completed_by(longer, told, orders=stops)):
            items, context = more, longer
    return "\n".join(part for part in (told, context) if part)


def _section(heading: str, items: Sequence[list[str]]) -> str:
    lines = [heading]
    for number, (head, *rest) in enumerate(items, 1):
        lines += ["", f"{number}. {head}", *(f"   - {line}" for line in rest)]
    return "\n".join(lines)


_HELD: Final = {True: "verified", False: "did not help", None: "not verified"}


def _fix_lines(fix: KnownFix, limit: int, orders: bool) -> list[str]:
    failure = fix.failure
    withhold = partial(render_if_safe, orders=orders)
    shown = partial(escape_inline, limit=limit)
    file = withhold(failure.file or fix.session.file_path, shown, happened=True)
    name = withhold(failure.error_type or "Error", partial(_bold, limit=limit), happened=True)
    lines = [name + (f" in {file}" if file else "")]
    if failure.message:
        lines.append(f"Error: {withhold(failure.message, partial(escape_quoted, limit=limit), happened=True)}")
    if fix.cause:
        lines.append(f"Cause: {withhold(fix.cause, shown, happened=True)}")
    if fix.fix:
        overall = f"; {fix.results.text} over all sessions" if fix.results.known > 1 else ""
        lines.append(f"Fix: {withhold(fix.fix, shown)} ({_HELD[fix.held]}{overall})")
    elif fix.strategy:
        lines.append(f"Strategy: {withhold(fix.strategy, shown)}")
    lines += [f"Did not help: {withhold(text, shown)}" for text in fix.failed[:MAX_FAILED]]
    return [*lines, f"Session: {withhold(fix.session.id, shown)}"]


def _bold(text: str, limit: int) -> str:
    # Inside the bold a single asterisk or backslash at either end would already break it.
    escaped = text.replace("\\", "\\\\").replace("*", "\\*")
    return f"**{escape_inline(escaped, limit)}**"


def _template_lines(template: FixTemplate, limit: int, orders: bool) -> list[str]:
    withhold = partial(render_if_safe, orders=orders)
    told = template.held.text or f"said to work {rounded(max(template.claimed) * 100)}% of the time"
    lines = [f"{withhold(template.pattern, partial(_bold, limit=limit))} ({told})"]
    if template.fix_template:
        lines.append(f"Template: {withhold(template.fix_template, partial(escape_inline, limit=limit))}")
    return lines
