"""Cards of review questions: what is asked, the evidence, what each answer does."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from core.base.errors import RalphdeckError
from core.base.formatting import format_percent
from core.base.pattern_titles import describe_change, pattern_title, select_main
from core.base.text import plural, visible_line
from core.decisions.case import verb_text
from core.index import review_items as kinds
from core.questions.conflict import choose_kept
from core.questions.doubts import describe_update
from core.questions.kinds import answers, question_of
from core.questions.proposed_decision import describe_proposal
from core.records.decisions import Verb
from core.records.instructions import Loading, Relation
from core.records.patterns import Maturity
from core.retrieval.rendering import count_tokens
from core.retrieval.similarity import cap_similarity, find_repeated
from core.show import card_evidence as found
from core.show.card_evidence import approved_changes, exact_text, marked_text, side_by_side
from core.show.loops import lesson_sources, proposal_blocks
from core.show.pages.document import Block, Code, Document, Moment, Part, Text, code, fields, line, more, section
from core.show.pages.loops import overview
from core.show.pages.patterns import DESCRIPTION_LABELS, body, followed, rate_line, state_line, suspicion_lines
from core.show.pages.reflections import lesson_blocks
from core.show.pages.signs import reason_text, result_sign
from core.show.pages.tasks import failure_blocks, head, help_wanted, lessons
from core.show.work import session_key, task_key
from core.tasks.escalations import escalation_reason

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.index.review_items import EditedFile, HeldText, ReviewItem, WeakenedTest
    from core.learning.inversion import Inversion
    from core.records.debug_sessions import DebugSession, Execution
    from core.records.decisions import Decision
    from core.records.instructions import InstructionPair, PlacedInstruction
    from core.records.patterns import Pattern
    from core.records.reflections import JoinedLesson
    from core.sources.adapters.agent_files import AgentFile


_ARRIVALS: Final = {"import": "Imported", "proposal": "Proposed", "quarantine": "Held back"}
_MAX_PLACES: Final = 3
_MAX_VERDICTS: Final = 8
_SELDOM_ADVICE: Final = (
    "Drop it (yes): it costs tokens in each context and changes little.",
    "Reword it (o opens its file), then answer no: name the command, the file or the code, and when it applies.",
    "Make it a check: a test, a rule of the linter or a hook that fails where agents go wrong cannot be ignored.",
)
YES: Final = "accept"
NO: Final = "reject"
"""Actions of the two main answers; every question has both."""
_PROPOSAL_ACTIONS: Final = {
    YES: "there is no proposal to accept",
    NO: "there is no proposal to reject",
    "rewrite": "there is no text to edit",
}
"""Why an answer to a proposal does not fit a question without one."""


def review_card(
    state: ProjectState,
    item: ReviewItem,
    *,
    proposal: Inversion | None = None,
    is_edited: bool = False,
    agent_files: Sequence[AgentFile] = (),
) -> Document:
    """Return a question's card: the title asks, the blocks are subject and evidence.

    `proposal` is the warning of an inversion if the user has changed it, `is_edited` whether its text is the user's.
    `agent_files` are those that agents load by themselves, which a note of an agent may repeat. Raises `UnknownRecord`
    if the pattern in question no longer exists.
    """
    blocks = _subject(state, item, proposal, is_edited=is_edited, agent_files=agent_files)
    return Document(visible_line(item.asks or item.question, 200), tuple(blocks))


def terminal_card(state: ProjectState, item: ReviewItem, agent_files: Sequence[AgentFile] = ()) -> Document:
    """Return the card with what yes and no do, for the terminal and the clipboard."""
    card = review_card(state, item, agent_files=agent_files)
    return Document(card.title, (*card.blocks, line(""), *effect_lines(state, item)))


def effect_lines(state: ProjectState, item: ReviewItem) -> Iterator[Block]:
    """Say who gets the text now, and what yes and no do."""
    if now := present_effect(state, item):
        yield line(now)
    try:
        offered = {one.action: one for one in answers(item, state)}
    except RalphdeckError:
        return
    for action, word in ((YES, "Yes"), (NO, "No")):
        if (answer := offered.get(action)) is not None:
            yield line((f"{word}: ", "strong"), (answer.why_not and f"not now: {answer.why_not}") or answer.effect)


def present_effect(state: ProjectState, item: ReviewItem) -> str:
    """Say whether agents get the pattern in question now; "" for other questions."""
    if not item.is_about_pattern or item.kind == kinds.DUPLICATE or item.subject not in state.board:
        return ""
    assessment = state.assessment(item.subject)
    if assessment.quarantined:
        return "No agent gets it until you say yes."
    if not assessment.injectable:
        return "No agent gets it now."
    if state.has_low_rate(item.subject):
        return f"No prompt gets it: its rate is below {state.settings.injection.min_success_rate:.0%}."
    ranks = {Maturity.CANDIDATE: ", ranked low", Maturity.PROVEN: ", ranked first"}
    return f"Agents get it now{ranks.get(assessment.state, '')}."


def card_title(state: ProjectState, item: ReviewItem) -> str:
    """Return the subject's short name, a UUID only as a last resort; untrusted."""
    if item.is_about_pattern and (pattern := state.snapshot.patterns.get(item.subject)) is not None:
        return pattern_title(pattern)
    if item.session is not None and item.session.file_path:
        return item.session.file_path
    loop = state.snapshot.loops.get(item.subject)
    return item.about or (loop.task if loop is not None and loop.task else item.subject)


