"""`ralphdeck lesson --reflections`: what agents wrote about their attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.cli.json import loops as loops_json
from core.cli.render.output import (
    OUTCOME_COLOURS,
    Column,
    end,
    format_optional,
    id_column,
    minute,
    print_object,
    print_table,
    wants_json,
)
from core.cli.support.options import read_filter
from core.cli.support.project import open_reader, read_snapshot
from core.records.reflections import MIN_LOOPS

if TYPE_CHECKING:
    from core.records.reflections import Reflection as ReflectionRecord

KINDS = ("error-analysis", "strategy-change", "success-pattern", "constraint-discovery", "process-improvement")
COLUMNS = (
    Column("AT (UTC)", lambda one: minute(one.at), expendable=2),
    id_column("LOOP OR TASK", lambda one: one.loop_id or one.task_id),
    Column("ITERATION", lambda one: _iteration(one), right=True, expendable=3),
    Column("KIND", lambda one: f"{one.kind.replace('_', ' ')}{' (draft)' if one.draft else ''}".strip(), expendable=1),
    Column("OUTCOME", lambda one: one.outcome.label, colours=OUTCOME_COLOURS),
    Column("REFLECTION", lambda one: one.text, free=True),
)
RECURRING_COLUMNS = (
    Column("ID", lambda cluster: cluster.id),
    Column("LOOPS", lambda cluster: str(len(cluster.sources)), right=True),
    Column("LAST (UTC)", lambda cluster: minute(cluster.last_at), expendable=2),
    Column("KIND", lambda cluster: ", ".join(cluster.kinds).replace("_", " "), expendable=1),
    Column("LEARNING", lambda cluster: cluster.text, free=True),
)


def list_reflections(
    filter_text: str,
    loop: str | None,
    task: str | None,
    kind: frozenset[str],
    limit: int | None,
    *,
    recurring: bool,
    min_loops: int | None,
) -> None:
    """List reflections, or with `recurring` learnings that at least `min_loops` loops reported."""
    from core.show.reflections import REFLECTION_FIELDS, select_reflections

    query = read_filter(filter_text, REFLECTION_FIELDS)
    reader = open_reader(reads_agents=False) if recurring else None
    snapshot = reader.view.snapshot if reader is not None else read_snapshot()
    home = snapshot.find_loop(loop) if loop is not None else None
    loop_ids = {loop} if home is None else {home.id, *home.aliases}
    kinds = {word.replace("-", "_") for word in kind}

    def matches(source: str, reflection: ReflectionRecord) -> bool:
        is_of_loop = loop is None or source in loop_ids
        return is_of_loop and task in {None, reflection.task_id} and (not kinds or reflection.kind in kinds)

    if reader is not None:
        clusters = [
            cluster
            for cluster in reader.recurring()
            if len(cluster.sources) >= (min_loops or MIN_LOOPS) and any(matches(*one) for one in cluster.members)
        ][:limit]
        if wants_json():
            print_object(
                loops_json.RecurringList,
                findings=snapshot.findings,
                recurring=(
                    loops_json.RecurringLearning.of(one, reflections=[member.reflection.id for member in one.members])
                    for one in clusters
                ),
            )
        else:
            print_table(RECURRING_COLUMNS, clusters, "no recurring learnings")
        end(snapshot.findings)
        return
    selected = (snapshot.reflections[key] for key in select_reflections(snapshot.reflections, query))
    chosen = [one for one in selected if one.has_learning and matches(one.loop_id, one)][:limit]
    if wants_json():
        print_object(loops_json.ReflectionList, findings=snapshot.findings, reflections=chosen)
    else:
        print_table(COLUMNS, chosen, "no reflections")
    end(snapshot.findings)


def _iteration(reflection: ReflectionRecord) -> str:
    return format_optional(reflection.iteration if reflection.iteration is not None else reflection.attempt)
