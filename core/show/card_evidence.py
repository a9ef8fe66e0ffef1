"""Evidence on the cards of review questions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Final

from core.base.formatting import format_percent
from core.base.pattern_titles import pattern_title
from core.base.scanning.scan import find_stopped_sentences, scan_text
from core.base.text import (
    DELETED,
    INSERTED,
    DiffPiece,
    field_changes,
    plural,
    safe_matcher,
    visible,
    visible_line,
    word_changes,
)
from core.decisions.rules import find_approved_pattern
from core.index import review_items as kinds
from core.index.project_state import count_conflicts, explain_pattern
from core.index.review_items import BEST
from core.learning.bursts import Burst, known_time
from core.learning.evidence import AGGREGATE, TREND
from core.questions.doubts import common_messages
from core.questions.extraction.triggers import is_named_in
from core.records.loops import Outcome
from core.records.patterns import Pattern, PatternType, Severity
from core.retrieval.rendering import INTRODUCTION, TITLE, render_context
from core.show.pages.document import Block, Line, Moment, Part, Sign, Table, Text, fields, line, more, section
from core.show.pages.patterns import set_aside_reason
from core.show.pages.signs import result_sign, state_sign

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.index.review_items import QuestionGroup, ReviewItem
    from core.learning.inversion import Inversion
    from core.records.events import Observation


MAX_USES: Final = 40
MAX_LOOPS: Final = 20  # Loops listed in which an inverted pattern failed.
MAX_MESSAGES: Final = 2000  # Messages of loops that a trigger is tested with.
_COUNTED: Final = {
    AGGREGATE: "in the counts of its file, without a recorded session",
    TREND: "in the success trend of its file, without a recorded session",
}
"""Where a use without a session is counted, by the source of the observation."""
_MAX_EXAMPLES: Final = 6
_MAX_NAMED: Final = 20  # Questions of a row that are named without a reason.


def row_questions(view: ProjectState, group: QuestionGroup) -> list[Block]:
    """Describe a row's questions: the best with their reasons, the others by name."""
    best = list[Block]()
    for item in group.items[:BEST]:
        loop = view.snapshot.loops.get(item.subject)
        best += [line((item.short_name, "strong")), line((item.reason, "quiet"), indent=2)]
        if loop is not None:
            best.append(line((f"{item.subject}  ", "name"), (loop.task, "quiet"), indent=2))
        best.append(line(""))
    others = group.items[BEST : BEST + _MAX_NAMED]
    named: list[Block] = [line(item.short_name) for item in others]
    named += more(len(group.items) - BEST, "question", len(others))
    listed = line((f"ralphdeck review --kind {group.kind}", "name"), (" lists all", "quiet"))
    return [*best, *section("Others", named), listed]


def conflicts(view: ProjectState, pattern: Pattern) -> Iterable[Line]:
    """Describe where the recorded counts contradict the evidence."""
    return (line((f"! {finding.message}", "warning")) for finding in count_conflicts(view, pattern.id))


def uses(view: ProjectState, pattern: Pattern) -> Iterable[Line]:
    """Describe the uses, failures first, then the reports that do not count."""
    observations = [one for one in view.board.observations(pattern.id) if not one.is_sighting]
    ordered = sorted(observations, key=lambda one: (one.success is not False, one.success is None))
    for use in ordered[:MAX_USES]:
        yield _use_line(view, use)
        if result := find_result(view, use):
            yield line((result, "quiet" if use.success is not False else ""), indent=4)
    if len(ordered) > MAX_USES:
        yield line((f"and {plural(len(ordered) - MAX_USES, 'more use')}: see Patterns", "quiet"))
    if not observations:
        where = " in this project" if view.board.team_sums(pattern.id) is not None else ""
        yield line((f"No use of this pattern is recorded{where}.", "quiet"))
    for aside in view.board.ignored_reports(pattern.id):
        reason = f"  not counted: {set_aside_reason(aside.revoked)}"
        yield line(result_sign(False), (f" {aside.source}", "quiet"), (reason, "warning"))


