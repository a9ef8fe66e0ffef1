"""Patterns that the reviewer decided about a short time ago, so that a question would ask against the answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from core.records.authors import Author
from core.records.decisions import Verb

if TYPE_CHECKING:
    from core.questions.priority import ImpactEstimator
    from core.records.decisions import CurationState, Decision

HOLDS: Final = timedelta(days=1)  # Time in which a decision answers further questions about the state of a pattern.
_DECIDES: Final = {Verb.RESET, Verb.PROMOTE, Verb.DEPRECATE, Verb.RELEASE, Verb.QUARANTINE}


def decided_patterns(
    scales: ImpactEstimator, curation: CurationState, decisions: Sequence[Decision], reviewer: str, now: datetime
) -> dict[str, Verb]:
    """Return the decisions of the reviewer within `HOLDS` by pattern, without a new result or another text since.

    A later decision of another person opens the question again.
    """
    found, seen = dict[str, Verb](), set[str]()
    for one in reversed(decisions):
        if now - one.at > HOLDS:
            break
        if one.verb not in _DECIDES or one.id in curation.undone or one.subject in seen:
            continue
        seen.add(one.subject)
        is_own = one.by == reviewer and one.decided_by is Author.PERSON
        pattern = scales.patterns.get(one.subject)
        if pattern is None or one.subject not in scales.board or not is_own:
            continue
        known = one.before.get("successes", 0) + one.before.get("failures", 0)
        same_text = one.before.get("content_hash", pattern.content_hash) == pattern.content_hash
        if same_text and scales.results(one.subject) <= known:
            found[one.subject] = one.verb
    return found
