"""`ralphdeck loop score`: scores of outcomes, and weights of criteria."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import click

from core.base.errors import UnknownRecord
from core.base.formatting import shorten_id
from core.cli.commands.reports import list_errors
from core.cli.json import loops as loops_json
from core.cli.json.loops import criterion, outcome_values
from core.cli.render.output import Column, day, end, id_column, line, print_object, print_table, wants_json
from core.cli.support.id_completion import complete_work
from core.cli.support.options import FRACTION, ReadingCommand, choose_mode
from core.cli.support.project import open_project
from core.cli.support.work_options import find_work
from core.learning.outcomes import (
    CriterionWeight,
    WeightedScores,
    apply_weights,
    criterion_weights,
    effective_weight,
    should_deprecate_criterion,
)

if TYPE_CHECKING:
    from core.cli.json.wire import Wire
    from core.index.project_state import ProjectState
    from core.project.project import Project

_RESULTS: Final = {"helpful": "worked", "neutral": "unclear", "harmful": "failed"}
"""Words for the verdicts of docs/scoring.md#outcomes, which --json uses."""
COLUMNS: Final = (
    id_column("ID", lambda one: one.work_id),
    Column("RESULT", lambda one: _RESULTS[one.outcome.verdict], colours={"worked": "green", "failed": "red"}),
    Column("RAW", lambda one: f"{one.outcome.raw:.2f}", right=True),
    Column("TODAY", lambda one: f"{one.outcome.decayed:.2f}", right=True),
    # Verdict and score have their own columns.
    Column("REASONING", lambda one: one.outcome.reasoning.partition(": ")[2], free=True),
)


@click.command(cls=ReadingCommand)
@click.argument("works", metavar="[WORK]...", nargs=-1, shell_complete=complete_work)
@click.option(
    "--criteria", is_flag=True, help="Show the weights of the criteria instead; CRITERION=SCORE weights a score."
)
@click.option("--errors", is_flag=True, help="Print the earlier errors of WORK instead, for the prompt of its retry.")
@click.option("--all", "include_resolved", is_flag=True, help="With --errors: print resolved errors as well.")
def score(works: tuple[str, ...], criteria: bool, errors: bool, include_resolved: bool) -> None:
    """Score how well loops and attempts worked, newest first, with the parts of each score.

    In --json, worked is helpful, failed is harmful, and unclear is neutral. WORK is a loop or an attempt. A running,
    aborted or crashed loop has no outcome until one is recorded. With --errors, only the errors are printed, or nothing
    if there are none.

    \b
    Examples:
      ralphdeck loop score
      ralphdeck loop score task-001.2 --json | jq .outcomes[0].parts
      ralphdeck loop score --criteria
      ralphdeck loop score --criteria type_safe=0.9 fast=40%
      ralphdeck loop score task-001.2 --errors >> prompt.md
    """
    if choose_mode({"--errors": "works include_resolved", "--criteria": "works", "": "works"}) == "--errors":
        if len(works) != 1:
            raise click.UsageError("--errors needs one WORK")
        list_errors(works[0], include_resolved=include_resolved)
        return
    from core.index.findings import all_findings
    from core.project.finished_work import find_scored_work

    project = open_project()
    state, settings = project.view, project.settings.learning
    weighted = _weighted(project, works if criteria else ()) if wants_json() or criteria else None
    chosen = _chosen(state, works) if works and not criteria else None
    outcomes = () if criteria and not wants_json() else find_scored_work(state, chosen)

    if wants_json():
        print_object(
            loops_json.ScoreDocument,
            findings=all_findings(state),
            outcomes=(
                loops_json.ScoredOutcome.of(one.outcome, patterns=one.applied, **outcome_values(one.kind, one.signals))
                for one in outcomes
            ),
            criteria=(criterion(one, settings) for one in weighted[0].values()) if weighted else (),
            weighted=_weighted_json(weighted[1]) if criteria and works and weighted else None,
            inversions=sorted(state.board.ids[row] for row in state.board.inversion_due.nonzero()[0].tolist()),
        )
    else:
        if criteria and works and weighted:
            _print_weighted(weighted[1])
        elif criteria and weighted:
            columns = (
                Column("CRITERION", lambda one: one.criterion, free=True),
                Column("WEIGHT", lambda one: f"{one.weight:.2f}", right=True),
                Column("EFFECTIVE", lambda one: f"{effective_weight(one, settings):.2f}", right=True),
                Column("HELPFUL", lambda one: f"{one.helpful:.2f} of {one.helpful_count}", right=True),
                Column("HARMFUL", lambda one: f"{one.harmful:.2f} of {one.harmful_count}", right=True),
                Column("LAST VALIDATED (UTC)", lambda one: day(one.last_validated), expendable=1),
                Column(
                    "",
                    lambda one: "deprecated" if should_deprecate_criterion(one, settings) else "no data" * one.no_data,
                    colours={"deprecated": "red"},
                ),
            )
            print_table(columns, weighted[0].values(), "no feedback on any criterion")
        else:
            print_table(COLUMNS, outcomes, "no loop or attempt has ended yet")
    end(all_findings(state))


def _chosen(state: ProjectState, works: Iterable[str]) -> list[str]:
    found = []
    for name in works:
        work_id = find_work(state, name, [])
        if state.board.outcome(work_id) is None:
            loop = state.snapshot.loops.get(work_id)
            if loop is None and work_id not in state.snapshot.attempts:
                raise UnknownRecord(
                    f"no loop, attempt or recorded outcome {shorten_id(name)}; see: ralphdeck loop list"
                )
            reason = f"is {loop.status}" if loop else "has no recorded result"
            hint = f"record its outcome with: ralphdeck loop record {shorten_id(work_id)} --outcome"
            raise UnknownRecord(f"{shorten_id(work_id)} {reason}; {hint}")
        found.append(work_id)
    return found


def _weighted(project: Project, words: Iterable[str]) -> tuple[dict[str, CriterionWeight], WeightedScores]:
    """Return the weight of each criterion, and the given scores weighted by them."""
    from core.decisions.reference_storage import LoggedFeedback

    scores: dict[str, float] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f"{word!r} is not CRITERION=SCORE; to score WORK leave out --criteria")
        scores[name.strip()] = FRACTION.convert(text, None, None)
    settings = project.settings.learning
    weights = criterion_weights(LoggedFeedback(project.project).get_all(), project.view.now, settings)
    return weights, apply_weights(scores, weights, settings)


def _weighted_json(weighted: WeightedScores) -> Wire:
    scores = [(name, weighted.weights[name], value) for name, value in weighted.scores.items()]
    return loops_json.WeightedScores.of(weighted, scores=scores)


def _print_weighted(weighted: WeightedScores) -> None:
    """Print weighted scores; a criterion without feedback has weight 1."""
    columns = (
        Column("CRITERION", lambda name: name, free=True),
        Column("WEIGHT", lambda name: f"{weighted.weights[name]:.2f}", right=True),
        Column("WEIGHTED SCORE", lambda name: f"{weighted.scores[name]:.2f}", right=True),
    )
    print_table(columns, weighted.scores)
    line(f"total: {'unknown, all weights are 0' if weighted.total is None else f'{weighted.total:.2f}'}")
