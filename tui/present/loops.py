"""Loops as cells and paragraphs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from textual.content import Content

from core.base.formatting import decimal_text
from core.base.text import plural, visible, visible_line
from core.learning.loop_patterns import LoopPatterns
from core.learning.outcomes import Outcome, Verdict
from core.records.debug_sessions import Failure
from core.records.events import Observation
from core.records.loops import Iteration, Liveness, Loop, LoopDetails
from core.records.patterns import Pattern
from core.records.reflections import Reflection
from core.state.project_state import ProjectState
from tui.present.glyphs import Cells, Glyphs, outcome_mark, result_mark, status_mark
from tui.present.layout import labelled
from tui.present.numbers import ago, bar, duration, moment_text, percent, sparkline
from tui.present.reflections import kind_word

_MAX_ERRORS = 5
"""Most errors of one iteration that are shown."""
BAR_CELLS: Final = 15
"""Cells of the iteration with a bar."""
PATTERNS_CELLS: Final = 25
"""Cells of what is known of a loop's patterns, in full."""
TABS = ("Now", "Iterations", "Patterns", "Reflections", "Files")


def elapsed(loop: Loop, now: datetime) -> float | None:
    """Seconds from start to end, or to now for a loop that has not ended; never negative."""
    if loop.started_at is None:
        return None
    end = loop.ended_at
    if end is None:
        if loop.status.ended:
            return None
        end = now
    return max(0.0, (end - loop.started_at).total_seconds())


def loop_cells(
    loop: Loop,
    outcome: Outcome | None,
    patterns: LoopPatterns,
    now: datetime,
    glyphs: Glyphs,
    offered: int = 0,
    *,
    with_bar: bool = True,
    in_full: bool = True,
) -> Cells:
    """One row of the table.

    Args:
        outcome: Its outcome, if it has ended.
        patterns: Those that were injected, applied and extracted.
        offered: The number of patterns that can be extracted from it, as far as that is known.
        with_bar: Whether there is room for a bar beside the iteration.
        in_full: Whether there is room for all that is known of its patterns.
    """
    seconds = elapsed(loop, now)
    ended = loop.status.ended
    return {
        "task": Content.styled(visible_line(loop.task or loop.id, 300), "$quiet" if loop.archived else ""),
        "id": Content.styled(visible_line(loop.id, 200), "$quiet"),
        "status": Content.assemble(
            status_mark(loop.status, glyphs),
            _worth_saying(loop),
            (" arch" if loop.archived else "", "$quiet"),
        ),
        "iteration": _progress(loop, glyphs, with_bar=with_bar),
        "quality": Content.styled(sparkline(loop.quality, 8, glyphs), "$secondary"),
        "elapsed": Content.styled(duration(seconds) if seconds is not None else "—", "$quiet" if ended else ""),
        "patterns": _patterns(patterns, offered, in_full=in_full),
        "outcome": _came_out(outcome),
        "sign": _sign(loop, now),
    }


def drawn_words(loop: Loop) -> dict[str, str]:
    """What a row abbreviates or draws, by the titles of its columns, in words that need no screen around them."""
    most = f" of {loop.max_iterations}" if loop.max_iterations else ""
    return {
        "status": ", ".join([loop.status.value, *loop.badges, *(["archived"] if loop.archived else [])]),
        "iteration": "" if loop.iteration is None and not most else f"{loop.iteration or 0}{most}",
        "quality": ", ".join(decimal_text(quality) for quality in loop.quality),
    }


def below_text(loop: Loop) -> Content:
    """The second line of a row: id, owner and tags, for which the first one has no room."""
    owner = f"   {visible_line(loop.owner, 40)}" if loop.owner else ""
    tags = " ".join(f"#{visible_line(tag, 40)}" for tag in loop.tags[:6])
    return Content.styled(f"{visible_line(loop.id, 200)}{owner}   {tags}".rstrip(), "$quiet")


