"""`ralphdeck changes`: changes between two moments, or with other thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from core.base.errors import BadInput, ProjectNotFound
from core.base.settings import THRESHOLDS, Settings, find_threshold, with_threshold
from core.cli.json import analysis as analysis_json
from core.cli.support.document import print_blocks, print_document
from core.cli.support.options import ReadingCommand, choose_mode
from core.cli.support.output import (
    Column,
    end,
    line,
    minute,
    print_json,
    print_object,
    print_table,
    remark,
    wants_json,
    warn,
)
from core.cli.support.project import (
    PastMoment,
    chosen_project,
    named_project,
    open_project,
    read_configuration,
    remark_undated,
)
from core.learning import threshold_replay
from core.learning.outcomes import criterion_weight, effective_weight, should_deprecate_criterion

if TYPE_CHECKING:
    from core.base.settings import Setting
    from core.cli.json.wire import Wire
    from core.project.project import Project
    from core.sources.configuration import Configuration

LAST_VISIT: Final = "last-visit"
DEFAULT_SINCE: Final = timedelta(days=7)  # How far `changes` looks back without a last visit.
MAX_ROWS: Final = 20  # Rows of each table without --all.


class _Since(PastMoment):
    """A past moment, or the last visit, which depends on the project."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == LAST_VISIT else super().convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"DATE|7d|{LAST_VISIT}"


def _complete_threshold(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(f"{known.name}=", help=known.help)
        for known in THRESHOLDS
        if known.replayed and known.name.startswith(incomplete)
    ]


_PERIOD: Final = "since until is_complete"


@click.command(cls=ReadingCommand)
@click.argument("values", metavar="[NAME=VALUE]...", nargs=-1, shell_complete=_complete_threshold)
@click.option("--thresholds", is_flag=True, help="List the thresholds and their values.")
@click.option(
    "--since",
    type=_Since(end_of_day=False),
    help=f"Start; a day starts at midnight UTC. Default: {LAST_VISIT}, else 7d.",
)
@click.option("--until", type=PastMoment(end_of_day=True), help="End; a day counts to its end. Default: now.")
@click.option("--all", "is_complete", is_flag=True, help=f"All rows, not only the first {MAX_ROWS} of each table.")
def changes(
    values: tuple[str, ...],
    thresholds: bool,
    since: datetime | str | None,
    until: datetime | None,
    is_complete: bool,
) -> None:
    """Show changes between two moments: patterns, decisions, loops and questions.

    Both moments are scored from what was known then, with the present thresholds. The last visit is when the dashboard
    was last open on this project; one in the last half hour goes on.

    With NAME=VALUE, replays the history with other thresholds: shows which patterns would change state or be inverted,
    and how the weights of evaluation criteria would change. Nothing is written. Pins are ignored, so the numbers of
    states differ from other lists. The group before the dot may be left out if the name is unique.

    \b
    Examples:
      ralphdeck changes
      ralphdeck changes --since 2026-11-01 --until 2026-11-15
      ralphdeck changes --since 36h --json | jq -r '.patterns[].id'
      ralphdeck changes maturity.half_life_days=30
      ralphdeck changes deprecation_threshold=20% min_helpful=3 --json
    """
    mode = choose_mode({"NAME=VALUE": "", "--thresholds": "", "": _PERIOD})
    if mode:
        if thresholds:
            list_thresholds()
        else:
            try_thresholds(values)
        return
    from core.cli.support.user_files import last_visit
    from core.index.project_state import all_findings
    from core.project.as_of import build_past_state
    from core.show.comparison import compare_states, comparison_document

    state = open_project().view
    start = since if isinstance(since, datetime) else last_visit(chosen_project().project, state.now)
    if since == LAST_VISIT and start is None:
        raise click.UsageError("the dashboard was not open on this project before; use --since 7d or a date")
    start = start or state.now - DEFAULT_SINCE
    until = min(until or state.now, state.now)
    if start >= until:
        raise click.UsageError(f"{minute(start)} is not before {minute(until)}")
    before = build_past_state(state, start)
    found = compare_states(before, build_past_state(state, until))

    if wants_json():
        states = [(state, count, found.states_after[state]) for state, count in found.states_before.items()]
        print_json(analysis_json.ChangesDocument.of(found, results=found, states=states, findings=all_findings(before)))
    else:
        print_document(comparison_document(found, state, None if is_complete else MAX_ROWS))
        if not is_complete and found.longest > MAX_ROWS:
            remark("all rows: ralphdeck changes --all")
        remark_undated(all_findings(before))
    end(all_findings(before))


