"""The tools that write: reports on outcomes, and lessons that a person reviews."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from core.agents.mcp_server.results import HeldMark, Proposal, Report
from core.agents.mcp_server.session import sign
from core.agents.mcp_server.texts import name
from core.agents.mcp_server.tools import find_work
from core.base.errors import BadInput, RalphdeckError, Refused, UnknownRecord
from core.base.masking import mask_secrets
from core.base.scanning.verdict import describe_rule
from core.learning.bursts import format_burst, source_of
from core.questions.extraction.learnings import make_lesson
from core.questions.extraction.material import parse_pattern
from core.records.events import Event, Signals
from core.records.patterns import Maturity, PatternType, Severity
from core.tasks.protocol import Episodes

if TYPE_CHECKING:
    from core.agents.mcp_server.session import Session
    from core.index.project_state import ProjectState
    from core.records.patterns import Pattern

MAX_WAITING: Final = 10  # proposals of one loop that wait for a person
RESULTS: Final[Mapping[str, bool | None]] = {"helped": True, "harmed": False, "unused": None}
"""The words of marks; a pattern that was not used stays an injection without a result."""
LESSON_KINDS: Final = {
    "approach": PatternType.SUCCESS,
    "anti_pattern": PatternType.ANTI,
    "error_fix": PatternType.ERROR,
}
_REPEATED: Final = timedelta(hours=1)  # in which the same report without a key is the same one


class Mark(NamedTuple):
    """Whether a pattern helped: one of the words of `RESULTS`."""

    pattern_id: str
    result: str


def report_outcome(
    session: Session,
    result: str,
    summary: str,
    loop: str | None = None,
    injection_id: str | None = None,
    marks: Sequence[Mark] = (),
    errors: int | None = None,
    retries: int | None = None,
    key: str | None = None,
    *,
    client: str = "",
) -> Report:
    """Record an outcome, which patterns helped, and for an attempt what its agent observed; all once."""
    with session.call(client, writes=True) as state:
        named = _find_reported(state, loop, injection_id)
        work_id = named or session.own_work_id(client)
        results = _read_marks(state, marks)
        given = key or repr((result, summary, injection_id, [*map(tuple, marks)], errors, retries))
        identity = repr((sign(client), named, bool(key), given)).encode("utf-8", "backslashreplace")
        digest = hashlib.sha256(identity).hexdigest()[:24]
        now = session.project.now()
        found = _find_report(state, digest, now, has_key=bool(key))
        if found is None:
            start = "mcp" if key else f"{now:%Y%m%dT%H%M%S%f}"  # one ID for one key, so that it counts only once
            make = partial(Event, at=now, loop_id=work_id, by=session.project.by, agent=session.project.agent)
            outcome = make(
                id=f"{start}-{digest}",
                kind="outcome",
                success=result == "success",
                text=mask_secrets(summary),
                signals=Signals(
                    error_count=errors, retry_count=retries, failure_mode="partial" if result == "partial" else ""
                ),
            )
            uses = [
                make(
                    id=f"{start}-{digest}-{number}",
                    kind="applied",
                    pattern_id=pattern_id,
                    success=helped,
                    text=injection_id or "",
                )
                for number, (pattern_id, helped) in enumerate(results.items(), 1)
            ]
            session.project.record(outcome, *uses)
            _reflect(session, state, work_id, summary)
        state = session.project.view
        scored = state.board.outcome(found.loop_id if found is not None else work_id)
        score = None if scored is None else round(scored[1].raw, 2)
        held = _held_marks(state, results, session.project.by)
        parts = ["Recorded." if found is None else "Recorded before; nothing changed."]
        for why in dict.fromkeys(one.why for one in held):
            ids = ", ".join(one.pattern_id for one in held if one.why == why)
            parts.append(f"These marks do not count: {ids} ({why}).")
        text = "\n".join(parts) + "\n"
        return Report(recorded=found is None, duplicate=found is not None, score=score, held=held, text=text)


def _find_reported(state: ProjectState, loop: str | None, injection_id: str | None) -> str:
    """Return the ID of the work that a report is about, or "" if it names none."""
    work_id = find_work(state, loop) if loop else ""
    if not injection_id:
        return work_id
    start = injection_id.rpartition("@")[0]
    try:
        injected = find_work(state, start)
    except UnknownRecord:
        raise BadInput("injection_id is not one that loop_context returned; leave it out") from None
    if work_id and injected != work_id:
        raise BadInput(f"injection_id is of {name(injected)}, not of {name(work_id)}")
    return injected


def _read_marks(state: ProjectState, marks: Sequence[Mark]) -> dict[str, bool]:
    """Return whether each used pattern helped, by full ID; raises for unknown patterns and contradictions."""
    results: dict[str, bool | None] = {}
    for pattern_id, word in marks:
        known = state.pattern(pattern_id).id
        if results.setdefault(known, RESULTS[word]) is not RESULTS[word]:
            raise BadInput(f"{name(known)} has two different marks")
    return {pattern_id: helped for pattern_id, helped in results.items() if helped is not None}


def _find_report(state: ProjectState, digest: str, now: datetime, *, has_key: bool) -> Event | None:
    """Return the outcome that an earlier call recorded: with a key at any time, else within the hour."""
    events = state.snapshot.events
    recent = events if has_key else takewhile(lambda event: event.at > now - _REPEATED, reversed(events))
    return next((event for event in recent if event.kind == "outcome" and event.id.endswith(digest)), None)


def _reflect(session: Session, state: ProjectState, work_id: str, summary: str) -> None:
    """Add the summary to the reflections on an attempt; as an observation, it is in no context."""
    attempt = state.snapshot.attempts.get(work_id)
    if attempt is None or not summary.strip():
        return
    project = session.project
    memory = Episodes(project.project, clock=project.now, by=project.agent)
    with suppress(RalphdeckError):  # the outcome is recorded
        memory.reflect(attempt.task_id, attempt.number, observation=mask_secrets(summary))


def _held_marks(state: ProjectState, results: Mapping[str, bool], by: str) -> list[HeldMark]:
    source = source_of(Event(id="", at=state.now, kind="applied", by=by))
    whys = {burst.source: format_burst(burst) for burst in state.board.bursts}
    return [
        HeldMark(name(id), whys.get(source, "") if not one.revoked else "a person discarded these reports")
        for id, helped in results.items()
        if not helped
        for one in state.board.ignored_reports(id)[-1:]
        if one.source == source
    ]


class _Known(Refused):
    """A pattern with the proposed lesson exists."""

    def __init__(self, pattern_id: str) -> None:
        super().__init__(pattern_id)
        self.pattern_id = pattern_id


def propose_lesson(
    session: Session, kind: str, when: str, lesson: str, evidence: str, loop: str | None = None, *, client: str = ""
) -> Proposal:
    """Make a candidate for Review; no context has it before a person has released it."""
    with session.call(client, writes=True) as state:
        by = session.project.by
        try:
            work_id = find_work(state, loop) if loop else ""
            proposal = make_lesson(
                LESSON_KINDS[kind], when, lesson, evidence, loop_id=work_id, at=session.project.now(), by=by
            )
            pattern = parse_pattern(proposal.type, proposal.slug, proposal.record)
            harm = [one for one in pattern.suspicions if one.severity is Severity.BLOCKED]
            if harm:
                raise Refused(f"this text {', '.join(map(describe_rule, harm))}")
            decided = session.project.propose(
                proposal,
                f"proposal of {work_id or by}",
                by=by,
                reason=mask_secrets(evidence).strip(),
                check=lambda newest: _check_proposal(newest, pattern, work_id, by),
            )
            data = Proposal(id=decided.decision.after["patterns"][0], state="waiting_for_person")
        except _Known as known:
            data = _known_already(session.project.view, known.pattern_id, pattern)
        except (BadInput, Refused) as error:
            data = Proposal(id=None, state="refused", reason=str(error))
        return replace(data, text=_describe(data))


def _check_proposal(state: ProjectState, pattern: Pattern, work_id: str, by: str) -> None:
    """Raise `Refused` if the lesson is known, or if too many proposals of this work wait."""
    if known_id := _find_known(state, pattern):
        raise _Known(known_id)
    waiting = 0
    for pattern_id in state.snapshot.curation.arrivals:
        known = state.snapshot.patterns.get(pattern_id)
        if known is not None and _is_waiting(state, known):
            loops = {source.loop_id for source in known.source_loops}
            waiting += work_id in loops if work_id else not loops
    if waiting >= MAX_WAITING:
        raise Refused(f"{waiting} proposals {f'of {name(work_id)}' if work_id else 'without a loop'} wait already")


def _find_known(state: ProjectState, pattern: Pattern) -> str:
    """Return the ID of the pattern with the same or nearly the same lesson, or ""."""
    similar = state.similarity.nearest(pattern, state.settings.extraction.similarity_threshold)
    if similar or pattern.type is PatternType.ERROR:
        return similar[0][0] if similar else ""
    # The similarity also compares category and steps, which an agent does not give.
    text = _plain(pattern.description)
    same = (one for one in state.snapshot.patterns.values() if one.type is pattern.type)
    return next((one.id for one in same if _plain(one.description) == text), "")


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _is_waiting(state: ProjectState, pattern: Pattern) -> bool:
    arrival = state.snapshot.curation.arrivals.get(pattern.id)
    return arrival is not None and arrival.kind == "proposal" and arrival.needs_review(pattern.content_hash)


def _known_already(state: ProjectState, pattern_id: str, proposed: Pattern) -> Proposal:
    """Describe the known pattern; the same text again is the proposal that waits."""
    known, same_as = state.pattern(pattern_id), name(pattern_id)
    if _is_waiting(state, known):
        if known.content_hash == proposed.content_hash:
            return Proposal(id=same_as, state="waiting_for_person")
        return Proposal(id=None, state="known_already", same_as=same_as, reason="it waits for a person")
    is_deprecated = state.assessment(known.id).state is Maturity.DEPRECATED
    return Proposal(id=None, state="known_already", same_as=same_as, reason="deprecated" if is_deprecated else None)


def _describe(data: Proposal) -> str:
    match data.state:
        case "waiting_for_person":
            return f"{data.id} waits for the review of a person; no agent gets it before.\n"
        case "known_already":
            return f"Known already as {data.same_as}{f' ({data.reason})' if data.reason else ''}.\n"
    return f"Refused: {data.reason}\n"
