"""`ralphdeck review` and `ralphdeck snooze`: what waits for a decision, and what may wait longer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from core.base.errors import UnknownRecord
from core.base.formatting import short_id
from core.base.text import plural
from core.cli.commands.decisions import print_decided
from core.cli.json.shapes import json_help, number
from core.cli.render.output import Column, end, findings_json, line, print_json, print_table, remark
from core.cli.support.options import Count, Moment, Words, deciding_options, joined, strict_option
from core.cli.support.project import open_deck
from core.review.answers import snooze_command
from core.state.findings import all_findings
from core.state.review_items import KINDS, ReviewItem

if TYPE_CHECKING:
    from core.project.project import Project
    from core.review.session import Plan

MOST_MINUTES = 1440
"""Longest sitting: a day."""


@click.command("list", epilog=json_help("review list"))
@click.option(
    "--minutes", type=click.IntRange(1, MOST_MINUTES), metavar="N", help="How long the sitting is. Default: 12."
)
@click.option(
    "--kind", type=Words(KINDS), multiple=True, metavar="KINDS", help=f"Only these kinds: {', '.join(KINDS)}."
)
@click.option("--limit", type=Count(), metavar="N", help="List at most so many.")
@deciding_options
@strict_option
def list_questions(
    minutes: int | None,
    kind: tuple[tuple[str, ...], ...],
    limit: int | None,
    by: str | None,
    as_json: bool,
    strict: bool,
) -> None:
    """List what waits for a decision, most worth deciding first, and say how far a sitting gets.

    Where an agent waits for a person comes before all that is weighed. What is at stake are the failures a week that a
    good decision is expected to spare loops; the seconds are what it takes to read and decide. With --minutes: list
    what to decide in that time, best use of it first, at the pace of the one who decides as far as the log tells it.

    \b
    Examples:
      ralphdeck review
      ralphdeck review --minutes 12
      ralphdeck review --kind inversion,borderline --json | jq -r '.questions[].subject'
    """
    from core.review.session import measure_pace, plan

    deck = _looked_through(by)
    view, kinds = deck.view, joined(kind)
    queue = [item for item in view.queue if not kinds or item.kind in kinds]
    length = view.settings.review.minutes if minutes is None else minutes
    sitting = plan(queue, length, view.settings, measure_pace(view.snapshot.decisions, deck.by))
    listed = (queue if minutes is None else sitting.items)[:limit]
    if as_json:
        print_json(
            {
                "questions": [item_json(item) for item in listed],
                "sitting": sitting_json(sitting),
                "findings": findings_json(all_findings(view)),
            }
        )
    else:
        _print(listed, len(queue if minutes is None else sitting.items))
        line(sitting.text)
    end(all_findings(view), strict=strict)


@click.command(epilog=json_help("decision"))
@click.argument("subject", metavar="SUBJECT")
@click.option("--until", type=Moment(), metavar="TIME", help="Ask again then, such as 2026-12-24.")
@click.option("--uses", type=click.IntRange(min=1), metavar="N", help="Ask again with so much new evidence.")
@click.option("--kind", type=click.Choice(KINDS), metavar="KIND", help="Which of several questions is meant.")
@click.option("--reason", default="", help="Why; kept in the log.")
@deciding_options
def snooze(
    subject: str, until: datetime | None, uses: int | None, kind: str | None, reason: str, by: str | None, as_json: bool
) -> None:
    """Ask a question of the review queue later: at a time, or once there is new evidence, what comes first.

    Nothing else changes: loops go on to get the pattern, or not to. To keep it from them without a verdict there is
    quarantine, with a verdict deprecate. The SUBJECT is that of a question, a pattern for example; new evidence are
    further uses of a pattern, or whatever else a question is about.

    \b
    Examples:
      ralphdeck snooze pat-success-split-by-type-002 --until 2026-12-24
      ralphdeck snooze pat-error-pool-timeout-009 --uses 3 --reason "too few to tell"
    """
    if until is None and uses is None:
        raise click.UsageError("say when to ask again: --until, --uses, or both")
    deck = _looked_through(by)
    command = snooze_command(_question(deck, subject, kind), until=until, evidence=uses)
    print_decided(deck.decide(replace(command, reason=reason)), as_json)


def _looked_through(by: str | None) -> Project:
    """The project, with what only idle moments bring into the queue."""
    deck = open_deck(by)
    deck.search_all()
    return deck


def _question(deck: Project, subject: str, kind: str | None) -> ReviewItem:
    found = [
        item
        for item in deck.view.queue
        if subject in {item.subject, item.question_key} and (kind is None or item.kind == kind)
    ]
    if not found:
        raise UnknownRecord(f"no question about {short_id(subject)} waits for a decision; see: ralphdeck review")
    if len(found) > 1:
        kinds = ", ".join(item.kind for item in found)
        raise UnknownRecord(f"{len(found)} questions are about {short_id(subject)}; say which with --kind: {kinds}")
    return found[0]


def item_json(item: ReviewItem) -> dict[str, Any]:
    """One question of the queue."""
    return {
        "kind": item.kind,
        "subject": item.subject,
        "key": item.question_key,
        "question": item.question,
        "reason": item.reason,
        "worth": number(item.priority),
        "stake": number(item.impact),
        "urgent": item.is_urgent,
        "seconds": number(item.seconds),
        "evidence": item.evidence,
        "other": item.other or None,
    }


def sitting_json(sitting: Plan) -> dict[str, Any]:
    """How far a sitting gets."""
    return {
        "minutes": number(sitting.minutes),
        "decisions": len(sitting.items),
        "keys": [item.question_key for item in sitting.items],
        "seconds": number(sitting.seconds),
        "share": number(sitting.share),
        "later": sitting.later,
        "not_worth_the_time": sitting.left,
    }


def _at_stake(item: ReviewItem) -> str:
    return "waits" if item.is_urgent else f"{item.impact:.3f}"


def _print(items: Sequence[ReviewItem], waiting: int) -> None:
    """List questions, of so many."""
    columns = (
        Column("KIND"),
        Column("AT STAKE", right=True),
        Column("SECONDS", right=True),
        Column("QUESTION", free=True, least=44),
        Column("REASON", free=True),
    )
    rows = ((item.kind, _at_stake(item), f"{item.seconds:.0f}", item.question, item.reason) for item in items)
    print_table(columns, rows)
    if not items:
        remark("nothing waits for a decision")
    else:
        count = plural(waiting, "question")
        count = count if len(items) == waiting else f"{len(items):,} of {count}"
        remark(f"{count}; at stake: failures a week that a good decision spares loops")