def _worth_saying(loop: Loop) -> Content:
    """The badges that a reader of the list should notice: not what the status says, nor what is usual."""
    usual = {"crashed", "unregistered"} if loop.status.ended else {"crashed"}
    return Content.styled("".join(f" {badge}" for badge in loop.badges if badge not in usual), "$warning")


def _progress(loop: Loop, glyphs: Glyphs, *, with_bar: bool = True) -> Content:
    if loop.iteration is None and not loop.max_iterations:
        return Content.styled("—", "$quiet")
    done = loop.iteration or 0
    label = f"{done}/{loop.max_iterations}" if loop.max_iterations else str(done)
    if not with_bar:
        return Content.styled(label, "$quiet" if loop.status.ended else "")
    drawn = bar(done, loop.max_iterations, 8, glyphs)
    return Content.assemble((drawn, "$quiet" if loop.status.ended else "$accent"), f" {label:>6}")


_VERDICT_STYLES = {Verdict.HELPFUL: "$success", Verdict.HARMFUL: "$error", Verdict.NEUTRAL: "$quiet"}


def _came_out(outcome: Outcome | None) -> Content:
    if outcome is None:
        return Content("")
    return Content.assemble(
        (outcome.verdict.value, _VERDICT_STYLES[outcome.verdict]), (f" {decimal_text(outcome.raw)}", "$quiet")
    )


def _patterns(patterns: LoopPatterns, offered: int, *, in_full: bool) -> Content:
    """How many patterns it used and gave; in short only what a reader of the list should act on, else the first."""
    found: list[Content] = []
    if injected := len(patterns.injected_ids):
        found.append(Content.styled(f"{len(patterns.applied_ids)} of {injected} used", "$quiet"))
    if offered:
        found.append(Content.styled(f"{offered} to extract", "$accent"))
    elif patterns.extracted:
        found.append(Content.styled(f"{len(patterns.extracted)} extracted", "$quiet"))
    if not in_full and found:
        return found[-1] if offered else found[0]
    return Content(", ").join(found)


def _sign(loop: Loop, now: datetime) -> Content:
    if loop.liveness is Liveness.DEAD:
        return Content.styled("no process", "$error")
    if loop.status.ended:
        return Content.styled(ago(loop.ended_at, now), "$quiet")
    style = "$warning" if loop.liveness is Liveness.STALE else ""
    return Content.styled(ago(loop.last_activity, now), style)


def now_lines(
    loop: Loop, story: LoopDetails | None, view: ProjectState, glyphs: Glyphs, offered: Sequence[Content] = ()
) -> list[Content]:
    """What it should do, how it stands, and the last things that happened; in between, what it offers."""
    now = view.now
    seconds = elapsed(loop, now)
    approximately = "about " if loop.ended_approximate else ""
    raw = f"  (file says {visible_line(loop.raw_status, 30)})" if loop.raw_status.lower() != loop.status.value else ""
    lines = [
        Content.styled(visible_line(loop.task or "no task is known", 1000), "bold"),
        Content.styled(visible_line(loop.id, 200), "$secondary"),
        *offered,
        Content(""),
        Content.assemble(status_mark(loop.status, glyphs), (raw, "$quiet"), _badges(loop)),
        Content.assemble(
            ("started ", "$quiet"),
            moment_text(loop.started_at, now),
            ("   ended ", "$quiet") if loop.ended_at else "",
            f"{approximately}{moment_text(loop.ended_at, now)}" if loop.ended_at else "",
            ("   took " if loop.ended_at else "   for ", "$quiet"),
            duration(seconds) if seconds is not None else "—",
            ("   iteration ", "$quiet"),
            _progress(loop, glyphs),
        ),
        Content.assemble(("life: ", "$quiet"), visible_line(loop.liveness_reason or loop.liveness.value, 300)),
        *outcome_lines(loop, view),
    ]
    if loop.criteria:
        lines.append(labelled("Done when", "; ".join(loop.criteria)))
    if loop.owner or loop.priority or loop.tags:
        lines.append(labelled("By", "  ".join(filter(None, (loop.owner, loop.priority, ", ".join(loop.tags))))))
    if story is not None and story.facts:
        facts = "   ".join(f"{visible_line(name, 40)} {visible_line(value, 80)}" for name, value in story.facts)
        lines.append(Content.styled(facts, "$quiet"))
    if loop.improvement is not None:
        lines.append(labelled("Improvement", loop.improvement.text))
    if loop.last_result:
        lines += [Content(""), labelled("Last result", loop.last_result)]
    if loop.learnings:
        lines.append(Content.styled("Learned:", "$quiet"))
        lines += [Content(f"  {visible_line(text, 500)}") for text in loop.learnings[-8:]]
    tail = (story.iterations if story is not None else loop.iterations)[-4:]
    if tail:
        lines += [Content(""), Content.styled("Newest iterations:", "$quiet")]
        for iteration in reversed(tail):
            lines += iteration_lines(iteration, now, glyphs)
    return lines


