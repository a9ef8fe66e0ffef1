"""`ralphdeck log`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import click

from core.base.errors import BadInput, RalphdeckError
from core.base.text import plural, visible_line
from core.cli.json.shapes import decision_json, json_help
from core.cli.render.output import (
    STRICT_EXIT,
    Column,
    end,
    findings_json,
    line,
    minute,
    print_bytes,
    print_json,
    print_table,
    remark,
    warn,
)
from core.cli.support.input_file import read_named
from core.cli.support.options import Words, joined, reading_options
from core.cli.support.project import chosen_project, now, read_configuration, read_snapshot
from core.config.paths import ProjectPaths
from core.curation.decision_text import about_text, changed, verb_text
from core.ledger.trusted_heads import MAX_BYTES, Head, check_project, read_heads
from core.ledger.verify import verify_ledger
from core.records.decisions import Decision, Verb
from core.storage.export_file import export_file, write_file


@click.command(epilog=json_help("log"))
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most so many.")
@click.option(
    "--verb",
    type=Words([verb.value.replace("_", "-") for verb in Verb]),
    multiple=True,
    help="Only decisions of these kinds.",
)
@click.option("--by", metavar="NAME", help="Only what this person decided.")
@click.option("--verify", "is_verified", is_flag=True, help="Instead, check the hash chain of the log.")
@click.option(
    "--against", metavar="FILE", help="With --verify: also compare with the heads in FILE, - for standard input."
)
@click.option("--head", "is_head", is_flag=True, help="Instead, print the head of the log, to keep it elsewhere.")
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="With --head: write it to FILE."
)
@reading_options
def log(
    limit: int | None,
    verb: tuple[tuple[str, ...], ...],
    by: str | None,
    is_verified: bool,
    against: str | None,
    is_head: bool,
    output: Path | None,
    as_json: bool,
    strict: bool,
) -> None:
    """List the decisions, newest first: who, what, why; and whether they still hold.

    Every line of the log has a hash of the lines before it. --verify reports lines that an accident or a careless
    edit changed, removed, inserted or moved. It does not find an editor who computes all hashes anew: for that, keep
    the --head of the log where this editor cannot write, and verify --against it. That finds every change up to the
    head, none after it. See docs/safety.md#log.

    The exit code of --verify is 3 if anything does not fit, 1 if FILE is not a head of this project. The decisions
    count all the same.

    \b
    Examples:
      ralphdeck log --limit 10
      ralphdeck log --verb deprecate,accept-inversion --by ada --json
      ralphdeck log --verify
      ralphdeck log --head --output ~/heads/shop.json
      ralphdeck log --verify --against ~/heads/shop.json
      git notes show | ralphdeck log --verify --against -
    """
    if is_head and is_verified:
        raise click.UsageError("--head and --verify exclude each other")
    if against is not None and not is_verified:
        raise click.UsageError("--against needs --verify")
    if output is not None and not is_head:
        raise click.UsageError("--output needs --head")
    if is_verified:
        _verify(against, as_json)
        return
    if is_head:
        _print_head(output, as_json)
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


def _print_head(output: Path | None, as_json: bool) -> None:
    """Print the head of the log, or write it into a file."""
    paths = chosen_project()
    file = export_file(str(output), paths) if output is not None else None
    found = verify_ledger(paths)
    if found.problems:
        what = plural(len(found.problems), "break")
        warn(f"the log has {what} in its hash chain; the head only fixes what it contains now")
    end = found.end
    head = Head(kind="ralphdeck-log-head", project=_project_id(paths), lines=end.line, hash=end.chain, at=now())
    if file is not None:
        write_file(file, head.encoded())
    if file is None or as_json:
        print_bytes(head.encoded())
    else:
        line(f"wrote {visible_line(str(file), 300)}: line {head.lines}, {head.hash}")


def _project_id(paths: ProjectPaths) -> str:
    """The random ID of the project, made if that is possible; else ""."""
    from core.curation.exchange.origins import known_origin, project_origin  # only a head needs it

    try:
        return known_origin(paths) or project_origin(paths, read_configuration().settings.watch.retry_seconds)
    except (RalphdeckError, OSError):
        return ""


def _heads(against: str, paths: ProjectPaths) -> tuple[Head, ...]:
    """The heads of this project in a file, or on standard input."""
    from core.curation.exchange.origins import known_origin

    name = "standard input" if against == "-" else visible_line(against, 300)
    if against == "-":
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise BadInput(f"{name} is longer than {MAX_BYTES:,} bytes")
    else:
        data = read_named(Path(against), MAX_BYTES)
    heads = read_heads(data, name)
    check_project(heads, known_origin(paths), name)
    return heads


def _verify(against: str | None, as_json: bool) -> None:
    paths = chosen_project()
    found = verify_ledger(paths, _heads(against, paths) if against is not None else ())
    if as_json:
        problems = [{"line": problem.line, "what": problem.what} for problem in found.problems]
        counts = {"lines": found.lines, "linked": found.linked, "decisions": found.decisions, "heads": found.heads}
        print_json({**counts, "problems": problems})
    else:
        file = paths.relative(paths.ledger)
        for problem in found.problems:
            line((f"{file}:{problem.line}", "bold"), f"  {problem.what}")
        line(f"{file}: {found.summary}")
        if against is None:
            remark("an editor who computed all hashes anew is only found with --against; see docs/safety.md#log")
    if found.problems:
        click.get_current_context().exit(STRICT_EXIT)


def _row(decision: Decision, by_id: Mapping[str, Decision], undone: bool) -> tuple[str, ...]:
    note = decision.after.get("text") if decision.verb is Verb.NOTE else None
    return (
        minute(decision.at),
        decision.by,
        verb_text(decision) + (" (taken back)" if undone else ""),
        about_text(decision, by_id),
        changed(decision),
        note if isinstance(note, str) else decision.reason,
    )