CRITERION_COLUMNS = (
    Column("CRITERION", lambda one: one.criterion, free=True),
    Column("WEIGHT", lambda one: f"{one.effective_weight_before:.2f}", right=True),
    Column("BECOMES", lambda one: f"{one.effective_weight:.2f}", right=True),
    Column("", lambda one: "deprecated" if one.deprecated else ""),
)


def try_thresholds(values: Sequence[str]) -> None:
    """Replay the history with other thresholds, such as `maturity.half_life_days=30`."""
    from core.index.project_state import all_findings
    from core.show.comparison import what_if_document

    configuration = _read_configuration()
    settings = configuration.settings
    tried: list[Setting] = []
    for value in values:
        known, text = _parse(value)
        if known in tried:
            raise click.UsageError(f"{known.name} is given twice")
        try:
            settings = with_threshold(settings, known.name, text)
        except BadInput as error:
            raise click.UsageError(str(error)) from None
        tried.append(known)
    for known in tried:
        if not known.replayed and known.group != "learning":
            warn(f"{known.name} changes no state and no inversion")
    project = open_project(configuration=configuration)
    state = project.view
    replay = threshold_replay.what_if(settings, state.board.history)
    criteria = _criteria(project, settings)

    if wants_json():
        counts = [(state, count, replay.after[state]) for state, count in replay.before.items()]
        thresholds = [_threshold_json(known, settings) for known in tried]
        print_json(
            analysis_json.WhatIfDocument.of(
                replay, counts=counts, tried=thresholds, criteria=criteria, findings=all_findings(state)
            )
        )
    else:
        print_blocks(what_if_document(replay, tried, settings, state).blocks)
        changed = [one for one in criteria if one.effective_weight != one.effective_weight_before]
        print_table(CRITERION_COLUMNS, changed)
        if criteria and not changed:
            line("no criterion changes its weight")
    end(all_findings(state))


def _threshold_json(known: Setting, settings: Settings) -> Wire:
    return analysis_json.Threshold.of(known, value=known.value(settings))


def _criteria(project: Project, settings: Settings) -> list[analysis_json.CriterionChange]:
    from core.decisions.reference_storage import LoggedFeedback

    events = LoggedFeedback(project.project).get_all()
    found = []
    for criterion in sorted({event.criterion for event in events}):
        own = [event for event in events if event.criterion == criterion]
        values: dict[str, float | bool] = {}
        for suffix, tried in (("_before", project.settings.learning), ("", settings.learning)):
            weight = criterion_weight(own, project.view.now, tried)
            values[f"weight{suffix}"] = weight.weight
            values[f"effective_weight{suffix}"] = effective_weight(weight, tried)
            values[f"deprecated{suffix}"] = should_deprecate_criterion(weight, tried)
        found.append(analysis_json.CriterionChange.of(criterion=criterion, **values))
    return found


def _read_configuration() -> Configuration:
    from core.sources.configuration import Configuration

    try:
        return read_configuration()
    except ProjectNotFound:
        if named_project() is not None:
            raise
        return Configuration()


def _parse(value: str) -> tuple[Setting, str]:
    """Parse NAME=VALUE into the named threshold and the text of its value."""
    name, equals, text = value.partition("=")
    if not equals:
        raise click.UsageError(f"{value!r} is not NAME=VALUE")
    try:
        return find_threshold(name.strip()), text
    except BadInput as error:
        raise click.UsageError(f"{error}\nTo list them: ralphdeck changes --thresholds") from None


def list_thresholds() -> None:
    settings = _read_configuration().settings
    columns = (
        Column("NAME", lambda known: known.name),
        Column("VALUE", lambda known: known.text(settings), right=True),
        Column("UNIT", lambda known: known.unit, expendable=1),
        Column("MEANING", lambda known: known.help, free=True),
    )
    if wants_json():
        print_object(analysis_json.ThresholdList, thresholds=(_threshold_json(known, settings) for known in THRESHOLDS))
    else:
        print_table(columns, THRESHOLDS)