def outcome_lines(loop: Loop, view: ProjectState) -> list[Content]:
    """How the loop came out, part by part, and what that counts today; nothing while it has not."""
    found = view.outcome(loop.id)
    if found is None:
        return []
    signals, outcome = found
    lines = [
        Content.assemble(
            ("outcome: ", "$quiet"),
            (outcome.verdict.value, _VERDICT_STYLES[outcome.verdict]),
            visible_line(outcome.reasoning.removeprefix(outcome.verdict.value), 300),
            (f"   worth {decimal_text(outcome.decayed)} today", "$quiet"),
        )
    ]
    told = (signals.strategy, signals.failure_mode, signals.failure_details)
    if any(told):
        lines.append(labelled("it says", "; ".join(filter(None, told))))
    return lines


def _badges(loop: Loop) -> Content:
    return Content.styled("".join(f"  {badge}" for badge in loop.badges), "$warning")


def iteration_lines(iteration: Iteration, now: datetime, glyphs: Glyphs) -> list[Content]:
    """One iteration: a head line, then what came out and what was learned."""
    number = "?" if iteration.number is None else str(iteration.number)
    lines = [
        Content.assemble(
            (f"{number:>4} ", "$accent"),
            outcome_mark(iteration.outcome, glyphs),
            f"  {visible_line(iteration.action, 300)}",
            (f"  {moment_text(iteration.at, now)}" if iteration.at else "", "$quiet"),
            (f"  {duration(iteration.duration_ms / 1000)}" if iteration.duration_ms else "", "$quiet"),
            (
                f"  quality {percent(iteration.quality)}" if iteration.quality is not None else "",
                "$secondary",
            ),
        )
    ]
    if iteration.result:
        lines.append(Content(f"     {visible_line(iteration.result, 1000)}"))
    for failure in iteration.failures[:_MAX_ERRORS]:
        lines.append(_error_line(failure))
    if (more := len(iteration.failures) - _MAX_ERRORS) > 0:
        lines.append(Content.styled(f"     {plural(more, 'more error')}", "$quiet"))
    for text in iteration.learnings:
        if text != iteration.result:
            lines.append(Content.styled(f"     learned: {visible_line(text, 500)}", "$quiet"))
    if iteration.files:
        lines.append(Content.styled(f"     {visible_line(', '.join(iteration.files), 500)}", "$quiet"))
    return lines


def _error_line(failure: Failure) -> Content:
    """Type, message and place of one recorded error."""
    place = f"{failure.file}:{failure.line}" if failure.file and failure.line is not None else failure.file
    told = ": ".join(filter(None, (failure.error_type, failure.message)))
    return Content.assemble(
        ("     error: ", "$error"),
        visible_line(told, 500),
        (f"  {visible_line(place, 200)}" if place else "", "$quiet"),
    )


