"""Approved texts, and the rule that restores one; see docs/curation.md#text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from core.base.errors import AlreadyDone, Refused
from core.decisions.case import DECIDED_TEXT, Case, Draft, since
from core.decisions.merge import as_read
from core.records.decisions import Decision, Effect, Verb
from core.sources.pattern_record import text_of
from core.sources.pattern_text import id_key

if TYPE_CHECKING:
    from core.decisions.pattern_registry import Stored
    from core.index.project_state import ProjectState
    from core.records.patterns import Pattern


def approved_text(decision: Decision, pattern: Pattern) -> dict[str, Any]:
    """Return the text keys of the record when it was decided on; {} if not stored."""
    stored = decision.after.get(DECIDED_TEXT)
    if decision.subject == pattern.id and isinstance(stored, dict):
        return stored
    inserted = (effect.insert for effect in decision.effects if effect.insert and effect.pattern_id == pattern.id)
    return next((text_of(record, pattern.type) for record in inserted), {})


def find_approved_pattern(state: ProjectState, pattern_id: str) -> Pattern | None:
    """Return the pattern with the text of its pin; None if not pinned or not stored."""
    pattern, pin = state.pattern(pattern_id), state.assessment(pattern_id).pin
    if pin is None:
        return None
    decision = next((one for one in reversed(state.snapshot.decisions) if one.id == pin.decision_id), None)
    text = approved_text(decision, pattern) if decision is not None else {}
    return as_read({**text, id_key(text): pattern.id}, pattern.type) if text else None


def restore_text(case: Case, approved: Mapping[str, Any], stored: Stored) -> Draft:
    """Restore the text for which the pattern was pinned; see `approved_text`."""
    if case.pin is None:
        raise Refused(f"{case.name} is not pinned, so it has no approved text")
    if not approved:
        raise Refused(f"the text of {case.name} was not stored when it was {case.pin.verb}{since(case.pin)}")
    here = text_of(stored.value, case.pattern.type)
    keys = {key: value for key, value in approved.items() if key not in here or here[key] != value}
    removed = tuple(key for key in here if key not in approved)
    if not keys and not removed:
        raise AlreadyDone(f"{case.name} already has the approved text")
    before = [key for key in (*keys, *removed) if key in stored.value]
    effect = partial(Effect, file=stored.file, type=case.pattern.type.value, pattern_id=case.pattern.id)
    new = tuple(key for key in keys if key not in stored.value)
    return case.draft(
        Verb.EDIT,
        f"restored the text of {case.name} that was {case.pin.verb}{since(case.pin)}",
        case.recorded(case.pin.state) | {"content_hash": case.pin.content_hash},
        effects=(effect(set=keys, unset=removed),),
        inverse=(effect(text=stored.texts_of(before), unset=new),),
    )
