"""`ralphdeck pattern list`, `show`, `anchors`, and options that filter patterns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec.structs import replace

from core.base.pattern_titles import pattern_title
from core.cli.support.document import print_list
from core.cli.support.options import (
    COUNT,
    FRACTION,
    DecidingCommand,
    ListingCommand,
    OneOf,
    ReadingCommand,
    choose_mode,
    read_filter,
    reason_option,
    words_option,
)
from core.cli.support.output import (
    Column,
    day,
    end,
    id_column,
    line,
    percent,
    print_json,
    print_object,
    print_table,
    remark,
    wants_json,
)
from core.cli.support.project import (
    as_of_option,
    chosen_project,
    complete_loop,
    complete_pattern,
    decider,
    now,
    open_project,
    open_reader,
    read_configuration,
    read_snapshot,
    remark_undated,
    state_as_of,
)
from core.learning.bursts import known_time
from core.records.patterns import Maturity, Pattern, PatternType
from core.show.patterns import COMMAND_COLUMNS, SORTS, pattern_cells

if TYPE_CHECKING:
    from core.cli.json.wire import Wire
    from core.index.anchors import Stale
    from core.index.project_state import ProjectState
    from core.learning.maturity import Assessment
    from core.learning.scoreboard import Scoreboard
    from core.records.anchors import AnchorChange
    from core.records.findings import Finding
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot


_STATES: Final = [*Maturity, "quarantine", "held"]


@dataclass(frozen=True, slots=True)
class PatternFilter:
    """Conditions on patterns; all must hold. Empty and None match every pattern."""

    types: frozenset[str]
    states: frozenset[str]
    min_success_rate: float | None
    max_success_rate: float | None
    tags: frozenset[str]
    from_loop: str | None

    def rows(self, snapshot: Snapshot, board: Scoreboard) -> list[tuple[Pattern, Assessment]]:
        of_loop = None if self.from_loop is None else _of_loop(snapshot, self.from_loop)
        patterns = [
            pattern
            for pattern in sorted(snapshot.patterns.values(), key=attrgetter("id"))
            if (not self.types or pattern.type in self.types)
            and (of_loop is None or pattern.id in of_loop)
            and (not self.tags or self.tags <= {tag.lower() for tag in pattern.tags})
        ]
        rows = zip(patterns, board.assessments(patterns), strict=True)
        return [row for row in rows if self._matches_state(row[1]) and self._matches_rate(row[1].rate)]

    def _matches_state(self, assessment: Assessment) -> bool:
        return not self.states or not self.states.isdisjoint((assessment.state, assessment.shown))

    def _matches_rate(self, rate: float | None) -> bool:
        low, high = self.min_success_rate, self.max_success_rate
        if rate is None:
            return low is None and high is None
        return (low is None or rate >= low) and (high is None or rate <= high)


FILTER_NAMES: Final = "types states min_success_rate max_success_rate tags from_loop"
"""Names of the parameters that `filter_options` adds."""


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a `PatternFilter`, passed to the command as `wanted`."""

    @words_option("--type", "types", words=PatternType, help="Only these types.")
    @words_option("--state", "states", words=_STATES, help="Only in these states.")
    @click.option("--min-success-rate", type=FRACTION, help="Only with at least this rate.")
    @click.option("--max-success-rate", type=FRACTION, help="Only with at most this rate.")
    @click.option("--tag", "tags", metavar="TAG", multiple=True, help="Only with this tag; may be repeated.")
    @click.option(
        "--from-loop",
        metavar="ID",
        help="Only patterns that this loop discovered or followed.",
        shell_complete=complete_loop,
    )
    @functools.wraps(command)
    def filtered(tags: tuple[str, ...], **options: Any) -> Any:
        fields = {field: options.pop(field) for field in PatternFilter.__dataclass_fields__ if field != "tags"}
        wanted = PatternFilter(tags=frozenset(tag.lower() for tag in tags), **fields)
        return command(wanted=wanted, **options)

    return filtered


