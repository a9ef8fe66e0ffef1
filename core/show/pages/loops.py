"""Loops as documents."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from core.base.formatting import format_cost, format_count, format_duration, format_percent
from core.base.pattern_titles import pattern_title
from core.base.regexes import lazy_regex
from core.base.text import plural
from core.records.loops import CONTRADICTED, LoopStatus, StateSource, needs_person, waits_for
from core.show.pages.document import Block, Moment, Part, Sign, Table, Text, code, fields, items, line, more, section
from core.show.pages.reflections import kind_word
from core.show.pages.signs import loop_sign, outcome_sign, result_sign

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.learning.following import WorkVerdict
    from core.records.debug_sessions import Failure
    from core.records.events import Observation
    from core.records.loops import Iteration, Loop, LoopDetails, Usage
    from core.records.patterns import Pattern
    from core.records.reflections import Reflection
    from core.sources.adapters.contract import Delivery


_ID: Final = lazy_regex(r"\w[\w-]{0,79}")
_RESUME: Final = {"claude": "claude --resume", "codex": "codex resume"}
_ONLY_REPORTED: Final = "its files report the status"
_MAX_ERRORS: Final = 5
_MAX_LEARNINGS: Final = 8
_MAX_SESSIONS: Final = 6
NEWEST: Final = 4  # Iterations in the overview.
_MAX_CHECKPOINTS: Final = 12
_STATE_SOURCES: Final = {
    StateSource.REPORTED: "",
    StateSource.WATCHED: "seen while ralphdeck ran",
    StateSource.INFERRED: "concluded from its last activity, because no file reports it",
}
_BADGES: Final = {
    "unregistered": "not in the registry",
    "orphan": "running, but not in the registry",
    "stale": "no activity for a while",
    "registered-only": "only in the registry",
    "archived-but-registered": "archived, but in the registry",
    "status-disagrees": "its files disagree about the status",
    "id-disagrees": "its files disagree about the ID",
    CONTRADICTED: "success is claimed, but contradicted",
}
_FACTS: Final = {
    "selection": "selected because",
    "iteration time": "time at work",
    "trajectory": "quality",
    "diminishing returns from": "little gain since",
}
"""Labels that people read for the facts of a loop."""


class Result(StrEnum):
    """Result of a session that has ended."""

    WORKED = "worked"
    FAILED = "failed"
    UNCLEAR = "unclear"


_RESULT_STYLES: Final = {Result.WORKED: "good", Result.FAILED: "bad", Result.UNCLEAR: "quiet"}


def find_result(state: ProjectState, loop: Loop) -> Result | None:
    """Return whether a loop worked, by reports and checks; None if it has not ended."""
    if not loop.is_over:
        return None
    if CONTRADICTED in loop.badges:
        return Result.UNCLEAR
    success = state.inputs.success_of(loop)
    return Result.UNCLEAR if success is None else Result.WORKED if success else Result.FAILED


def loop_result_sign(result: Result) -> Sign:
    return Sign(result.value, _RESULT_STYLES[result])


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
    newest: int | None = NEWEST,
) -> Iterable[Block]:
    """Describe the loop, `offers` to extract and the `newest` iterations (None: all)."""
    seconds = elapsed(loop, state.now)
    differs = loop.raw_status.lower() != loop.status.value
    most = f" of {loop.max_iterations}" if loop.max_iterations else ""
    yield from offers
    yield line(
        loop_sign(loop),
        (f"  ({_reported(loop)})", "quiet") if differs and _reported(loop) else None,
        ("".join(f"  {_BADGES.get(badge, badge)}" for badge in loop.badges if badge != "crashed"), "warning"),
        (f"   {loop.id}", "quiet"),
    )
    ended: Text = ()
    if loop.ended_at:
        ended = (("   ended ", "quiet"), Moment(loop.ended_at, ""))
    yield line(
        ("started ", "quiet"),
        Moment(loop.started_at, ""),
        *ended,
        ("   running for " if loop.is_running else "   took ", "quiet"),
        format_duration(seconds) if seconds is not None else "—",
        (f"   iteration {loop.iteration or 0}{most}" if loop.iteration is not None or most else "", "quiet"),
    )
    yield from fields(
        ("Status", _STATE_SOURCES[loop.state_source]),
        ("Last activity", _last_sign(loop)),
        ("Waits for", ": ".join(filter(None, (waits_for(loop), loop.question))) if loop.runner else ""),
        ("Answer with", answer_command(loop) if needs_person(loop) else ()),
        ("Reason" if loop.status is LoopStatus.WAITING else "Ended because", loop.end_words),
        *_result_rows(state, loop),
        ("Last change", Moment(loop.changed_at if loop.runner else None, is_age=True)),
        ("Stories", _stories(loop)),
        ("Done when", "; ".join(loop.criteria)),
        ("Runner", loop.runner),
        ("Agent", _owner(loop)),
        ("Lessons", _lessons(state, loop)),
        ("Tokens", usage_text(loop.usage)),
        ("Cost", f"{format_cost(cost)} reported" if (cost := loop.usage.cost_usd) is not None else ""),
        ("Started by", loop.parent),
        (plural(len(loop.session_ids), "session"), ", ".join(loop.session_ids[:_MAX_SESSIONS])),
        *(_facts(details) if details is not None else ()),
        ("Last result", loop.last_result),
    )
    yield from items("Lessons", loop.learnings[-_MAX_LEARNINGS:])
    known = details.iterations if details is not None else loop.iterations
    title, shown = ("Newest iterations", known[-newest:]) if newest is not None else ("Iterations", known)
    yield from section(title, (block for one in reversed(shown) for block in iteration_blocks(one)))


def _reported(loop: Loop) -> str:
    """Return the files' word for a status; "" for an agent's word for its last event."""
    return f"reported as {loop.raw_status}" if loop.raw_status and not loop.is_agent_session else ""


def _last_sign(loop: Loop) -> str:
    """Return what is known about the last activity; "" if only the end is reported."""
    reason = loop.liveness_reason or loop.liveness.value
    return "" if reason.startswith(_ONLY_REPORTED) and loop.status.ended else reason.removeprefix("last activity ")


def _facts(details: LoopDetails) -> Iterable[tuple[str, str]]:
    """Yield the facts of a loop with the labels that people read, each value once."""
    facts = dict(details.facts)
    if facts.get("selected iteration") == facts.get("best iteration"):
        facts.pop("selected iteration", None)
    return ((_FACTS.get(label, label).capitalize(), value) for label, value in facts.items())


def _lessons(state: ProjectState, loop: Loop) -> str:
    """Describe how many lessons a loop was given, followed, held out and found."""
    found = state.loop_patterns(loop.id)
    given, followed, ignored = len(found.injected_ids), len(found.followed_ids), len(found.ignored_ids)
    counts = (
        (given, "given"),
        (followed, "followed"),
        (ignored, "not followed"),
        (given - followed - ignored if loop.is_over else 0, "can't tell"),
        (len(found.held_out), "held out (experiment)"),
        (len(found.extracted), "found"),
    )
    return ", ".join(f"{count} {word}" for count, word in counts if count)


def answer_command(loop: Loop) -> Text:
    """Return the agent's command to answer in its newest session; () for a runner."""
    command = _RESUME.get(loop.owner, "") if loop.runner == loop.owner else ""
    id = loop.session_ids[-1] if loop.session_ids else ""
    if not command or _ID.fullmatch(id) is None:
        return ()
    return (f"{command} {id}", (f"  in {loop.cwd}" if loop.cwd else "", "quiet"))