def _subject(
    state: ProjectState,
    item: ReviewItem,
    proposal: Inversion | None,
    *,
    is_edited: bool,
    agent_files: Sequence[AgentFile],
) -> Iterable[Block]:
    if item.group is not None:
        return found.row_questions(state, item.group)
    if item.is_about_pattern:
        return _pattern_card(state, item, proposal, is_edited=is_edited)
    if item.session is not None:
        return _escalation(state, item, item.session)
    if item.held_text is not None:
        return _held_note(item.held_text)
    if item.proposed is not None:
        rows = fields(*describe_proposal(item.proposed, state.snapshot.decisions))
        return [line((item.proposed.verb.replace("_", " "), "strong"), f"   proposed by {item.proposed.by}"), *rows]
    if item.pairs:
        return (line((item.reason, "quiet")), line(""), *pairs_blocks(item.pairs, agent_files))
    if item.weakened is not None:
        return _weakened_test(item.weakened)
    if item.edited is not None:
        return _edited_file(item.edited)
    if item.burst is not None:
        source, patterns = found.report_source(state, item.burst), found.reported_patterns(state, item.burst)
        return [*source, *section("Blamed", patterns)]
    if item.lesson is not None:
        return _agent_note(state, item, item.lesson, agent_files)
    return _offer(state, item) if item.offer is not None else ()


def _pattern_card(
    state: ProjectState, item: ReviewItem, proposal: Inversion | None, *, is_edited: bool
) -> Iterator[Block]:
    pattern = state.pattern(item.subject)
    match item.kind:
        case kinds.EXTRACTED:
            yield from lesson_lines(state, pattern)
            yield from suspicion_lines(state, pattern)
            yield from _found_in(state, pattern)
            yield from section("Agents get", exact_text(state, pattern))
        case kinds.QUARANTINE | kinds.HELD:
            yield from headline(pattern)
            yield from suspicion_lines(state, pattern)
            yield from section("Agents would get", exact_text(state, pattern))
            yield from section("Where it comes from", _arrival(state, pattern))
        case kinds.INVERSION:
            yield from headline(pattern, item.reason)
            yield from section(
                "The warning", found.anti_pattern(state, *_warning(state, item, proposal), is_edited=is_edited)
            )
            yield from section("Where it failed", found.failures(state, pattern))
            yield from section("The lesson now", body(pattern, pattern.title))
        case kinds.DUPLICATE:
            yield from side_by_side(
                state, pattern, state.pattern(item.other), format_percent(cap_similarity(item.similarity))
            )
        case kinds.UNRECONCILED:
            yield from headline(pattern, item.reason)
            yield from found.recorded_counts(state, pattern)
            yield from section("Results", found.uses(state, pattern))
        case kinds.SELDOM:
            yield from headline(pattern, item.reason)
            yield from followed(state, pattern, _MAX_VERDICTS)
            yield from section("What to do", map(line, _SELDOM_ADVICE))
            yield from section("The lesson", body(pattern, pattern.title))
        case kinds.STALE | kinds.RENAMED:
            yield from headline(pattern)
            changes = (line((describe_change(one, state.now), "warning")) for one in select_main(item.anchors))
            yield from section("What Git shows", changes)
            if update := describe_update(pattern, item.anchors):
                yield from section("Update changes in the text", [Code(update, "", "diff", 2)])
            yield from section("The lesson", body(pattern, pattern.title))
            yield line(("To name other files: ", "quiet"), f"ralphdeck pattern anchors {pattern.id} --add FILE#NAME")
        case kinds.BROAD:
            yield from headline(pattern, item.reason)
            yield from section("What its trigger matches", found.trigger_matches(state, pattern))
            yield from section("The lesson", body(pattern, pattern.title))
        case _:
            yield from _doubtful_state(state, item, pattern)