def _of_loop(snapshot: Snapshot, loop_id: str) -> set[str]:
    """Find patterns that a loop discovered or applied by its or the pattern's record."""
    names = {loop_id}
    found: set[str] = set()
    for loop in snapshot.loops.values():
        if loop_id == loop.id or loop_id in loop.aliases:
            names |= {loop.id, *loop.aliases}
            found |= {use.pattern_id for use in loop.injected if use.applied}
            found |= {extracted.pattern_id for extracted in loop.extracted}
    for pattern in snapshot.patterns.values():
        if any(source.loop_id in names for source in pattern.source_loops):
            found.add(pattern.id)
    return found


@click.command("list", cls=ReadingCommand)
@click.argument("words", metavar="[FILTER]...", nargs=-1)
@filter_options
@click.option("--sort", type=OneOf([name.replace("_", "-") for name, _ in SORTS]), default="score", show_default=True)
@as_of_option
@click.option("--archived", is_flag=True, help="List the archived patterns instead, newest month first.")
def list_patterns(
    words: tuple[str, ...], wanted: PatternFilter, sort: str, as_of: datetime | None, archived: bool
) -> None:
    """List patterns with state, results and use.

    FILTER is a filter as on the Patterns screen; put -word behind --. The states quarantine and held mean that a person
    must approve the text; in JSON their state is candidate. Worked is the number of results that were successes, of
    all; ~85 % is a recorded rate without counts. --min-success-rate and --max-success-rate exclude patterns without a
    rate. For an anti-pattern a success means that the avoided approach failed.

    \b
    Examples:
      ralphdeck pattern list 'uses:>3' null
      ralphdeck pattern list --type error,anti --min-success-rate 0.8
      ralphdeck pattern list --state candidate --tag typescript --sort uses
      ralphdeck pattern list --state held,quarantine
      ralphdeck pattern list --min-success-rate 0 --max-success-rate 0.6 --json
      ralphdeck pattern list --as-of 2026-11-15
      ralphdeck pattern list --archived
    """
    if choose_mode({"--archived": "", "": f"words {FILTER_NAMES} sort as_of"}):
        _list_archived()
        return
    from core.show.pattern_filter import PATTERN_FIELDS, PatternCatalog

    query = read_filter(" ".join(words), PATTERN_FIELDS)
    snapshot, board = _scored(as_of)
    stale = _find_stale(snapshot, board) if as_of is None else frozenset()
    _ = board.interval  # of all patterns at once, which is faster than one by one
    rows = {pattern.id: (pattern, assessment) for pattern, assessment in wanted.rows(snapshot, board)}
    me = decider() if any(term.field == "by" for term in query.terms) else ""
    catalog = PatternCatalog(snapshot.patterns, board, snapshot.curation.pins, me, stale)
    column = sort.replace("-", "_")
    ordered = catalog.select(query, column, dict(SORTS)[column])
    chosen = [rows[pattern_id] for pattern_id in ordered if pattern_id in rows]
    if wants_json():
        _print_list_json(chosen, stale, snapshot.findings)
    else:
        cells = (pattern_cells(*row, is_stale=row[0].id in stale) for row in chosen)
        print_list(COMMAND_COLUMNS, cells, _empty(snapshot))
        if as_of is not None:
            remark_undated(snapshot.findings)
    end(snapshot.findings)


def _list_archived() -> None:
    from core.sources.patterns import read_archives

    archived, findings = read_archives(chosen_project())
    columns = (
        id_column("ID", lambda item: item.pattern.id),
        Column("TYPE", lambda item: item.pattern.type.value),
        Column("ARCHIVED", lambda item: day(item.at)),
        Column("BY", lambda item: item.by, expendable=1),
        Column("REASON", lambda item: item.reason, free=True),
    )
    if wants_json():
        from core.cli.json import patterns as patterns_json

        print_object(patterns_json.ArchivedPatternList, findings=findings, archived=archived)
    else:
        print_table(columns, archived, "no archived patterns")
    end(findings)


