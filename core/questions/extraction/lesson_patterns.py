"""Candidate patterns from lessons of agents and runners (docs/adapters.md#lessons)."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from core.base.polarity import parse_warning, read_warning
from core.base.record_text import lesson_name, one_line
from core.questions.extraction.control_texts import remove_controls
from core.questions.extraction.errors import parse_error
from core.questions.extraction.proposals import draft_pattern
from core.questions.extraction.record_parts import make_source, parse_pattern, without_uses
from core.questions.extraction.selection import KnownPatterns, mark_duplicate, narrow_trigger
from core.records.debug_sessions import Failure
from core.records.extractions import Extraction, Proposal
from core.records.lessons import JoinedLesson, Lesson, LessonKind, LessonState
from core.records.patterns import PatternType

if TYPE_CHECKING:
    from core.base.settings import ExtractionSettings

_MAX_SOURCES: Final = 20


def pattern_type(lesson: Lesson) -> PatternType | None:
    """Return the type of the pattern that a lesson can become; None for a fact."""
    match lesson.kind:
        case LessonKind.FACT:
            return None
        case LessonKind.FIX if lesson.trigger:
            return PatternType.ERROR
    return PatternType.ANTI if parse_warning(one_line(lesson.text)) else PatternType.SUCCESS


def extract_lesson(
    joined: JoinedLesson,
    known: KnownPatterns,
    settings: ExtractionSettings,
    types: Set[PatternType],
) -> Extraction:
    """Extract a candidate from a lesson, or explain why there is none.

    The kind of the lesson decides its type, unless exactly one of the `types` is asked for.
    """
    kind = next(iter(types)) if len(types) == 1 else pattern_type(joined.lesson)
    offer = Extraction(source_id=joined.id, about=lesson_name(joined.lesson.text))
    if kind is None:
        return replace(offer, missing=("it is a fact, not advice; name a pattern type to make a pattern of it",))
    if kind is PatternType.TEMPLATE:
        return replace(offer, missing=("a lesson has no code for a template",))
    error = parse_error(Failure(message=one_line(joined.lesson.trigger)), "a lesson", None, None)
    if kind is PatternType.ERROR and error is None:
        return replace(offer, missing=("it does not name the error that it fixes; name another pattern type",))
    proposal = _propose(joined, kind)
    if kind is PatternType.ERROR and error is not None:
        proposal = narrow_trigger(proposal, error, known, settings)
    return replace(offer, proposals=(_compare(proposal, joined, known, settings),))


def _propose(joined: JoinedLesson, kind: PatternType) -> Proposal:
    lesson = joined.lesson
    text, why, better = one_line(lesson.text), one_line(lesson.why), ""
    if kind is PatternType.ANTI:
        text, _, better, reason = read_warning(text)
        why = "; ".join(filter(None, (reason, why)))
    sources: dict[str, dict[str, Any]] = {}
    for place in joined.places[:_MAX_SOURCES]:
        source_id = place.loop_id or place.id
        source = make_source(source_id, place.at, by=place.runner, file=place.file, line=place.line)
        sources.setdefault(source_id, source)
    places = (one_line(f"{place.runner} {place.file}:{place.line}") for place in joined.places[:_MAX_SOURCES])
    origin: dict[str, Any] = {
        "sources": list(sources.values()),
        "at": min((place.at for place in joined.places if place.at is not None), default=None),
        "trace": tuple(dict.fromkeys(places)),
    }
    proposal = draft_pattern(kind, one_line(lesson.trigger), text, why, better=better, **origin)
    record = {key: value for key, value in proposal.record.items() if key != "last_used"}
    record["name"] = remove_controls(one_line(lesson.text))
    return replace(proposal, record=record | without_uses(kind))


def _compare(proposal: Proposal, joined: JoinedLesson, known: KnownPatterns, settings: ExtractionSettings) -> Proposal:
    """Mark a proposal as new, as a use of a registered pattern, or as already known."""
    if proposal.refused:
        return proposal
    if joined.state is LessonState.ACCEPTED:
        for id in joined.patterns:
            if id in known.patterns:
                return replace(proposal, refused=f"already accepted as {id}", known_as=id)
    pattern = parse_pattern(proposal.type, proposal.slug, proposal.record)
    similar = known.similar.nearest(pattern, settings.similarity_threshold)
    sources = {source["loop_id"] for source in proposal.record["source_loops"]}
    for id, _ in similar:
        if sources & {source.loop_id for source in known.patterns[id].source_loops}:
            return replace(proposal, refused=f"already known from its session as {id}", known_as=id)
    return mark_duplicate(proposal, similar, settings)
