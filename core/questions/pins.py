"""Whether a decision on the state of a pattern remains: its text changed, or later results contradict it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from core.base.formatting import format_day
from core.base.text import plural, visible_line
from core.decisions import commands
from core.decisions.rules import why_refused
from core.index import review_items as kinds
from core.questions.answer import SNOOZE_DAYS, Answer, not_now, promotion, reset_effect
from core.records.decisions import VERBS, Verb
from core.records.patterns import Maturity

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.questions.priority import ImpactEstimator
    from core.records.decisions import CurationState, Pin

CONFIRMED: Final = "confirmed in review"  # Default reason to deprecate a pattern again.
_NOUNS: Final = {Maturity.PROVEN: "promotion", Maturity.DEPRECATED: "deprecation"}
"""Nouns of the decisions that can be confirmed."""


def pins(scales: ImpactEstimator, curation: CurationState) -> Iterator[ReviewItem]:
    """Ask about pins whose text has changed, or that later evidence contradicts."""
    board = scales.board
    for pattern_id, pin in curation.pins.items():
        if pattern_id not in board or pattern_id not in scales.patterns:
            continue
        row = board.row(pattern_id)
        is_deprecated = pin.state is Maturity.DEPRECATED
        if board.pin_stale[row]:
            impact = scales.unseen(pattern_id, is_withheld=is_deprecated)
            yield scales.ask(
                kinds.STALE_PIN, pattern_id, partial(_stale_pin, scales, pattern_id, pin), pin, impact=impact
            )
        elif board.contradicted[row]:
            impact, place = scales.since(pattern_id, is_withheld=is_deprecated)
            facts = pin, scales.board.results_since_pin(pattern_id), place
            make = partial(_contradicted, scales, pattern_id, *facts)
            yield scales.ask(kinds.CONTRADICTED, pattern_id, make, *facts, impact=impact)


def _decided(pin: Pin) -> str:
    return f"{pin.verb} by {visible_line(pin.by, 40)} on {format_day(pin.at)}"


def _stale_pin(scales: ImpactEstimator, pattern_id: str, pin: Pin) -> ReviewItem:
    return scales.item(
        kinds.STALE_PIN,
        pattern_id,
        question=f"The text of {{}} has changed since. Keep it {pin.verb}?"
        if pin.state in _NOUNS
        else "The text of {} has changed since it was accepted. Reset it?",
        reason=f"{_decided(pin)}; its text has changed since",
    )


def _contradicted(
    scales: ImpactEstimator, pattern_id: str, pin: Pin, results: tuple[int, int], place: str
) -> ReviewItem:
    good, bad = results
    is_warning, is_deprecated = scales.is_warning(pattern_id), pin.state is Maturity.DEPRECATED
    words = ("right", "wrong") if is_warning else ("succeeded", "failed")
    against, word = (good, words[0]) if is_deprecated else (bad, words[1])
    uses = f"{against} of {plural(good + bad, 'use')} {word}"
    since = f"the warning was {word} in {against} of {good + bad}" if is_warning else uses
    noun = _NOUNS.get(pin.state, "decision")
    return scales.item(
        kinds.CONTRADICTED,
        pattern_id,
        question=f"{visible_line(pin.by, 40)} {pin.verb} {{}}; {uses} since. Undo the {noun}?",
        this="it",
        reason=f"{_decided(pin)}; since then {since}",
        place=place,
    )


def answers(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield answers that remove and keep a pin; `accept` is what the question asks."""
    assessment = state.assessment(item.subject)
    why = "its text has changed" if item.kind == kinds.STALE_PIN else "later evidence contradicts it"
    can_keep = assessment.pin is not None and assessment.pin.state is not Maturity.ESTABLISHED
    asks_to_keep = item.kind == kinds.STALE_PIN and can_keep
    action = "reject" if asks_to_keep else "accept"
    reset = Answer(action, VERBS[Verb.RESET].word, reset_effect(assessment), commands.Reset(item.subject, reason=why))
    if not can_keep:
        yield from (reset, not_now(item, state, "not now", SNOOZE_DAYS))
        return
    keep = _same_pin(item.subject, "accept" if asks_to_keep else "reject", state)
    yield from (keep, reset) if asks_to_keep else (reset, keep)


def _same_pin(id: str, action: str, state: ProjectState) -> Answer:
    """Make an answer that repeats the decision for the current text and evidence."""
    pin = state.assessment(id).pin
    if pin is not None and pin.state is Maturity.DEPRECATED:
        command = commands.Deprecate(id, reason=pin.reason or CONFIRMED)
        why_not = why_refused(command, state)
        return Answer(action, "keep", "stays deprecated until reset", command, why_not=why_not)
    effect = "stays proven until reset"
    return replace(promotion(id, state), action=action, label="keep", effect=effect)
