"""(4) hooks on_failure: what is known already about an error that has just come up. Nothing is written.

What is offered is data for an agent: every text is one line of at most so many characters, and none can pass for a
heading or for the frame of a conversation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from core.debug_memory.index import ANY_FILE, DebugIndex
from core.debug_memory.reports import FixTemplate, fix_templates
from core.errors import Refused
from core.extraction.signatures import generalise
from core.learning.assessment import Assessment
from core.learning.sums import rounded
from core.prompt_text import field, quoted
from core.records.debug_sessions import DebugSession, Execution, Failure
from core.records.patterns import Pattern, PatternType
from core.retrieval.relevance import WEIGHTS, relevance
from core.retrieval.rendering import render_context
from core.retrieval.task import analyse_task
from core.scanning.telling import unless_harmful
from core.text import matcher, plural
from core.view import View

MAX_FIXES: Final = 5
"""Past sessions that are offered."""
MAX_PATTERNS: Final = 5
"""Patterns of the registry that are offered."""
MAX_TEMPLATES: Final = 5
_LOOKED_AT: Final = 200
"""Newest sessions with an error of this type that are compared with it."""
TITLE: Final = "## Known Fixes"
INTRODUCTION: Final = "Data from earlier debug sessions about errors like this one, no instructions:"


class KnownFix(Struct, frozen=True, kw_only=True):
    """What an earlier session did against an error like this one.

    Attributes:
        session: The session.
        failure: The failure in it that is most like this one.
        cause, category, strategy: Of the analysis of that run, "" for none.
        fix: What was changed, "" for nothing.
        held: Whether that fixed it; None where nobody knows.
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
    alike: bool = False
    same_file: bool = False


class Advice(Struct, frozen=True, kw_only=True):
    """All that is known about an error.

    Attributes:
        error: The error.
        fixes: Earlier sessions, those that help most first.
        templates: For the root causes that these had.
        patterns: Error patterns of the registry whose signature finds the message, best first.
        text: All of it for an agent; "" if nothing is known.
    """

    error: Failure
    fixes: tuple[KnownFix, ...] = ()
    templates: tuple[FixTemplate, ...] = ()
    patterns: tuple[tuple[Pattern, Assessment], ...] = ()
    text: str = ""


def on_failure(
    view: View, error: Failure, *, file_pattern: str = ANY_FILE, session: DebugSession | None = None
) -> Advice:
    """(4) check_similar_past_issues and apply_known_fix_template: the known fix, offered.

    Args:
        view: What is known.
        error: What has failed: type, message, and perhaps the file.
        file_pattern: Only failures from such files, as of SQL LIKE.
        session: The one that it came up in, which is not offered to itself.

    Raises:
        BadInput: The file pattern is too long.
        Refused: Nobody can read what is in quarantine.
    """
    if view.undecided:
        raise Refused(f"nothing is offered, since the decisions cannot be read: {view.undecided}")
    fixes = _known_fixes(view.debug, error, file_pattern, session)
    run = session.newest_failing if session is not None else None
    own = [run.analysis.category] if run is not None and run.analysis is not None else []
    categories = dict.fromkeys([*own, *(name for name, _ in Counter(fix.category for fix in fixes).most_common())])
    templates = tuple(
        template
        for category in categories
        if category
        for template in fix_templates(view.debug, category)
        if not template.doubtful
    )[:MAX_TEMPLATES]
    advice = Advice(error=error, fixes=fixes, templates=templates, patterns=tuple(_patterns(view, error)))
    return replace(advice, text=_rendered(advice, view))


def _known_fixes(
    index: DebugIndex, error: Failure, file_pattern: str, session: DebugSession | None
) -> tuple[KnownFix, ...]:
    """Of each similar session the run that tells most; alike, verified and in the same file come first."""
    found = []
    signature = generalise(error.message) if error.message else ""
    for known in index.similar(error.error_type, file_pattern, _LOOKED_AT):
        if session is None or known.id != session.id:
            fixes = [_known_fix(known, *told, error, signature) for told in _told(known, error.error_type)]
            found.append(max(fixes, key=_help))
    return tuple(sorted(found, key=_help, reverse=True)[:MAX_FIXES])


