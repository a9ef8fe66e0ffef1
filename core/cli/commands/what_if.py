"""`ralphdeck what-if`: all history under other thresholds."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from core.base.errors import BadInput, ProjectNotFound
from core.base.text import plural
from core.cli.json.learning import replay_json, threshold_json
from core.cli.json.shapes import Shape, json_help
from core.cli.render.output import Column, end, findings_json, line, print_json, print_table, remark, warn
from core.cli.support.options import reading_options
from core.cli.support.project import named_project, open_deck, read_configuration
from core.config.declaration import Setting
from core.config.settings import Settings
from core.config.thresholds import THRESHOLDS, find_threshold, with_threshold
from core.curation.reference_storage import LoggedFeedback
from core.learning import threshold_replay
from core.learning.criteria import criterion_weight, effective_weight, should_deprecate_criterion
from core.learning.threshold_replay import Replay, Turn
from core.project.project import Project
from core.records.times import day_of
from core.sources.configuration import Configuration
from core.state.findings import all_findings


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(f"{known.name}=", help=known.help)
        for known in THRESHOLDS
        if known.replayed and known.name.startswith(incomplete)
    ]


@click.command("what-if", epilog=json_help("what-if"))
@click.argument("values", metavar="[NAME=VALUE]...", nargs=-1, shell_complete=_complete)
@reading_options
def what_if(values: tuple[str, ...], as_json: bool, strict: bool) -> None:
    """Replay all history under other thresholds: which patterns would be in another state, or would invert, and what
    would criteria of evaluation weigh?

    Nothing is changed. Counted are the states that the rules alone lead to; pinned decisions, which hold, are left out
    of it, so that other counts of states differ. Without arguments: list the thresholds with their values. The group
    before the dot may be left out where only one has such a field.

    \b
    Examples:
      ralphdeck what-if
      ralphdeck what-if maturity.half_life_days=30
      ralphdeck what-if deprecation_threshold=20% min_helpful=3 --json
    """
    configuration = _configuration()
    settings = configuration.settings
    tried: list[Setting] = []
    for value in values:
        known, text = _parsed(value)
        if known in tried:
            raise click.UsageError(f"{known.name} is given twice")
        try:
            settings = with_threshold(settings, known.name, text)
        except BadInput as error:
            raise click.UsageError(str(error)) from None
        tried.append(known)
    if not tried:
        _list(settings, as_json)
        return
    for known in tried:
        if not known.replayed and known.group != "learning":
            warn(f"{known.name} turns no state and no inversion")
    deck = open_deck(configuration=configuration)
    view = deck.view
    replay = threshold_replay.what_if(settings, view.board.history)
    criteria = _criteria(deck, settings)
    if as_json:
        document = {"tried": [threshold_json(known, settings) for known in tried], **replay_json(replay)}
        document["criteria"] = criteria
        print_json({**document, "findings": findings_json(all_findings(view))})
    else:
        for known in tried:
            line(f"{known.name}: {known.text(view.settings)} → {known.text(settings)}")
        _print(replay)
        _print_criteria(criteria)
    end(all_findings(view), strict=strict)


def _criteria(deck: Project, settings: Settings) -> list[Shape]:
    """The weight of each criterion now, and under the other thresholds."""
    events = LoggedFeedback(deck.project).get_all()
    found = []
    for criterion in sorted({event.criterion for event in events}):
        own = [event for event in events if event.criterion == criterion]
        shape: Shape = {"criterion": criterion}
        for ending, tried in (("_before", deck.settings.learning), ("", settings.learning)):
            weight = criterion_weight(own, deck.view.now, tried)
            shape[f"weight{ending}"] = weight.weight
            shape[f"effective_weight{ending}"] = effective_weight(weight, tried)
            shape[f"deprecated{ending}"] = should_deprecate_criterion(weight, tried)
        found.append(shape)
    return found


def _print_criteria(criteria: list[Shape]) -> None:
    """The criteria that weigh something else under the other thresholds."""
    changed = [one for one in criteria if one["effective_weight"] != one["effective_weight_before"]]
    if changed:
        columns = (Column("CRITERION"), Column("WEIGHT", right=True), Column("BECOMES", right=True), Column(""))
        rows = (
            (
                one["criterion"],
                f"{one['effective_weight_before']:.2f}",
                f"{one['effective_weight']:.2f}",
                "deprecated" if one["deprecated"] else "",
            )
            for one in changed
        )
        print_table(columns, rows)
    elif criteria:
        line("no criterion weighs anything else")


def _configuration() -> Configuration:
    """Of the project; the thresholds can be listed without one."""
    try:
        return read_configuration()
    except ProjectNotFound:
        if named_project() is not None:
            raise
        return Configuration()


def _parsed(value: str) -> tuple[Setting, str]:
    """The threshold that is meant, and the text of its value."""
    name, equals, text = value.partition("=")
    if not equals:
        raise click.UsageError(f"{value!r} is not NAME=VALUE")
    try:
        return find_threshold(name.strip()), text
    except BadInput as error:
        raise click.UsageError(f"{error}\nTo list them: ralphdeck what-if") from None


def _list(settings: Settings, as_json: bool) -> None:
    if as_json:
        print_json({"thresholds": [threshold_json(known, settings) for known in THRESHOLDS]})
        return
    columns = (Column("NAME"), Column("VALUE", right=True), Column("UNIT"), Column("MEANING", free=True))
    print_table(columns, ((known.name, known.text(settings), known.unit, known.help) for known in THRESHOLDS))


def _print(replay: Replay) -> None:
    counted = (f"{state} {count} → {replay.after[state]}" for state, count in replay.before.items())
    line(f"{plural(replay.events, 'result')} replayed, by rule, without pins: {', '.join(counted)}")
    columns = (
        Column("ID"),
        Column("BEFORE"),
        Column("AFTER"),
        Column("SINCE"),
        Column("INVERSION"),
        Column("PINNED"),
    )
    print_table(columns, map(_row, replay.turns))
    if not replay.turns:
        remark("no pattern turns")


def _row(turn: Turn) -> tuple[str, ...]:
    before, after = turn.before, turn.after
    inversion = "" if before.inverts is after.inverts else "proposed" if after.inverts else "no more"
    since = f"{day_of(after.since)}" if after.since and after.state is not before.state else ""
    return turn.pattern_id, before.state, after.state, since, inversion, "pinned" if turn.pinned else ""
