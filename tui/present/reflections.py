"""Reflections as cells and paragraphs."""

from __future__ import annotations

from datetime import datetime

from textual.content import Content

from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.text import visible_line
from core.view import View
from tui.present.marks import Cells, Glyphs, outcome_mark
from tui.present.numbers import ago, moment_text

_EFFECTS = {"helpful": "$success", "unhelpful": "$error", "harmful": "$error", "neutral": "$quiet"}


def reflection_cells(reflection: Reflection, now: datetime) -> Cells:
    """One row of the table."""
    about = "~" if reflection.at_approximate else ""
    return {
        "at": Content.styled(f"{about}{ago(reflection.at, now)}", "$quiet"),
        "kind": Content.styled(visible_line(reflection.kind.replace("_", " ") or "reflection", 40), "$secondary"),
        "text": Content(visible_line(reflection.text, 300)),
        "effect": Content.styled(
            visible_line(reflection.effectiveness, 20), _EFFECTS.get(reflection.effectiveness, "$quiet")
        ),
        "iteration": Content.styled(_where(reflection), "$quiet"),
        "loop": Content.styled(visible_line(reflection.loop_id or reflection.task_id, 200), "$quiet"),
    }


def _where(reflection: Reflection) -> str:
    if reflection.attempt is not None:
        return f"att {reflection.attempt}"
    return "" if reflection.iteration is None else f"it {reflection.iteration}"


def reflection_text(view: View, reflection: Reflection, glyphs: Glyphs) -> list[Content]:
    """The whole reflection."""
    loop = view.snapshot.loops.get(reflection.loop_id)
    lines = [
        Content.assemble(
            (visible_line(reflection.kind.replace("_", " ") or "reflection", 40), "bold $secondary"),
            (f"   {moment_text(reflection.at, view.now)}", "$quiet"),
            (" (time of its file)" if reflection.at_approximate else "", "$quiet"),
        )
    ]
    if reflection.outcome is not Outcome.UNKNOWN or reflection.trigger or reflection.effectiveness:
        lines.append(
            Content.assemble(
                outcome_mark(reflection.outcome, glyphs),
                (f"   after {visible_line(reflection.trigger, 20)}" if reflection.trigger else "", "$quiet"),
                (
                    f"   {visible_line(reflection.effectiveness, 20)}" if reflection.effectiveness else "",
                    "$quiet",
                ),
            )
        )
    if reflection.loop_id:
        task = f"  {visible_line(loop.task, 200)}" if loop else "  (no such loop is known)"
        lines.append(
            Content.assemble(("Loop ", "$quiet"), (visible_line(reflection.loop_id, 120), "$accent"), (task, "$quiet"))
        )
    if reflection.task_id:
        lines.append(Content.assemble(("Task ", "$quiet"), visible_line(reflection.task_id, 120)))
    for label, text in (
        ("What happened", reflection.observation),
        ("Why", reflection.analysis),
        ("What to do differently", reflection.learning),
    ):
        if text:
            lines += [Content(""), Content.styled(label, "$quiet")]
            lines += [Content(visible_line(line, 4000)) for line in text.splitlines()[:200]]
    if reflection.actions:
        lines += [Content(""), Content.styled("Actions", "$quiet")]
        lines += [Content(f"  - {visible_line(action, 1000)}") for action in reflection.actions]
    lines += [
        Content(""),
        Content.styled(f"{reflection.shape}: {visible_line(reflection.file, 300)}", "$quiet"),
    ]
    lines += [Content.styled(f"  also in {visible_line(name, 300)}", "$quiet") for name in reflection.also_in]
    return lines
