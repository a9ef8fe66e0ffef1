"""`ralphdeck review list`, `show`, `snooze` and `suspicious`; `ralphdeck accuracy`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from core.base.errors import UnknownRecord
from core.base.formatting import shorten_id
from core.base.text import plural
from core.cli.json import objects
from core.cli.render.document import print_document
from core.cli.render.output import (
    Column,
    end,
    id_column,
    line,
    minute,
    percent,
    print_object,
    print_table,
    remark,
    wants_json,
)
from core.cli.support.id_completion import complete_work
from core.cli.support.options import (
    COUNT,
    MOMENT,
    DecidingCommand,
    ListingCommand,
    OneOf,
    ReadingCommand,
    ReviewingCommand,
    WholeNumber,
    reason_option,
    setting_option,
    words_option,
)
from core.cli.support.project import open_project
from core.cli.support.signature import find_user_name
from core.decisions.commands import CountReports, DiscardReports
from core.index.review_items import FURTHER, KINDS, ReviewItem
from core.learning.bursts import known_time
from core.show.metrics.effectiveness import MIN_FOLLOWED, ReviewerAccuracy, Share, measure_accuracy

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.project.project import Project
    from core.questions.judge import Advice

MAX_MINUTES = 1440  # Longest review session: a day.
QUESTION_COLUMNS = (
    Column("KIND", lambda item: "urgent" if item.is_urgent else item.kind),
    id_column("SUBJECT", lambda item: item.subject),
    Column("QUESTION", lambda item: item.question, free=True, least=40),
    Column("REASON", lambda item: item.reason, free=True, expendable=1),
)
BURST_COLUMNS = (
    id_column("SOURCE", lambda burst: burst.source),
    Column("PATTERNS", lambda burst: str(len(burst.patterns)), right=True),
    Column("NEVER GIVEN", lambda burst: str(burst.never_given), right=True, expendable=1),
    Column("FROM (UTC)", lambda burst: minute(known_time(burst.first))),
    Column("TO (UTC)", lambda burst: minute(known_time(burst.last)), expendable=2),
)


@click.command("list", cls=ListingCommand)
@setting_option("--minutes", "review.minutes", type=WholeNumber(1, MAX_MINUTES), metavar="N")
@words_option("--kind", words=KINDS, metavar="KINDS", help=f"Only these kinds: {', '.join(KINDS)}.")
@click.option("--limit", type=COUNT, metavar="N", help="At most N questions.")
@click.option(
    "--all", "is_whole", is_flag=True, help="Also list what is hardly worth the time, and every row's questions."
)
@click.option("--judge", is_flag=True, help="First ask your judge about the held texts that it has not seen.")
def list_questions(minutes: int | None, kind: frozenset[str], limit: int | None, is_whole: bool, judge: bool) -> None:
    """List the questions that are worth the time, in the order of Review, and how long they take.

    Agents that wait for a person come first, then the questions by the failures that a good answer is expected to avoid
    less the time that it takes. If there are many questions of a kind, most have one row together, of kind "further",
    which names the best; --all or --kind lists all questions one by one. With --minutes only the questions of a session
    of this length are listed; the reviewer's pace is estimated from the decision log. ADVICE is what your judge
    (scan.judge in your own settings.toml) says about held texts; it decides nothing.

    \b
    Examples:
      ralphdeck review
      ralphdeck review show pat-success-split-by-type-002
      ralphdeck review list --minutes 12
      ralphdeck review list --kind inversion,borderline --json | jq -r '.questions[].subject'
      ralphdeck review list --kind held,quarantine --judge
      ralphdeck review list --kind offer --limit 20
    """
    from core.index.findings import all_findings
    from core.questions.queue import measure_pace, plan, time_text

    project = _open_with_queue()
    state = project.view
    whole = [item for item in state.queue if not kind or item.kind in kind]
    queue = whole if is_whole or kind else state.worth_reading
    length = state.settings.review.minutes if minutes is None else minutes
    pace = measure_pace(state.snapshot.decisions, project.by)
    session = plan(queue, length, state.settings, pace)
    offered = queue if minutes is None else session.items
    listed = offered[:limit]
    in_rows = sum(len(item.group.items) for item in queue if item.group is not None)
    advice = _find_advice(listed, state, asks=judge)
    columns = (
        (*QUESTION_COLUMNS, Column("ADVICE", partial(_advice_text, advice), free=True)) if advice else QUESTION_COLUMNS
    )

    if wants_json():
        keys = [item.question_key for item in session.items]
        print_object(
            "ReviewQueue",
            findings=all_findings(state),
            questions=[_question_json(item, advice) for item in listed],
            sitting=objects.ReviewSession.of(session, decisions=len(keys), keys=keys),
            in_rows=in_rows,
        )
    else:
        print_table(columns, listed, "no open questions")
        if len(listed) < len(offered):
            remark(f"{len(listed):,} of {plural(len(offered), 'question')}")
        if in_rows:
            remark(f"{plural(in_rows, 'question')} in rows of kind further; list all: ralphdeck review list --all")
        if minutes is not None:
            line(session.text)
        elif queue:
            line(f"{plural(len(queue), 'question')}, {time_text(queue, pace)}")
        if hardly := len(state.agenda) - len(state.worth_reading):
            remark(f"{plural(hardly, 'question')} hardly worth the time; list all: ralphdeck review list --all")
    end(all_findings(state))


def _question_json(item: ReviewItem, advice: Mapping[str, Advice]) -> objects.Wire:
    further = [one.question_key for one in item.group.items] if item.group is not None else []
    return objects.Question.of(item, advice=advice.get(item.question_key), further=further)


def _find_advice(items: Sequence[ReviewItem], state: ProjectState, *, asks: bool) -> dict[str, Advice]:
    """Return the advice of the user's judge by question; `asks` it about texts without advice."""
    from core.questions.judge import Judge, held_text_of

    judge = Judge()
    if not judge.command and not asks:
        return {}
    texts = {item.question_key: text for item in items if (text := held_text_of(item, state)) is not None}
    given = judge.ask(texts.values()) if asks else judge.known()
    return {key: given[text.id] for key, text in texts.items() if text.id in given}