def _empty(snapshot: Snapshot) -> str:
    """Return why no pattern is listed: the project has none yet, or none was chosen."""
    if snapshot.patterns:
        return "no patterns"
    from core.agents.plan import find_connected
    from core.show.now import describe_empty

    connected = () if snapshot.loops else find_connected(chosen_project().project)
    return describe_empty(connected, has_sessions=bool(snapshot.loops))


def _find_stale(snapshot: Snapshot, board: Scoreboard) -> frozenset[str]:
    """Return the patterns that are about something that was removed."""
    from core.index.anchors import find_doubtful, find_stale

    return (
        find_doubtful(find_stale(snapshot), snapshot.curation) if board.settings.review.check_anchors else frozenset()
    )


def _print_list_json(
    rows: Iterable[tuple[Pattern, Assessment]], stale: Collection[str], findings: Sequence[Finding]
) -> None:

    from core.cli.json import patterns as patterns_json

    patterns = [
        patterns_json.PatternRow.of(
            one, pattern, name=pattern_title(pattern), pinned=one.pin is not None, stale=pattern.id in stale
        )
        for pattern, one in rows
    ]
    print_json(patterns_json.PatternList.of(patterns=patterns, findings=findings))


def _scored(as_of: datetime | None) -> tuple[Snapshot, Scoreboard]:
    from core.index.scores import find_board

    if as_of is not None:
        state = state_as_of(as_of)
        return state.snapshot, state.board
    configuration = read_configuration()
    snapshot = read_snapshot(configuration)
    return snapshot, find_board(snapshot, now(), configuration.settings)


@click.command("show", cls=ReadingCommand)
@click.argument("pattern_id", metavar="ID", shell_complete=complete_pattern)
@as_of_option
@click.option("--why", is_flag=True, help="Explain its state: the verdict, then every rule.")
def show_pattern(pattern_id: str, as_of: datetime | None, why: bool) -> None:
    """Show everything known about one pattern.

    --why explains its state: who or which rule decided it, the weight of the evidence, and what would change it. The
    rule that decided the state is marked "decides".

    \b
    Examples:
      ralphdeck pattern show pat-error-null-check-015
      ralphdeck pattern show null-check --json | jq .lineage
      ralphdeck pattern show pat-error-null-check-015 --as-of 7d
      ralphdeck pattern show pat-error-null-check-015 --why
    """

    if choose_mode({"--why": "pattern_id", "": "pattern_id as_of"}):
        _explain(pattern_id)
        return
    from core.cli.support.document import print_blocks
    from core.index.project_state import all_findings, pattern_lineage
    from core.learning.explanation import loop_results
    from core.learning.following import FollowCounts
    from core.show.pages.patterns import pattern_document

    state = state_as_of(as_of)
    pattern = state.find_pattern(pattern_id)
    findings = tuple(finding for finding in all_findings(state) if finding.file == pattern.file)
    verdicts = state.inputs.verdicts(pattern)
    if wants_json():
        from core.cli.json import patterns as patterns_json

        print_object(
            patterns_json.PatternDocument,
            findings=findings,
            pattern=_details(state, pattern),
            evidence=state.board.observations(pattern.id),
            followed=FollowCounts.of(verdicts),
            verdicts=verdicts,
            claimed_uses=state.board.claimed_uses(pattern.id),
            from_elsewhere=pattern.id in state.snapshot.foreign.patterns,
            team=_team_json(state, pattern.id),
            lineage=pattern_lineage(state, pattern.id),
            loop_results=loop_results(pattern, pattern_lineage(state, pattern.id)),
        )
    else:
        print_blocks(pattern_document(state, pattern).blocks)
    end(findings)


