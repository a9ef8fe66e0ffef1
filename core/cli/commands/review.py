"""`ralphdeck review`: the questions that need a decision, and suspicious reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import click
from msgspec.structs import replace

from core.base.errors import UnknownRecord
from core.base.formatting import shorten_id
from core.base.text import plural, visible_line
from core.base.validation import find_matching_ids, require_one
from core.cli.commands.decisions import decide
from core.cli.json import decisions as decisions_json
from core.cli.json import loops as loops_json
from core.cli.support.document import print_document
from core.cli.support.options import (
    COUNT,
    MOMENT,
    ListingCommand,
    WholeNumber,
    choose_mode,
    reason_option,
    setting_option,
    words_option,
)
from core.cli.support.output import (
    Column,
    end,
    id_column,
    line,
    minute,
    print_object,
    print_table,
    remark,
    wants_json,
)
from core.cli.support.project import complete_work, open_project
from core.decisions.commands import CountReports, DiscardReports
from core.index.review_items import FURTHER, KINDS, ReviewItem
from core.learning.bursts import known_time

if TYPE_CHECKING:
    from core.cli.json.wire import Wire
    from core.index.project_state import ProjectState
    from core.project.project import Project
    from core.questions.new_text import Advice
    from core.records.instructions import InstructionPair

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


_MODES: Final = {
    "--suspicious": "subject revoke confirm reason",
    "--conflicts": "subject is_whole",
    "--fine": "subject reason",
    "": "subject minutes kinds limit is_whole judge until uses reason",
}


@click.command(cls=ListingCommand, modes=_MODES)
@click.argument("subject", metavar="[SUBJECT]", required=False, shell_complete=complete_work)
@setting_option("--minutes", "review.minutes", type=WholeNumber(1, MAX_MINUTES), metavar="N")
@words_option(
    "--kind", "kinds", words=(*KINDS, FURTHER), metavar="KINDS", help=f"Only these kinds: {', '.join(KINDS)}."
)
@click.option("--limit", type=COUNT, metavar="N", help="At most N questions.")
@click.option(
    "--all", "is_whole", is_flag=True, help="Also list what is hardly worth the time, and every row's questions."
)
@click.option("--judge", is_flag=True, help="First ask your judge about the held texts that it has not seen.")
@click.option("--until", type=MOMENT, metavar="TIME", help="Snooze SUBJECT until this time, such as 2026-12-24.")
@click.option("--uses", type=WholeNumber(min=1), metavar="N", help="Snooze SUBJECT until N further uses.")
@click.option("--suspicious", is_flag=True, help="List sources with suspicious reports instead; SUBJECT is a source.")
@click.option("--revoke", is_flag=True, help="Discard all reports of the source.")
@click.option("--confirm", is_flag=True, help="Count the reports of the source.")
@click.option("--conflicts", is_flag=True, help="List instructions that contradict or repeat each other instead.")
@click.option("--fine", is_flag=True, help="Mark SUBJECT, a pair of --conflicts, as fine until a text changes.")
@reason_option
def review(
    subject: str | None,
    minutes: int | None,
    kinds: frozenset[str],
    limit: int | None,
    is_whole: bool,
    judge: bool,
    until: datetime | None,
    uses: int | None,
    suspicious: bool,
    revoke: bool,
    confirm: bool,
    conflicts: bool,
    fine: bool,
    reason: str,
) -> None:
    """List the questions worth the time, in the order of Review, and their duration.

    Agents that wait for a person come first, then the questions by the failures that a good answer is expected to avoid
    less the time that it takes. If there are many questions of a kind, most have one row together, of kind "further",
    which names the best; --all or --kind lists all questions one by one. With --minutes only the questions of a session
    of this length are listed; the reviewer's pace is estimated from the decision log. ADVICE is what your judge
    (scan.judge in your own settings.toml) says about held texts; it decides nothing.

    With SUBJECT, for example a pattern ID, shows that question as Review does: its evidence, and what yes and no do.
    --until and --uses snooze it: it is asked again at that time, or after new evidence, whichever is first. Nothing
    else changes: a pattern that is injected remains injected. --kind chooses if there are several questions.

    --suspicious lists sources that reported many patterns as harmful within a short time, and unconfirmed results of a
    team: a loop, an attempt, "by NAME", or "member NAME". Their reports do not count until you revoke or confirm them.

    --conflicts compares CLAUDE.md, AGENTS.md, GEMINI.md, rules, Copilot instructions and skills with each other, with
    memories of agents, and with patterns. With SUBJECT, shows one pair with the diff that removes one of the two, which
    you apply. The exit code is 1 if a contradiction is listed that is not marked as fine. --all adds those that are.

    \b
    Examples:
      ralphdeck review
      ralphdeck review pat-success-split-by-type-002
      ralphdeck review pat-success-split-by-type-002 --until 2026-12-24
      ralphdeck review --minutes 12
      ralphdeck review --kind inversion,borderline --json | jq -r '.questions[].subject'
      ralphdeck review --suspicious ralph-fix-auth-a1b2c3d4 --revoke --reason "it never read them"
      ralphdeck review --conflicts && ralphdeck review 1a2b3c --fine --reason "the website uses npm"
    """
    mode = choose_mode(_MODES)
    if subject is None and (fine or until is not None or uses is not None):
        raise click.UsageError("a decision needs a SUBJECT")
    if mode == "--suspicious":
        _review_suspicious(subject, revoke=revoke, confirm=confirm, reason=reason)
    elif mode == "--conflicts":
        list_conflicts(subject, is_all=is_whole)
    elif mode == "--fine":
        mark_pair_fine(subject or "", reason)
    elif subject is None:
        if reason:
            raise click.UsageError("--reason is for a decision on a SUBJECT")
        _list_questions(minutes, kinds, limit, is_whole=is_whole, judge=judge)
    else:
        if minutes is not None or limit is not None or is_whole or judge:
            raise click.UsageError("--minutes, --limit, --all and --judge are for the list; leave out SUBJECT")
        if until is None and uses is None:
            if reason:
                raise click.UsageError("--reason needs --until or --uses")
            _show(subject, kinds)
        else:
            _snooze(subject, kinds, until=until, uses=uses, reason=reason)


def _list_questions(
    minutes: int | None, kind: frozenset[str], limit: int | None, *, is_whole: bool, judge: bool
) -> None:
    from core.index.project_state import all_findings
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
            decisions_json.ReviewQueue,
            findings=all_findings(state),
            questions=[_question_json(item, advice) for item in listed],
            sitting=decisions_json.ReviewSession.of(session, decisions=len(keys), keys=keys),
            in_rows=in_rows,
        )
    else:
        print_table(columns, listed, "no open questions")
        if len(listed) < len(offered):
            remark(f"{len(listed):,} of {plural(len(offered), 'question')}")
        if in_rows:
            remark(f"{plural(in_rows, 'question')} in rows of kind further; list all: ralphdeck review --all")
        if minutes is not None:
            line(session.text)
        elif queue:
            line(f"{plural(len(queue), 'question')}, {time_text(queue, pace)}")
        if hardly := len(state.agenda) - len(state.worth_reading):
            remark(f"{plural(hardly, 'question')} hardly worth the time; list all: ralphdeck review --all")
    end(all_findings(state))


def _question_json(item: ReviewItem, advice: Mapping[str, Advice]) -> Wire:
    further = [one.question_key for one in item.group.items] if item.group is not None else []
    return decisions_json.Question.of(item, advice=advice.get(item.question_key), further=further)


def _find_advice(items: Sequence[ReviewItem], state: ProjectState, *, asks: bool) -> dict[str, Advice]:
    """Return the advice of the user's judge by question; `asks` it if there is none."""
    from core.questions.new_text import Judge, held_text_of

    judge = Judge()
    if not judge.command and not asks:
        return {}
    texts = {item.question_key: text for item in items if (text := held_text_of(item, state)) is not None}
    given = judge.ask(texts.values()) if asks else judge.known()
    return {key: given[text.id] for key, text in texts.items() if text.id in given}


