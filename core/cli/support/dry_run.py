"""`--dry-run` of deciding commands: forecasts the changes and writes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from core.base.text import plural
from core.cli.render.output import line, print_object, remark, wants_json, warn
from core.records.decisions import verb_info

if TYPE_CHECKING:
    from core.decisions.case import Decided
    from core.decisions.commands import Command
    from core.project.forecast import Forecast
    from core.project.project import Project

dry_run_option: Final = click.option(
    "--dry-run", is_flag=True, help="Only show which states and contexts would change; write nothing."
)


def forecast_decision(project: Project, command: Command) -> Decided:
    """Print what a decision would change; returns and raises as `Project.decide`."""

    # Only a dry run needs these.
    from core.project.forecast import Forecaster
    from core.tasks.task_links import embeddable_work

    # `loop inject` would compute missing vectors. They are computed here too, but not saved, for the same result.
    snapshot = project.view.snapshot
    state = replace(
        project.view,
        embeddings=project.embeddings.supposing(snapshot.patterns),
        task_embeddings=project.task_embeddings.supposing(embeddable_work(snapshot)),
    )
    found, run = Forecaster(project).effect(state, command)
    decided = run.decided
    if found.by_words is not None:
        remark_missing_vectors(found.by_words.missing)
    changed = ((one.kind, one.id, "when it resumes" if one.kind == "paused" else None) for one in found.changed)
    if wants_json():
        from core.cli.json import decisions as decisions_json

        print_object(decisions_json.DryRun, found, decided, dry_run=True, changed=changed)
    else:
        _print(decided, found)
    return decided


def _print(decided: Decided, found: Forecast) -> None:
    warn(*decided.warnings)
    line(f"Would {_infinitive(decided)}")
    for id, before, after in found.turned:
        line(f"  {id}: {before} → {after}")
    for word, ids in (("added to the registry", found.added), ("removed from the registry", found.removed)):
        for id in ids:
            line(f"  {id}: {word}")
    parts = [f"{found.changed_of('loop')} of {plural(found.loops, 'running loop')}"]
    if found.paused:
        parts.append(f"{found.changed_of('paused')} of {plural(found.paused, 'paused loop')} (on resume)")
    parts.append(f"{found.changed_of('task')} of the last {plural(found.tasks, 'task')}")
    tokens = "{:,} → {:,} tokens in total".format(*found.tokens)
    line(f"  another context for {', '.join(parts[:-1])} and {parts[-1]}; {tokens}")


def _infinitive(decided: Decided) -> str:
    """Put the verb of a summary in the infinitive: `promote X: established → proven`."""
    info = verb_info(decided.decision)
    if decided.summary.startswith(info.past):
        return info.word + decided.summary.removeprefix(info.past)
    return decided.summary.replace("re-enabled", "re-enable", 1).replace("rejected the", "reject the", 1)


def remark_missing_vectors(patterns: int, tasks: int = 0) -> None:
    """Print how many patterns and tasks have no vector, and how to compute them."""
    missing = [plural(count, noun) for count, noun in ((patterns, "pattern"), (tasks, "task")) if count]
    if missing:
        remark(f"{' and '.join(missing)} found by words only; to compute their vectors: ralphdeck doctor --embed")
