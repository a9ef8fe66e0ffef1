"""Whether to hold back a pattern whose trigger matches most common messages: find it, ask, answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml
from msgspec import Struct

from core.base.text import Matcher, visible_line
from core.curation import commands
from core.curation.rules import why_refused
from core.index.verdicts import StoredVerdicts, read_verdicts, write_verdicts
from core.questions.answer import Answer, dismissal, yes
from core.questions.impact import WASTED_USE
from core.state import review_items as kinds

if TYPE_CHECKING:
    from core.config.settings import ReviewSettings
    from core.questions.priority import ImpactEstimator
    from core.records.decisions import CurationState
    from core.records.patterns import Pattern
    from core.state.project_state import ProjectState
    from core.state.review_items import ReviewItem

_AT_ONCE: Final = 50  # Triggers checked in one step, about 5 ms.
_KIND: Final = "broad"


class TriggerVerdict(Struct, frozen=True, array_like=True):
    """The largest share of common messages that a trigger of a text matches, 0..1."""

    share: float


class BroadTriggerSearch:
    """Matches triggers against common messages, some in a step; not thread-safe.

    `found` has the share of common messages that a trigger matches, 0..1, by pattern, if it is too large.
    """

    def __init__(self, settings: ReviewSettings, stored: StoredVerdicts) -> None:
        self.found: Mapping[str, float] = {}
        self._settings = settings
        self._stored = stored
        self._patterns: Mapping[str, Pattern] | None = None
        self._untried: list[str] = []
        self._new: dict[str, TriggerVerdict] = {}  # verdicts that are not stored yet, by content hash

    def look(self, patterns: Mapping[str, Pattern]) -> bool | None:
        """Do one step; whether `found` changed, None if nothing is left to check."""
        if self._patterns is not patterns:
            return self._follow(patterns)
        if not self._untried:
            return None
        for id in self._untried[:_AT_ONCE]:
            text = patterns[id].content_hash
            self._new[text] = TriggerVerdict(trigger_match_share(patterns[id]))
        changed = self._add({id: self._new[patterns[id].content_hash] for id in self._untried[:_AT_ONCE]})
        del self._untried[:_AT_ONCE]
        if not self._untried:
            write_verdicts(self._stored, _KIND, self._new)
            self._new = {}
        return changed

    def _follow(self, patterns: Mapping[str, Pattern]) -> bool:
        """Choose the patterns whose text was not tried yet, and use their stored verdicts."""
        before, untried = self._patterns or {}, set(self._untried)
        tried = {id: pattern.content_hash for id, pattern in before.items() if id not in untried}
        self._untried = [id for id, pattern in patterns.items() if tried.get(id) != pattern.content_hash]
        self._patterns = patterns
        texts = {id: patterns[id].content_hash for id in self._untried}
        verdicts = read_verdicts(self._stored, _KIND, set(texts.values()), TriggerVerdict)
        known = {id: verdicts[text] for id, text in texts.items() if text in verdicts}
        self._untried = [id for id in self._untried if id not in known]
        left = {id: share for id, share in self.found.items() if id in patterns}
        has_lost, self.found = left != self.found, left
        return self._add(known) or has_lost

    def _add(self, verdicts: Mapping[str, TriggerVerdict]) -> bool:
        """Add verdicts by pattern; whether `found` changed."""
        found = {id: share for id, share in self.found.items() if id not in verdicts}
        found |= {id: one.share for id, one in verdicts.items() if one.share >= self._settings.broad_share}
        changed, self.found = found != self.found, found
        return changed


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