def _advice_text(advice: Mapping[str, Advice], item: ReviewItem) -> str:
    found = advice.get(item.question_key)
    return "" if found is None else found.text


def _show(subject: str, kinds: frozenset[str]) -> None:
    """Show a question as a card."""
    from core.show.cards import terminal_card
    from core.show.pages.markdown import to_markdown

    project = _open_with_queue()
    item = _find_question(project, subject, kinds)
    files = project.adapters.all_agent_files() if item.lesson is not None or item.pairs else ()
    card = terminal_card(project.view, item, files)
    question = _question_json(item, {})
    if wants_json():
        print_object(decisions_json.ReviewCard, findings=(), question=question, card=to_markdown(card))
    else:
        print_document(card)
    end(())


def _snooze(subject: str, kinds: frozenset[str], *, until: datetime | None, uses: int | None, reason: str) -> None:
    from core.questions.answer import snooze_command

    project = _open_with_queue()
    command = snooze_command(_find_question(project, subject, kinds), until=until, evidence=uses)
    decide(project, replace(command, reason=reason))


def _open_with_queue() -> Project:
    """Open the project with all questions, including those that need a full search."""
    project = open_project()
    project.search_all()
    return project


def _find_question(project: Project, subject: str, kinds: frozenset[str]) -> ReviewItem:
    found = [
        item
        for item in (*project.view.queue, *(item for item in project.view.agenda if item.group is not None))
        if subject in {item.subject, item.question_key} and (not kinds or item.kind in kinds)
    ]
    if not found:
        raise UnknownRecord(f"no open question about {shorten_id(subject)}; see: ralphdeck review")
    if len(found) > 1:
        raise UnknownRecord(f"{len(found)} questions about {shorten_id(subject)}; choose one: {_ways_to_choose(found)}")
    return found[0]


