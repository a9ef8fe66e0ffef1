"""Decisions as documents."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from core.decisions.decision_text import about_text, author_text, describe_change, verb_text
from core.show.pages.document import Document, Fields, Line, Moment, Text, fields, line, section

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.decisions import Decision, Effect

_HASHES: Final = frozenset({"content_hash", "hashes", "seen_text"})
_NAMES: Final = {"computed": "state by its results", "until": "snoozed until", "anti_id": "anti-pattern"}
"""Labels of values that the decision log calls otherwise."""


def decision_document(state: ProjectState, decision: Decision) -> Document:
    before, after = (_values(values) for values in (decision.before, decision.after))
    return Document(
        decision.id,
        (
            decision_line(state, decision),
            line((subject(state, decision), "name")),
            *section("Before", before),
            *section("After", after),
            *section("Changed records", (_effect(effect) for effect in decision.effects)),
            line(("entry ", "quiet"), (decision.id, "quiet")),
        ),
    )


def decision_line(state: ProjectState, decision: Decision) -> Line:
    is_undone = decision.id in state.snapshot.curation.undone
    change, text = change_text(decision), reason_text(decision)
    return line(
        Moment(decision.at),
        ("  " + verb_text(decision), "strike quiet" if is_undone else "strong"),
        f"  {author_text(decision)}",
        change and f"  {change}",
        (f"  “{text}”", "quiet") if text else None,
        ("  (undone)", "warning") if is_undone else None,
    )


def subject(state: ProjectState, decision: Decision) -> str:
    """Describe the subject of a decision; for undo and redo the decision concerned."""
    known = next((one for one in state.snapshot.decisions if one.id == decision.subject), None)
    return about_text(decision, {known.id: known} if known is not None else {})


def change_text(decision: Decision) -> str:
    text = describe_change(decision)
    return "" if text.startswith("stays ") else text


def reason_text(decision: Decision) -> str:
    """Return the text that the person wrote: a reason, a note, or an inversion."""
    text = decision.after.get("text")
    return decision.reason or (text if isinstance(text, str) else "")


def _values(values: dict[str, Any]) -> Iterable[Fields]:
    """List the recorded values by their labels."""
    shown = ((_NAMES.get(key, key), _value(value)) for key, value in values.items() if _is_readable(key, value))
    return fields(*shown, indent=2)


def _is_readable(key: str, value: Any) -> bool:
    """Whether a value is shown to people; hashes, records and empty values are not."""
    return key not in _HASHES and not isinstance(value, dict) and value not in ("", [])


def _value(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _effect(effect: Effect) -> Line:
    if effect.insert is not None:
        what: Text = (f"new record {effect.pattern_id}",)
    elif effect.remove:
        what = (f"removed {effect.pattern_id}",)
    else:
        keys = ", ".join([*effect.set, *effect.text, *(f"-{key}" for key in effect.unset)])
        what = (f"{effect.pattern_id}: {keys}",)
    return line((f"{effect.file}  ", "quiet"), *what, indent=2)