def _warning(state: ProjectState, item: ReviewItem, proposal: Inversion | None) -> tuple[Inversion, Sequence[Pattern]]:
    inversion = proposal or state.board.proposal(item.subject)
    return inversion, state.board.alternatives(item.subject)


def _doubtful_state(state: ProjectState, item: ReviewItem, pattern: Pattern) -> Iterator[Block]:
    """Describe a doubtful state or pin: counts, what would change it, uses, text."""
    is_of_pin = item.kind in (kinds.CONTRADICTED, kinds.STALE_PIN)
    yield from headline(pattern, "" if is_of_pin else item.reason)
    if item.kind == kinds.STALE_PIN:
        yield from section("Changed since it was approved", approved_changes(state, pattern))
        yield line("")
    yield state_line(state, pattern.id)
    yield rate_line(pattern, state.assessment(pattern.id))
    if item.kind == kinds.BORDERLINE:
        yield from section("What would change its state", found.distances(state, pattern))
    elif is_of_pin:
        yield from found.results_since(state, pattern.id)
    yield from section("Results", (*found.conflicts(state, pattern), *found.uses(state, pattern)))
    yield from section("Agents get", exact_text(state, pattern))


def headline(pattern: Pattern, reason: str = "") -> Iterator[Block]:
    """Name a pattern by message or title, with places, and why it is asked about."""
    yield line((pattern_title(pattern), "strong"), (_places(pattern), "quiet"))
    if reason:
        yield line((reason, "quiet"))


def _places(pattern: Pattern) -> str:
    places = ", ".join((pattern.places or pattern.location_hints)[:_MAX_PLACES])
    return f"   {places}" if places else ""


def lesson_lines(state: ProjectState, pattern: Pattern) -> Iterator[Block]:
    """Show a lesson for judging: the error, times seen and given, the diff, and why."""
    assessment = state.assessment(pattern.id)
    seen = f"seen {plural(assessment.seen, 'time')}, " if assessment.seen else ""
    given = f"given {plural(assessment.given, 'time')}" if assessment.given else "never given"
    counts = f"   {seen}{given}"
    yield line((pattern_title(pattern), "strong"), (f"{_places(pattern)}{counts}", "quiet"))
    if pattern.diff_pattern:
        yield Code(pattern.diff_pattern, "", "diff", 2)
    elif pattern.template_code:
        yield Code(pattern.template_code, "", pattern.template_language or "text", 2)
    if pattern.description and pattern.description != pattern.title:
        yield line((f"{DESCRIPTION_LABELS[pattern.type]}: ", "quiet"), pattern.description)
    yield from (line((f"{n}. {step}"), indent=2) for n, step in enumerate(pattern.steps, 1))


def _found_in(state: ProjectState, pattern: Pattern) -> Iterator[Block]:
    """Describe the session a pattern was found in, and the check that then passed."""
    arrival = state.snapshot.curation.arrivals.get(pattern.id)
    source = next((one.loop_id for one in pattern.source_loops), "")
    if arrival is None and not source:
        return
    at = arrival.at if arrival is not None else pattern.first_discovered
    title = found.work_title(state, source)
    where = ("", " in ", (f"“{title}”" if title else source, "strong")) if source else ()
    yield line("")
    yield line("Found ", Moment(at, ""), *where)
    yield from _check_lines(state, pattern, source)