def _use_line(view: ProjectState, use: Observation) -> Line:
    """Describe a use by its session's title or ID, else by where it was counted."""
    source = work_title(view, use.loop_id) or use.loop_id
    count = f"{use.count:,} x " if use.count > 1 and source else ""
    source = source or f"{plural(use.count, 'use')} {_COUNTED.get(use.source, 'without a recorded session')}"
    where = f"  iteration {use.iteration}" if use.iteration is not None else ""
    return line(result_sign(use.success), f" {count}{source}", (f"{where}  ", "quiet"), Moment(use.at))


def work_title(view: ProjectState, work_id: str) -> str:
    """Return what a loop, task or attempt is about in one line, or ""; untrusted."""
    snapshot = view.snapshot
    attempt = snapshot.attempts.get(work_id)
    task = snapshot.tasks.get(attempt.task_id if attempt is not None else work_id)
    loop = snapshot.loops.get(work_id) or snapshot.loops.get(view.board.inputs.names.loop_of_work(work_id))
    text = task.description if task is not None and task.description else loop.task if loop is not None else ""
    return visible_line(text, 100)


def works_of(view: ProjectState, work_id: str) -> list[str]:
    """Return a task's attempts, newest first, or this attempt or loop; [] if unknown."""
    snapshot = view.snapshot
    if (task := snapshot.tasks.get(work_id)) is not None:
        numbers = range(max(task.total_attempts or 0, task.current_attempt or 0), 0, -1)
        return [id for number in numbers if (id := f"{work_id}.{number}") in snapshot.attempts]
    return [work_id] if work_id in snapshot.attempts or work_id in snapshot.loops else []


def evidence_loops(view: ProjectState, item: ReviewItem) -> list[str]:
    """Return a question's known loops: contradicting ones first, then sources."""
    if item.group is not None:
        return []
    return [id for id in dict.fromkeys(map(view.board.inputs.names.loop_of_work, _sources(view, item))) if id]


def evidence_attempt(view: ProjectState, item: ReviewItem) -> str:
    """Return the ID of the newest attempt that a pattern was found in, or ""."""
    if item.kind != kinds.EXTRACTED and item.weakened is None:
        return ""
    sources = [item.weakened.attempt_id] if item.weakened is not None else _sources(view, item)
    attempts = (work for source in sources for work in works_of(view, source))
    return next((work for work in attempts if work in view.snapshot.attempts), "")


def _sources(view: ProjectState, item: ReviewItem) -> list[str]:
    """Return the IDs of the work that a question is about: loops, tasks and attempts."""
    if not item.is_about_pattern:
        places = [place.loop_id for place in item.lesson.places] if item.lesson is not None else []
        session = item.session
        return [item.subject, *item.sources, session.loop_id if session is not None else "", *places]
    observations = sorted(view.board.observations(item.subject), key=lambda one: one.success is not False)
    pattern = view.snapshot.patterns.get(item.subject)
    own = [source.loop_id for source in pattern.source_loops] if pattern is not None else []
    return [*(one.loop_id for one in observations), *own]


def find_result(view: ProjectState, use: Observation) -> str:
    """Return the result of the iteration of a use, or the last result of its loop."""
    loop = view.snapshot.loops.get(use.loop_id)
    if loop is None:
        return ""
    if use.iteration is None:
        return loop.last_result
    results = [iteration.result for iteration in loop.iterations if iteration.number == use.iteration]
    return results[-1] if results else ""


def results_since(view: ProjectState, pattern_id: str) -> Iterable[Block]:
    """Count the results since the decision in doubt."""
    good, bad = view.board.results_since_pin(pattern_id)
    return fields(("Since then", ((f"{good} ", "good"), result_sign(True), (f"  {bad} ", "bad"), result_sign(False))))