def _stories(loop: Loop) -> str:
    progress = loop.progress
    return f"{progress.stories_done} of {progress.stories} done" if progress.stories_done is not None else ""


def _result_rows(state: ProjectState, loop: Loop) -> Iterable[tuple[str, Part | Text]]:
    """Describe the result and what it is judged by; empty while the loop runs."""
    result, found = find_result(state, loop), state.outcome(loop.id)
    if result is None:
        return
    signals = found[0] if found is not None else None
    counts: list[str] = []
    if signals is not None:
        known = ((signals.error_count, "error"), (signals.retry_count, "retry"))
        counts = [plural(count, noun, "retries" if noun == "retry" else None) for count, noun in known if count]
    yield "Result", (loop_result_sign(result), (f"   {', '.join(counts)}" if counts else "", "quiet"))
    if signals is not None:
        reported = (signals.strategy, signals.failure_mode, signals.failure_details)
        yield "Reported", "; ".join(filter(None, reported))


def _owner(loop: Loop) -> str:
    return "  ".join(filter(None, (loop.agent, loop.model, loop.priority, ", ".join(loop.tags))))


def usage_text(usage: Usage) -> str:
    """Return tokens such as `41.9 k: 11.0 k input, 30.0 k cached input, 900 output`."""
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
    """Describe lessons given, followed, held out and found in a loop."""
    found, known, reflections = state.loop_patterns(loop.id), state.snapshot.patterns, state.snapshot.reflections
    rows: list[tuple[Text, ...]] = [
        (
            (result_sign(use.success), " ", *use_result(use, found.verdicts.get(use.pattern_id))),
            _title(known.get(use.pattern_id)),
            (f"iteration {use.iteration}" if use.iteration is not None else "",),
            ((use.pattern_id, "quiet"),),
        )
        for use in found.uses
    ]
    for id in found.reflections:
        text = reflections[id].text if id in reflections else ""
        rows.append(((("  given, a reflection", "quiet"),), (text,), (), ((id, "quiet"),)))
    rows += [
        ((("  held out (experiment)", "quiet"),), _title(known.get(id)), (), ((id, "quiet"),)) for id in found.held_out
    ]
    rows += [
        (
            (("+ found here", "good"),),
            _title(known.get(gained.pattern_id)),
            (("" if gained.new else "known before", "quiet"),),
            ((gained.pattern_id, "quiet"),),
        )
        for gained in found.extracted
    ]
    if not rows:
        return [line(("No lesson was given to this session or found in it.", "quiet"))]
    improvement = loop.improvement.text if loop.improvement is not None else ""
    return [Table(("",) * 4, tuple(rows)), *fields(("Improvement", improvement))]


