"""`--dry-run` of the commands that decide: what a decision would change, and nothing is written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from core.base.text import plural
from core.cli.render.output import line, print_json, remark, warn
from core.records.verbs import verb_info

if TYPE_CHECKING:
    from core.curation.commands import Command
    from core.curation.decision_writer import Decided
    from core.forecast.forecast import Forecast
    from core.project.project import Project

dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Only tell which states and contexts would change; nothing is written."
)


def foretell(deck: Project, command: Command, *, as_json: bool) -> Decided:
    """Print what a decision would change; returns what would have been decided.

    Raises:
        RalphdeckError: What the decision would raise.
    """
    # Only a dry run needs it.
    from core.episodes.similar_tasks import embeddable_work
    from core.forecast.forecast import Forecaster

    # What `inject` would make on the way is made here, too, but not kept: both must tell the same.
    snapshot = deck.view.snapshot
    view = replace(
        deck.view,
        embeddings=deck.embeddings.supposing(snapshot.patterns),
        task_embeddings=deck.task_embeddings.supposing(embeddable_work(snapshot)),
    )
    found, run = Forecaster(deck).effect(view, command)
    decided = run.decided
    if found.by_words is not None:
        tell_missing(found.by_words.missing)
    if as_json:
        print_json(_json(decided, found))
        return decided
    for warning in decided.warnings:
        warn(warning)
    line(f"Would {_infinitive(decided)}")
    for id, before, after in found.turned:
        line(f"  {id}: {before} → {after}")
    for word, ids in (("into the registry", found.added), ("out of the registry", found.gone)):
        for id in ids:
            line(f"  {id}: {word}")
    parts = [f"{found.changed_of('loop')} of {plural(found.loops, 'running loop')}"]
    if found.paused:
        parts.append(f"{found.changed_of('paused')} of {plural(found.paused, 'paused loop')} (when it resumes)")
    parts.append(f"{found.changed_of('task')} of the last {plural(found.tasks, 'task')}")
    looked = f"{', '.join(parts[:-1])} and {parts[-1]}"
    line(f"  {looked} would get another context ({found.tokens[0]:,} → {found.tokens[1]:,} tokens in all)")
    return decided


def tell_missing(vectors: int) -> None:
    """Say that so many patterns lack a vector, and what to do about it."""
    if vectors:
        remark(f"{plural(vectors, 'pattern')} can be found by word match only; for meaning, run once: ralphdeck embed")


def _infinitive(decided: Decided) -> str:
    """The summary with the verb in the infinitive: `promote X: established → proven`."""
    info = verb_info(decided.decision)
    if decided.summary.startswith(info.past):
        return info.word + decided.summary.removeprefix(info.past)
    return decided.summary.replace("re-enabled", "re-enable", 1).replace("rejected the", "reject the", 1)


def _json(decided: Decided, found: Forecast) -> dict[str, Any]:
    return {
        "dry_run": True,
        "summary": decided.summary,
        "warnings": list(decided.warnings),
        "refused": [{"id": refusal.pattern_id, "why": refusal.why} for refusal in decided.refused],
        "turned": [{"id": id, "before": str(before), "after": str(after)} for id, before, after in found.turned],
        "added": list(found.added),
        "gone": list(found.gone),
        "loops": found.loops,
        "paused": found.paused,
        "tasks": found.tasks,
        "changed": [
            {"kind": one.kind, "id": one.id, "when": "when it resumes" if one.kind == "paused" else None}
            for one in found.changed
        ],
        "tokens": {"before": found.tokens[0], "after": found.tokens[1]},
    }