def _advice_text(advice: Mapping[str, Advice], item: ReviewItem) -> str:
    found = advice.get(item.question_key)
    return "" if found is None else found.text


_kind_option = click.option(
    "--kind", type=OneOf((*KINDS, FURTHER)), metavar="KIND", help="Kind of the question, if there are several."
)


@click.command(cls=ListingCommand)
@click.argument("subject", metavar="SUBJECT")
@_kind_option
def show(subject: str, kind: str | None) -> None:
    """Show a question as Review does: the evidence that decides it, and what yes and no do.

    SUBJECT is the subject of a question, for example a pattern ID.

    \b
    Examples:
      ralphdeck review show pat-success-split-by-type-002
      ralphdeck review show pat-error-pool-timeout-009 --json | jq -r .card
    """
    from core.show.cards import terminal_card
    from core.show.pages.markdown import to_markdown

    project = _open_with_queue()
    item = _find_question(project, subject, kind)
    files = project.adapters.all_agent_files() if item.lesson is not None or item.pairs else ()
    card = terminal_card(project.view, item, files)
    question = _question_json(item, {})
    if wants_json():
        print_object("ReviewCard", findings=(), question=question, card=to_markdown(card))
    else:
        print_document(card)
    end(())


@click.command(cls=DecidingCommand)
@click.argument("subject", metavar="SUBJECT")
@click.option("--until", type=MOMENT, metavar="TIME", help="Ask again at this time, such as 2026-12-24.")
@click.option("--uses", type=WholeNumber(min=1), metavar="N", help="Ask again after N further uses.")
@_kind_option
@reason_option
def snooze(subject: str, until: datetime | None, uses: int | None, kind: str | None, reason: str) -> None:
    """Ask a question of the review queue again later: at a time, or after new evidence, whichever is first.

    Nothing else changes: a pattern that is injected remains injected. To stop its injection use pattern quarantine or
    pattern deprecate. SUBJECT is the subject of a question, for example a pattern ID. New evidence means further uses
    of a pattern, or new data on another subject.

    \b
    Examples:
      ralphdeck review snooze pat-success-split-by-type-002 --until 2026-12-24
      ralphdeck review snooze pat-error-pool-timeout-009 --uses 3 --reason "too few to judge"
    """
    from core.cli.commands.decisions import decide
    from core.questions.answer import snooze_command

    if until is None and uses is None:
        raise click.UsageError("give --until, --uses, or both")
    project = _open_with_queue()
    command = snooze_command(_find_question(project, subject, kind), until=until, evidence=uses)
    decide(project, replace(command, reason=reason))


def _open_with_queue() -> Project:
    """Open the project with all questions, including those that need a full search."""
    project = open_project()
    project.search_all()
    return project


