"""Texts that were approved, and how one is put back (semantics 4). No file is read or written."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from core.base.errors import Refused
from core.curation.pattern_registry import Stored
from core.curation.rules import SEEN_TEXT, Case, Draft, since
from core.records.decisions import Decision, Effect, Verb
from core.records.patterns import Pattern
from core.sources.pattern_record import text_of


def approved_text(decision: Decision, pattern: Pattern) -> dict[str, Any]:
    """The keys of the record that held the text of a pattern when this was decided; {} where they were not kept."""
    kept = decision.after.get(SEEN_TEXT)
    if decision.subject == pattern.id and isinstance(kept, dict):
        return kept
    made = (effect.insert for effect in decision.effects if effect.insert and effect.pattern_id == pattern.id)
    return next((text_of(record, pattern.type) for record in made), {})


def restore_text(case: Case, approved: Mapping[str, Any], stored: Stored) -> Draft:
    """Put the text back that the standing decision on the pattern was about.

    Args:
        case: See `Case`.
        approved: See `approved_text`.
        stored: The record as it stands in its file.
    """
    if case.pin is None:
        raise Refused(f"no decision on {case.name} holds, so none of its texts is approved")
    if not approved:
        raise Refused(f"the text of {case.name} was not kept when it was {case.pin.verb}{since(case.pin)}")
    here = text_of(stored.value, case.pattern.type)
    keys = {key: value for key, value in approved.items() if key not in here or here[key] != value}
    gone = tuple(key for key in here if key not in approved)
    if not keys and not gone:
        raise Refused(f"{case.name} has the text already that was approved")
    before = [key for key in (*keys, *gone) if key in stored.value]
    effect = partial(Effect, file=stored.file, type=case.pattern.type.value, pattern_id=case.pattern.id)
    new = tuple(key for key in keys if key not in stored.value)
    return Draft(
        verb=Verb.EDIT,
        subject=case.pattern.id,
        summary=f"put back the text of {case.name} that was {case.pin.verb}{since(case.pin)}",
        reason=case.reason,
        before=case.seen(case.effective),
        after={**case.seen(case.pin.state), "content_hash": case.pin.content_hash},
        effects=(effect(set=keys, unset=gone),),
        inverse=(effect(text=stored.texts_of(before), unset=new),),
    )
