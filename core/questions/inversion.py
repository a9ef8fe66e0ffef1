"""Whether a pattern that often fails becomes a warning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from core.base.formatting import format_day
from core.base.text import plural
from core.decisions import commands
from core.index.review_items import INVERSION
from core.questions.answer import Answer, no, yes
from core.questions.impact import WARNED_SHARE
from core.records.decisions import VERBS, Verb
from core.records.patterns import Maturity

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.learning.inversion import Inversion
    from core.questions.asking import Asker
    from core.records.patterns import Pattern


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
