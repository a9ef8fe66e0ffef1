"""Errors and their fixes, warnings and steps in a loop's own reflections; see docs/extraction.md#reflections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from core.base.record_text import one_line, strip_label
from core.extraction.errors import message_in, sighting
from core.extraction.fixes import Repair
from core.learning.inversion_rules import polarity_lint
from core.records.debug_sessions import Failure
from core.records.loops import LoopStatus, Outcome
from core.records.material import Material
from core.records.reflections import Reflection

_WARNING: Final = re.compile(r"(?:please\s+)?(?:avoid|never|do\s+not|don['\u2019]t|stop)\s+(?=\w)", re.IGNORECASE)
_MAX_WARNINGS: Final = 5
_UNHELPFUL: Final = "unhelpful"


class Warned(NamedTuple):
    """What a reflection warns of."""

    approach: str
    why: str
    better: str
    reflection: Reflection


def warned_of(learning: str) -> str:
    """What a learning that opens with a warning warns of; "" for any other, or if a negation would be left in it."""
    found = _WARNING.match(learning)
    rest = learning[found.end() :] if found else ""
    return "" if not rest or polarity_lint(rest) else rest[0].upper() + rest[1:]


def place_of_reflection(one: Reflection) -> str:
    """A reflection as a trace names it: `reflection on iteration 2`."""
    for label, number in (("attempt", one.attempt), ("iteration", one.iteration)):
        if number is not None:
            return f"reflection on {label} {number}"
    return "reflection"


def reflected_repairs(material: Material) -> Iterator[Repair]:
    """An error that a reflection names, with what it says to do; only where the goal was reached in the end."""
    if not _reached(material):
        return
    for one in _telling(material):
        message = next(filter(None, (message_in(text) for text in (one.observation, one.analysis))), "")
        what = strip_label(one.learning) or _actions(one)
        if not message or not what or message_in(what) or warned_of(what):
            continue
        if error := sighting(Failure(message=message), place_of_reflection(one), one.iteration, one.at):
            yield Repair(error=error, description=what, trace=place_of_reflection(one), at=one.at)


def warnings_in(material: Material) -> list[Warned]:
    """What reflections warn of, each once, the newest ones."""
    found: dict[str, Warned] = {}
    for one in _telling(material):
        learning = strip_label(one.learning)
        if approach := warned_of(learning):
            found.setdefault(approach.casefold(), Warned(approach, one_line(one.analysis), _actions(one), one))
    return list(found.values())[:_MAX_WARNINGS]


def reflected_steps(material: Material) -> list[str]:
    """What reflections on success say was done, oldest first."""
    steps: dict[str, None] = {}
    for one in reversed(tuple(_telling(material))):
        if one.kind == "success_pattern" or one.trigger == "success":
            texts = (*one.actions, "" if one.actions else one.learning)
            steps |= dict.fromkeys(filter(None, map(strip_label, texts)))
    return list(steps)


def reason_for(material: Material, iteration: int | None) -> str:
    """Why it failed, by the reflection on an iteration; "" if there is none."""
    if iteration is None:
        return ""
    own = (one for one in _telling(material) if one.iteration == iteration)
    return next((text for one in own if (text := one_line(one.analysis) or strip_label(one.learning))), "")


def _telling(material: Material) -> Iterator[Reflection]:
    """The reflections to learn from, newest first."""
    return (one for one in material.reflections if one.teaches and one.effectiveness != _UNHELPFUL)


def _actions(one: Reflection) -> str:
    return one_line("; ".join(filter(None, map(strip_label, one.actions))))


def _reached(material: Material) -> bool:
    if material.loop is not None and material.loop.status is LoopStatus.COMPLETED:
        return True
    return any(logged.attempt.outcome is Outcome.SUCCESS for logged in material.attempts)