def lesson_blocks(state: ProjectState, loop: Loop, pattern_id: str) -> Iterable[Block]:
    """Describe the uses of one lesson in a loop."""
    found, pattern = state.loop_patterns(loop.id), state.snapshot.patterns.get(pattern_id)
    yield line(*_title(pattern))
    yield line((pattern_id, "quiet"))
    yield line("")
    for use in (use for use in found.uses if use.pattern_id == pattern_id):
        at = ("   ", Moment(use.at)) if use.at else ()
        yield line(result_sign(use.success), " ", *use_result(use, found.verdicts.get(pattern_id)), *at)
    if (verdict := found.verdicts.get(pattern_id)) is not None and verdict.evidence:
        place = f"{verdict.place} of {verdict.work_id}: " if verdict.place else ""
        yield line((f"{place}{verdict.evidence}", "quiet"), indent=2)
    if pattern_id in found.held_out:
        yield line(("held out of this session by the experiment", "quiet"))
    if any(gained.pattern_id == pattern_id for gained in found.extracted):
        yield line(("+ found here", "good"))
    yield from fields(("Fix", pattern.description if pattern is not None else ""))


def _title(pattern: Pattern | None) -> Text:
    return (pattern_title(pattern),) if pattern else (("not in the registry", "warning"),)


def use_result(use: Observation, verdict: WorkVerdict | None = None) -> Text:
    """Return a lesson's result: `given`, `given, not followed` or `followed, worked`."""
    if use.kind == "injected":
        word = f", {verdict.word}" if verdict is not None and verdict.is_followed is not None else ""
        return ((f"given{word}", "quiet"),)
    word = {True: "worked", False: "failed", None: "no result"}[use.success]
    return (f"followed, {word}{', as the session' if use.inferred else ''}",)


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


OWN_WAY: Final = "A loop in .aiwg gets its context from `ralphdeck loop inject`."
BY_HOOK: Final = "This runner has no own way in: its agent gets the context from the hooks of `ralphdeck connect`."


def delivery_explanation(loop: Loop, delivery: Delivery | None, obstacle: str = "") -> str:
    """Return how the context gets to the loop, after the `obstacle` at present."""
    way = BY_HOOK if loop.runner else OWN_WAY
    if delivery is not None:
        way = delivery.explanation
    return f"{obstacle}. When there is a context: {way}" if obstacle else way


def delivery_text(delivery: Delivery | None) -> str:
    """Return the command for a POSIX shell, or the diff to apply, else ""."""
    if delivery is None:
        return ""
    return shlex.join(delivery.command) + "\n" if delivery.command else delivery.diff


def delivery_blocks(loop: Loop, delivery: Delivery | None, obstacle: str = "") -> Iterable[Block]:
    """Describe what a person can do; nothing is written to files of the runner."""
    yield line(delivery_explanation(loop, delivery, obstacle))
    if text := delivery_text(delivery):
        yield line("")
        is_diff = delivery is not None and not delivery.command
        yield from code("Change to apply" if is_diff else "Command to run", text, "diff" if is_diff else "sh")
