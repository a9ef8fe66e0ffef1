"""Whether a pattern keeps its state, or becomes a warning.

Its text or its results changed since a decision, its state may be the wrong one, or it fails often.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from core.base.formatting import format_day
from core.base.text import plural, visible_line
from core.decisions import commands
from core.decisions.rules import why_refused
from core.index.review_items import BORDERLINE, CONTRADICTED, INVERSION, STALE_PIN
from core.learning.maturity import STATES, state_codes
from core.questions.answer import REJECTED, SNOOZE_DAYS, Answer, dismissal, no, not_now, promotion, reset_effect, yes
from core.questions.impact import WARNED_SHARE, net
from core.records.decisions import RE_ENABLE, VERBS, Verb
from core.records.patterns import Maturity

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.learning.inversion import Inversion
    from core.learning.scores import Flags, Floats, Ints
    from core.questions.asking import Asker
    from core.records.decisions import Pin
    from core.records.patterns import Pattern


CONFIRMED: Final = "confirmed in review"  # Default reason to deprecate a pattern again.
_NOUNS: Final = {Maturity.PROVEN: "promotion", Maturity.DEPRECATED: "deprecation"}
"""Nouns of the decisions that can be confirmed."""


def ask_pins(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about pins whose text has changed, or that later evidence contradicts."""
    board = asker.board
    for pattern_id, pin in asker.curation.pins.items():
        if pattern_id not in board or pattern_id not in asker.patterns:
            continue
        row = board.row(pattern_id)
        is_deprecated = pin.state is Maturity.DEPRECATED
        if board.pin_stale[row]:
            impact = asker.unjudged_impact(pattern_id, is_withheld=is_deprecated)
            yield asker.ask(STALE_PIN, pattern_id, partial(_stale_pin, asker, pattern_id, pin), pin, impact=impact)
        elif board.contradicted[row]:
            below, above, _ = asker.impacts.since_pin[row]  # by the results since the decision alone
            impact = float(asker.impacts.uses[row]) * (above if is_deprecated else below)
            place = asker.place(pattern_id)
            facts = pin, asker.board.results_since_pin(pattern_id), place
            make = partial(_contradicted, asker, pattern_id, *facts)
            yield asker.ask(CONTRADICTED, pattern_id, make, *facts, impact=impact)


def _decided(pin: Pin) -> str:
    return f"{pin.verb} by {visible_line(pin.by, 40)} on {format_day(pin.at)}"


def _stale_pin(asker: Asker, pattern_id: str, pin: Pin) -> ReviewItem:
    return asker.item(
        STALE_PIN,
        pattern_id,
        question=f"The text of {{}} has changed since. Keep it {pin.verb}?"
        if pin.state in _NOUNS
        else "The text of {} has changed since it was accepted. Reset it?",
        reason=f"{_decided(pin)}; its text has changed since",
    )


def _contradicted(asker: Asker, pattern_id: str, pin: Pin, results: tuple[int, int], place: str) -> ReviewItem:
    good, bad = results
    is_warning, is_deprecated = asker.is_warning(pattern_id), pin.state is Maturity.DEPRECATED
    words = ("right", "wrong") if is_warning else ("succeeded", "failed")
    against, word = (good, words[0]) if is_deprecated else (bad, words[1])
    uses = f"{against} of {plural(good + bad, 'use')} {word}"
    since = f"the warning was {word} in {against} of {good + bad}" if is_warning else uses
    noun = _NOUNS.get(pin.state, "decision")
    return asker.item(
        CONTRADICTED,
        pattern_id,
        question=f"{visible_line(pin.by, 40)} {pin.verb} {{}}; {uses} since. Undo the {noun}?",
        this="it",
        reason=f"{_decided(pin)}; since then {since}",
        place=place,
    )