def distances(view: ProjectState, pattern: Pattern) -> Iterable[Block]:
    """Describe how many more results would change the state, fewest first."""
    steps = sorted(explain_pattern(view, pattern.id).steps, key=lambda step: step.count)
    for step in steps:
        noun = "success" if step.helpful else "failure"
        if pattern.type is PatternType.ANTI:
            noun = f"{'right' if step.helpful else 'wrong'} warning"
        count = plural(step.count, f"more {noun}", "more successes" if noun == "success" else None)
        yield line(result_sign(step.helpful), (f" {count:<21} → ", "strong"), state_sign(step.state))
    if not steps:
        yield line(("No single kind of result changes its state.", "quiet"))


def trigger_matches(view: ProjectState, pattern: Pattern) -> Iterable[Block]:
    """Describe the share of messages that each trigger matches, with examples."""
    recorded = list(dict.fromkeys(islice(_failure_messages(view), MAX_MESSAGES)))
    tasks = list(dict.fromkeys(loop.task for loop in view.snapshot.loops.values() if loop.task))
    for trigger, tests in (
        (pattern.error_pattern, (("common errors", common_messages()["errors"]), ("errors recorded here", recorded))),
        (pattern.task_pattern, (("common tasks", common_messages()["tasks"]), ("tasks recorded here", tasks))),
    ):
        if trigger:
            yield from fields(("Trigger", trigger))
            for noun, messages in tests:
                yield from _matches(messages, safe_matcher(trigger).matches, noun)
                yield line("")


def _matches(messages: Sequence[str], matches: Callable[[str], bool], noun: str) -> Iterable[Block]:
    hit, missed = ([text for text in messages if matches(text) is wanted] for wanted in (True, False))
    share = format_percent(len(hit) / len(messages)) if messages else "—"
    yield line("matches ", (share, "strong"), f" of {noun}, {len(hit):,} of {len(messages):,}")
    for success, found in ((True, hit), (False, missed)):
        yield from (line(result_sign(success), f" {text}", indent=2) for text in found[:_MAX_EXAMPLES])
        yield from more(len(found), "message", _MAX_EXAMPLES)


def _failure_messages(view: ProjectState) -> Iterator[str]:
    for loop in view.snapshot.loops.values():
        for iteration in loop.iterations:
            if iteration.outcome in (Outcome.FAILURE, Outcome.TIMEOUT) and iteration.result.strip():
                yield iteration.result


def recorded_counts(view: ProjectState, pattern: Pattern) -> Iterable[Block]:
    """Describe the recorded counts beside those of the evidence."""
    recorded, evident = pattern.recorded_counts, view.assessment(pattern.id)
    pairs = [("rate", format_percent(recorded.rate), format_percent(evident.rate))]
    for name in ("uses", "successes", "failures"):
        value = getattr(recorded, name)
        pairs.append((name, "-" if value is None else f"{value:,}", f"{getattr(evident, name):,}"))
    pairs.append(("seen", f"{evident.seen:,}", f"{evident.seen:,}"))
    rows: list[tuple[Text, ...]] = []
    for name, a, b in pairs:
        sign, style = (Sign("", "", "differs"), "warning") if a != b else ("", "")
        rows.append(((sign,), (name,), ((a, style),), (b,)))
    return [
        Table(("", "", "record", "evidence"), tuple(rows), right=(2,)),
        line(""),
        *conflicts(view, pattern),
        *fields(("File", pattern.file)),
    ]


def reported_patterns(view: ProjectState, burst: Burst) -> Iterable[Block]:
    """Describe the patterns with suspicious reports and their states."""
    for id in burst.patterns:
        pattern = view.snapshot.patterns.get(id)
        if pattern is None:
            yield line((id, "name"), ("  not in the registry", "warning"))
            continue
        assessment = view.assessment(id)
        use_count = plural(assessment.successes + assessment.failures, "use")
        yield line(state_sign(assessment.state), f"  {pattern_title(pattern)}")
        yield line((id, "name"), (f"  {format_percent(assessment.rate)} of {use_count}", "quiet"), indent=2)


_UNCONFIRMED: Final = (
    "A contributor sent them. They are more than the confirmed results of these patterns support, and count for no "
    "member until a reviewer decides."
)