def _ways_to_choose(items: Sequence[ReviewItem]) -> str:
    """Return what to type for each question: its kind if unique, else its own ID."""
    kinds = Counter(item.kind for item in items)
    return ", ".join(f"--kind {item.kind}" if kinds[item.kind] == 1 else f"'{item.question_key}'" for item in items)


def _review_suspicious(source: str | None, *, revoke: bool, confirm: bool, reason: str) -> None:
    """List sources with suspicious reports, or decide on those of one."""
    from core.index.project_state import all_findings

    if revoke and confirm:
        raise click.UsageError("give either --revoke or --confirm")
    if (revoke or confirm) and source is None:
        raise click.UsageError("a decision needs the SOURCE of the reports")
    if reason and not (revoke or confirm):
        raise click.UsageError("--reason needs --revoke or --confirm")
    project = open_project()
    if source is not None and (revoke or confirm):
        verdict = DiscardReports if revoke else CountReports
        decide(project, verdict(source=source, reason=reason))
        return
    state = project.view
    found = [burst for burst in state.board.bursts if source in {None, burst.source}]
    if source is not None and not found:
        raise UnknownRecord(f"no suspicious reports of {shorten_id(source)}; see: ralphdeck review --suspicious")

    bursts = (decisions_json.Burst.of(one, first=known_time(one.first), last=known_time(one.last)) for one in found)
    if wants_json():
        print_object(decisions_json.BurstList, findings=all_findings(state), bursts=bursts)
    else:
        print_table(BURST_COLUMNS, found, "no suspicious reports")
        for burst in found if source is not None else ():
            for pattern_id in burst.patterns:
                line(f"  {pattern_id}")
    end(all_findings(state))


_CONTRADICTED_EXIT: Final = 1  # exit code if two instructions contradict each other
_MAX_LINES: Final = 5  # of two files that repeat each other


