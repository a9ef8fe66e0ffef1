"""Reflections as cells and paragraphs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from textual.content import Content

from core.base.text import plural, visible_line
from core.extraction.clustering import Cluster
from core.extraction.recurring_lessons import KNOWN
from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.redaction.masking import mask_secrets
from core.state.project_state import ProjectState
from tui.present.glyphs import Cells, Glyphs, outcome_mark
from tui.present.numbers import ago, moment_text

DRAFT = "draft: nobody has put it into words yet"
_EFFECTS = {"helpful": "$success", "unhelpful": "$error", "harmful": "$error", "neutral": "$quiet"}


_MOST_TOLD = 200
"""Reflections of one recurring learning that are told."""


def reflection_cells(reflection: Reflection, now: datetime, *, below: bool = False) -> Cells:
    """One row of the table; `below` a recurring learning it stands further in."""
    about = "~" if reflection.at_approximate else ""
    draft = ("draft  ", "$warning") if reflection.draft else ""
    return {
        "at": Content.styled(f"{about}{ago(reflection.at, now)}", "$quiet"),
        "kind": Content.styled(kind_word(reflection), "$secondary"),
        "text": Content.assemble("    " if below else "", draft, visible_line(reflection.text, 300)),
        "effect": Content.styled(
            visible_line(reflection.effectiveness, 20), _EFFECTS.get(reflection.effectiveness, "$quiet")
        ),
        "iteration": Content.styled(_where(reflection), "$quiet"),
        "loop": Content.styled(visible_line(reflection.loop_id or reflection.task_id, 200), "$quiet"),
    }


def below_text(reflection: Reflection) -> Content:
    """The second line of a row: another part of the reflection than the first line shows."""
    parts = (reflection.learning, reflection.analysis, reflection.observation)
    told = next((part for part in parts if part and part != reflection.text), "")
    return Content.styled(visible_line(told, 400), "$quiet")


def cluster_cells(cluster: Cluster, now: datetime, glyphs: Glyphs, *, folded: bool, unfit: str) -> Cells:
    """The row of a recurring learning; it stands back where it gives no pattern, and says whether there is one.

    Args:
        unfit: Why it gives none; "" if it does.
    """
    mark = "has a pattern  " if unfit.startswith(KNOWN) else f"{glyphs.deprecated} no pattern  " if unfit else ""
    more = f" +{len(cluster.kinds) - 1}" if len(cluster.kinds) > 1 else ""
    kind = visible_line((cluster.kinds or ("reflection",))[0].replace("_", " "), 80)
    return {
        "loops": Content.styled(f"{len(cluster.sources):,}", "$quiet" if unfit else "$accent"),
        "at": Content.styled(ago(cluster.last_at, now), "$quiet"),
        "kind": Content.styled(f"{kind}{more}", "$quiet" if unfit else "$secondary"),
        "text": Content.assemble(
            (f"{glyphs.folded if folded else glyphs.unfolded} ", "$quiet"),
            (mark, "$success" if unfit.startswith(KNOWN) else "$warning"),
            (visible_line(cluster.text, 300), "$quiet" if unfit else ""),
        ),
        "loop": Content.styled(visible_line(", ".join(cluster.sources[:3]), 200), "$quiet"),
    }


def _kinds(cluster: Cluster) -> str:
    return ", ".join(cluster.kinds).replace("_", " ") or "reflection"


def renamed(before: Mapping[str, Cluster], after: Mapping[str, Cluster]) -> dict[str, str]:
    """The new ids of learnings whose oldest reflection is another one now, by their ids before."""
    gone = before.keys() - after.keys()
    homes = {told.reflection.id: key for key, cluster in after.items() for told in cluster.members} if gone else {}
    return {key: homes[id] for key in gone if (id := before[key].members[0].reflection.id) in homes}


def sources_text(cluster: Cluster) -> str:
    """Whom a learning is from: `2 loops and 1 task`."""
    tasks = {source for source, told in cluster.members if not told.loop_id and source == told.task_id}
    loops = len(cluster.sources) - len(tasks)
    counts = (plural(loops, "loop") if loops else "", plural(len(tasks), "task") if tasks else "")
    return " and ".join(filter(None, counts))


def cluster_text(view: ProjectState, cluster: Cluster, unfit: str) -> list[Content]:
    """A recurring learning and everybody who told it, oldest first.

    Args:
        unfit: Why it gives no pattern; "" if it does.
    """
    told = f"{plural(len(cluster.members), 'reflection')} from {sources_text(cluster)}"
    first, last = (ago(at, view.now) for at in (cluster.first_at, cluster.last_at))
    drawn = unfit.removeprefix(KNOWN)
    state = ("Has a pattern: ", "$success") if drawn != unfit else ("No pattern: ", "$warning")
    lines = [
        Content.styled(visible_line(_kinds(cluster), 80), "bold $secondary"),
        Content.styled(f"{told}; first told {first}, last {last}", "$quiet"),
        *([Content.styled(f"{state[0]}{visible_line(drawn, 300)}", state[1])] if unfit else []),
        Content(""),
        *(Content(visible_line(line, 4000)) for line in mask_secrets(cluster.text).splitlines()[:200]),
        Content(""),
        Content.styled("Told by", "$quiet"),
    ]
    for source, reflection in cluster.members[:_MOST_TOLD]:
        other = "" if reflection.learning == cluster.text else f"  {visible_line(reflection.learning, 300)}"
        lines.append(
            Content.assemble(
                (f"  {ago(reflection.at, view.now):>10}  ", "$quiet"),
                (visible_line(source, 120), "$accent"),
                (f"  {_where(reflection)}", "$quiet"),
                other,
            )
        )
    if (left := len(cluster.members) - _MOST_TOLD) > 0:
        lines.append(Content.styled(f"  and {left:,} more", "$quiet"))
    return lines


def _where(reflection: Reflection) -> str:
    if reflection.attempt is not None:
        return f"att {reflection.attempt}"
    return "" if reflection.iteration is None else f"it {reflection.iteration}"


def kind_word(reflection: Reflection) -> str:
    """What kind of reflection it is, displayable."""
    return visible_line(reflection.kind.replace("_", " ") or "reflection", 40)


def told_parts(reflection: Reflection) -> tuple[tuple[str, str], ...]:
    """What it says under each of the questions of (1) `reflection_template`, as far as it does; untrusted."""
    parts = (
        ("What happened", reflection.observation),
        ("Why", reflection.analysis),
        ("What to do differently", reflection.learning),
    )
    return tuple((label, text) for label, text in parts if text)


def reflection_text(view: ProjectState, reflection: Reflection, glyphs: Glyphs) -> list[Content]:
    """The whole reflection."""
    loop = view.snapshot.loops.get(reflection.loop_id)
    lines = [
        Content.assemble(
            (kind_word(reflection), "bold $secondary"),
            (f"   {moment_text(reflection.at, view.now)}", "$quiet"),
            (" (time of its file)" if reflection.at_approximate else "", "$quiet"),
            (f"   {DRAFT}" if reflection.draft else "", "$warning"),
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
    for label, text in told_parts(reflection):
        lines += [Content(""), Content.styled(label, "$quiet")]
        lines += [Content(visible_line(line, 4000)) for line in mask_secrets(text).splitlines()[:200]]
    if reflection.actions:
        lines += [Content(""), Content.styled("Actions", "$quiet")]
        lines += [Content(f"  - {visible_line(action, 1000)}") for action in reflection.actions]
    lines += [
        Content(""),
        Content.styled(f"{reflection.shape}: {visible_line(reflection.file, 300)}", "$quiet"),
    ]
    lines += [Content.styled(f"  also in {visible_line(name, 300)}", "$quiet") for name in reflection.also_in]
    return lines