def answer_pin(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield answers that remove and keep a pin; `accept` is what the question asks."""
    assessment = state.assessment(item.subject)
    why = "its text has changed" if item.kind == STALE_PIN else "later evidence contradicts it"
    can_keep = assessment.pin is not None and assessment.pin.state is not Maturity.ESTABLISHED
    asks_to_keep = item.kind == STALE_PIN and can_keep
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


_FIRST_TRIED: Final = 2000  # Patterns of the highest impact that are tried first.
MOST_BORDERLINE: Final = 50  # Maximum number of borderline questions at a time, highest impact first.


def ask_borderline(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about unpinned borderline states, if worth the time and asked nowhere else."""
    if not asker.patterns:
        return
    board, settings, impacts = asker.board, asker.settings, asker.impacts
    maturity, now = settings.maturity, board.computed_codes
    later = board.rescored(board.now + timedelta(days=settings.review.soon_days))
    undecided: Flags = ~(board.pinned | board.quarantined | board.inversion_pending) & (board.uses > 0)
    others = {*asker.decided, *asker.asked_about, *(one.pattern_id for one in asker.records.harmful)}
    undecided[board.rows_of(id for id in others if id in board)] = False
    rows = np.flatnonzero(undecided)
    for count in (_FIRST_TRIED, len(rows)):
        tried = _highest(rows, impacts.held, count)
        helpful, harmful = board.helpful[tried], board.harmful[tried]
        turned = (
            state_codes(helpful + 1.0, harmful, maturity),
            state_codes(helpful, harmful + 1.0, maturity),
            state_codes(later.helpful[tried], later.harmful[tried], maturity),
        )
        wrong = np.where(impacts.is_withheld[tried], 1.0 - impacts.chance[tried], impacts.chance[tried])
        on_border = (wrong >= settings.review.doubt) | np.any([codes != now[tried] for codes in turned], axis=0)
        places = np.flatnonzero(on_border)
        places = places[np.argsort(-impacts.held[tried[places]], kind="stable")[:MOST_BORDERLINE]]
        if len(places) == MOST_BORDERLINE or len(tried) == len(rows):
            break
    for place in places.tolist():
        row = int(tried[place])
        pattern_id = board.ids[row]
        pattern = asker.patterns.get(pattern_id)
        if pattern is None or pattern.copy_folder:
            continue
        if impacts.is_withheld[row] and STATES[now[row]] is not Maturity.DEPRECATED:
            continue  # withheld for its low rate: only a promotion could change that
        states = tuple(STATES[codes[place]] for codes in (now[tried], *turned))
        facts = bool(impacts.is_withheld[row]), _results_text(asker, row), states, asker.place(pattern_id)
        make = partial(_borderline, asker, pattern_id, *facts)
        item = asker.ask(BORDERLINE, pattern_id, make, *facts, impact=float(impacts.held[row]))
        if net(item.impact, item.seconds, settings) > 0:
            yield item


def _borderline(
    asker: Asker, pattern_id: str, is_withheld: bool, results: str, states: Sequence[Maturity], place: str
) -> ReviewItem:
    return asker.item(
        BORDERLINE,
        pattern_id,
        question="Let agents have {} again?" if is_withheld else "Keep giving {} to agents?",
        reason=f"{states[0]}, {results}{_border(asker, pattern_id, *states)}",
        place=place,
    )


def _results_text(asker: Asker, row: int) -> str:
    """Describe results of a pattern, or how often its warning was right."""
    board = asker.board
    uses = int(board.uses[row])
    if asker.is_warning(board.ids[row]):
        return f"the warning was right in {int(board.successes[row])} of {uses}"
    return f"{int(board.failures[row])} of {plural(uses, 'use')} failed"


def _highest(rows: Ints, values: Floats, count: int) -> Ints:
    """Return the rows of the `count` highest values and ties, in the order of rows."""
    if count < len(rows):
        least = np.partition(values[rows], len(rows) - count)[len(rows) - count]
        rows = rows[values[rows] >= least]
    return rows


def _border(asker: Asker, pattern_id: str, now: Maturity, better: Maturity, worse: Maturity, later: Maturity) -> str:
    """Describe what would change the state.

    The states are those now, with one more success, with one more failure, and soon, by age alone.
    """
    failure, success = "failure", "success"
    if asker.is_warning(pattern_id):
        failure, success = "wrong warning", "right warning"
    turns = ((worse, failure), (better, success))
    parts = [f"one more {result} makes it {state}" for state, result in turns if state is not now]
    if later is not now:
        parts.append(f"decays to {later} within {asker.settings.review.soon_days:g} days")
    return "".join(f"; {part}" for part in parts)


def answer_borderline(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield answers that re-enable a deprecated pattern, or keep a state."""
    id, name, assessment = item.subject, visible_line(item.subject, 80), state.assessment(item.subject)
    if assessment.state is Maturity.DEPRECATED:
        if assessment.pin is None:
            effect = "established: given again, with the weight of its evidence"
            if state.has_low_rate(id):
                least = state.settings.injection.min_success_rate
                effect = f"established, but left out of prompts until its rate is at least {least:.0%}"
            yield yes(RE_ENABLE.word, effect, commands.Release(id), needs_reason=assessment.blocked)
        else:
            yield yes(RE_ENABLE.word, reset_effect(assessment), commands.Reset(id))
        yield dismissal(item, "reject", "leave", f"left {name} deprecated: the evidence decides", "no agent gets it")
    else:
        yield dismissal(
            item, "accept", "keep", f"kept injecting {name}: the evidence decides", "it stays: the evidence decides"
        )
        deprecate = commands.Deprecate(id, reason=REJECTED)
        yield no("deprecate", "no agent gets it until reset", deprecate, why_not=why_refused(deprecate, state))


@dataclass(frozen=True, slots=True)
class WarningEdits:
    """Edits of a proposed warning before it is accepted."""

    text: str = ""  # "" for the proposed one
    better: str | None = None  # ID of the alternative pattern, "" for none; None for the proposed one

    def edit_proposal(self, proposal: Inversion, patterns: Mapping[str, Pattern]) -> Inversion:
        """Return the proposed warning with the edits."""
        if self.text:
            proposal = proposal.with_text(self.text)
        return proposal if self.better is None else proposal.with_alternative(patterns.get(self.better))

    def edit_answer(self, answer: Answer, pattern_id: str) -> Answer:
        """Return the answer that accepts the warning with the edits."""
        command = commands.AcceptInversion(pattern_id, text=self.text or None, better=self.better)
        return replace(answer, effect="your warning takes its place" if self.text else answer.effect, command=command)


def ask_inversions(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about patterns that fail often enough to become anti-patterns."""
    board, settings, impacts = asker.board, asker.settings, asker.impacts
    for row in np.flatnonzero(board.inversion_due).tolist():
        pattern_id = board.ids[row]
        if pattern_id not in asker.patterns:
            continue
        failures = int(board.failures[row])
        total = failures + int(board.successes[row])
        verdict, again = asker.curation.inversions.get(pattern_id), ""
        if verdict is not None and verdict.verdict == "accepted":
            continue  # the board may be older than the last decision
        if verdict is not None and verdict.verdict == "rejected":
            more = failures - verdict.failures
            if more < settings.anti_pattern.failures_until_asked_again:
                continue
            again = f"; rejected on {format_day(verdict.at)}, {plural(more, 'further failure')} since"
        make = partial(
            asker.item,
            INVERSION,
            pattern_id,
            question=f"{failures} of {plural(total, 'use')} of {{}} failed. Warn agents of it instead?",
            reason=f"{failures} of {plural(total, 'use')} failed{again}",
        )
        # While the question is open, neither the pattern nor a warning of it is injected.
        impact = float(impacts.uses[row] * (impacts.above[row] + WARNED_SHARE * impacts.unwarned[row]))
        propose = partial(board.proposal, pattern_id)
        yield asker.ask(INVERSION, pattern_id, make, failures, total, again, impact=impact, propose=propose)


def answer_inversion(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which accepts the warning, no, and the edited warning."""
    failures = state.settings.anti_pattern.failures_until_asked_again
    by_rule = state.assessment(item.subject).computed is Maturity.DEPRECATED
    outcome = "stays deprecated" if by_rule else "agents get it again"
    accepts, rejects = VERBS[Verb.ACCEPT_INVERSION].word, VERBS[Verb.REJECT_INVERSION].word
    yield yes(accepts, "a warning takes its place", commands.AcceptInversion(item.subject))
    again = f"asked again after {plural(failures, 'more failure')}"
    yield no(rejects, f"{outcome}; {again}", commands.RejectInversion(item.subject))
    yield Answer("rewrite", "rewrite", "a warning in your words", commands.AcceptInversion(item.subject))
