"""Loops as table rows and detail tabs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.adapters.claims import CONTRADICTED
from core.base.formatting import format_cost, format_count, format_decimal, format_duration
from core.base.text import visible_line
from core.documents import loops as documents
from core.documents.loops import elapsed
from core.documents.signs import VERDICT_STYLES, loop_sign
from core.records.loops import Liveness, Loop, LoopDetails, LoopStatus, StateSource
from core.records.waits import waits_for
from tui.present.glyphs import Cells, Glyphs, draw, style_of
from tui.present.numbers import ago, bar, sparkline

if TYPE_CHECKING:
    from core.documents.document import Block
    from core.learning.evidence import LoopPatterns
    from core.learning.outcomes import Outcome
    from core.state.project_state import ProjectState

STATUS_CELLS: Final = 16  # Cells of the status column.
BAR_CELLS: Final = 15  # Cells of the iteration column with a bar.
PATTERNS_CELLS: Final = 25  # Cells of the full patterns column.
RUNNER_COLUMNS: Final = frozenset({"runner", "agent", "tokens", "cost", "reason"})
"""Columns that are shown if a loop of another runner than `.aiwg` is listed."""
TABS = ("Now", "Iterations", "Patterns", "Reflections", "Files")


def loop_cells(
    loop: Loop,
    outcome: Outcome | None,
    patterns: LoopPatterns,
    now: datetime,
    glyphs: Glyphs,
    offered: int = 0,
    *,
    with_bar: bool = True,
    in_full: bool = True,
) -> Cells:
    """Return the cells of a row; `offered` patterns can be extracted.

    `with_bar` draws the iterations as a bar; `in_full` shows all counts of patterns instead of one.
    """
    seconds, quiet = elapsed(loop, now), "$quiet" if loop.status.ended else ""
    style = style_of(VERDICT_STYLES[outcome.verdict]) if outcome is not None else ""
    result: list[tuple[str, str]] = []
    if CONTRADICTED in loop.badges:
        result = [("contradicted", "$warning")]
    elif outcome is not None:
        result = [(outcome.verdict.value, style), (f" {format_decimal(outcome.raw)}", "$quiet")]
    task = visible_line(loop.task or ("no task recorded" if loop.runner else loop.id), 300)
    return {
        "task": Content.styled(task, "$quiet" if loop.archived else ""),
        "id": Content.styled(visible_line(loop.id, 200), "$quiet"),
        "status": _status(loop, glyphs),
        "iteration": _progress(loop, glyphs, with_bar=with_bar),
        "agent": Content.styled(visible_line(" ".join(filter(None, (loop.agent, loop.model))), 60), quiet),
        "runner": Content.styled(visible_line(loop.source_name, 40), quiet),
        "tokens": Content.styled(format_count(total) if (total := loop.usage.total) is not None else "", quiet),
        "cost": Content.styled(format_cost(cost) if (cost := loop.usage.cost_usd) is not None else "", quiet),
        "reason": Content.styled(visible_line(_reason(loop), 200), quiet),
        "quality": Content.styled(sparkline(loop.quality, 8, glyphs), "$secondary"),
        "elapsed": Content.styled(format_duration(seconds) if seconds is not None else "—", quiet),
        "patterns": _patterns(patterns, offered, in_full=in_full),
        "outcome": Content.assemble(*result),
        "sign": _last_activity(loop, now),
    }


def _reason(loop: Loop) -> str:
    """Return why a loop ended, or what it waits for."""
    return loop.question or loop.end_words or (waits_for(loop) if loop.runner else "")


def unabbreviated_cells(loop: Loop) -> dict[str, str]:
    """Return, by column title, the full text of values that the row shortens or draws."""
    most = f" of {loop.max_iterations}" if loop.max_iterations else ""
    return {
        "status": ", ".join([loop.status.value, *_inferred(loop), *loop.badges, *(["archived"] * loop.archived)]),
        "tokens": documents.usage_text(loop.usage),
        "iteration": "" if loop.iteration is None and not most else f"{loop.iteration or 0}{most}",
        "quality": ", ".join(format_decimal(quality) for quality in loop.quality),
    }


def _inferred(loop: Loop) -> list[str]:
    is_inferred = loop.state_source is StateSource.INFERRED and loop.status is not LoopStatus.UNKNOWN
    return ["inferred"] if is_inferred else []


def second_line(loop: Loop) -> Content:
    """Return the second line of a row: ID, owner and tags."""
    owner = f"   {visible_line(loop.owner, 40)}" if loop.owner else ""
    tags = " ".join(f"#{visible_line(tag, 40)}" for tag in loop.tags[:6])
    return Content.styled(f"{visible_line(loop.id, 200)}{owner}   {tags}".rstrip(), "$quiet")


def _status(loop: Loop, glyphs: Glyphs) -> Content:
    """Return the status with the badges that add something to it; those of runners' loops only if they fit."""
    usual = {"crashed", "unregistered", CONTRADICTED} if loop.status.ended else {"crashed", CONTRADICTED}
    shown = Content.assemble(draw(loop_sign(loop), glyphs), ("?" if _inferred(loop) else "", "$warning"))
    badges = [(badge, "$warning") for badge in loop.badges if badge not in usual]
    for badge, style in [*badges, ("arch", "$quiet")] if loop.archived else badges:
        if not loop.runner or shown.cell_length + len(badge) < STATUS_CELLS:
            shown = Content.assemble(shown, (f" {badge}", style))
    return shown