def list_conflicts(pair: str | None, *, is_all: bool) -> None:
    """List pairs of instructions, or show those of one question."""
    from core.records.instructions import Relation
    from core.show.cards import pairs_document

    project = _open_project()
    pairs, findings = project.instruction_pairs()
    snapshot = project.view.snapshot
    fine = snapshot.curation.dismissed
    cut = [*(one for one in snapshot.findings if one.code == "too-large"), *findings]
    if pair is not None:
        found = _find_pair(pairs, pair)
    else:
        found = [one for one in pairs if is_all or (one.question not in fine and _matters(one))]

    if wants_json():
        print_object(loops_json.InstructionPairList, pairs=[_pair_json(one, fine) for one in found], findings=cut)
    elif pair is not None:
        print_document(pairs_document(found, project.adapters.all_agent_files()))
    else:
        questions: dict[str, list[InstructionPair]] = {}
        for each in found:
            questions.setdefault(each.question, []).append(each)
        for group in questions.values():
            _print_group(group, fine)
        if not found:
            remark("no instructions contradict or repeat each other")
        for one in cut:
            place = f"{visible_line(one.file, 120)}: " if one.file else ""
            remark(f"{place}{visible_line(one.message, 200)}")
    end(cut)
    if any(one.relation is Relation.CONTRADICTS and one.question not in fine for one in found):
        click.get_current_context().exit(_CONTRADICTED_EXIT)


def mark_pair_fine(pair: str, reason: str) -> None:
    """Mark a pair of instructions as fine until one of the texts changes."""
    from core.cli.commands.decisions import decide
    from core.questions.conflict import mark_fine

    project = _open_project()
    decide(project, mark_fine(_find_pair(project.instruction_pairs().pairs, pair)[0], reason))


def _open_project() -> Project:
    """Open the project with the files of agents, without review questions."""
    project = open_project(asks=False)
    project.read_adapted()
    return project


def _find_pair(pairs: Sequence[InstructionPair], name: str) -> list[InstructionPair]:
    """Return the pairs of a question by its ID or a prefix; raises UnknownRecord."""
    known = {one.id for one in pairs}
    id = require_one(
        find_matching_ids(name, known), name, what="pair", command="review --conflicts --all", known=sorted(known)
    )
    return [one for one in pairs if one.id == id]


def _matters(pair: InstructionPair) -> bool:
    """Return whether a pair is listed: contradictory, or repeated for one agent."""
    from core.records.instructions import Relation

    return pair.relation is Relation.CONTRADICTS or pair.shares_agent


def _print_group(pairs: Sequence[InstructionPair], answered: Container[str]) -> None:
    from core.show.cards import describe_cost

    first = pairs[0]
    is_fine, chosen = first.question in answered, first.find_chosen(answered)
    answer = "  marked as fine" if is_fine else f"  keep {visible_line(chosen.place, 80)}" if chosen else ""
    colour = "red" if first.relation.value == "contradicts" and not is_fine else "yellow"
    count = f" {plural(len(pairs), 'time')}" if len(pairs) > 1 else ""
    line((first.id, "cyan"), "  ", (f"{first.relation}{count}", colour), answer)
    for number, pair in enumerate(pairs[:_MAX_LINES]):
        if number:
            line("")
        for one in pair.both:
            line(f"  {visible_line(one.place, 80)}  {visible_line(one.text, 160)}")
            line((f"    {visible_line(describe_cost(one), 160)}", "bright_black"))
    if len(pairs) > _MAX_LINES:
        line(f"  and {len(pairs) - _MAX_LINES:,} more; see: ralphdeck review {first.id} --conflicts")


def _pair_json(pair: InstructionPair, answered: Container[str]) -> Wire:
    from core.retrieval.rendering import count_tokens

    both = [loops_json.PlacedInstruction.of(one, tokens=count_tokens(one.text)) for one in pair.both]
    chosen = pair.find_chosen(answered)
    kept = chosen.place if chosen is not None else None
    return loops_json.InstructionPair.of(pair, instructions=both, fine=pair.question in answered, kept=kept)