def _team_json(state: ProjectState, pattern_id: str) -> Wire | None:
    """Return the sums of the team's other projects on a pattern; None without any."""
    from core.cli.json import patterns as patterns_json
    from core.learning.evidence_inputs import list_team_results
    from core.learning.maturity import decayed_counts

    if (team := state.board.team_sums(pattern_id)) is None:
        return None
    results = list_team_results(team, state.snapshot.team)
    helpful, harmful = decayed_counts(results, state.now, state.settings.maturity)
    return patterns_json.TeamSums.of(team, helpful=helpful, harmful=harmful)


def _details(state: ProjectState, pattern: Pattern) -> Wire:
    from core.cli.commands.scan import scan_finding
    from core.cli.json import patterns as patterns_json
    from core.index.anchors import find_doubtful

    assessment = state.assessment(pattern.id)
    is_anti = pattern.type == "anti"
    return patterns_json.PatternDetails.of(
        assessment,
        pattern,
        name=pattern_title(pattern),
        pinned=assessment.pin is not None,
        stale=pattern.id in find_doubtful(state.stale, state.snapshot.curation),
        template=patterns_json.Template.of(pattern, placeholders=dict(pattern.placeholders)),
        source_loops=[
            patterns_json.SourceLoop.of(
                source,
                iterations_required=None if is_anti else source.iteration,
                failure_iteration=source.iteration if is_anti else None,
            )
            for source in pattern.source_loops
        ],
        suspicions=map(scan_finding, state.board.suspicions(pattern.id)),
        anchors=anchor_rows(pattern, state.stale.get(pattern.id, ())),
    )


def _explain(pattern_id: str) -> None:
    """Explain the state of a pattern."""
    from core.cli.support.document import print_blocks
    from core.index.project_state import all_findings
    from core.show.pages.patterns import explanation

    state = open_reader(reads_agents=True).view
    pattern = state.find_pattern(pattern_id)

    if wants_json():
        print_json(_explanation_json(state, pattern.id))
    else:
        line(pattern.id)
        print_blocks(explanation(state, pattern))
    end(all_findings(state))


def _explanation_json(state: ProjectState, pattern_id: str) -> Wire:
    from core.cli.json import patterns as patterns_json
    from core.index.project_state import all_findings, count_conflicts, explain_pattern

    found = explain_pattern(state, pattern_id)
    ignored = state.board.ignored_reports(pattern_id)
    return patterns_json.Explanation.of(
        state.assessment(pattern_id),
        found,
        next_change=state.board.next_change(pattern_id),
        events=[patterns_json.WeighedEvent.of(weighted.observation, weighted) for weighted in found.events],
        steps=[
            patterns_json.NextState.of(step, result="success" if step.helpful else "failure") for step in found.steps
        ],
        set_aside=[patterns_json.IgnoredReport.of(one, at=known_time(one.report.at)) for one in ignored],
        doubts=count_conflicts(state, pattern_id),
        findings=all_findings(state),
    )


_POLICY: Final = "min_success_rate min_usage max_age_days"
_PRUNE_MODES: Final = {"ID": "reason", "--restore": "reason", "": f"dry_run {_POLICY} reason"}


