"""`ralphdeck accuracy`: how many decisions of a reviewer later evidence confirmed."""

from __future__ import annotations

import click

from core.base.text import plural
from core.cli.json import objects
from core.cli.json.wire import Wire
from core.cli.render.output import line, percent, respond
from core.cli.support.options import ReadingCommand
from core.cli.support.project import decider, open_project
from core.metrics.reviewer_accuracy import MIN_FOLLOWED, ReviewerAccuracy, Share, measure_accuracy
from core.state.findings import all_findings


@click.command(cls=ReadingCommand)
@click.option("--by", metavar="NAME", help="Whose decisions. Default: $RALPHDECK_USER, else the user.")
def accuracy(by: str | None) -> None:
    """Show how many of your promotions and deprecations later evidence confirmed.

    A decision counts if enough results came after it and before the next decision on the same pattern: as many as a
    state other than candidate needs (min_feedback). A rate needs at least 30 such decisions.

    \b
    Examples:
      ralphdeck accuracy
      ralphdeck accuracy --by ana --json
    """
    state = open_project().view
    found = measure_accuracy(state, by or decider())

    def show() -> None:
        line(f"accuracy of {found.by}'s decisions, by later results")
        for word, share in (("promotion", found.promotions), ("deprecation", found.deprecations)):
            line(f"{plural(share.made, word)}: {_share_text(share, found)}")

    respond(
        "AccuracyDocument",
        show,
        all_findings(state),
        found,
        needed=MIN_FOLLOWED,
        promotions=lambda: _share_json(found.promotions),
        deprecations=lambda: _share_json(found.deprecations),
    )


def _share_json(share: Share) -> Wire:
    return objects.DecisionShare.of(share, held=share.held if share.rate is not None else None)


def _share_text(share: Share, found: ReviewerAccuracy) -> str:
    """How many decisions were confirmed, or how many are missing for a rate."""
    if share.rate is None:
        return f"{share.followed} of {MIN_FOLLOWED} needed, each with {plural(found.follow_up, 'later result')} or more"
    interval = f"{percent(found.level)} interval {percent(share.low)} to {percent(share.high)}"
    return f"{share.held} of {share.followed} with later results confirmed, {percent(share.rate)} ({interval})"
