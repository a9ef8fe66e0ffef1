"""Fixes, warnings and steps in reflections; docs/extraction.md#reflections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from core.base.polarity import parse_warning
from core.base.record_text import one_line, strip_label
from core.questions.extraction.errors import extract_message, parse_error
from core.questions.extraction.fixes import Repair
from core.records.debug_sessions import Failure
from core.records.loops import Outcome

if TYPE_CHECKING:
    from core.records.extractions import Material
    from core.records.reflections import Reflection

_MAX_WARNINGS: Final = 5


class WarnedApproach(NamedTuple):
    approach: str
    why: str
    better: str
    reflection: Reflection


def describe_place(one: Reflection) -> str:
    """Return e.g. `iteration 2` or `attempt 2`; "" if unknown."""
    places = (("attempt", one.attempt), ("iteration", one.iteration))
    return next((f"{label} {number}" for label, number in places if number is not None), "")


def describe_reflection(one: Reflection) -> str:
    """Return e.g. `reflection on iteration 2`."""
    return f"reflection on {place}" if (place := describe_place(one)) else "reflection"


def find_reflected_repairs(material: Material) -> Iterator[Repair]:
    """Yield errors and the fixes that reflections recommend, if the goal was reached."""
    is_completed = material.loop is not None and material.loop.success
    if not is_completed and all(logged.attempt.outcome is not Outcome.SUCCESS for logged in material.attempts):
        return
    for one in _usable_reflections(material):
        if one.draft:  # it repeats what the log shows, and the log is material, too
            continue
        message = next(filter(None, (extract_message(text) for text in (one.observation, one.analysis))), "")
        what = strip_label(one.learning) or _actions(one)
        if not message or not what or extract_message(what) or parse_warning(what):
            continue
        if error := parse_error(Failure(message=message), describe_reflection(one), one.iteration, one.at):
            yield Repair(error=error, description=what, trace=describe_reflection(one), at=one.at)


def find_warnings(material: Material) -> list[WarnedApproach]:
    """Return the warnings in reflections, each once, newest first."""
    found: dict[str, WarnedApproach] = {}
    for one in _usable_reflections(material):
        learning = strip_label(one.learning)
        if warned := parse_warning(learning):
            why = "; ".join(filter(None, (warned.why, one_line(one.analysis))))
            approach = WarnedApproach(warned.text, why, warned.better or _actions(one), one)
            found.setdefault(warned.approach.casefold(), approach)
    return list(found.values())[:_MAX_WARNINGS]


def find_reflected_steps(material: Material) -> list[str]:
    """Return the steps in reflections on successes, oldest first."""
    steps: dict[str, None] = {}
    for one in reversed(tuple(_usable_reflections(material))):
        if one.kind == "success_pattern" or one.trigger == "success":
            texts = (*one.actions, "" if one.actions else one.learning)
            steps |= dict.fromkeys(filter(None, map(strip_label, texts)))
    return list(steps)


def find_reason(material: Material, iteration: int | None) -> str:
    """Return the reason of a failed iteration from its reflections, or ""."""
    if iteration is None:
        return ""
    own = (one for one in _usable_reflections(material) if one.iteration == iteration)
    return next((text for one in own if (text := one_line(one.analysis) or strip_label(one.learning))), "")


def _usable_reflections(material: Material) -> Iterator[Reflection]:
    """Yield the reflections with a lesson, without unhelpful ones, newest first."""
    return (one for one in material.reflections if one.has_learning and one.effectiveness != "unhelpful")


def _actions(one: Reflection) -> str:
    return one_line("; ".join(filter(None, map(strip_label, one.actions))))
