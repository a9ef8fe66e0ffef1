"""`ralphdeck doctor --repair` and `--embed`: old patterns, and vectors for semantic search."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from core.base.errors import BadInput, install_hint
from core.base.masking import mask_secrets
from core.base.text import plural
from core.cli.commands.decisions import decide, print_unchanged
from core.cli.json import patterns as patterns_json
from core.cli.json import setup as setup_json
from core.cli.render.output import line, print_object, remark, wants_json
from core.cli.support.project import chosen_project, open_project, warn_of_user_settings
from core.decisions.commands import RepairPatterns

if TYPE_CHECKING:
    from core.cli.json.wire import Wire
    from core.records.patterns import OldRecords, RecordRepair
    from core.retrieval.embeddings import Record, VectorSubject


def repair_patterns(pattern_ids: Sequence[str], *, is_applied: bool, reason: str) -> None:
    """Print the repairs of patterns, all if none is named; with `is_applied` make them."""
    from core.index.project_state import all_findings

    project = open_project()
    warn_of_user_settings()
    records = project.repairs([project.view.find_pattern(one).id for one in dict.fromkeys(pattern_ids)])
    if not is_applied:
        if wants_json():
            print_object(
                patterns_json.RepairList,
                repairs=[_repair_json(one) for one in records.repairs],
                left=records.left,
                findings=all_findings(project.view),
            )
        else:
            _print(records)
    elif records.repairs:
        decide(project, RepairPatterns(records.repairs, reason=reason))
        for source in dict.fromkeys(source for one in records.repairs for source in one.other_sources):
            remark(_name_other(source))
    else:
        print_unchanged("no pattern needs a repair")


def _name_other(source: str) -> str:
    return f"{source} has another fix; to extract it afterwards: ralphdeck loop extract {source}"


def _repair_json(repair: RecordRepair) -> Wire:
    return patterns_json.PatternRepair.of(
        repair.pattern,
        action="archive" if repair.is_archived else "repair",
        problems=[problem.value for problem in repair.problems],
        reason=repair.reason,
        other_sources=repair.other_sources,
        changes=repair.text_changes,
    )


def _print(records: OldRecords) -> None:
    for repair in records.repairs:
        line((repair.pattern.id, "bold"), "  archive: " if repair.is_archived else "  repair: ", repair.reason)
        if repair.is_archived:
            line(f"  {repair.pattern.title}: {repair.pattern.description}")
        for part, before, after in repair.text_changes:
            if part in ("template", "diff"):
                line(f"  {part}: {'removed' if not after else 'replaced' if before else 'added'}")
                for code, mark in ((before, "-"), (after, "+")) if part == "template" else ((after, " "),):
                    for text in mask_secrets(code).splitlines():
                        line(f"    {mark} {text}".rstrip())
            else:
                line(f"  {part}: {mask_secrets(before) or '(none)'} → {mask_secrets(after) or '(none)'}")
        for source in repair.other_sources:
            line(f"  {_name_other(source)}")
    archived = sum(repair.is_archived for repair in records.repairs)
    left = (
        f"; {plural(len(records.left), 'pattern')} that a person decided on or edited would stay"
        if records.left
        else ""
    )
    if records.repairs:
        changed = len(records.repairs) - archived
        remark(
            f"{changed:,} to repair, {archived:,} to archive{left}; to write this: ralphdeck doctor --repair --apply"
        )
    else:
        remark(f"no pattern needs a repair{left}")


def compute_vectors() -> None:
    """Compute the missing vectors of patterns, tasks and instructions for agents."""
    from core.questions.conflict import index_instructions
    from core.retrieval.embeddings import EXTRA, INSTRUCTIONS, MODEL, PATTERNS, TASKS, is_available
    from core.tasks.task_links import embeddable_work

    if not is_available():
        raise BadInput(f"the embedding model is not installed or is disabled; {install_hint(EXTRA)}")
    project = open_project(asks=False)
    project.read_adapted()
    patterns, tasks = project.view.snapshot.patterns, embeddable_work(project.view.snapshot)
    instructions = index_instructions(project.view)
    patterns_made = _compute(PATTERNS, patterns, "Reading patterns")
    tasks_made = _compute(TASKS, tasks, "Reading tasks")
    instructions_made = _compute(INSTRUCTIONS, instructions, "Reading instructions")

    if wants_json():
        print_object(
            setup_json.VectorCounts,
            model=MODEL,
            made=patterns_made,
            patterns=len(patterns),
            tasks_made=tasks_made,
            tasks=len(tasks),
            instructions_made=instructions_made,
            instructions=len(instructions),
        )
    else:
        for noun, made, total in (
            ("pattern", patterns_made, len(patterns)),
            ("task", tasks_made, len(tasks)),
            ("instruction", instructions_made, len(instructions)),
        ):
            if made:
                line(f"computed vectors for {plural(made, noun)}; all {total:,} have one")
            elif total or noun == "pattern":
                line(f"vectors are up to date: {plural(total, noun)}")


def _compute(subject: VectorSubject[Record], records: Mapping[str, Record], label: str) -> int:
    from core.retrieval.embeddings import Embeddings

    embeddings = Embeddings(chosen_project(), subject)
    missing = len(embeddings.missing(records))
    is_watched = missing > 0 and sys.stderr is not None and sys.stderr.isatty()
    with click.progressbar(length=missing, label=label, file=sys.stderr, hidden=not is_watched) as bar:
        return embeddings.make(records, lambda done, _all: bar.update(done - bar.pos))
