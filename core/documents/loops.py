"""Loops as documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from core.base.formatting import format_cost, format_count, format_decimal, format_duration, format_percent
from core.base.regexes import lazy_regex
from core.base.text import plural
from core.documents.document import Block, Document, Moment, Part, Table, Text, code, fields, items, line, more, section
from core.documents.reflections import kind_word
from core.documents.signs import VERDICT_STYLES, loop_sign, outcome_sign, result_sign
from core.records.loops import END_OF_TURN, ENDED_ITS_TURN, LoopStatus, StateSource
from core.records.waits import needs_person, waits_for

if TYPE_CHECKING:
    from core.records.debug_sessions import Failure
    from core.records.events import Observation
    from core.records.loops import Iteration, Loop, LoopDetails, Usage
    from core.records.patterns import Pattern
    from core.records.reflections import Reflection
    from core.state.project_state import ProjectState

_ID: Final = lazy_regex(r"\w[\w-]{0,79}")
_RESUME: Final = {"claude": "claude --resume", "codex": "codex resume"}
_MAX_ERRORS: Final = 5
_MAX_LEARNINGS: Final = 8
_MAX_SESSIONS: Final = 6
_NEWEST: Final = 4  # Iterations in the overview.
_MAX_CHECKPOINTS: Final = 12
_STATE_SOURCES: Final = {
    StateSource.REPORTED: "",
    StateSource.WATCHED: "  (seen while ralphdeck ran)",
    StateSource.INFERRED: "  (inferred)",
}


def loop_document(state: ProjectState, loop: Loop, details: LoopDetails) -> Document:
    """Describe a loop with all iterations, its patterns, reflections and files."""
    blocks = (
        *overview(state, loop, details, newest=None),
        *section("Patterns", patterns(state, loop)),
        *section("Reflections", reflection_rows(loop_reflections(state, loop))),
        *section("Files", files(loop, details)),
    )
    return Document(loop.id, blocks)


def loop_reflections(state: ProjectState, loop: Loop) -> list[Reflection]:
    """Return the reflections that name a loop, or an attempt of its sessions."""
    names = {loop.id, *loop.aliases}
    attempts = {(one.task_id, one.number) for one in state.attempts_of(loop)}
    return [
        one
        for one in state.snapshot.reflections.values()
        if one.loop_id in names or (one.task_id, one.attempt) in attempts
    ]


def overview(
    state: ProjectState,
    loop: Loop,
    details: LoopDetails | None,
    offers: Sequence[Block] = (),
    newest: int | None = _NEWEST,
) -> Iterable[Block]:
    """Describe the loop, `offers` to extract, and the `newest` iterations; None for all."""
    seconds = elapsed(loop, state.now)
    differs = loop.raw_status.lower() != loop.status.value
    most = f" of {loop.max_iterations}" if loop.max_iterations else ""
    yield line((loop.task or "no task recorded", "strong"))
    yield line((loop.id, "name"))
    yield from offers
    yield line("")
    yield line(
        loop_sign(loop),
        (f"  ({_reported(loop.raw_status)})", "quiet") if differs and loop.raw_status else None,
        (_STATE_SOURCES[loop.state_source], "warning"),
        ("".join(f"  {badge}" for badge in loop.badges), "warning"),
    )
    ended: Text = ()
    if loop.ended_at:
        ended = (("   ended about " if loop.ended_approximate else "   ended ", "quiet"), Moment(loop.ended_at, ""))
    yield line(
        ("started ", "quiet"),
        Moment(loop.started_at, ""),
        *ended,
        ("   took " if loop.ended_at or loop.status is LoopStatus.UNKNOWN else "   running for ", "quiet"),
        format_duration(seconds) if seconds is not None else "—",
        (f"   iteration {loop.iteration or 0}{most}" if loop.iteration is not None or most else "", "quiet"),
    )
    yield from fields(
        ("Last activity", (loop.liveness_reason or loop.liveness.value).removeprefix("last activity ")),
        ("Waits for", ": ".join(filter(None, (waits_for(loop), loop.question))) if loop.runner else ""),
        ("Answer with", _answer(loop)),
        ("Reason" if loop.status is LoopStatus.WAITING else "Ended because", loop.end_words),
        *_outcome(state, loop),
        ("Last change", Moment(loop.changed_at if loop.runner else None, is_age=True)),
        ("Stories", _stories(loop)),
        ("Done when", "; ".join(loop.criteria)),
        ("Runner", loop.runner),
        ("Agent" if loop.runner else "Owner", _owner(loop)),
        ("Tokens", usage_text(loop.usage)),
        ("Cost", f"{format_cost(cost)} reported" if (cost := loop.usage.cost_usd) is not None else ""),
        ("Started by", loop.parent),
        (plural(len(loop.session_ids), "session"), ", ".join(loop.session_ids[:_MAX_SESSIONS])),
        *(details.facts if details is not None else ()),
        ("Improvement", loop.improvement.text if loop.improvement is not None else ""),
        ("Last result", loop.last_result),
    )
    yield from items("Lessons", loop.learnings[-_MAX_LEARNINGS:])
    known = details.iterations if details is not None else loop.iterations
    title, shown = ("Newest iterations", known[-newest:]) if newest is not None else ("Iterations", known)
    yield from section(title, (block for one in reversed(shown) for block in iteration_blocks(one)))


def _reported(word: str) -> str:
    return ENDED_ITS_TURN if word in END_OF_TURN else f"reported as {word}"


def _answer(loop: Loop) -> Text:
    """Return the agent's command that opens a waiting session; only a session can be opened, not a runner's loop."""
    command = _RESUME.get(loop.owner, "") if loop.runner == loop.owner and needs_person(loop) else ""
    id = loop.session_ids[-1] if loop.session_ids else ""
    if not command or _ID.fullmatch(id) is None:
        return ()
    return (f"{command} {id}", (f"  in {loop.cwd}" if loop.cwd else "", "quiet"))


def _stories(loop: Loop) -> str:
    progress = loop.progress
    return f"{progress.stories_done} of {progress.stories} done" if progress.stories_done is not None else ""


def _outcome(state: ProjectState, loop: Loop) -> Iterable[tuple[str, Part | Text]]:
    """Describe the outcome with reasons and weight; empty while the loop runs."""
    if (found := state.outcome(loop.id)) is not None:
        signals, outcome = found
        verdict = (outcome.verdict.value, VERDICT_STYLES[outcome.verdict])
        weight = (f"   weighs {format_decimal(outcome.decayed)} today", "quiet")
        yield "Outcome", (verdict, outcome.reasoning.removeprefix(outcome.verdict.value), weight)
        yield "Reported", "; ".join(filter(None, (signals.strategy, signals.failure_mode, signals.failure_details)))


def _owner(loop: Loop) -> str:
    return "  ".join(filter(None, (loop.owner, loop.model, loop.priority, ", ".join(loop.tags))))


def usage_text(usage: Usage) -> str:
    """Return the tokens in words, such as `41.9 k: 11.0 k input, 30.0 k cached input, 900 output`."""
    if (total := usage.total) is None:
        return ""
    words = {
        "input": usage.input,
        "cached input": usage.cache_read,
        "input written to the cache": usage.cache_write,
        "output": usage.output,
        "of them reasoning": usage.reasoning,
    }
    parts = ", ".join(f"{format_count(count)} {word}" for word, count in words.items() if count)
    return f"{format_count(total)}: {parts}" if parts else format_count(total)


def elapsed(loop: Loop, now: datetime) -> float | None:
    running = loop.last_activity if loop.status is LoopStatus.UNKNOWN else now
    end = loop.ended_at or (None if loop.status.ended else running)
    if loop.started_at is None or end is None:
        return None
    return max(0.0, (end - loop.started_at).total_seconds())


def iteration_blocks(iteration: Iteration) -> Iterable[Block]:
    """Describe one iteration: a head line, then results, errors and lessons."""
    yield line(
        (f"{'?' if iteration.number is None else iteration.number:>4} ", "accent"),
        outcome_sign(iteration.outcome),
        f"  {iteration.action}",
        *(("  ", Moment(iteration.at)) if iteration.at else ()),
        (f"  {format_duration(iteration.duration_ms / 1000)}" if iteration.duration_ms else "", "quiet"),
        (f"  quality {format_percent(iteration.quality)}" if iteration.quality is not None else "", "name"),
    )
    if iteration.result:
        yield line(iteration.result, indent=5)
    for failure in iteration.failures[:_MAX_ERRORS]:
        yield line(("error: ", "bad"), *error_text(failure), indent=5)
    yield from more(len(iteration.failures), "error", _MAX_ERRORS)
    for text in iteration.learnings:
        if text != iteration.result:
            yield line((f"lesson: {text}", "quiet"), indent=5)
    if iteration.files:
        yield line((", ".join(iteration.files), "quiet"), indent=5)


def error_text(failure: Failure) -> Text:
    location = f"{failure.file}:{failure.line}" if failure.file and failure.line is not None else failure.file
    return (failure.summary, (f"  {location}{f' in {failure.function}' if failure.function else ''}".rstrip(), "quiet"))


def iterations(loop: Loop, details: LoopDetails | None) -> Iterable[Block]:
    known = details.iterations if details is not None else loop.iterations
    blocks = [block for one in reversed(known) for block in iteration_blocks(one)]
    return blocks or [line(("No iteration recorded yet.", "quiet"))]


def patterns(state: ProjectState, loop: Loop) -> Iterable[Block]:
    found, known, reflections = state.loop_patterns(loop.id), state.snapshot.patterns, state.snapshot.reflections
    rows: list[tuple[Text, ...]] = [
        (
            (result_sign(use.success),),
            (_result(use),),
            ((use.pattern_id, "name"),),
            (f"iteration {use.iteration}" if use.iteration is not None else "",),
            _title(known.get(use.pattern_id)),
        )
        for use in found.uses
    ]
    for id in found.reflections:
        text = reflections[id].text if id in reflections else ""
        rows.append(((), (("reflection injected", "quiet"),), ((id, "name"),), (), (text,)))
    rows += [
        (
            (("+", "good"),),
            (("extracted", "good"),),
            ((gained.pattern_id, "name"),),
            (("new" if gained.new else "merged", "quiet"),),
            _title(known.get(gained.pattern_id)),
        )
        for gained in found.extracted
    ]
    if not rows:
        return [line(("No pattern was injected into this loop or extracted from it.", "quiet"))]
    improvement = loop.improvement.text if loop.improvement is not None else ""
    return [Table(("",) * 5, tuple(rows)), *fields(("Improvement", improvement))]


def _title(pattern: Pattern | None) -> Text:
    return (pattern.title,) if pattern else (("not in the registry", "warning"),)


def _result(use: Observation) -> str:
    if use.kind == "injected":
        return "not applied"
    word = {True: "succeeded", False: "failed", None: "no result"}[use.success]
    return f"{word}, as the loop" if use.inferred else word


def reflection_rows(reflections: Sequence[Reflection]) -> Iterable[Block]:
    for one in reflections:
        number = (f"{one.iteration if one.iteration is not None else '?':>4} ", "accent")
        yield line(number, (f"{kind_word(one)}  ", "name"), one.text)
    if not reflections:
        yield line(("No reflection recorded for this loop.", "quiet"))


def files(loop: Loop, details: LoopDetails | None) -> Iterable[Block]:
    checkpoints = details.checkpoints if details is not None else ()
    yield from fields(("Recorded by", ", ".join(loop.sources)), ("Also called", ", ".join(loop.aliases)))
    yield from (line((name, "quiet"), indent=2) for name in loop.files)
    yield from fields((plural(len(checkpoints), "checkpoint"), ", ".join(checkpoints[:_MAX_CHECKPOINTS])))
    for title, text in details.notes if details is not None else ():
        yield from section(title, code("", text, ""))