def _check_lines(state: ProjectState, pattern: Pattern, source: str) -> Iterator[Block]:
    """Name the run that failed with a pattern's error, and the next one that passed."""
    works = dict.fromkeys((*found.works_of(state, source), state.board.inputs.names.loop_of_work(source)))
    sessions = (session for work in works for session in state.inputs.names.sessions_of(work))
    for session in sessions if source else ():
        failed = next((run for run in session.executions if _has_error(run, pattern)), None)
        if failed is None:
            continue
        yield _run_line(failed, is_passed=False)
        after = session.executions[session.executions.index(failed) + 1 :]
        if (passed := next((run for run in after if not run.failures), None)) is not None:
            yield _run_line(passed, is_passed=True)
        return


def _has_error(run: Execution, pattern: Pattern) -> bool:
    kind = pattern.error_type
    message = pattern.error_message.removeprefix(f"{kind}: ")
    return any(
        (not kind or one.error_type == kind) and (not message or message in one.message or one.message in message)
        for one in run.failures
    )


def _run_line(run: Execution, *, is_passed: bool) -> Block:
    tests = list(dict.fromkeys(one.test_name for one in run.failures if one.test_name))
    command = dict(run.environment).get("command", "")
    name = tests[0] if tests else command
    and_more = f" and {plural(len(tests) - 1, 'more test')}" if len(tests) > 1 else ""
    parts: list[Part | None] = [result_sign(is_passed), f" {name}{and_more} {'passed' if is_passed else 'failed'} "]
    shown = (f"   {command}", "quiet") if command and command != name else None
    return line(*parts, Moment(run.at, "") if run.at else None, shown, indent=2)


def _arrival(state: ProjectState, pattern: Pattern) -> Iterator[Block]:
    """Describe how a text came into the project, and its counts."""
    if (arrival := state.snapshot.curation.arrivals.get(pattern.id)) is not None:
        decision = next((one for one in state.snapshot.decisions if one.id == arrival.decision_id), None)
        is_own = decision is None or decision.verb is Verb.QUARANTINE
        came: Text = (f"by {arrival.by}, ", Moment(arrival.at, ""))
        yield from fields(
            (_ARRIVALS.get(arrival.kind, "Found"), came),
            ("From", "" if is_own or decision is None else decision.subject),
            ("Reason", arrival.reason),
        )
    recorded = pattern.recorded_counts
    counts = "none" if recorded.uses is None else f"{format_percent(recorded.rate)} of {plural(recorded.uses, 'use')}"
    yield from fields(
        ("Results here", state.assessment(pattern.id).counts_text),
        ("Counts in its file", counts),
        ("File", f"{pattern.file}   {pattern.id}"),
    )


def _escalation(state: ProjectState, item: ReviewItem, session: DebugSession) -> Iterator[Block]:
    work_id = session.loop_id or session.task_id
    question = escalation_reason(session, state.snapshot.escalations.get(session.id))
    yield from fields(("Session", found.work_title(state, work_id)), ("Question", question))
    yield from help_wanted(session, state.snapshot.loops.get(work_id))
    yield line((item.reason, "quiet"))
    run = session.newest_failing
    if run is not None:
        yield from section("The failure", (block for one in run.failures for block in failure_blocks(one)))
    tried = [one.fix for one in session.executions if one.fix is not None]
    lines = list[Block]()
    for number, fix in enumerate(tried, 1):
        lines.append(line(f"{number}. {fix.description or fix.diff_summary}"))
        lines += code("", fix.diff, "diff", 4)
    yield from section("What was tried", lines)
    yield from section("The debug session", (*head(state, session), *lessons(state, session)))


def _held_note(held: HeldText) -> Iterator[Block]:
    yield from fields(
        ("Note on", held.title or "a task without a text"),
        ("From", ", ".join(held.sources) or "unknown"),
        ("Would be given to", ", ".join(held.readers)),
    )
    yield line((f"This text {held.does}. It is left out of every prompt until you say yes.", "warning"))
    yield from section("Agents would get", marked_text(held.text))