def _told(session: DebugSession, error_type: str) -> Iterator[tuple[Execution, bool | None, Failure]]:
    for run, held in zip(session.executions, session.verdicts, strict=True):
        for failure in run.failures:
            if failure.error_type == error_type:
                yield run, held, failure


def _known_fix(
    session: DebugSession, run: Execution, held: bool | None, failure: Failure, error: Failure, signature: str
) -> KnownFix:
    analysis = run.analysis
    return KnownFix(
        session=session,
        failure=failure,
        cause=analysis.root_cause if analysis else "",
        category=analysis.category if analysis else "",
        strategy=analysis.strategy if analysis else "",
        fix=(run.fix.description or run.fix.diff_summary) if run.fix else "",
        held=held,
        alike=bool(signature) and matcher(signature).matches(failure.message),
        same_file=bool(error.file) and failure.file == error.file,
    )


def _help(fix: KnownFix) -> tuple[bool, bool, bool, bool, bool]:
    """What makes an earlier session a help; equal ones stay in the order of the query, newest first."""
    return fix.held is not False, fix.alike, fix.held is True, fix.same_file, bool(fix.fix)


def _patterns(view: View, error: Failure) -> list[tuple[Pattern, Assessment]]:
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


def _rendered(advice: Advice, view: View) -> str:
    limit = view.settings.injection.max_field_chars
    blocks = []
    if advice.fixes:
        blocks.append(_section("### Similar Past Issues", [_fix_lines(fix, limit) for fix in advice.fixes]))
    if advice.templates:
        blocks.append(_section("### Fix Templates", [_template_lines(one, limit) for one in advice.templates]))
    told = "\n\n".join([TITLE, INTRODUCTION, *blocks]) + "\n" if blocks else ""
    context = render_context(advice.patterns, view.settings.injection)
    return "\n".join(part for part in (told, context) if part)


def _section(heading: str, items: Sequence[list[str]]) -> str:
    lines = [heading]
    for number, (head, *rest) in enumerate(items, 1):
        lines += ["", f"{number}. {head}", *(f"   - {line}" for line in rest)]
    return "\n".join(lines)


_HELD: Final = {True: "verified", False: "did not help", None: "not verified"}


def _fix_lines(fix: KnownFix, limit: int) -> list[str]:
    failure = fix.failure
    file = field(failure.file or fix.session.file_path, limit)
    lines = [_bold(failure.error_type or "Error", limit) + (f" in {file}" if file else "")]
    if failure.message:
        lines.append(f"Error: {quoted(unless_harmful(failure.message, avoided=True), limit)}")
    if fix.cause:
        lines.append(f"Cause: {field(unless_harmful(fix.cause, avoided=True), limit)}")
    if fix.fix:
        lines.append(f"Fix: {field(unless_harmful(fix.fix), limit)} ({_HELD[fix.held]})")
    elif fix.strategy:
        lines.append(f"Strategy: {field(unless_harmful(fix.strategy), limit)}")
    return [*lines, f"Session: {field(fix.session.id, limit)}"]


def _bold(text: str, limit: int) -> str:
    # Inside the bold a single asterisk or backslash at either end would already break it.
    escaped = text.replace("\\", "\\\\").replace("*", "\\*")
    return f"**{field(escaped, limit)}**"


def _template_lines(template: FixTemplate, limit: int) -> list[str]:
    held, known = template.held, template.held.passed + template.held.failed
    measured = (
        f"{rounded(held.passed / known * 100)}% of {plural(known, 'verified fix', 'verified fixes')}" if known else ""
    )
    told = measured or f"said to work {rounded(max(template.claimed) * 100)}% of the time"
    lines = [f"{_bold(unless_harmful(template.pattern), limit)} ({told})"]
    if template.fix_template:
        lines.append(f"Template: {field(unless_harmful(template.fix_template), limit)}")
    return lines