def _progress(loop: Loop, glyphs: Glyphs, *, with_bar: bool) -> Content:
    if loop.iteration is None and not loop.max_iterations:
        return Content.styled("—", "$quiet")
    done = loop.iteration or 0
    label = f"{done}/{loop.max_iterations}" if loop.max_iterations else str(done)
    if not with_bar:
        return Content.styled(label, "$quiet" if loop.status.ended else "")
    drawn = bar(done, loop.max_iterations, 8, glyphs)
    return Content.assemble((drawn, "$quiet" if loop.status.ended else "$accent"), f" {label:>6}")


def _patterns(patterns: LoopPatterns, offered: int, *, in_full: bool) -> Content:
    """Return the numbers of used and extracted patterns; one number unless `in_full`."""
    found: list[Content] = []
    if injected := len(patterns.injected_ids):
        found.append(Content.styled(f"{len(patterns.applied_ids)} of {injected} used", "$quiet"))
    if offered:
        found.append(Content.styled(f"{offered} to extract", "$accent"))
    elif patterns.extracted:
        found.append(Content.styled(f"{len(patterns.extracted)} extracted", "$quiet"))
    if not in_full and found:
        return found[-1] if offered else found[0]
    return Content(", ").join(found)


def _last_activity(loop: Loop, now: datetime) -> Content:
    if loop.liveness is Liveness.DEAD:
        return Content.styled("no process", "$error")
    if loop.status.ended:
        return Content.styled(ago(loop.ended_at, now), "$quiet")
    return Content.styled(ago(loop.last_activity, now), "$warning" if loop.liveness is Liveness.STALE else "")


def tab_blocks(
    loop: Loop,
    tab: str,
    details: LoopDetails | None,
    view: ProjectState,
    offers: Sequence[Block] = (),
) -> tuple[Block, ...]:
    """Return the content of a tab, one of `TABS`.

    `details` is None until they are read, after the loop is opened. `offers` describes patterns to extract.
    """

    blocks: Mapping[str, Callable[[], Iterable[Block]]] = {
        "Now": lambda: documents.overview(view, loop, details, offers),
        "Iterations": lambda: documents.iterations(loop, details),
        "Patterns": lambda: documents.patterns(view, loop),
        "Reflections": lambda: documents.reflection_rows(documents.loop_reflections(view, loop)),
        "Files": lambda: documents.files(loop, details),
    }
    return tuple(blocks[tab]())