@click.command(cls=DecidingCommand)
@click.argument("pattern_ids", metavar="[ID]...", nargs=-1, shell_complete=complete_pattern)
@click.option("--restore", metavar="ID", help="Restore this pattern from the archive.")
@click.option("--dry-run", is_flag=True, help="Print what would be archived, and archive nothing.")
@click.option("--min-success-rate", type=FRACTION, help="Archive patterns below this rate. Default: a setting (0.5).")
@click.option(
    "--min-usage", type=COUNT, metavar="N", help="Ignore the rate of fewer than N uses. Default: a setting (3)."
)
@click.option("--max-age-days", type=COUNT, metavar="N", help="Archive if unused for N days. Default: a setting (90).")
@reason_option
def prune(
    pattern_ids: tuple[str, ...],
    restore: str | None,
    dry_run: bool,
    min_success_rate: float | None,
    min_usage: int | None,
    max_age_days: int | None,
    reason: str,
) -> None:
    """Archive patterns that rarely helped or are unused, or those with the IDs.

    The success rate is that of the evidence. Pinned patterns, patterns in quarantine or held, and patterns with a
    proposed or rejected inversion are not archived by a rule. Nothing is lost: --restore or undo brings a pattern back,
    and pattern list --archived lists them. Patterns named by ID need a --reason, and each has its own undo.

    \b
    Examples:
      ralphdeck pattern prune --dry-run
      ralphdeck pattern prune --min-success-rate 0.6 --max-age-days 180
      ralphdeck pattern prune pat-error-retry-004 --reason "the library was removed"
      ralphdeck pattern prune --restore pat-error-retry-004
    """
    from core.cli.commands.decisions import decide
    from core.decisions.commands import PrunePatterns, Restore
    from core.index.project_state import all_findings

    mode = choose_mode(_PRUNE_MODES)
    if restore is not None:
        decide(open_project(), Restore(restore, reason=reason))
        return
    if mode:
        _archive(pattern_ids, reason)
        return
    project = open_project()
    given = {"min_success_rate": min_success_rate, "min_usage_count": min_usage, "max_age_days": max_age_days}
    policy = replace(project.settings.pruning, **{name: value for name, value in given.items() if value is not None})
    found = project.pruning(policy)
    if found and not dry_run:
        decide(project, PrunePatterns(policy, reason=reason))
        return
    rows = [(item, project.view.pattern(item.pattern_id)) for item in found]
    columns = (
        id_column("ID", lambda row: row[1].id),
        Column("TYPE", lambda row: row[1].type.value),
        Column("RATE", lambda row: percent(row[0].rate), right=True),
        Column("USES", lambda row: str(row[0].uses), right=True, expendable=1),
        Column("LAST USED", lambda row: day(row[0].last_activity), expendable=2),
        Column("REASON", lambda row: row[0].reason, free=True),
    )
    if wants_json():
        from core.cli.json import patterns as patterns_json

        print_object(
            patterns_json.PruneList,
            prune=(patterns_json.PrunedPattern.of(item, pattern, id=pattern.id) for item, pattern in rows),
            findings=all_findings(project.view),
        )
    else:
        print_table(columns, rows, "nothing to prune")


def _archive(pattern_ids: Iterable[str], reason: str) -> None:
    """Move patterns into the archive of this month."""
    from core.cli.commands.decisions import decide_each
    from core.decisions.commands import Archive

    if not reason:
        raise click.UsageError("give a --reason for archiving these patterns")
    project = open_project()
    ids = [project.view.find_pattern(pattern_id).id for pattern_id in dict.fromkeys(pattern_ids)]
    decide_each(project, [Archive(pattern_id, reason=reason) for pattern_id in ids])


def _list_duplicates(threshold: float | None) -> None:
    from core.index.project_state import all_findings
    from core.retrieval.similarity import cap_similarity

    project = open_project()
    state = project.view
    patterns = state.snapshot.patterns
    least = project.settings.extraction.similarity_threshold if threshold is None else threshold
    pairs = [
        (*sorted((one, other), key=lambda id: (-state.assessment(id).uses, id)), ratio)
        for one, other, ratio in state.similarity.pairs(least)
        if not (patterns[one].copy_folder or patterns[other].copy_folder)
    ]
    columns = (
        id_column("KEEP", lambda row: row[0]),
        id_column("OTHER", lambda row: row[1]),
        Column("SIMILAR", lambda row: percent(cap_similarity(row[2])), right=True),
        Column("USES", lambda row: f"{state.assessment(row[0]).uses} + {state.assessment(row[1]).uses}", right=True),
        Column("TITLE", lambda row: pattern_title(patterns[row[0]]), free=True, expendable=1),
    )
    if wants_json():
        from core.cli.json import patterns as patterns_json

        print_object(patterns_json.DuplicateList, findings=all_findings(state), duplicates=pairs)
    else:
        print_table(columns, pairs, "no duplicates")
    end(all_findings(state))


