"""`ralphdeck log`."""

from __future__ import annotations

from collections.abc import Mapping

import click

from core.cli.options import Words, joined, reading_options
from core.cli.output import Column, end, findings_json, print_json, print_table, remark
from core.cli.project import read_snapshot
from core.cli.shapes import decision_json, json_help
from core.curation.rules import changed, subject_text
from core.records.decisions import Decision, Verb


@click.command(epilog=json_help("log"))
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most so many.")
@click.option(
    "--verb",
    type=Words([verb.value.replace("_", "-") for verb in Verb]),
    multiple=True,
    help="Only decisions of these kinds.",
)
@click.option("--by", metavar="NAME", help="Only what this person decided.")
@reading_options
def log(limit: int | None, verb: tuple[tuple[str, ...], ...], by: str | None, as_json: bool, strict: bool) -> None:
    """List the decisions, newest first: who, what, why; and whether they still hold.

    \b
    Examples:
      ralphdeck log --limit 10
      ralphdeck log --verb deprecate,accept-inversion --by ada --json
    """
    snapshot = read_snapshot()
    verbs = {word.replace("-", "_") for word in joined(verb)}
    undone = snapshot.curation.undone
    chosen = [
        decision
        for decision in reversed(snapshot.decisions)
        if (not verbs or decision.verb in verbs) and by in {None, decision.by}
    ][:limit]
    if as_json:
        decisions = [{**decision_json(decision), "undone": decision.id in undone} for decision in chosen]
        print_json({"decisions": decisions, "findings": findings_json(snapshot.findings)})
    else:
        columns = (
            Column("AT (UTC)"),
            Column("BY"),
            Column("DECISION", colours={"promote": "green", "deprecate": "red"}),
            Column("SUBJECT"),
            Column("CHANGE"),
            Column("REASON", free=True),
        )
        by_id = {decision.id: decision for decision in snapshot.decisions}
        print_table(columns, (_row(decision, by_id, decision.id in undone) for decision in chosen))
        if not chosen:
            remark("no decisions")
    end(snapshot.findings, strict=strict)


def _row(decision: Decision, by_id: Mapping[str, Decision], undone: bool) -> tuple[str, ...]:
    taken = by_id.get(decision.subject) if decision.verb in {Verb.UNDO, Verb.REDO} else None
    note = decision.after.get("text") if decision.verb is Verb.NOTE else None
    return (
        f"{decision.at:%Y-%m-%d %H:%M}",
        decision.by,
        decision.verb.value.replace("_", " ") + (" (taken back)" if undone else ""),
        f"{taken.verb.value.replace('_', ' ')} {subject_text(taken)}" if taken else subject_text(decision),
        changed(decision),
        note if isinstance(note, str) else decision.reason,
    )