def report_source(view: ProjectState, burst: Burst) -> Iterable[Block]:
    """Describe what is known about the source of suspicious reports."""
    loop, outcome = view.snapshot.loops.get(burst.source), view.board.outcome(burst.source)
    first, last = known_time(burst.first), known_time(burst.last)
    when: Text = (", ", Moment(first, ""), " to ", Moment(last, "")) if first and last else (", not dated",)
    note = "It is unusual for one source to report that many patterns at once. The reports count only after you decide."
    if burst.is_of_member:
        yield line((burst.source, "name"))
        yield line("")
        yield from fields(
            ("Patterns", (plural(len(burst.patterns), "pattern"), *when)),
            ("Successes", f"{burst.successes:,}"),
            ("Failures", f"{burst.failures:,}"),
        )
        yield line("")
        yield line((_UNCONFIRMED, "quiet"))
        return
    if loop is not None and loop.task:
        yield line((loop.task, "strong"))
    yield line((burst.source, "name"))
    yield line("")
    yield from fields(
        ("Reports", (plural(len(burst.patterns), "pattern"), *when)),
        ("Never given", f"{burst.never_given:,} of them, as far as is recorded"),
        ("Loop", loop.status.value if loop is not None else ""),
        ("Outcome", outcome[1].reasoning if outcome is not None else ""),
    )
    yield line("")
    yield line((note, "quiet"))


def failures(view: ProjectState, pattern: Pattern) -> Iterable[Block]:
    """Describe loops in which a pattern failed, newest first, and where it worked."""
    used = [one for one in view.board.observations(pattern.id) if one.is_use]
    failed = [one for one in used if one.success is False]
    succeeded = [one for one in used if one.success]
    for use in reversed(failed[-MAX_LOOPS:]):
        yield _use_line(view, use)
        if error := find_result(view, use):
            yield line((error, "bad"), indent=2)
    if succeeded:
        times = plural(sum(one.count for one in succeeded), "time")
        loops = ", ".join(dict.fromkeys(one.loop_id for one in succeeded if one.loop_id))
        yield line(result_sign(True), f" worked {times}", (f"  {loops}", "quiet"))


def anti_pattern(
    view: ProjectState, inversion: Inversion, alternatives: Sequence[Pattern], *, is_edited: bool
) -> Iterable[Block]:
    """Describe a warning with its `alternatives`; `is_edited` if the user wrote it."""
    yield line((inversion.text, "strong"))
    if is_edited:
        yield line(("your text", "accent"))
    yield from (line(("! ", "warning"), (text, "warning")) for text in inversion.lint)
    if not inversion.lint:
        yield line(Sign("wording check passed", "good", "done"))
    yield from _alternatives(view, inversion, alternatives)
    yield from fields(
        ("Failure mode", inversion.failure_mode.replace("_", " ")),
        ("Why it fails", inversion.why_it_fails),
        ("New ID", f"pat-anti-{inversion.slug}-, with the next free number"),
    )


def _alternatives(view: ProjectState, inversion: Inversion, alternatives: Sequence[Pattern]) -> Iterable[Block]:
    if not alternatives:
        return [line(("Instead: no similar lesson that worked was found", "quiet"))]
    lines: list[Line] = []
    for pattern in alternatives:
        assessment = view.assessment(pattern.id)
        is_named = pattern.id == inversion.better_pattern_id
        sign = Sign("", "accent", "play") if is_named else " "
        uses = f"  {format_percent(assessment.rate)} of {plural(assessment.uses, 'use')}"
        lines.append(
            line(sign, (f" {pattern_title(pattern)}", "strong" if is_named else ""), (uses, "quiet"), indent=2)
        )
        lines.append(line((pattern.id, "name" if is_named else "quiet"), indent=4))
    if not inversion.better_pattern_id:
        lines.append(line(Sign("none selected", "accent", "play"), indent=2))
    return [line(("Instead", "quiet")), *lines]


