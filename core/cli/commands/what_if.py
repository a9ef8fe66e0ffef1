"""`ralphdeck changes NAME=VALUE`: replay the history with other thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from core.base.errors import BadInput, ProjectNotFound
from core.base.settings import THRESHOLDS, Settings, find_threshold, with_threshold
from core.cli.json import analysis as analysis_json
from core.cli.render.document import print_blocks
from core.cli.render.output import Column, end, line, print_json, print_object, print_table, wants_json, warn
from core.cli.support.project import named_project, open_project, read_configuration
from core.learning import threshold_replay
from core.learning.outcomes import criterion_weight, effective_weight, should_deprecate_criterion

if TYPE_CHECKING:
    from core.base.settings import Setting
    from core.cli.json.wire import Wire
    from core.project.project import Project
    from core.sources.configuration import Configuration

CRITERION_COLUMNS = (
    Column("CRITERION", lambda one: one.criterion, free=True),
    Column("WEIGHT", lambda one: f"{one.effective_weight_before:.2f}", right=True),
    Column("BECOMES", lambda one: f"{one.effective_weight:.2f}", right=True),
    Column("", lambda one: "deprecated" if one.deprecated else ""),
)


def complete_threshold(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(f"{known.name}=", help=known.help)
        for known in THRESHOLDS
        if known.replayed and known.name.startswith(incomplete)
    ]


def try_thresholds(values: Sequence[str]) -> None:
    """Replay the history with other thresholds, such as `maturity.half_life_days=30`."""
    from core.index.findings import all_findings
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