def _weakened_test(weakened: WeakenedTest) -> Iterator[Block]:
    yield line((", ".join(weakened.files) or "a test", "strong"), (f"   {weakened.attempt_id}", "quiet"))
    yield line(result_sign(False), f" {weakened.command} failed: {weakened.failure}", indent=2)
    if weakened.diff:
        yield Code(weakened.diff, "", "diff", 2)
    yield line(result_sign(True), f" the test was {weakened.change}, and the command passed", indent=2)
    by = f"{weakened.agent}: " if weakened.agent else ""
    yield from fields(("Reason", f"{by}{weakened.words or 'none was recorded'}"))


def _edited_file(edited: EditedFile) -> Iterator[Block]:
    yield line((edited.path, "strong"))
    yield Code(edited.diff, "", "diff", 2)
    if edited.problem:
        yield line((f"The edit cannot be taken over: {edited.problem}", "warning"))


def _agent_note(
    state: ProjectState, item: ReviewItem, joined: JoinedLesson, files: Sequence[AgentFile]
) -> Iterator[Block]:
    yield line((item.reason, "quiet"))
    yield from lesson_blocks(state, joined)
    yield from section("Agents load the same text by themselves", _loaded(joined, files))
    if item.offer is not None:
        yield from section("The lesson that agents would get", proposal_blocks(item.offer))


def _loaded(joined: JoinedLesson, files: Sequence[AgentFile]) -> Iterator[Block]:
    """Name the lines of agents' own files that say the same."""
    own = {place.file for place in joined.places}
    texts = {joined.id: [place.text for place in joined.places]}
    for file in files:
        if file.file not in own:
            for place in find_repeated(texts, [(file.file, file.lines[: file.loaded])]).values():
                yield line((f"{place.file}:{place.line}", "warning"), indent=2)


def _offer(state: ProjectState, item: ReviewItem) -> Iterator[Block]:
    """Describe what can be extracted, then the loop or sources that it comes from."""
    assert item.offer is not None
    loop = state.snapshot.loops.get(item.subject) if item.kind != kinds.RECURRING else None
    if loop is not None:
        ended = ("   session, ended ", Moment(loop.ended_at)) if loop.ended_at is not None else ("   session",)
        yield line((loop.task or loop.id, "strong"), *ended)
    yield line((item.reason, "quiet"))
    yield from proposal_blocks(item.offer)
    if item.kind == kinds.RECURRING:
        yield from section("Reported by", lesson_sources(state, item.offer))
        return
    source = overview(state, loop, None) if loop is not None else [line((item.subject, "strong"))]
    yield from section("The session", source)


def is_about(decision: Decision, item: ReviewItem) -> bool:
    return question_of(decision) == item.question_key or decision.subject in (item.subject, item.other or item.subject)


def skipped_text(item: ReviewItem, by: Decision | None) -> str:
    asked = visible_line(item.question, 80)
    if by is None:
        return f"Skipped: already resolved: “{asked}”"
    why = f" “{visible_line(reason_text(by), 120)}”" if reason_text(by) else ""
    return f"Skipped: {visible_line(by.by, 40)} has answered “{asked}”: {verb_text(by)}{why}"


def no_answer(action: str, item: ReviewItem) -> str:
    if action == "restore_text" and item.is_about_pattern:
        return "the text has not changed since the decision"
    if item.is_about_pattern and item.kind != kinds.DUPLICATE and action not in _PROPOSAL_ACTIONS:
        return "this question proposes exactly that"
    missing = _PROPOSAL_ACTIONS.get(action, "that needs a question about a single lesson")
    return f"{missing}: this question is about {question_subject(item)}"


def question_record(item: ReviewItem) -> tuple[str, str]:
    """Return the place of what a question is about, and the key of its row there."""
    if item.session is not None:
        return "loops", session_key(item.subject)
    if item.weakened is not None:
        return "loops", task_key(item.subject)
    if item.lesson is not None:
        return "reflections", item.subject
    if item.pairs:
        pattern_id = next((one.pattern_id for one in item.pairs[0].both if one.pattern_id), "")
        return "patterns" if pattern_id else "context", pattern_id
    if item.proposed is not None and not item.is_about_pattern:
        return "log", item.proposed.subjects[0] if item.proposed.subjects else ""
    return "patterns" if item.is_about_pattern else "loops", item.subject


