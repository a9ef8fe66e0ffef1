"""`ralphdeck review --conflicts` and `--fine`: instructions that contradict or repeat each other."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Final

import click

from core.base.id_lookup import find_matching_ids, require_one
from core.base.text import plural, visible_line
from core.cli.json import loops as loops_json
from core.cli.render.document import print_document
from core.cli.render.output import end, line, print_object, remark, wants_json
from core.cli.support.project import open_project

if TYPE_CHECKING:
    from core.cli.json.wire import Wire
    from core.project.project import Project
    from core.records.instructions import InstructionPair

OPEN: Final = 1  # exit code if two instructions contradict each other
_MAX_LINES: Final = 5  # of two files that repeat each other


def list_conflicts(pair: str | None, *, is_all: bool) -> None:
    """List pairs of instructions, or show those of one question."""
    from core.records.instructions import Relation
    from core.show.pages.instructions import pairs_document

    project = _open_project()
    pairs, findings = project.instruction_pairs()
    snapshot = project.view.snapshot
    fine = snapshot.curation.dismissed
    cut = [*(one for one in snapshot.findings if one.code == "too-large"), *findings]
    if pair is not None:
        found = _find_question(pairs, pair)
    else:
        found = [one for one in pairs if is_all or (one.question not in fine and _matters(one))]

    if wants_json():
        print_object(loops_json.InstructionPairList, pairs=[_pair_json(one, fine) for one in found], findings=cut)
    elif pair is not None:
        print_document(pairs_document(found, project.adapters.all_agent_files()))
    else:
        questions: dict[str, list[InstructionPair]] = {}
        for each in found:
            questions.setdefault(each.question, []).append(each)
        for group in questions.values():
            _print_group(group, fine)
        if not found:
            remark("no instructions contradict or repeat each other")
        for one in cut:
            place = f"{visible_line(one.file, 120)}: " if one.file else ""
            remark(f"{place}{visible_line(one.message, 200)}")
    end(cut)
    if any(one.relation is Relation.CONTRADICTS and one.question not in fine for one in found):
        click.get_current_context().exit(OPEN)


def mark_pair_fine(pair: str, reason: str) -> None:
    """Mark a pair of instructions as fine: it is listed again if one of the texts changes."""
    from core.cli.commands.decisions import decide
    from core.questions.conflict import mark_fine

    project = _open_project()
    decide(project, mark_fine(_find_question(project.instruction_pairs().pairs, pair)[0], reason))


def _open_project() -> Project:
    """Open the project with the files of agents, without review questions."""
    project = open_project(asks=False)
    project.read_adapted()
    return project


def _find_question(pairs: Sequence[InstructionPair], name: str) -> list[InstructionPair]:
    """Return the pairs of a question by its ID or a prefix; raises UnknownRecord."""
    known = {one.id for one in pairs}
    id = require_one(
        find_matching_ids(name, known), name, what="pair", command="review --conflicts --all", known=sorted(known)
    )
    return [one for one in pairs if one.id == id]


def _matters(pair: InstructionPair) -> bool:
    """Return whether a pair is listed: a contradiction, or a repeat that one agent gets."""
    from core.records.instructions import Relation

    return pair.relation is Relation.CONTRADICTS or pair.shares_agent


def _print_group(pairs: Sequence[InstructionPair], answered: Container[str]) -> None:
    from core.show.pages.instructions import describe_cost

    first = pairs[0]
    is_fine, chosen = first.question in answered, first.find_chosen(answered)
    answer = "  marked as fine" if is_fine else f"  keep {visible_line(chosen.place, 80)}" if chosen else ""
    colour = "red" if first.relation.value == "contradicts" and not is_fine else "yellow"
    count = f" {plural(len(pairs), 'time')}" if len(pairs) > 1 else ""
    line((first.id, "cyan"), "  ", (f"{first.relation}{count}", colour), answer)
    for number, pair in enumerate(pairs[:_MAX_LINES]):
        if number:
            line("")
        for one in pair.both:
            line(f"  {visible_line(one.place, 80)}  {visible_line(one.text, 160)}")
            line((f"    {visible_line(describe_cost(one), 160)}", "bright_black"))
    if len(pairs) > _MAX_LINES:
        line(f"  and {len(pairs) - _MAX_LINES:,} more; see: ralphdeck review {first.id} --conflicts")


def _pair_json(pair: InstructionPair, answered: Container[str]) -> Wire:
    from core.retrieval.rendering import count_tokens

    both = [loops_json.PlacedInstruction.of(one, tokens=count_tokens(one.text)) for one in pair.both]
    chosen = pair.find_chosen(answered)
    kept = chosen.place if chosen is not None else None
    return loops_json.InstructionPair.of(pair, instructions=both, fine=pair.question in answered, kept=kept)
