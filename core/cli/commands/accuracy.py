"""`ralphdeck mirror`: what became of a reviewer's verdicts."""

from __future__ import annotations

from typing import Any

import click

from core.base.text import plural
from core.cli.json.shapes import json_help
from core.cli.render.output import end, findings_json, line, percent, print_json
from core.cli.support.options import json_option, project_option, strict_option
from core.cli.support.project import decider, open_deck
from core.metrics.reviewer_accuracy import MIN_FOLLOWED, ReviewerAccuracy, Share, measure_accuracy
from core.state.findings import all_findings


@click.command(epilog=json_help("accuracy"))
@click.option("--by", metavar="NAME", help="Whose verdicts. Default: $RALPHDECK_USER, else the name of the user.")
@project_option
@json_option
@strict_option
def accuracy(by: str | None, as_json: bool, strict: bool) -> None:
    """Say how many of your promotions and deprecations held against what loops told afterwards.

    A verdict counts when enough results came after it, and before the next verdict on the same pattern: as many as a
    state other than candidate takes (min_feedback). A share is told from 30 such verdicts on.

    \b
    Examples:
      ralphdeck mirror
      ralphdeck mirror --by ana --json
    """
    view = open_deck().view
    found = measure_accuracy(view, by or decider())
    if as_json:
        print_json({**mirror_json(found), "findings": findings_json(all_findings(view))})
    else:
        line(f"verdicts of {found.by}, by what loops told afterwards")
        for word, share in (("promotion", found.promotions), ("deprecation", found.deprecations)):
            line(f"{plural(share.made, word)}: {share_text(share, found)}")
    end(all_findings(view), strict=strict)


def mirror_json(found: ReviewerAccuracy) -> dict[str, Any]:
    """The stable shape of what became of a person's verdicts."""
    return {
        "by": found.by,
        "follow_up": found.follow_up,
        "needed": MIN_FOLLOWED,
        "level": found.level,
        "promotions": _share_json(found.promotions),
        "deprecations": _share_json(found.deprecations),
    }


def _share_json(share: Share) -> dict[str, Any]:
    return {
        "made": share.made,
        "followed": share.followed,
        "held": share.held if share.rate is not None else None,
        "rate": share.rate,
        "low": share.low,
        "high": share.high,
    }


def share_text(share: Share, found: ReviewerAccuracy) -> str:
    """How many held, or how many more it takes to say so."""
    if share.rate is None:
        return f"{share.followed} of {MIN_FOLLOWED} needed, each with {plural(found.follow_up, 'later result')} or more"
    interval = f"{percent(found.level)} interval {percent(share.low)} to {percent(share.high)}"
    return f"{share.held} of {share.followed} with follow-up held, {percent(share.rate)} ({interval})"
