"""The top bar: where one is, what waits, and how live the picture is."""

from __future__ import annotations

from enum import IntEnum
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


class Telling(IntEnum):
    """How much the pulse says."""

    WORDS = 0
    SHORT = 1
    BRIEF = 2
    SIGNS = 3
    NOTHING = 4


class Fit(NamedTuple):
    """How roomy the bar is.

    Attributes:
        letters: That the name of a place has which is not in front.
        pad: What stands around each place.
        project: Characters of the project's name.
        telling: How much the pulse says.
    """

    letters: int
    pad: str
    project: int
    telling: Telling


FITS: Final = (
    Fit(20, " ", 24, Telling.WORDS),
    Fit(20, "", 24, Telling.WORDS),
    Fit(20, "", 12, Telling.SHORT),
    Fit(4, "", 12, Telling.SHORT),
    Fit(3, "", 12, Telling.SHORT),
    Fit(3, "", 12, Telling.BRIEF),
    Fit(3, "", 12, Telling.SIGNS),
    Fit(3, "", 6, Telling.SIGNS),
    Fit(3, "", 6, Telling.NOTHING),
)
"""From the roomiest on; in 80 cells the last one shows all places, whatever there is to tell."""


def places(project: str, here: str, waiting: int, fit: Fit, *, is_counting: bool = False) -> list[tuple[Content, str]]:
    """The project's name, then every place with its key; each with the action that a click means.

    Args:
        project: Name of the project's folder.
        here: The place in front.
        waiting: Questions in Review.
        fit: How much room there is.
        is_counting: That more questions may come: what costs time to find is still looked for.
    """
    items = [(Content.styled(visible_line(project, fit.project) + fit.pad, "bold"), "")]
    for place, (key, title) in PLACES.items():
        count = f"·{waiting}{'+' * is_counting}" if place == "review" and (waiting or is_counting) else ""
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
    telling: Telling,
    key: str,
    is_readonly: bool = False,
) -> Content:
    """How far the first load is; afterwards whether nothing is written, errors in files, how the disk is followed,
    and how many loops run.

    Args:
        telling: How much there is room for.
        key: What lists the errors.
    """
    if telling is Telling.NOTHING:
        return Content("")
    if progress is not None:
        done, total = progress
        if not total:
            return Content.styled("reading…", "$quiet")
        if telling is Telling.SIGNS:
            return Content(f"{done / total:.0%}")
        return Content.assemble((bar(done, total, PROGRESS_CELLS, glyphs), "$accent"), f" {done:,}/{total:,}")
    running = sum(loop.status.active for loop in snapshot.loops.values())
    errors = sum(finding.severity is Severity.ERROR for finding in snapshot.findings)
    parts: list[tuple[str, str]] = []
    if is_readonly:
        parts.append(("ro " if telling is Telling.SIGNS else "read-only ", "$warning"))
    if errors:
        told = plural(errors, "error")
        brief = f"{told} {key} "
        parts.append((_by(telling, f"{told} in files {key}  ", f"{brief} ", brief, f"{errors}! "), "$warning"))
    if watch is None or watch.mode == "events":
        parts.append((f"live {glyphs.live}" if telling is Telling.WORDS else glyphs.live, "$success"))
    elif watch.mode == "polling":
        parts.append(("poll" if telling is Telling.SIGNS else "polling", "$warning"))
    else:
        parts.append(("no .aiwg" if telling is Telling.SIGNS else "waiting for .aiwg", "$warning"))
        if telling is not Telling.WORDS:
            return Content.assemble(*parts)  # without files nothing runs
    count = f" {running}"
    parts.append((_by(telling, f" {plural(running, 'loop')} running", f"{count} running", count, count), "$quiet"))
    return Content.assemble(*parts)


def _by(telling: Telling, *texts: str) -> str:
    """The one of these texts, from the longest on, that says so much."""
    return texts[telling]