def iterations_lines(loop: Loop, story: LoopDetails | None, view: ProjectState, glyphs: Glyphs) -> list[Content]:
    """All iterations, newest first."""
    iterations = story.iterations if story is not None else loop.iterations
    if not iterations:
        return [Content.styled("No iteration has been recorded yet.", "$quiet")]
    lines: list[Content] = []
    for iteration in reversed(iterations):
        lines += iteration_lines(iteration, view.now, glyphs)
    return lines


def pattern_lines(loop: Loop, view: ProjectState, glyphs: Glyphs) -> list[Content]:
    """Patterns and reflections that the loop got, with the results of patterns, and patterns extracted from it."""
    found = view.loop_patterns(loop.id)
    known = view.snapshot.patterns
    if not (found.uses or found.extracted or found.reflections):
        return [Content.styled("No pattern was injected into this loop, and none extracted from it.", "$quiet")]
    lines = [
        Content.assemble(
            result_mark(use.success, glyphs),
            f" {_result(use):<20} ",
            (visible_line(use.pattern_id, 120), "$secondary"),
            (f"  iteration {use.iteration}" if use.iteration is not None else "", "$quiet"),
            *_title(known.get(use.pattern_id)),
        )
        for use in found.uses
    ]
    reflections = view.snapshot.reflections
    lines += [
        Content.assemble(
            ("  reflection injected    ", "$quiet"),
            (visible_line(id, 120), "$secondary"),
            f"  {visible_line(reflections[id].text, 200)}" if id in reflections else "",
        )
        for id in found.reflections
    ]
    lines += [
        Content.assemble(
            ("+ extracted            ", "$success"),
            (visible_line(gained.pattern_id, 120), "$secondary"),
            ("  new" if gained.new else "  merged", "$quiet"),
            *_title(known.get(gained.pattern_id)),
        )
        for gained in found.extracted
    ]
    if loop.improvement is not None:
        lines += [Content(""), labelled("Improvement", loop.improvement.text)]
    return lines


def _title(pattern: Pattern | None) -> tuple[str | tuple[str, str], ...]:
    return (f"  {visible_line(pattern.title, 200)}",) if pattern else (("  not in the registry", "$warning"),)


def _result(use: Observation) -> str:
    """Result of one use in words."""
    if use.kind == "injected":
        return "not applied"
    word = {True: "worked", False: "failed", None: "no result"}[use.success]
    return f"{word}, as the loop" if use.inferred else word


def reflection_lines(reflections: Sequence[Reflection], view: ProjectState, glyphs: Glyphs) -> list[Content]:
    """The reflections of one loop, newest first."""
    if not reflections:
        return [Content.styled("This loop has left no reflection.", "$quiet")]
    lines: list[Content] = []
    for reflection in reflections:
        lines.append(
            Content.assemble(
                (f"{reflection.iteration if reflection.iteration is not None else '?':>4} ", "$accent"),
                (f"{kind_word(reflection)}  ", "$secondary"),
                visible_line(reflection.text, 1000),
            )
        )
    return lines


def file_lines(loop: Loop, story: LoopDetails | None) -> list[Content]:
    """Which files know the loop, and the texts beside it."""
    lines = [labelled("Known by", ", ".join(loop.sources))]
    if loop.aliases:
        lines.append(labelled("Also called", ", ".join(loop.aliases)))
    lines += [Content.styled(f"  {visible_line(name, 300)}", "$quiet") for name in loop.files]
    if story is None:
        return lines
    if story.checkpoints:
        shown = ", ".join(story.checkpoints[:12])
        lines.append(labelled(plural(len(story.checkpoints), "checkpoint"), shown))
    for title, text in story.notes:
        lines += [Content(""), Content.styled(visible_line(title, 100), "bold")]
        lines += [Content(f"  {line}") for line in visible(text, 64_000).split("\n")]
    return lines