def question_subject(item: ReviewItem) -> str:
    """Name the subject of a question, to explain why an answer does not fit."""
    subjects = (
        (item.group, "several questions"),
        (item.lesson, "a note of an agent"),
        (item.burst, "many lessons at once"),
        (item.offer, "a lesson that does not exist yet"),
        (item.session, "a debug session"),
        (item.held_text, "a note"),
        (item.weakened, "a test"),
        (item.edited, "a file of agents"),
        (item.proposed, "a decision of an agent"),
        (item.pairs or None, "instructions for agents"),
    )
    name = next((name for part, name in subjects if part is not None), "one lesson")
    return "two lessons" if item.kind == kinds.DUPLICATE else name


_MAX_PAIRS: Final = 10
_CONTEXT: Final = 2  # lines around a change
_WHEN: Final = {
    Loading.START: "in each session",
    Loading.PATH: "when a file of its scope is touched",
    Loading.REQUEST: "when it is asked for",
}


def pairs_document(pairs: Sequence[InstructionPair], files: Sequence[AgentFile]) -> Document:
    """Describe a question's pairs, with the diffs of `files` that remove one of two."""
    first = pairs[0]
    return Document(f"{first.one.place} {first.relation} {first.other.place}", tuple(pairs_blocks(pairs, files)))


def pairs_blocks(pairs: Sequence[InstructionPair], files: Sequence[AgentFile]) -> Iterator[Block]:
    """Show the pairs of one question, and how to keep one of each."""
    for number, pair in enumerate(pairs[:_MAX_PAIRS]):
        if number:
            yield line("")
        yield from _pair(pair, files)
    yield from more(len(pairs), "pair", _MAX_PAIRS)


def _pair(pair: InstructionPair, files: Sequence[AgentFile]) -> Iterator[Block]:
    for one in pair.both:
        yield from _instruction(one)
        yield line("")
    if not pair.shares_agent:
        yield line(("No agent loads both files; different agents get different instructions.", "quiet"))
    kept, removed = choose_kept(pair)
    yield from section(f"To keep {kept.place}", _removal(removed, files))
    if pair.relation is Relation.CONTRADICTS:
        yield from section(f"To keep {removed.place}", _removal(kept, files))


def _instruction(one: PlacedInstruction) -> Iterator[Block]:
    yield line((one.place, "strong accent"), (f"   {describe_cost(one)}", "quiet"))
    if one.section:
        yield line((f"below “{one.section}”", "quiet"))
    yield Code(one.text, "", "", 2)


def describe_cost(one: PlacedInstruction) -> str:
    """Say how many tokens an instruction takes, when, and of which agents."""
    tokens = plural(count_tokens(one.text), "token")
    if one.pattern_id:
        return f"lesson, {tokens} when it is given"
    scope = f" ({', '.join(one.scope)})" if one.scope else ""
    return f"{', '.join(one.agents)}: {tokens} {_WHEN[one.loading]}{scope}"


def _removal(one: PlacedInstruction, files: Sequence[AgentFile]) -> Iterable[Block]:
    if one.pattern_id:
        yield line(f"ralphdeck pattern deprecate {one.pattern_id} --reason …", indent=2)
        return
    diff = removal_diff(one, files)
    if diff:
        yield Code("\n".join(diff), "", "diff", 2)
    else:
        yield line(f"Delete it in {one.place}.", indent=2)


def removal_diff(one: PlacedInstruction, files: Sequence[AgentFile]) -> list[str]:
    """Return the unified diff that removes an instruction; [] if its lines have more.

    It is made of masked text, so it does not fit beside a secret. ralphdeck never applies it.
    """
    file = next((file for file in files if file.file == one.file), None)
    if file is None:
        return []
    first, last = one.lines
    before, lines = file.lines, list(file.lines)
    if one.is_whole:
        del lines[first - 1 : last]
    elif first == last and lines[first - 1 : first] and one.text in lines[first - 1]:
        lines[first - 1] = " ".join(lines[first - 1].replace(one.text, "").rstrip().split(" "))
        lines[first - 1] = lines[first - 1].replace("  ", " ")
    else:
        return []
    names = (f"a/{file.file}", f"b/{file.file}") if file.file[:1] not in "~/" else (file.file, file.file)
    return list(difflib.unified_diff(before, lines, *names, lineterm="", n=_CONTEXT))
