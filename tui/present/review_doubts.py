"""Why a pattern is in the review queue: a decision, a borderline state, a broad trigger, counts, or reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from textual.content import Content

from core.base.formatting import format_percent
from core.base.text import plural, safe_matcher
from core.documents.document import Block, Moment, Part, Table, Text, fields, line, more
from core.documents.signs import result_sign, state_sign
from core.learning.bursts import Burst, known_time
from core.learning.explanation import StepToState
from core.records.loops import Outcome
from core.records.patterns import Pattern, PatternType
from core.review.incremental_checks import common_messages
from core.state.findings import count_conflicts
from core.state.history import explain_pattern
from core.state.project_state import ProjectState
from core.state.review_items import ReviewItem
from tui.present.document import document_lines
from tui.present.glyphs import Glyphs

MAX_MESSAGES: Final = 2000
"""Messages of loops that a trigger is tested with."""
_MAX_EXAMPLES: Final = 6


def decision_lines(view: ProjectState, item: ReviewItem, glyphs: Glyphs) -> list[Content]:
    """Return the decision in doubt, and the results since then."""
    assessment = view.assessment(item.subject)
    rows: list[tuple[str, Part | Text]] = [
        ("Now", (state_sign(assessment.state),)),
        ("By evidence", (state_sign(assessment.computed),)),
    ]
    if (pin := assessment.pin) is not None:
        good, bad = view.board.results_since_pin(item.subject)
        since = ((f"{good} ", "good"), result_sign(True), (f"  {bad} ", "bad"), result_sign(False))
        rows += [("Decided", (Moment(pin.at, ""), f" by {pin.by}")), ("Reason", pin.reason or "none")]
        rows.append(("Since then", since))
    return document_lines([line(item.question), line(""), *fields(*rows)], view.now, glyphs)


def distance_lines(view: ProjectState, pattern: Pattern, glyphs: Glyphs) -> list[Content]:
    """Return how few further results would change the state, the fewest first."""
    steps = sorted(explain_pattern(view, pattern.id).steps, key=lambda step: step.count)
    blocks = [_step(step, pattern) for step in steps]
    return document_lines(blocks or [line(("No single kind of result changes its state.", "quiet"))], view.now, glyphs)


def _step(step: StepToState, pattern: Pattern) -> Block:
    noun = "success" if step.helpful else "failure"
    if pattern.type is PatternType.ANTI:
        noun = f"{'right' if step.helpful else 'wrong'} warning"
    count = plural(step.count, f"more {noun}", "more successes" if noun == "success" else None)
    return line(result_sign(step.helpful), (f" {count:<21} → ", "strong"), state_sign(step.state))


def trigger_lines(view: ProjectState, pattern: Pattern, glyphs: Glyphs) -> list[Content]:
    """Return how many common and recorded messages the triggers match, with examples."""
    recorded = list(dict.fromkeys(islice(_messages(view), MAX_MESSAGES)))
    tasks = list(dict.fromkeys(loop.task for loop in view.snapshot.loops.values() if loop.task))
    blocks: list[Block] = []
    for trigger, tests in (
        (pattern.error_pattern, (("common errors", common_messages()["errors"]), ("errors recorded here", recorded))),
        (pattern.task_pattern, (("common tasks", common_messages()["tasks"]), ("tasks recorded here", tasks))),
    ):
        if trigger:
            blocks += fields(("Trigger", trigger))
            for noun, messages in tests:
                blocks += [*_matches(messages, safe_matcher(trigger).matches, noun), line("")]
    return document_lines(blocks, view.now, glyphs)


def _matches(messages: Sequence[str], matches: Callable[[str], bool], noun: str) -> Iterable[Block]:
    hit, missed = ([text for text in messages if matches(text) is wanted] for wanted in (True, False))
    share = format_percent(len(hit) / len(messages)) if messages else "—"
    yield line("matches ", (share, "strong"), f" of {noun}, {len(hit):,} of {len(messages):,}")
    for success, found in ((True, hit), (False, missed)):
        yield from (line(result_sign(success), f" {text}", indent=2) for text in found[:_MAX_EXAMPLES])
        yield from more(len(found), "message", _MAX_EXAMPLES)


def _messages(view: ProjectState) -> Iterator[str]:
    """Yield the results of failed iterations."""
    for loop in view.snapshot.loops.values():
        for iteration in loop.iterations:
            if iteration.outcome in (Outcome.FAILURE, Outcome.TIMEOUT) and iteration.result.strip():
                yield iteration.result


def count_lines(view: ProjectState, pattern: Pattern, glyphs: Glyphs) -> list[Content]:
    """Return the recorded counts beside those of the evidence."""
    recorded, evident = pattern.recorded_counts, view.assessment(pattern.id)
    rates = ["—" if rate is None else format_percent(rate) for rate in (recorded.rate, evident.rate)]
    pairs = [("rate", *rates)] + [
        (name, "-" if value is None else f"{value:,}", f"{counted:,}")
        for name, value, counted in (
            ("uses", recorded.uses, evident.uses),
            ("successes", recorded.successes, evident.successes),
            ("failures", recorded.failures, evident.failures),
        )
    ]
    rows: list[tuple[Text, ...]] = []
    for name, a, b in pairs:
        differs = a != b
        rows.append(((glyphs.differs if differs else "",), (name,), ((a, "warning" if differs else ""),), (b,)))
    blocks: list[Block] = [
        line((pattern.title, "strong")),
        line((pattern.id, "name")),
        line(""),
        Table(("", "", "record", "evidence"), tuple(rows), right=(2,)),
        line(""),
        *(line((f"! {found.message}", "warning")) for found in count_conflicts(view, pattern.id)),
        *fields(("File", pattern.file)),
    ]
    return document_lines(blocks, view.now, glyphs)


def reported_lines(view: ProjectState, burst: Burst, glyphs: Glyphs) -> list[Content]:
    """Return the patterns with suspicious reports, and their states while these are not counted."""
    blocks: list[Block] = []
    for id in burst.patterns:
        pattern = view.snapshot.patterns.get(id)
        if pattern is None:
            blocks.append(line((id, "name"), ("  not in the registry", "warning")))
            continue
        assessment = view.assessment(id)
        rate = "—" if assessment.rate is None else format_percent(assessment.rate)
        uses = plural(assessment.successes + assessment.failures, "use")
        blocks.append(line(state_sign(assessment.state), f"  {pattern.title}"))
        blocks.append(line((id, "name"), (f"  {rate} of {uses}", "quiet"), indent=2))
    return document_lines(blocks, view.now, glyphs)


def reporter_lines(view: ProjectState, burst: Burst, glyphs: Glyphs) -> list[Content]:
    """Return what is known about the source of suspicious reports."""
    loop, outcome = view.snapshot.loops.get(burst.source), view.outcome(burst.source)
    first, last = known_time(burst.first), known_time(burst.last)
    when: Text = (", ", Moment(first, ""), " to ", Moment(last, "")) if first and last else (", not dated",)
    note = "It is unusual for one source to report that many patterns at once. The reports count only after you decide."
    blocks: list[Block] = [
        *([line((loop.task, "strong"))] if loop is not None and loop.task else []),
        line((burst.source, "name")),
        line(""),
        *fields(
            ("Reports", (plural(len(burst.patterns), "pattern"), *when)),
            ("Never injected", f"{burst.never_applied:,} of them, as far as is recorded"),
            ("Loop", loop.status.value if loop is not None else ""),
            ("Outcome", outcome[1].reasoning if outcome is not None else ""),
        ),
        line(""),
        line((note, "quiet")),
    ]
    return document_lines(blocks, view.now, glyphs)