MAX_CHARS: Final = 20_000
_MAX_COMPARED: Final = 2000  # Characters of a field that are compared with those of a similar pattern.
_MAX_ITEMS: Final = 50
_LABEL_CELLS: Final = 14
_FIELDS: Final = {
    "title": "title", "description": "description", "use": "use_case", "category": "category",
    "error type": "error_type", "error": "error_pattern", "where": "location_hints", "tasks": "task_pattern",
    "steps": "steps", "template": "template_code", "placeholders": "placeholders", "diff": "diff_pattern",
    "tools": "tools", "preconditions": "preconditions", "benefits": "benefits", "limitations": "limitations",
    "symptoms": "symptoms", "why it fails": "why_it_fails", "instead": "better_alternative better_pattern_id",
    "tags": "tags", "related": "related", "also called": "aliases",
}  # fmt: skip
"""Label and fields of every text of a pattern."""
_COMPARED: Final = {
    "Title": "title", "Error type": "error_type", "Error": "error_pattern", "Description": "description",
    "Use": "use_case", "Category": "category", "Tasks": "task_pattern", "Step": "steps", "Symptom": "symptoms",
    "Where": "location_hints", "Code": "template_code", "Diff": "diff_pattern", "Why it fails": "why_it_fails",
    "Instead": "better_alternative", "Tags": "tags",
}  # fmt: skip
"""Label and field of the texts of two similar patterns."""
_MARKERS: Final = {DELETED: ("[-", "-]", "bad"), INSERTED: ("{+", "+}", "good strong")}
"""Delimiters of deleted and inserted words, as in `wdiff`, and their styles."""


def exact_text(state: ProjectState, pattern: Pattern) -> Iterator[Block]:
    """Yield the text agents get, then the rest; sentences that rules stop are marked."""
    rules = {one.rule: one.severity for one in pattern.suspicions if one.severity.stops}
    block = render_context([(pattern, state.assessment(pattern.id))], state.settings.injection)
    shown = block.removeprefix(f"{TITLE}\n\n{INTRODUCTION}\n\n").rstrip("\n")
    for row in shown.split("\n"):
        yield _marked(visible_line(row, MAX_CHARS), rules)
    given = {row.strip() for row in shown.split("\n")}
    rest = [
        (label, [text for text in texts if text and text not in shown and not _is_given(text, given)])
        for label, texts in _texts(pattern)
        if label != "error type" or not is_named_in(pattern.error_type, pattern.error_message)
    ]
    if any(texts for _, texts in rest):
        yield line("")
        yield line(("Stored, and not given to agents:", "quiet"))
    for label, texts in rest:
        for n, text in enumerate(texts):
            first, *others = visible(text, MAX_CHARS).split("\n")
            yield _marked(first, rules, (f"{label if not n else '':>{_LABEL_CELLS}}  ", "quiet"))
            yield from (_marked(row, rules, " " * (_LABEL_CELLS + 2)) for row in others)


def _texts(pattern: Pattern) -> Iterable[tuple[str, Sequence[str]]]:
    for label, names in _FIELDS.items():
        values = [getattr(pattern, name) for name in names.split()]
        texts = [text for value in values for text in ([value] if isinstance(value, str) else value)]
        yield label, [text if isinstance(text, str) else ": ".join(text) for text in texts]


def _is_given(text: str, rows: Set[str]) -> bool:
    """Whether each line of a text is one of the rows, which may be indented."""
    return all(row.strip() in rows for row in text.split("\n"))


def marked_text(text: str) -> Iterator[Line]:
    """Return a text in which the sentences that a rule stops are marked."""
    rules = {one.rule: one.severity for one in scan_text(text) if one.severity.stops}
    return (_marked(row, rules) for row in visible(text, MAX_CHARS).split("\n"))


def _marked(row: str, rules: Mapping[str, Severity], label: Part = "") -> Line:
    """Mark the sentences of a row that match one of the scan rules."""
    parts: list[Part] = [label]
    style = f"marked {'bad' if Severity.BLOCKED in rules.values() else 'warning'}"
    at = 0
    for start, end in find_stopped_sentences(row, rules) if rules else ():
        parts += [row[at:start], (row[start:end], style)]
        at = end
    return line(*parts, row[at:])