@click.command(cls=ListingCommand)
@click.argument("target", metavar="[KEPT]", required=False, shell_complete=complete_pattern)
@click.argument("other", metavar="[OTHER]", required=False, shell_complete=complete_pattern)
@click.option("--threshold", type=FRACTION, help="List pairs above this similarity. Default: a setting (0.8).")
@click.option("--dry-run", is_flag=True, help="Print the counts that KEPT would have, and change nothing.")
@reason_option
def merge(target: str | None, other: str | None, threshold: float | None, dry_run: bool, reason: str) -> None:
    """List similar patterns, most similar first, or merge pattern OTHER into KEPT.

    Compares the signatures and descriptions of patterns of the same type, ignoring the order of words. The pattern of a
    pair with more uses comes first; it is the one to keep.

    KEPT keeps its text and gets the uses and the lineage of OTHER, which is archived. Its ID becomes an alias of KEPT,
    so that later reports on OTHER count for KEPT.

    \b
    Examples:
      ralphdeck pattern merge
      ralphdeck pattern merge pat-error-null-check-015 pat-error-null-guard-002 --dry-run
      ralphdeck pattern merge pat-error-null-check-015 pat-error-null-guard-002
    """
    from core.cli.commands.decisions import decide
    from core.decisions.commands import Merge

    if choose_mode({"KEPT": "other dry_run reason", "": "threshold"}) == "":
        _list_duplicates(threshold)
        return
    if target is None or other is None:
        raise click.UsageError("give both patterns, KEPT and OTHER")
    project = open_project()
    patterns = project.view.find_pattern(target), project.view.find_pattern(other)
    if dry_run:
        _print_preview(*patterns)
    else:
        decide(project, Merge(patterns[0].id, patterns[1].id, reason=reason))


def _print_preview(target: Pattern, other: Pattern) -> None:
    """Print the counts that the kept record would have after a merge."""
    from core.decisions.merge import as_read, check_pair, merge_changes
    from core.decisions.pattern_registry import Registry

    check_pair(target, other)
    registry = Registry(chosen_project())
    ours, theirs = registry.record(target).value, registry.record(other).value
    before = as_read(ours, target.type)
    after = as_read({**ours, **merge_changes(ours, theirs, target.type, now())}, target.type)

    if wants_json():
        from core.cli.json import patterns as patterns_json

        print_object(
            patterns_json.MergePreview,
            kept=target.id,
            other=other.id,
            before=_counts(before),
            after=_counts(after),
            aliases=after.aliases,
        )
    else:
        line(f"would merge {other.id} into {target.id}")
        line(f"Uses: {_uses(before)} → {_uses(after)}")
        line(f"Aliases: {', '.join(after.aliases)}")


def _counts(pattern: Pattern) -> Wire:
    from core.cli.json import patterns as patterns_json
    from core.decisions.merge import Tally

    counts = pattern.recorded_counts
    return patterns_json.RecordedCounts.of(Tally.of(counts), success_rate=counts.rate)


def _uses(pattern: Pattern) -> str:
    """Format counts: `3 of 4, 75 %`; for an anti-pattern, failures of the approach."""
    from core.decisions.merge import Tally

    tally, rate = Tally.of(pattern.recorded_counts), percent(pattern.recorded_counts.rate)
    return f"{tally.successes} of {tally.uses}" + (f", {rate}" if rate else "")


_UNCHANGED: Final = {"change": "", "commit": "", "at": None, "to": ""}


