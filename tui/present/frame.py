"""The top bar: where one is, what waits, and how live the picture is."""

from __future__ import annotations

from typing import Final, NamedTuple

from textual.content import Content

from core.records.findings import Severity
from core.snapshot import Snapshot
from core.sources.watching import WatchState
from core.text import plural, visible_line
from tui.actions import PLACES
from tui.present.marks import Glyphs
from tui.present.numbers import bar

PROGRESS_CELLS: Final = 10


class Fit(NamedTuple):
    """How roomy the bar is.

    Attributes:
        letters: That the name of a place has which is not in front.
        pad: What stands around each place.
        project: Characters of the project's name.
        words: Whether it says in words what runs.
    """

    letters: int
    pad: str
    project: int
    words: bool


FITS: Final = (
    Fit(20, " ", 24, True),
    Fit(20, "", 24, True),
    Fit(20, "", 12, False),
    Fit(4, "", 12, False),
    Fit(3, "", 12, False),
)
"""From the roomiest on."""


def places(project: str, here: str, waiting: int, fit: Fit) -> list[tuple[Content, str]]:
    """The project's name, then every place with its key; each with the action that a click means.

    Args:
        project: Name of the project's folder.
        here: The place in front.
        waiting: Questions in Review.
        fit: How much room there is.
    """
    items = [(Content.styled(visible_line(project, fit.project) + fit.pad, "bold"), "")]
    for place, (key, title) in PLACES.items():
        count = f"·{waiting}" if place == "review" and waiting else ""
        text = f"{key} {title if place == here else title[: fit.letters]}{count}"
        style = "bold $accent reverse" if place == here else "$foreground" if count else "$quiet"
        items.append((Content.styled(fit.pad + text + fit.pad, style), f"go_{place}"))
    return items


def pulse(
    snapshot: Snapshot,
    progress: tuple[int, int] | None,
    watch: WatchState | None,
    glyphs: Glyphs,
    *,
    narrow: bool,
    is_readonly: bool = False,
) -> Content:
    """How far the first load is; afterwards whether nothing is written, errors in files, how the disk is followed,
    and how many loops run.
    """
    if progress is not None:
        done, total = progress
        if not total:
            return Content.styled("reading…", "$quiet")
        return Content.assemble((bar(done, total, PROGRESS_CELLS, glyphs), "$accent"), f" {done:,}/{total:,}")
    running = sum(loop.status.active for loop in snapshot.loops.values())
    errors = sum(finding.severity is Severity.ERROR for finding in snapshot.findings)
    parts: list[tuple[str, str]] = []
    if is_readonly:
        parts.append(("read-only ", "$warning"))
    if errors:
        parts.append((f"{errors}! " if narrow else f"{plural(errors, 'error')} in files  ", "$warning"))
    if watch is None or watch.mode == "events":
        parts.append((glyphs.live if narrow else f"live {glyphs.live}", "$success"))
    elif watch.mode == "polling":
        parts.append(("polling", "$warning"))
    else:
        parts.append(("waiting for .aiwg", "$warning"))
    parts.append((f" {running} running" if narrow else f" {plural(running, 'loop')} running", "$quiet"))
    return Content.assemble(*parts)
