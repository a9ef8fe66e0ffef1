"""`ralphdeck score`: how what has finished came out, and what evaluation criteria weigh."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import click
import numpy as np

from core.base.errors import UnknownRecord
from core.base.formatting import short_id
from core.cli.json.learning import criterion_json, scored_json
from core.cli.json.shapes import Shape, json_help
from core.cli.render.output import Column, end, findings_json, line, print_json, print_table, remark
from core.cli.support.id_completion import complete_work
from core.cli.support.options import Fraction, reading_options
from core.cli.support.project import open_deck
from core.cli.support.work_options import find_work
from core.curation.reference_storage import LoggedFeedback
from core.learning.criteria import CriterionWeight, WeightedScores, apply_weights, criterion_weights
from core.project.project import Project
from core.project.scoring import Scored, scored
from core.state.findings import all_findings
from core.state.project_state import ProjectState

VERDICT_COLOURS: Final = {"helpful": "green", "harmful": "red"}


@click.command(epilog=json_help("loop score"))
@click.argument("work_items", metavar="[WORK]...", nargs=-1, shell_complete=complete_work)
@click.option(
    "--criteria", is_flag=True, help="Show the weights of the criteria instead; CRITERION=SCORE weighs these scores."
)
@reading_options
def score(work_items: tuple[str, ...], criteria: bool, as_json: bool, strict: bool) -> None:
    """Score how loops and attempts came out, newest first, with the parts that the score is made of.

    A loop that runs, was aborted or crashed has no outcome until somebody records one.

    \b
    Examples:
      ralphdeck score
      ralphdeck score task-001.2 --json | jq .outcomes[0].parts
      ralphdeck score --criteria
      ralphdeck score --criteria type_safe=0.9 fast=40%
    """
    deck = open_deck()
    view = deck.view
    weighed = _weighed(deck, work_items if criteria else ()) if as_json or criteria else None
    named = work_items and not criteria
    outcomes = () if criteria and not as_json else scored(view, _wanted(view, work_items) if named else None)
    weights = [criterion_json(one, deck.settings.learning) for one in weighed[0].values()] if weighed else []
    if as_json:
        due = np.flatnonzero(view.board.inversion_due).tolist()
        print_json(
            {
                "outcomes": [scored_json(one) for one in outcomes],
                "criteria": weights,
                "weighted": _weighted_json(weighed[1]) if criteria and work_items and weighed else None,
                "inversions": [view.board.ids[row] for row in due],
                "findings": findings_json(all_findings(view)),
            }
        )
    elif criteria and work_items and weighed:
        _print_weighted(weighed[1])
    elif criteria:
        _print_criteria(weights)
    else:
        _print_outcomes(outcomes)
    end(all_findings(view), strict=strict)


def _wanted(view: ProjectState, work_items: Iterable[str]) -> list[str]:
    found = []
    for name in work_items:
        work_id = find_work(view, name, [])
        if view.outcome(work_id) is None:
            loop = view.snapshot.loops.get(work_id)
            if loop is None and work_id not in view.snapshot.attempts:
                raise UnknownRecord(f"no loop, attempt or recorded outcome {short_id(name)}; see: ralphdeck loops")
            state = f"is {loop.status}" if loop else "does not say how it ended"
            raise UnknownRecord(f"{short_id(work_id)} {state}: no outcome is known; record one with: ralphdeck outcome")
        found.append(work_id)
    return found


def _weighed(deck: Project, words: Iterable[str]) -> tuple[dict[str, CriterionWeight], WeightedScores]:
    """The weight of each criterion, and the scores NAME=SCORE weighed by them."""
    scores: dict[str, float] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f"{word!r} is not CRITERION=SCORE; give WORKs without --criteria")
        scores[name.strip()] = Fraction().convert(text, None, None)
    settings = deck.settings.learning
    weights = criterion_weights(LoggedFeedback(deck.project).get_all(), deck.view.now, settings)
    return weights, apply_weights(scores, weights, settings)


def _print_outcomes(outcomes: Iterable[Scored]) -> None:
    columns = (
        Column("ID"),
        Column("VERDICT", colours=VERDICT_COLOURS),
        Column("RAW", right=True),
        Column("TODAY", right=True),
        Column("REASONING", free=True),
    )
    rows = [
        (one.work_id, one.outcome.verdict, f"{one.outcome.raw:.2f}", f"{one.outcome.decayed:.2f}", _parts(one))
        for one in outcomes
    ]
    print_table(columns, rows)
    if not rows:
        remark("no loop or attempt has ended yet")


def _parts(one: Scored) -> str:
    """The reasoning without the verdict and the score, which have columns of their own."""
    return one.outcome.reasoning.partition(": ")[2]


def _weighted_json(weighted: WeightedScores) -> Shape:
    return {
        "scores": [
            {"criterion": name, "weight": weighted.weights[name], "weighted": score}
            for name, score in weighted.scores.items()
        ],
        "total": weighted.total,
    }


def _print_weighted(weighted: WeightedScores) -> None:
    """Scores after weighting; a criterion without feedback weighs 1."""
    columns = (Column("CRITERION"), Column("WEIGHT", right=True), Column("WEIGHTED SCORE", right=True))
    rows = [(name, f"{weighted.weights[name]:.2f}", f"{score:.2f}") for name, score in weighted.scores.items()]
    print_table(columns, rows)
    line(f"total: {'unknown, no criterion weighs anything' if weighted.total is None else f'{weighted.total:.2f}'}")


def _print_criteria(weights: Iterable[Shape]) -> None:
    columns = (
        Column("CRITERION"),
        Column("WEIGHT", right=True),
        Column("EFFECTIVE", right=True),
        Column("HELPFUL", right=True),
        Column("HARMFUL", right=True),
        Column("LAST VALIDATED (UTC)"),
        Column("", colours={"deprecated": "red"}),
    )
    rows = [
        (
            weight["criterion"],
            f"{weight['weight']:.2f}",
            f"{weight['effective_weight']:.2f}",
            f"{weight['helpful']:.2f} of {weight['helpful_count']}",
            f"{weight['harmful']:.2f} of {weight['harmful_count']}",
            (weight["last_validated"] or "")[:10],
            "deprecated" if weight["deprecated"] else "no data" if weight["no_data"] else "",
        )
        for weight in weights
    ]
    print_table(columns, rows)
    if not rows:
        remark("no feedback on any criterion")
