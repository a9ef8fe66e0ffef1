"""Reflections and recurring lessons as table rows and details."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.text import plural, visible_line
from core.documents.document import Block, Code, Moment, Table, Text, line, more
from core.documents.reflections import kind_word
from core.extraction.engine import KNOWN
from tui.present.numbers import ago

if TYPE_CHECKING:
    from core.extraction.clustering import Cluster
    from core.records.reflections import Reflection
    from tui.present.glyphs import Cells, Glyphs

_EFFECTS: Final = {"helpful": "$success", "unhelpful": "$error", "harmful": "$error", "neutral": "$quiet"}
_MAX_MEMBERS: Final = 200  # Reflections listed below a recurring lesson.


def reflection_cells(reflection: Reflection, now: datetime, *, below: bool = False) -> Cells:
    """Return the cells of a row; `below` indents it under a recurring lesson."""
    about = "~" if reflection.at_approximate else ""
    draft = ("draft  ", "$warning") if reflection.draft else ""
    effect = reflection.effectiveness
    return {
        "at": Content.styled(f"{about}{ago(reflection.at, now)}", "$quiet"),
        "kind": Content.styled(visible_line(kind_word(reflection), 40), "$secondary"),
        "text": Content.assemble("    " if below else "", draft, visible_line(reflection.text, 300)),
        "effect": Content.styled(visible_line(effect, 20), _EFFECTS.get(effect, "$quiet")),
        "iteration": Content.styled(_where(reflection), "$quiet"),
        "loop": Content.styled(visible_line(reflection.loop_id or reflection.task_id, 200), "$quiet"),
    }


def second_line(reflection: Reflection) -> Content:
    """Return the second line of a row: a text that is not in the first line."""
    parts = (reflection.learning, reflection.analysis, reflection.observation)
    text = next((part for part in parts if part and part != reflection.text), "")
    return Content.styled(visible_line(text, 400), "$quiet")


def cluster_cells(cluster: Cluster, now: datetime, glyphs: Glyphs, *, folded: bool, unfit: str) -> Cells:
    """Return the cells of a recurring lesson; `unfit` is why it cannot be a pattern."""
    state = "has a pattern  " if unfit.startswith(KNOWN) else f"{glyphs.deprecated} no pattern  " if unfit else ""
    extra = f" +{len(cluster.kinds) - 1}" if len(cluster.kinds) > 1 else ""
    kind = visible_line((cluster.kinds or ("reflection",))[0].replace("_", " "), 80)
    return {
        "loops": Content.styled(f"{len(cluster.sources):,}", "$quiet" if unfit else "$accent"),
        "at": Content.styled(ago(cluster.last_at, now), "$quiet"),
        "kind": Content.styled(f"{kind}{extra}", "$quiet" if unfit else "$secondary"),
        "text": Content.assemble(
            (f"{glyphs.folded if folded else glyphs.unfolded} ", "$quiet"),
            (state, "$success" if unfit.startswith(KNOWN) else "$warning"),
            (visible_line(cluster.text, 300), "$quiet" if unfit else ""),
        ),
        "loop": Content.styled(visible_line(", ".join(cluster.sources[:3]), 200), "$quiet"),
    }


def renamed_clusters(before: Mapping[str, Cluster], after: Mapping[str, Cluster]) -> dict[str, str]:
    """Map old to new IDs of lessons whose ID changed because a reflection joined."""
    missing = before.keys() - after.keys()
    homes = {one.reflection.id: key for key, cluster in after.items() for one in cluster.members} if missing else {}
    return {key: homes[id] for key in missing if (id := before[key].members[0].reflection.id) in homes}


def count_sources(cluster: Cluster) -> str:
    """Return the number of sources in words: `2 loops and 1 task`."""
    tasks = {source for source, one in cluster.members if not one.loop_id and source == one.task_id}
    loops = len(cluster.sources) - len(tasks)
    counts = (plural(loops, "loop") if loops else "", plural(len(tasks), "task") if tasks else "")
    return " and ".join(filter(None, counts))


def cluster_blocks(cluster: Cluster, unfit: str) -> Iterable[Block]:
    """Describe a recurring lesson and its reflections, oldest first."""
    known = unfit.removeprefix(KNOWN)
    yield line((", ".join(cluster.kinds).replace("_", " ") or "reflection", "strong name"))
    yield line(
        (f"{plural(len(cluster.members), 'reflection')} from {count_sources(cluster)}; first ", "quiet"),
        Moment(cluster.first_at, is_age=True),
        (", last ", "quiet"),
        Moment(cluster.last_at, is_age=True),
    )
    if unfit:
        is_known = known != unfit
        yield line((f"{'Has a pattern' if is_known else 'No pattern'}: {known}", "good" if is_known else "warning"))
    yield line("")
    yield Code(cluster.text, "", "")
    yield line("")
    yield line(("Reported by", "quiet"))
    rows: list[tuple[Text, ...]] = []
    for source, one in cluster.members[:_MAX_MEMBERS]:
        text = "" if one.learning == cluster.text else one.learning
        rows.append(((Moment(one.at, is_age=True),), ((source, "accent"),), ((_where(one), "quiet"),), (text,)))
    yield Table(("", "", "", ""), tuple(rows))
    yield from more(len(cluster.members), "reflection", _MAX_MEMBERS)


def _where(reflection: Reflection) -> str:
    if reflection.attempt is not None:
        return f"att {reflection.attempt}"
    return "" if reflection.iteration is None else f"it {reflection.iteration}"
