"""Decisions as cells and paragraphs."""

from __future__ import annotations

import json
from typing import Any

from textual.content import Content

from core.base.text import visible, visible_line
from core.curation.rules import changed, subject_text, verb_text
from core.records.decisions import Decision, Effect
from core.state.project_state import ProjectState
from tui.present.glyphs import Cells, Glyphs
from tui.present.numbers import moment_text


def decision_cells(decision: Decision, view: ProjectState, glyphs: Glyphs) -> Cells:
    """One row of the log; struck out if it does not hold any more."""
    undone = decision.id in view.snapshot.curation.undone
    quiet = "$quiet"
    return {
        "at": Content.styled(moment_text(decision.at, view.now), quiet),
        "verb": Content.styled(verb_text(decision), "strike $quiet" if undone else "bold"),
        "subject": Content.styled(visible_line(about(decision, view), 200), quiet if undone else "$secondary"),
        "change": Content.styled(change_text(decision, glyphs), quiet if undone else ""),
        "by": Content.styled(visible_line(decision.by, 60), quiet),
        "reason": Content.styled(visible_line(words(decision), 300), quiet),
    }


def words(decision: Decision) -> str:
    """What the person wrote: the reason, the note, or the text of an inversion."""
    text = decision.after.get("text")
    return decision.reason or (text if isinstance(text, str) else "")


def change_text(decision: Decision, glyphs: Glyphs) -> str:
    """What the decision changed, nothing where a state stayed what it was."""
    text = changed(decision)
    return "" if text.startswith("stays ") else visible_line(text.replace("→", glyphs.arrow), 60)


def about(decision: Decision, view: ProjectState) -> str:
    """What the decision is about; for undo and redo what was taken back or repeated."""
    if decision.verb.value in {"undo", "redo"}:
        taken = next((d for d in view.snapshot.decisions if d.id == decision.subject), None)
        if taken is not None:
            return f"{verb_text(taken)} {subject_text(taken)}"
    return subject_text(decision)


def decision_line(decision: Decision, view: ProjectState, glyphs: Glyphs) -> Content:
    """One decision on one line, as History shows it."""
    undone = decision.id in view.snapshot.curation.undone
    change = change_text(decision, glyphs)
    return Content.assemble(
        (f"{moment_text(decision.at, view.now):>13}  ", "$quiet"),
        (f"{verb_text(decision):<16}", "strike $quiet" if undone else "bold"),
        f" {visible_line(decision.by, 30)}",
        f"  {change}" if change else "",
        (f"  “{visible_line(words(decision), 300)}”" if words(decision) else "", "$quiet"),
        ("  (taken back)" if undone else "", "$warning"),
    )


def decision_text(decision: Decision, view: ProjectState, glyphs: Glyphs) -> list[Content]:
    """The whole decision: who, why, before and after, and what was written."""
    lines = [
        decision_line(decision, view, glyphs),
        Content.styled(visible_line(about(decision, view), 200), "$secondary"),
        Content(""),
    ]
    for label, values in (("Before", decision.before), ("After", decision.after)):
        if values:
            lines.append(Content.styled(label, "bold"))
            lines += [_value(name, value) for name, value in values.items() if _is_readable(value)]
    if decision.effects:
        lines.append(Content.styled("Written", "bold"))
        lines += [_effect(effect) for effect in decision.effects]
    lines += [Content(""), Content.styled(f"entry {visible_line(decision.id, 80)}", "$quiet")]
    return lines


def _is_readable(value: Any) -> bool:
    """Not what only undo and the fold over the log read, nor what is empty."""
    return not isinstance(value, dict) and value not in ("", [])


def _value(name: str, value: Any) -> Content:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return Content.assemble((f"  {visible_line(name, 40)}: ", "$quiet"), visible_line(", ".join(value), 2000))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return Content.assemble((f"  {visible_line(name, 40)}: ", "$quiet"), visible(text, 500))


def _effect(effect: Effect) -> Content:
    if effect.insert is not None:
        what = f"new record {effect.pattern_id}"
    elif effect.remove:
        what = f"took {effect.pattern_id} out"
    else:
        keys = ", ".join([*effect.set, *effect.text, *(f"-{key}" for key in effect.unset)])
        what = f"{effect.pattern_id}: {keys}"
    return Content.assemble((f"  {visible_line(effect.file, 200)}  ", "$quiet"), visible_line(what, 300))
