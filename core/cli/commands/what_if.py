"""`ralphdeck what-if`: replay the history with other thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from core.base.errors import BadInput, ProjectNotFound
from core.base.text import plural
from core.cli.json import objects
from core.cli.render.output import Column, day, id_column, line, print_table, respond, warn
from core.cli.support.options import ReadingCommand
from core.cli.support.project import named_project, open_project, read_configuration
from core.config.settings import THRESHOLDS, Settings, find_threshold, with_threshold
from core.learning import threshold_replay
from core.learning.outcomes import criterion_weight, effective_weight, should_deprecate_criterion

if TYPE_CHECKING:
    from core.config.declaration import Setting
    from core.learning.threshold_replay import PatternDifference, Replay
    from core.project.project import Project
    from core.sources.configuration import Configuration

TURN_COLUMNS = (
    id_column("ID", lambda turn: turn.pattern_id),
    Column("BEFORE", lambda turn: turn.before.state),
    Column("AFTER", lambda turn: turn.after.state),
    Column("SINCE", lambda turn: _since(turn), expendable=1),
    Column("INVERSION", lambda turn: _inversion(turn)),
    Column("PINNED", lambda turn: "pinned" if turn.pinned else "", expendable=2),
)
CRITERION_COLUMNS = (
    Column("CRITERION", lambda one: one.criterion, free=True),
    Column("WEIGHT", lambda one: f"{one.effective_weight_before:.2f}", right=True),
    Column("BECOMES", lambda one: f"{one.effective_weight:.2f}", right=True),
    Column("", lambda one: "deprecated" if one.deprecated else ""),
)


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(f"{known.name}=", help=known.help)
        for known in THRESHOLDS
        if known.replayed and known.name.startswith(incomplete)
    ]


@click.command("what-if", cls=ReadingCommand)
@click.argument("values", metavar="[NAME=VALUE]...", nargs=-1, shell_complete=_complete)
def what_if(values: tuple[str, ...]) -> None:
    """Replay the history with other thresholds: show which patterns would change state or be inverted, and how the
    weights of evaluation criteria would change.

    Nothing is written. Pins are ignored, so the numbers of states differ from other lists. Without arguments, the
    thresholds and their values are listed. The group before the dot may be left out if the name is unique.

    \b
    Examples:
      ralphdeck what-if
      ralphdeck what-if maturity.half_life_days=30
      ralphdeck what-if deprecation_threshold=20% min_helpful=3 --json
    """
    from core.state.findings import all_findings

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
    if not tried:
        _list(settings)
        return
    for known in tried:
        if not known.replayed and known.group != "learning":
            warn(f"{known.name} changes no state and no inversion")
    project = open_project(configuration=configuration)
    state = project.view
    replay = threshold_replay.what_if(settings, state.board.history)
    criteria = _criteria(project, settings)

    def show() -> None:
        for known in tried:
            line(f"{known.name}: {known.text(state.settings)} → {known.text(settings)}")
        _print(replay)
        changed = [one for one in criteria if one.effective_weight != one.effective_weight_before]  # type: ignore[attr-defined]
        print_table(CRITERION_COLUMNS, changed)
        if criteria and not changed:
            line("no criterion changes its weight")

    respond(
        "WhatIfDocument",
        show,
        all_findings(state),
        replay,
        counts=((state, count, replay.after[state]) for state, count in replay.before.items()),
        tried=(_threshold_json(known, settings) for known in tried),
        criteria=criteria,
    )


def _threshold_json(known: Setting, settings: Settings) -> objects.Wire:
    return objects.Threshold.of(known, value=known.value(settings))


def _criteria(project: Project, settings: Settings) -> list[objects.Wire]:
    from core.curation.reference_storage import LoggedFeedback

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
        found.append(objects.CriterionChange.of(criterion=criterion, **values))
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
        raise click.UsageError(f"{error}\nTo list them: ralphdeck what-if") from None


def _list(settings: Settings) -> None:
    columns = (
        Column("NAME", lambda known: known.name),
        Column("VALUE", lambda known: known.text(settings), right=True),
        Column("UNIT", lambda known: known.unit, expendable=1),
        Column("MEANING", lambda known: known.help, free=True),
    )
    respond(
        "ThresholdList",
        lambda: print_table(columns, THRESHOLDS),
        thresholds=(_threshold_json(known, settings) for known in THRESHOLDS),
    )


def _print(replay: Replay) -> None:
    counts = ", ".join(f"{state} {count} → {replay.after[state]}" for state, count in replay.before.items())
    line(f"{plural(replay.events, 'result')} replayed, states by rule, without pins: {counts}")
    print_table(TURN_COLUMNS, replay.turns, "no pattern changes")


def _since(turn: PatternDifference) -> str:
    return "" if turn.after.state is turn.before.state else day(turn.after.since)


def _inversion(turn: PatternDifference) -> str:
    if turn.before.inverts is turn.after.inverts:
        return ""
    return "proposed" if turn.after.inverts else "no longer"
