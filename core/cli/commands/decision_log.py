"""`ralphdeck log`: the decisions, and the hash chain of the decision log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from core.base.errors import RalphdeckError
from core.base.text import plural, visible_line
from core.cli.json import decisions as decisions_json
from core.cli.render.document import print_list
from core.cli.render.output import STRICT_EXIT, end, line, print_json, print_object, remark, wants_json, warn
from core.cli.support.input_file import read_input
from core.cli.support.options import (
    ReadingCommand,
    choose_mode,
    filter_option,
    limit_option,
    output_option,
    read_filter,
    words_option,
)
from core.cli.support.project import chosen_project, now, read_configuration, read_snapshot
from core.decisions.case import author_text
from core.files.atomic_write import export_file, write_file
from core.files.user_files import team_file
from core.records.decisions import Verb
from core.show.decisions import (
    COMMAND_COLUMNS,
    DECISION_FIELDS,
    command_cells,
    group_decisions,
    select_decisions,
)

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.sources.ledger import Head
    from core.team.decisions import SpaceVerification


@click.command(cls=ReadingCommand)
@limit_option
@filter_option
@words_option("--verb", words=(verb.value.replace("_", "-") for verb in Verb), help="Only decisions with these verbs.")
@click.option("--by", metavar="NAME", help="Only decisions of this person, or of hook.")
@click.option("--verify", "is_verified", is_flag=True, help="Check the hash chain of the log instead of listing it.")
@click.option(
    "--against", metavar="FILE", help="With --verify: also compare with the heads in FILE, - for standard input."
)
@click.option("--head", "is_head", is_flag=True, help="Print the head of the log instead, to save it elsewhere.")
@output_option("With --head: write it to FILE.")
def log(
    limit: int | None,
    filter_text: str,
    verb: frozenset[str],
    by: str | None,
    is_verified: bool,
    against: str | None,
    is_head: bool,
    output: Path | None,
) -> None:
    """List the decisions, newest first, and whether they are in effect.

    Decisions that were made in one step share a row, as do all extractions by hooks of one day; --json lists each
    decision.

    Every line of the log has a hash of the lines before it. --verify reports lines that were changed, removed, inserted
    or moved. It cannot detect someone who recomputes all hashes. To detect that, save the --head of the log where that
    person cannot write, and verify --against it: this finds every change up to the head, but no later one. See
    docs/safety.md#log.

    With --verify the exit code is 3 if a problem is found, and 1 if FILE has no head of this project. The decisions
    stay in effect even if a problem is found. If the project has joined a team, the decisions of the team are verified
    too; without a connection, the answer contains why not.

    \b
    Examples:
      ralphdeck log --limit 10
      ralphdeck log --filter 'verb:promote subject:null'
      ralphdeck log --verb deprecate,accept-inversion --by ada --json
      ralphdeck log --verify
      ralphdeck log --head --output ~/heads/shop.json
      ralphdeck log --verify --against ~/heads/shop.json
      git notes show | ralphdeck log --verify --against -
    """
    mode = choose_mode({"--verify": "against", "--head": "output", "": "limit filter_text verb by"})
    if mode == "--verify":
        _verify(against)
        return
    if mode == "--head":
        _print_head(output)
        return
    query = read_filter(filter_text, DECISION_FIELDS)
    snapshot = read_snapshot()
    verbs = {word.replace("-", "_") for word in verb}
    matching = set(select_decisions(snapshot.decisions, query))
    undone, elsewhere = snapshot.curation.undone, snapshot.curation.claims
    chosen = [
        decision
        for decision in reversed(snapshot.decisions)
        if decision.id in matching
        and (not verbs or decision.verb in verbs)
        and by in {None, decision.by, author_text(decision)}
    ][:limit]
    if wants_json():
        rows = [
            decisions_json.LoggedDecision.of(one, undone=one.id in undone, elsewhere=one.id in elsewhere)
            for one in chosen
        ]
        print_json(decisions_json.DecisionLog.of(decisions=rows, findings=snapshot.findings))
    else:
        entries = group_decisions(chosen, undone)
        print_list(COMMAND_COLUMNS, (command_cells(entry, snapshot) for entry in entries), "no decisions")
    end(snapshot.findings)


def _print_head(output: Path | None) -> None:
    from core.sources.ledger import Head, verify_ledger

    paths = chosen_project()
    file = export_file(str(output), paths) if output is not None else None
    found = verify_ledger(paths)
    if found.problems:
        what = plural(len(found.problems), "break")
        warn(f"the log has {what} in its hash chain; the head records only its present content")
    end = found.end
    head = Head(kind="ralphdeck-log-head", project=_project_id(paths), lines=end.line, hash=end.chain, at=now())
    if file is not None:
        write_file(file, head.encoded())
    if file is None or wants_json():
        click.echo(head.encoded(), nl=False)
    else:
        line(f"wrote {visible_line(str(file), 300)}: line {head.lines}, {head.hash}")


def _project_id(paths: ProjectPaths) -> str:
    """Return the random ID of the project, created if possible; "" if not."""
    from core.decisions.merge import known_origin, project_origin  # only a head needs it

    try:
        return known_origin(paths) or project_origin(paths, read_configuration().settings.watch.retry_seconds)
    except (RalphdeckError, OSError):
        return ""


def _verify_team(paths: ProjectPaths) -> SpaceVerification | None:
    """Verify the decisions of the team that the project has joined, if any."""
    if not team_file().exists():
        return None
    from core.team.decisions import verify_joined  # only a joined project needs it

    return verify_joined(paths.project)


def _verify(against: str | None) -> None:
    from core.decisions.merge import known_origin  # only a head needs it
    from core.sources.ledger import MAX_HEADS_BYTES, Ledger, check_project, read_heads, verify_ledger

    paths = chosen_project()
    heads: tuple[Head, ...] = ()
    if against is not None:
        name = "standard input" if against == "-" else visible_line(against, 300)
        heads = read_heads(read_input(Path(against), MAX_HEADS_BYTES), name)
        check_project(heads, known_origin(paths), name)
    found = verify_ledger(paths, heads)
    team = _verify_team(paths)
    ledger = Ledger(paths)
    elsewhere = len(ledger.claims())

    if wants_json():
        print_object(decisions_json.LogVerification, found, team=team, elsewhere=elsewhere)
    else:
        file = paths.relative(paths.ledger)
        for problem in found.problems:
            line((f"{file}:{problem.line}", "bold"), f"  {problem.what}")
        line(f"{file}: {found.summary}")
        line(f"Made or confirmed here: {found.decisions - elsewhere:,}; made elsewhere: {elsewhere:,}")
        if against is None:
            remark("someone who recomputed all hashes is only detected with --against; see docs/safety.md#log")
        if team is not None:
            line(team.summary)
    if found.problems or (team is not None and team.problem):
        click.get_current_context().exit(STRICT_EXIT)
