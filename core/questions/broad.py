"""Whether to hold back a pattern whose trigger matches most common messages: find it, ask, answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml
from msgspec import Struct

from core.base.text import Matcher, visible_line
from core.decisions import commands
from core.decisions.rules import why_refused
from core.index import review_items as kinds
from core.index.verdicts import StoredVerdicts, read_in_steps, write_in_steps
from core.questions.answer import Answer, dismissal, yes
from core.questions.impact import WASTED_USE

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.questions.priority import ImpactEstimator
    from core.records.decisions import CurationState
    from core.records.patterns import Pattern

_KIND: Final = "broad"


class TriggerVerdict(Struct, frozen=True, array_like=True):
    """The largest share of common messages that a trigger of a text matches, 0..1."""

    share: float


def find_broad_triggers(view: ProjectState, stored: StoredVerdicts) -> Steps[dict[str, float]]:
    """Match triggers against common messages; returns the share that one matches, 0..1, by pattern, if it is too large.

    A text that was matched before is not matched again.
    """
    patterns = view.snapshot.patterns
    texts = {}
    for id in patterns:
        texts[id] = patterns[id].content_hash
        yield
    verdicts = yield from read_in_steps(stored, _KIND, set(texts.values()), TriggerVerdict)
    new = {}
    for id, text in texts.items():
        if text not in verdicts:
            verdicts[text] = new[text] = TriggerVerdict(trigger_match_share(patterns[id]))
            yield
    yield from write_in_steps(stored, _KIND, new)
    shares = {id: verdicts[text].share for id, text in texts.items()}
    return {id: share for id, share in shares.items() if share >= view.settings.review.broad_share}


def trigger_match_share(pattern: Pattern) -> float:
    """Return the largest share of common messages that a trigger matches, 0..1."""
    messages = common_messages()
    triggers = ((pattern.error_pattern, messages["errors"]), (pattern.task_pattern, messages["tasks"]))
    return max(sum(map(Matcher(source).matches, texts)) / len(texts) if source else 0.0 for source, texts in triggers)


@cache
def common_messages() -> Mapping[str, Sequence[str]]:
    """Return unrelated common `errors` and `tasks`; a broad trigger matches most."""
    data = Path(__file__).with_name("common_messages.yaml").read_bytes()
    found: Mapping[str, Sequence[str]] = yaml.load(data, yaml.CSafeLoader)
    return found


def broad(scales: ImpactEstimator, curation: CurationState, shares: Mapping[str, float]) -> Iterator[ReviewItem]:
    """Ask about patterns with a trigger that matches most common messages, unless a person approved the text."""
    for pattern_id, share in shares.items():
        pattern = scales.patterns.get(pattern_id)
        if pattern is None or pattern_id not in scales.board:
            continue
        row = scales.board.row(pattern_id)
        if scales.stakes.is_withheld[row] or curation.approves(pattern_id, pattern.content_hash):
            continue
        yield scales.item(
            kinds.BROAD,
            pattern_id,
            question="The trigger of {} matches nearly everything. Hold it back?",
            reason=f"{visible_line(pattern.error_pattern or pattern.task_pattern, 80)} matches "
            f"{share:.0%} of common messages",
            impact=WASTED_USE * share * scales.uses(pattern_id) + scales.held(pattern_id),
        )


TOO_BROAD: Final = "its trigger matches nearly everything"
"""Default reason to quarantine a pattern with a broad trigger."""


def answers(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which holds it back, and no, which keeps it."""
    quarantine = commands.Quarantine(item.subject, reason=TOO_BROAD)
    effect = "no agent gets it until it is changed and released"
    yield yes("quarantine", effect, quarantine, why_not=why_refused(quarantine, state))
    summary = f"kept the broad trigger of {visible_line(item.subject, 80)}"
    yield dismissal(item, "reject", "keep", summary, "it stays as it is")