def _find_question(project: Project, subject: str, kind: str | None) -> ReviewItem:
    found = [
        item
        for item in (*project.view.queue, *(item for item in project.view.agenda if item.group is not None))
        if subject in {item.subject, item.question_key} and (kind is None or item.kind == kind)
    ]
    if not found:
        raise UnknownRecord(f"no open question about {shorten_id(subject)}; see: ralphdeck review list")
    if len(found) > 1:
        raise UnknownRecord(f"{len(found)} questions about {shorten_id(subject)}; choose one: {_ways_to_choose(found)}")
    return found[0]


def _ways_to_choose(items: Sequence[ReviewItem]) -> str:
    """Return what to type for each question: its kind, or its own ID as SUBJECT if several are of this kind."""
    kinds = Counter(item.kind for item in items)
    return ", ".join(f"--kind {item.kind}" if kinds[item.kind] == 1 else f"'{item.question_key}'" for item in items)


@click.command(cls=ReviewingCommand)
@click.argument("source", required=False, shell_complete=complete_work)
@click.option("--revoke", is_flag=True, help="Discard all reports of the source.")
@click.option("--confirm", is_flag=True, help="Count the reports of the source.")
@reason_option
def suspicious(source: str | None, revoke: bool, confirm: bool, reason: str) -> None:
    """Review sources that reported many patterns as harmful within a short time, and unconfirmed results of a team.

    Their reports do not count until a person revokes or confirms them. Without --revoke or --confirm the sources are
    listed, largest first. SOURCE is a loop, an attempt, "by NAME", or "member NAME" for a contributor of the team.

    \b
    Examples:
      ralphdeck review suspicious
      ralphdeck review suspicious ralph-fix-auth-a1b2c3d4 --revoke --reason "it never read them"
    """
    from core.cli.commands.decisions import decide
    from core.index.findings import all_findings

    if revoke and confirm:
        raise click.UsageError("give either --revoke or --confirm")
    if (revoke or confirm) and source is None:
        raise click.UsageError("a decision needs the SOURCE of the reports")
    project = open_project()
    if source is not None and (revoke or confirm):
        verdict = DiscardReports if revoke else CountReports
        decide(project, verdict(source=source, reason=reason))
        return
    state = project.view
    found = [burst for burst in state.board.bursts if source in {None, burst.source}]
    if source is not None and not found:
        raise UnknownRecord(f"no suspicious reports of {shorten_id(source)}; see: ralphdeck review suspicious")

    bursts = (objects.Burst.of(one, first=known_time(one.first), last=known_time(one.last)) for one in found)
    if wants_json():
        print_object("BurstList", findings=all_findings(state), bursts=bursts)
    else:
        print_table(BURST_COLUMNS, found, "no suspicious reports")
        for burst in found if source is not None else ():
            for pattern_id in burst.patterns:
                line(f"  {pattern_id}")
    end(all_findings(state))


@click.command(cls=ReadingCommand)
@click.option("--by", metavar="NAME", help="Whose decisions. Default: $RALPHDECK_USER, else the user.")
def accuracy(by: str | None) -> None:
    """Show how many of your promotions and deprecations later evidence confirmed.

    A decision counts if there are enough results between it and the next decision on the same pattern. Enough is the
    number that a pattern needs to leave the state candidate (min_feedback). A rate needs at least 30 such decisions.

    \b
    Examples:
      ralphdeck accuracy
      ralphdeck accuracy --by ana --json
    """
    from core.index.findings import all_findings

    state = open_project().view
    found = measure_accuracy(state, by or find_user_name(None, state.settings).by)

    if wants_json():
        print_object(
            "AccuracyDocument",
            found,
            findings=all_findings(state),
            needed=MIN_FOLLOWED,
            promotions=_share_json(found.promotions),
            deprecations=_share_json(found.deprecations),
        )
    else:
        line(f"accuracy of {found.by}'s decisions, by later results")
        for word, share in (("promotion", found.promotions), ("deprecation", found.deprecations)):
            line(f"{plural(share.made, word)}: {_share_text(share, found)}")
    end(all_findings(state))


def _share_json(share: Share) -> objects.Wire:
    return objects.DecisionShare.of(share, held=share.held if share.rate is not None else None)


def _share_text(share: Share, found: ReviewerAccuracy) -> str:
    """Return how many decisions were confirmed, or how many are missing for a rate."""
    if share.rate is None:
        return f"{share.followed} of {MIN_FOLLOWED} needed, each with {plural(found.follow_up, 'later result')} or more"
    interval = f"{percent(found.level)} interval {percent(share.low)} to {percent(share.high)}"
    return f"{share.held} of {share.followed} with later results confirmed, {percent(share.rate)} ({interval})"