@click.command(cls=DecidingCommand)
@click.argument("pattern_id", metavar="[ID]", required=False, shell_complete=complete_pattern)
@click.option("--add", "added", metavar="ANCHOR", multiple=True, help="A file, or FILE#NAME; may be repeated.")
@click.option("--remove", "removed", metavar="ANCHOR", multiple=True, help="An anchor to remove; may be repeated.")
@click.option(
    "--update",
    is_flag=True,
    help="Replace renamed files and moved names by what they are called now, also in the text.",
)
@reason_option
def anchors(
    pattern_id: str | None, added: tuple[str, ...], removed: tuple[str, ...], update: bool, reason: str
) -> None:
    """Show the files and names a pattern is about, and Git history of missing ones.

    An anchor is a path in the project, or a path and a name in that file: a function, a class, or a dependency in a
    manifest. Without an ID, the patterns with anchors that were removed or renamed are listed. Other anchors do not
    change the text that agents get. --update also replaces the old paths in the text, which stays approved if it is.

    \b
    Examples:
      ralphdeck pattern anchors
      ralphdeck pattern anchors pat-error-null-check-015
      ralphdeck pattern anchors pat-error-null-check-015 --update
      ralphdeck pattern anchors pat-error-null-check-015 --add src/cart.py#total --remove src/basket.py
    """
    from core.base.steps import run_all
    from core.cli.commands.decisions import decide
    from core.index.anchors import explain_unchecked
    from core.index.verdicts import VerdictsInMemory
    from core.questions.doubts import find_stale_anchors, update_of

    is_change = bool(added or removed or update)
    if is_change and pattern_id is None:
        raise click.UsageError("--add, --remove and --update need the ID of a pattern")
    project = open_project(asks=False)
    state = project.view
    checked = VerdictsInMemory()
    changes = run_all(find_stale_anchors(state, checked))
    problem = explain_unchecked(state.snapshot, checked)
    if not state.settings.review.check_anchors:
        problem = "the setting review.check_anchors is off"
    if pattern_id is None:
        _print(state, [state.pattern(id) for id in changes if id in state.snapshot.patterns], changes, problem)
        return
    pattern = state.find_pattern(pattern_id)
    if not is_change:
        _print(state, [pattern], changes, problem)
        return
    renamed = update_of(pattern, changes.get(pattern.id, ()) if update else ())
    wanted = renamed.anchors
    if unknown := [one for one in removed if one not in wanted]:
        known = ", ".join(wanted) or "none"
        raise click.UsageError(f"{pattern.id} has no anchor {unknown[0][:80]!r}; its anchors: {known}")
    kept = [one for one in wanted if one not in removed]
    anchors = tuple(dict.fromkeys((*kept, *added)))
    decide(project, replace(renamed, anchors=anchors, reason=reason))


def anchor_rows(pattern: Pattern, changes: Sequence[AnchorChange]) -> list[Wire]:
    """Return the anchors of a pattern for JSON, each with what became of it."""
    from core.cli.json import patterns as patterns_json

    known = {one.anchor: one for one in changes}
    return [patterns_json.Anchor.of(known.get(anchor, {**_UNCHANGED, "anchor": anchor})) for anchor in pattern.anchors]


def _print(state: ProjectState, patterns: Sequence[Pattern], changes: Stale, problem: str) -> None:
    from core.base.pattern_titles import describe_change
    from core.cli.json import patterns as patterns_json
    from core.questions.doubts import describe_update

    rows = [patterns_json.PatternAnchors.of(one, anchors=anchor_rows(one, changes.get(one.id, ()))) for one in patterns]
    if wants_json():
        print_object(patterns_json.AnchorList, patterns=rows, problem=problem)
    else:
        for pattern in patterns:
            line((pattern.id, "bold"), f"  {pattern.title}")
            known = {one.anchor: one for one in changes.get(pattern.id, ())}
            for anchor in pattern.anchors:
                if (change := known.get(anchor)) is not None:
                    line("  ", (describe_change(change, state.now), "yellow"))
                else:
                    line(f"  {anchor}")
            if update := describe_update(pattern, changes.get(pattern.id, ())):
                line("  --update changes in its text:")
                for text in update.split("\n"):
                    line(f"    {text}")
        if problem:
            remark(f"not checked with Git: {problem}")
        elif not patterns:
            remark("no pattern is about a file or name that was removed or renamed")
        elif not any(pattern.anchors for pattern in patterns):
            remark("it has no anchors")
