"""Commands that decide on patterns, with dry run; `undo`; `log` of decisions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from core.base.errors import AlreadyDone, Proposed, RalphdeckError, Refused, UnknownRecord
from core.base.text import plural, visible_line
from core.cli.support.options import (
    DecidingCommand,
    ReadingCommand,
    ReviewingCommand,
    WholeNumber,
    choose_mode,
    filter_option,
    limit_option,
    output_option,
    read_filter,
    reason_option,
    words_option,
)
from core.cli.support.output import (
    STRICT_EXIT,
    end,
    line,
    print_json,
    print_object,
    remark,
    remark_missing_vectors,
    wants_json,
    warn,
)
from core.cli.support.process import read_input
from core.cli.support.project import (
    chosen_project,
    complete_pattern,
    now,
    open_project,
    read_configuration,
    read_snapshot,
)
from core.decisions.case import author_text
from core.decisions.commands import (
    AcceptInversion,
    ApproveReflection,
    Command,
    Note,
    Redo,
    RejectInversion,
    Snooze,
    Undo,
    bulk,
)
from core.files.atomic_write import export_file, write_file
from core.files.user_files import team_file
from core.records.decisions import Verb, verb_info

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.cli.json.wire import Wire
    from core.decisions.case import Decided
    from core.decisions.commands import Command
    from core.learning.inversion import Inversion
    from core.project.forecast import Forecast
    from core.project.project import Project
    from core.sources.ledger import Head
    from core.team.decisions import SpaceVerification


dry_run_option: Final = click.option(
    "--dry-run", is_flag=True, help="Only show which states and contexts would change; write nothing."
)


def forecast_decision(project: Project, command: Command) -> Decided:
    """Print what a decision would change; returns and raises as `Project.decide`."""

    # Only a dry run needs these.
    from core.project.forecast import Forecaster
    from core.tasks.task_links import embeddable_work

    # `loop inject` would compute missing vectors. They are computed here too, but not saved, for the same result.
    snapshot = project.view.snapshot
    state = replace(
        project.view,
        embeddings=project.embeddings.supposing(snapshot.patterns),
        task_embeddings=project.task_embeddings.supposing(embeddable_work(snapshot)),
    )
    found, run = Forecaster(project).effect(state, command)
    decided = run.decided
    if found.by_words is not None:
        remark_missing_vectors(found.by_words.missing)
    changed = ((one.kind, one.id, "when it resumes" if one.kind == "paused" else None) for one in found.changed)
    if wants_json():
        from core.cli.json import decisions as decisions_json

        print_object(decisions_json.DryRun, found, decided, dry_run=True, changed=changed)
    else:
        _print(decided, found)
    return decided


def _print(decided: Decided, found: Forecast) -> None:
    warn(*decided.warnings)
    line(f"Would {_infinitive(decided)}")
    for id, before, after in found.turned:
        line(f"  {id}: {before} → {after}")
    for word, ids in (("added to the registry", found.added), ("removed from the registry", found.removed)):
        for id in ids:
            line(f"  {id}: {word}")
    parts = [f"{found.changed_of('loop')} of {plural(found.loops, 'running loop')}"]
    if found.paused:
        parts.append(f"{found.changed_of('paused')} of {plural(found.paused, 'paused loop')} (on resume)")
    parts.append(f"{found.changed_of('task')} of the last {plural(found.tasks, 'task')}")
    tokens = "{:,} → {:,} tokens in total".format(*found.tokens)
    line(f"  another context for {', '.join(parts[:-1])} and {parts[-1]}; {tokens}")


def _infinitive(decided: Decided) -> str:
    """Put the verb of a summary in the infinitive: `promote X: established → proven`."""
    info = verb_info(decided.decision)
    if decided.summary.startswith(info.past):
        return info.word + decided.summary.removeprefix(info.past)
    return decided.summary.replace("re-enabled", "re-enable", 1).replace("rejected the", "reject the", 1)


MAX_DAYS = 3650  # Longest snooze.
pattern_argument = click.argument("pattern_id", metavar="ID", shell_complete=complete_pattern)
patterns_argument = click.argument(
    "pattern_ids", metavar="ID...", nargs=-1, required=True, shell_complete=complete_pattern
)
required_reason_option = click.option("--reason", required=True, help="Why; saved in the decision log.")


@click.command(cls=DecidingCommand)
@patterns_argument
@reason_option
@click.option("--re-enable", is_flag=True, help="Reset deprecated patterns first, as part of the same decision.")
@dry_run_option
def promote(pattern_ids: tuple[str, ...], reason: str, re_enable: bool, dry_run: bool) -> None:
    """Pin patterns as proven, independent of the evidence, until they are reset.

    The pin applies to the current text: if the text changes, Review asks again. Several patterns are promoted together,
    with one undo. Those in quarantine are skipped: read and release each of them first. If a pattern is refused, the
    others are promoted, and the exit code is 1. If a pattern is already promoted, nothing changes, the exit code is 0,
    and `decision` is null with --json.

    \b
    Examples:
      ralphdeck pattern promote pat-error-null-check-015 --dry-run
      ralphdeck pattern promote pat-error-null-check-015 --reason "holds in auth and api"
      ralphdeck pattern promote pat-error-retry-004 --re-enable
      ralphdeck pattern promote pat-error-null-check-015 pat-success-types-first-006 && ralphdeck undo
    """
    decide_patterns(Verb.PROMOTE, pattern_ids, reason, dry_run, re_enable=re_enable)


@click.command(cls=DecidingCommand)
@patterns_argument
@required_reason_option
@dry_run_option
def deprecate(pattern_ids: tuple[str, ...], reason: str, dry_run: bool) -> None:
    """Pin patterns as deprecated: agents are not given them until they are reset.

    \b
    Example:
      ralphdeck pattern deprecate pat-error-retry-004 --reason "hides the cause"
    """
    decide_patterns(Verb.DEPRECATE, pattern_ids, reason, dry_run)


@click.command(cls=DecidingCommand)
@patterns_argument
@reason_option
@dry_run_option
def reset(pattern_ids: tuple[str, ...], reason: str, dry_run: bool) -> None:
    """Remove the pin of patterns: the evidence decides their state again.

    \b
    Example:
      ralphdeck pattern reset pat-error-retry-004
    """
    decide_patterns(Verb.RESET, pattern_ids, reason, dry_run)


@click.command(cls=DecidingCommand)
@patterns_argument
@required_reason_option
@dry_run_option
def quarantine(pattern_ids: tuple[str, ...], reason: str, dry_run: bool) -> None:
    """Keep patterns out of every context until a person releases them.

    \b
    Example:
      ralphdeck pattern quarantine pat-error-retry-004 --reason "it skips the tests"
    """
    decide_patterns(Verb.QUARANTINE, pattern_ids, reason, dry_run)


@click.command(cls=DecidingCommand)
@patterns_argument
@reason_option
@dry_run_option
def release(pattern_ids: tuple[str, ...], reason: str, dry_run: bool) -> None:
    """Approve the text of held or quarantined patterns. Read it first: pattern show.

    A text is held when it gives orders, such as to skip tests. A text that the scan blocks needs a --reason. The
    approval applies to the current text: if the text changes, it is held again. ID may also be a held reflection.

    A pattern that the rules deprecate is given again as established, until it is reset.

    \b
    Examples:
      ralphdeck pattern list --state held,quarantine
      ralphdeck pattern show pat-error-retry-004 && ralphdeck pattern release pat-error-retry-004 --dry-run
    """
    project = open_project(asks=dry_run)
    only = pattern_ids[0] if len(pattern_ids) == 1 else ""
    if only and project.view.learnings.find(only) is not None:
        decide(project, ApproveReflection(only, reason=reason), dry_run=dry_run)
    else:
        decide_patterns(Verb.RELEASE, pattern_ids, reason, dry_run)


@click.command(cls=DecidingCommand)
@pattern_argument
@click.argument("text")
def note(pattern_id: str, text: str) -> None:
    """Add a note to a pattern; its state does not change.

    \b
    Example:
      ralphdeck pattern note pat-error-retry-004 "see the incident of 3 May"
    """
    project = open_project(asks=False)
    decide(project, Note(project.view.find_pattern(pattern_id).id, text=text))


@click.command(cls=DecidingCommand)
@click.argument("decision_id", metavar="[DECISION]", default="")
@click.option("--any-author", is_flag=True, help="Undo the newest decision even if another person made it.")
@click.option("--redo", is_flag=True, help="Repeat the decision that was undone last; not possible after another one.")
def undo(decision_id: str, any_author: bool, redo: bool) -> None:
    """Undo the newest decision in effect. Repeated calls undo the whole decision log.

    Another person's decision is undone only with --any-author, or if its ID is given. Decisions that were made together
    are undone together. DECISION is the ID of an older decision or group, such as a merge; it is undone unless a later
    decision depends on it. Undo is a decision too: nothing is removed from the log, and --redo repeats what was undone.

    \b
    Examples:
      ralphdeck undo && ralphdeck log --limit 2
      ralphdeck log --verb merge --json      (prints the ID)
      ralphdeck undo 20260503T120000000-1a2b3c4d
      ralphdeck undo --any-author
      ralphdeck undo --redo
    """
    if choose_mode({"--redo": "", "": "decision_id any_author"}):
        decide(open_project(asks=False), Redo())
        return
    decide(open_project(asks=False), Undo(decision_id=decision_id, any_author=any_author))


def decide_patterns(
    verb: Verb, pattern_ids: tuple[str, ...], reason: str, dry_run: bool, *, re_enable: bool = False
) -> None:
    project = open_project(asks=dry_run)  # a dry run also lists the loops of agents that get another context
    known = [_resolve(project, one, required=len(pattern_ids) == 1) for one in pattern_ids]
    fields = {"re_enable": re_enable} if verb is Verb.PROMOTE else {}
    decide(project, bulk(verb, known, reason, **fields), dry_run=dry_run)


def _resolve(project: Project, pattern_id: str, *, required: bool) -> str:
    """Resolve a pattern ID; unless `required`, an unknown one is refused later."""
    try:
        return project.view.find_pattern(pattern_id).id
    except UnknownRecord:
        if required:
            raise
        return pattern_id


def decide(project: Project, command: Command, *, dry_run: bool = False) -> None:
    """Make a decision and print it; exit with 1 if it was refused for some patterns."""
    try:
        if dry_run:
            decided = forecast_decision(project, command)
        else:
            decided = project.decide(command)
            print_decided(decided)
    except AlreadyDone as error:
        print_unchanged(str(error))
        return
    except Proposed as error:
        _print_proposed(str(error))
        return
    if not all(refusal.is_done for refusal in decided.refused):
        click.get_current_context().exit(Refused.exit_code)


def print_decided(decided: Decided) -> None:
    warn(*decided.warnings)
    if wants_json():
        print_json(decided_json(decided))
    else:
        line(decided.summary)


def decided_json(decided: Decided) -> Wire:

    from core.cli.json import decisions as decisions_json

    return (decisions_json.DecidedTogether if decided.group or decided.refused else decisions_json.Decided).of(decided)


class _Unchanged(NamedTuple):
    """A decision that was not made."""

    summary: str
    decision: None = None
    warnings: tuple[str, ...] = ()
    written: bool = False


def decide_each(project: Project, commands: Iterable[Command], empty: str = "") -> None:
    """Make and print decisions, each with its own undo; without any, print `empty`."""

    made: list[Decided | _Unchanged] = []
    for command in commands:
        try:
            made.append(project.decide(command))
        except Proposed as error:
            made.append(_Unchanged(str(error)))
    for decided in made:
        warn(*decided.warnings)

    if wants_json():
        from core.cli.json import decisions as decisions_json

        print_object(decisions_json.DecidedEach, decisions=made)
    else:
        for decided in made:
            line(decided.summary)
        if not made:
            remark(empty)


def print_unchanged(why: str) -> None:
    """Print that nothing was decided, because nothing would change."""
    _print_undecided(why, f"{why}; nothing changed")


def _print_proposed(what: str) -> None:
    """Print that the decision of an agent waits for a person."""
    _print_undecided(what, what)


def _print_undecided(summary: str, text: str) -> None:

    if wants_json():
        from core.cli.json import decisions as decisions_json

        print_object(decisions_json.Decided, decision=None, summary=summary, warnings=[], written=False)
    else:
        line(text)


@click.command(cls=ReviewingCommand)
@click.argument("pattern_id", metavar="[ID]", required=False, shell_complete=complete_pattern)
@click.option("--accept", is_flag=True, help="Write an anti-pattern and deprecate the original.")
@click.option("--text", metavar="REWRITE", help="Accept, with this text instead of the proposed one.")
@click.option("--reject", is_flag=True, help="Do not invert it; Review asks again after more failures.")
@click.option("--snooze", type=WholeNumber(1, MAX_DAYS), metavar="DAYS", help="Ask again after this many days.")
@click.option("--auto", is_flag=True, help="Accept all proposals.")
@reason_option
@dry_run_option
def invert(
    pattern_id: str | None,
    accept: bool,
    text: str | None,
    reject: bool,
    snooze: int | None,
    auto: bool,
    reason: str,
    dry_run: bool,
) -> None:
    """Review the patterns that fail so often that they should become warnings.

    Without --accept, --text, --reject, --snooze or --auto, the proposals are listed, most urgent first. A pattern with
    a proposal is not injected.

    \b
    Examples:
      ralphdeck pattern invert
      ralphdeck pattern invert pat-success-split-by-type-002 --accept --dry-run
      ralphdeck pattern invert pat-success-split-by-type-002 --accept
      ralphdeck pattern invert pat-success-split-by-type-002 --text "AVOID: splitting by type before the types compile"
      ralphdeck pattern invert --auto --json
    """
    choices = [accept or text is not None, reject, snooze is not None]
    if sum(choices) + auto > 1:
        raise click.UsageError("give only one of --accept (or --text), --reject, --snooze and --auto")
    if any(choices) and pattern_id is None:
        raise click.UsageError("a decision needs the ID of a pattern")
    if dry_run and not any(choices):
        raise click.UsageError("--dry-run needs --accept, --reject or --snooze")
    if reason and not (auto or any(choices)):
        raise click.UsageError("--reason needs --accept, --text, --reject, --snooze or --auto")
    if auto and pattern_id is not None:
        raise click.UsageError("--auto accepts all proposals; leave out the ID")
    project = open_project()
    if auto:
        _accept_all(project, reason)
        return
    if pattern_id is None or not any(choices):
        _list_proposals(project, _proposals(project, pattern_id))
        return
    known = project.view.find_pattern(pattern_id).id
    command: Command
    if reject:
        command = RejectInversion(known, reason=reason)
    elif snooze is not None:
        command = Snooze(known, until=now() + timedelta(days=snooze), reason=reason)
    else:
        command = AcceptInversion(known, text=text, reason=reason)
    decide(project, command, dry_run=dry_run)


def _proposals(project: Project, pattern_id: str | None) -> list[Inversion]:
    proposals = [item.inversion for item in project.view.queue if item.inversion is not None]
    if pattern_id is None:
        return proposals
    wanted = project.view.find_pattern(pattern_id).id
    found = [proposal for proposal in proposals if proposal.pattern_id == wanted]
    if not found:
        raise Refused(f"{wanted} is not due for inversion; see: ralphdeck pattern show {wanted} --why")
    return found


def _list_proposals(project: Project, proposals: Sequence[Inversion]) -> None:
    from core.index.project_state import all_findings

    if wants_json():
        from core.cli.json import patterns as patterns_json

        print_object(patterns_json.InversionList, findings=all_findings(project.view), proposals=proposals)
    else:
        for proposal in proposals:
            line((proposal.pattern_id, "bold"), f"  {proposal.reason}")
            line(f"  would become: {proposal.text}")
            line(f"  failure mode: {proposal.failure_mode}. {proposal.why_it_fails}")
            if proposal.better_pattern_id:
                line(f"  instead: {proposal.better_pattern_id} {proposal.better_alternative}")
            for lint in proposal.lint:
                line((f"  ! {lint}", "yellow"))
        if not proposals:
            remark("no pattern is due for inversion")
    end(all_findings(project.view))


def _accept_all(project: Project, reason: str) -> None:
    """Accept all proposals, even badly worded ones (docs/scoring.md#inversion)."""
    proposals = _proposals(project, None)
    for proposal in proposals:
        for lint in proposal.lint:
            warn(f"{proposal.pattern_id}: {lint}")
    commands = [AcceptInversion(proposal.pattern_id, reason=reason) for proposal in proposals]
    decide_each(project, commands, "no pattern is due for inversion")


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
    from core.cli.json import decisions as decisions_json
    from core.cli.support.document import print_list
    from core.show.decisions import (
        COMMAND_COLUMNS,
        DECISION_FIELDS,
        command_cells,
        group_decisions,
        select_decisions,
    )

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
        from core.cli.json import decisions as decisions_json

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
