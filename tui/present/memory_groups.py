"""What a header of Memory tells of all below it: what wants a person, how retries go, and why things fail."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from core.debug_memory.index import CAUSE, DebugIndex
from core.episodes.linking import coverage
from core.records.debug_sessions import Lesson
from core.text import plural, visible_line
from core.view import View
from tui.present.marks import Glyphs
from tui.present.memory import escalation_reason, path_end, since
from tui.present.memory_tasks import heading
from tui.present.numbers import percent

MOST_LOOPS: Final = 12
MOST_CAUSES: Final = 12
MOST_TEMPLATES: Final = 20
WIDEST_BAR: Final = 40
_NAME_CELLS: Final = 24


def escalation_lines(view: View) -> list[Content]:
    """Each escalation: what it is about, since when, and why."""
    lines = [Content.styled("These wait for a person: their agents gave them up.", "bold")]
    for session in view.debug.escalations():
        lines += [
            Content(""),
            Content.assemble(
                (path_end(session.file_path or session.id), "$secondary"),
                (f"   {since(session, view.now)}", "$warning"),
            ),
            Content(f"  {visible_line(escalation_reason(session), 1000)}"),
        ]
    return lines


def improvement_lines(view: View) -> list[Content]:
    """How many loops have a record here, and which have none."""
    snapshot = view.snapshot
    found = coverage(snapshot.tasks, snapshot.memory_tasks, snapshot.loops)
    lines = [Content.styled("Coverage", "bold")]
    lines.append(
        Content.assemble(
            f"{len(found.tracked):,} of {plural(found.loops, 'loop')} have a task here",
            (f"   {percent(found.share)}" if found.share is not None else "", "$secondary"),
        )
    )
    for label, ids in (("only in the cross-task memory", found.remembered), ("missing", found.missing)):
        if ids:
            lines.append(Content.styled(f"{label}: {len(ids):,}", "$quiet"))
            lines += [Content.styled(f"  {visible_line(loop_id, 120)}", "$quiet") for loop_id in ids[:MOST_LOOPS]]
    return lines


def cause_lines(view: View, glyphs: Glyphs, width: int) -> list[Content]:
    """The most frequent root causes as bars, then the fix templates with how often they work."""
    index = view.debug
    counts = sorted(
        ((len(ids), cause) for cause, ids in index.keys[CAUSE].items() if cause), key=lambda one: (-one[0], one[1])
    )
    lines = [Content.styled("Most frequent root causes", "bold")]
    if not counts:
        lines.append(Content.styled("No session names the category of a root cause.", "$quiet"))
    room = max(min(width - _NAME_CELLS - 16, WIDEST_BAR), 1)
    for count, cause in counts[:MOST_CAUSES]:
        name = visible_line(cause, _NAME_CELLS)
        drawn = glyphs.full * max(round(room * count / counts[0][0]), 1)
        lines.append(
            Content.assemble(f"{name:<{_NAME_CELLS}} ", (drawn, "$accent"), (f" {plural(count, 'session')}", "$quiet"))
        )
    return lines + _template_lines(index)


def _template_lines(index: DebugIndex) -> list[Content]:
    """Each template once, with the best of what is told of it."""
    found: dict[tuple[str, str], Lesson] = {}
    for session in index.sessions.values():
        for lesson in session.lessons:
            known = found.get((lesson.category, lesson.fix_template))
            if lesson.fix_template and (known is None or _works(known) < _works(lesson)):
                found[lesson.category, lesson.fix_template] = lesson
    if not found:
        return []
    lines = heading("Fix templates", "how often each works")
    best = sorted(found.values(), key=lambda lesson: (-_works(lesson), lesson.category, lesson.fix_template))
    for lesson in best[:MOST_TEMPLATES]:
        lines.append(
            Content.assemble(
                (f"{percent(lesson.effectiveness):>6}  ", "$secondary"),
                visible_line(lesson.fix_template, 300),
                (f"   {visible_line(lesson.category or lesson.pattern, 60)}", "$quiet"),
            )
        )
    return lines


def _works(lesson: Lesson) -> float:
    return -1.0 if lesson.effectiveness is None else lesson.effectiveness
