"""`ralphdeck log`."""

from __future__ import annotations

from collections.abc import Mapping

import click

from core.cli.options import Words, joined, reading_options
from core.cli.output import STRICT_EXIT, Column, end, findings_json, line, minute, print_json, print_table, remark
from core.cli.project import chosen_project, read_snapshot
from core.cli.shapes import decision_json, json_help
from core.curation.rules import about_text, changed
from core.curation.verifying import verify_ledger
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
@click.option("--verify", "is_verified", is_flag=True, help="Instead, check that every line is as it was written.")
@reading_options
def log(
    limit: int | None,
    verb: tuple[tuple[str, ...], ...],
    by: str | None,
    is_verified: bool,
    as_json: bool,
    strict: bool,
) -> None:
    """List the decisions, newest first: who, what, why; and whether they still hold.

    Every line of the log bears a hash of what stands before it: --verify tells of each line that was changed, taken
    out, put in or moved, and exits with 3 if there is one. The decisions count all the same.

    \b
    Examples:
      ralphdeck log --limit 10
      ralphdeck log --verb deprecate,accept-inversion --by ada --json
      ralphdeck log --verify
    """
    if is_verified:
        _verify(as_json)
        return
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


def _verify(as_json: bool) -> None:
    paths = chosen_project()
    found = verify_ledger(paths)
    if as_json:
        problems = [{"line": problem.line, "what": problem.what} for problem in found.problems]
        print_json({"lines": found.lines, "linked": found.linked, "decisions": found.decisions, "problems": problems})
    else:
        file = paths.relative(paths.ledger)
        for problem in found.problems:
            line((f"{file}:{problem.line}", "bold"), f"  {problem.what}")
        line(f"{file}: {found.summary}")
    if found.problems:
        click.get_current_context().exit(STRICT_EXIT)


def _row(decision: Decision, by_id: Mapping[str, Decision], undone: bool) -> tuple[str, ...]:
    note = decision.after.get("text") if decision.verb is Verb.NOTE else None
    return (
        minute(decision.at),
        decision.by,
        decision.verb.value.replace("_", " ") + (" (taken back)" if undone else ""),
        about_text(decision, by_id),
        changed(decision),
        note if isinstance(note, str) else decision.reason,
    )