def approved_changes(state: ProjectState, pattern: Pattern) -> Iterator[Block]:
    """Return the fields that differ from the approved text, if it is stored."""
    text = find_approved_pattern(state, pattern.id)
    if text is None:
        yield line(("The approved text was not stored; below is the current one.", "warning"))
        return
    changes = field_changes(text, pattern)
    legend = (("[-deleted-]", _MARKERS[DELETED][2]), " ", ("{+inserted+}", _MARKERS[INSERTED][2]))
    yield line(plural(len(changes), "field"), " changed   ", *legend)
    for change in changes:
        yield line((change.name.replace("_", " "), "name"))
        yield from words_changed(change.before, change.after)


def words_changed(before: str, after: str) -> list[Line]:
    """Return both texts in one: deleted words in `[- -]`, inserted words in `{+ +}`."""
    rows: list[list[Part]] = [[]]
    for piece in word_changes(before[:MAX_CHARS], after[:MAX_CHARS]):
        for text, style in _pieces(piece):
            for n, part in enumerate(text.split("\n")):
                if n:
                    rows.append([])
                rows[-1].append((part, style) if style else part)
    return [line(*parts) for parts in rows]


def _pieces(piece: DiffPiece) -> Iterator[tuple[str, str]]:
    """Yield the parts of a piece of a comparison, with their styles."""
    shown = visible(piece.text)
    word = shown.strip()
    if piece.mark not in _MARKERS or not word:
        yield shown, ""
        return
    opening, closing, style = _MARKERS[piece.mark]
    lead, trail = shown[: shown.index(word)], shown[shown.index(word) + len(word) :]
    yield lead, ""
    yield f"{opening}{word}{closing}", style
    yield trail or " " * (piece.mark == DELETED), ""


def side_by_side(state: ProjectState, one: Pattern, other: Pattern, similarity: str) -> Iterator[Block]:
    """Compare similar patterns: counts, fields that differ, then the equal ones."""
    for label, pattern in (("Stays", one), ("Merged into it", other)):
        assessment = state.assessment(pattern.id)
        rate = format_percent(assessment.rate)
        yield line((f"{label:<{_LABEL_CELLS}}  ", "quiet"), (pattern_title(pattern), "strong"))
        yield line(
            " " * (_LABEL_CELLS + 2),
            state_sign(assessment.shown),
            f"   {rate}   ",
            (assessment.counts_text, "quiet"),
            (f"   {pattern.id}", "quiet"),
        )
    yield line("")
    yield line((f"{similarity} similar   ", "strong"), *_legend())
    rows = list(_rows(one, other))
    for label, mine, others in rows:
        if mine != others:
            yield line((label, "name"))
            yield from words_changed(visible_line(others, _MAX_COMPARED), visible_line(mine, _MAX_COMPARED))
    if any(mine == others for _, mine, others in rows):
        yield line("")
        yield line(("The same in both:", "quiet"))
    for label, mine, others in rows:
        if mine == others:
            yield line((f"{label}: ", "quiet"), mine)


def _legend() -> tuple[Part, ...]:
    return ("[-only in the merged one-]", _MARKERS[DELETED][2]), " ", ("{+only in the one that stays+}", "good strong")


def _rows(one: Pattern, other: Pattern) -> Iterator[tuple[str, str, str]]:
    """Yield label and both texts of each field that at least one pattern has."""
    same_titles = one.description == one.title and other.description == other.title
    for label, name in _COMPARED.items():
        if same_titles and name == "description":
            continue
        mine, others = (_items(name, getattr(pattern, name)) for pattern in (one, other))
        for pair in zip_longest(mine[:_MAX_ITEMS], others[:_MAX_ITEMS], fillvalue=""):
            if any(pair):
                yield label, *pair


def _items(name: str, value: str | Sequence[str]) -> Sequence[str]:
    """Return the lines of code, the items of a list, or a text as one item."""
    if name in {"template_code", "diff_pattern"}:
        return str(value).splitlines()
    return [value] if isinstance(value, str) else [", ".join(value)] if name == "tags" else value
