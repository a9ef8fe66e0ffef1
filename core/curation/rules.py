"""What may be decided, and what a decision will change (semantics 4, 5). No file is read or written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import AlreadyDone, BadInput, Refused
from core.base.formatting import format_day, short_id
from core.base.text import plural, visible_line
from core.config.settings import Settings
from core.learning.assessment import HELD, QUARANTINE, Assessment
from core.learning.bursts import Burst
from core.learning.inversion_proposals import Inversion
from core.ledger.fold import TEXT_HASH
from core.records.decisions import TURNS, CurationState, Decision, Effect, Pin, Verb, text_hash
from core.records.patterns import Maturity, Pattern, PatternType
from core.records.question_ids import ESCALATION_PREFIX
from core.records.suspicions import Severity
from core.records.times import iso
from core.scanning.messages import describe_suspicions
from core.scanning.verdict import stops
from core.sources.patterns import read_patterns

OVERRIDE: Final = "override"
"""The key of a pattern record that tells other tools of a decision (formats C23); only the ledger decides."""
SEEN_TEXT: Final = "seen_text"
"""The key in `after` of a decision under which the text that was seen is kept."""
_QUARANTINED: Final = "quarantined"
_WAS_HELD: Final = "held"
"""The keys in `before` of a release that record what it was released from."""
_ABOUT: Final = "about"
"""The key in `after` of a decision on a question that is filed under more than a person wants to read."""
_NOT_IN_SLUG: Final = re.compile(r"[^a-z0-9]+")
_MAX_SLUG: Final = 60


class More(Struct, frozen=True):
    """Evidence that ends a snooze: `count` beyond what was `known`, as `ReviewItem.evidence` counts it."""

    known: int
    count: int


class Case(Struct, frozen=True, kw_only=True):
    """One pattern, and what is known of it at the moment of the decision.

    Attributes:
        pattern, assessment: As the person saw them.
        state: What the ledger amounts to now; it may have moved on since.
        was_reset: The last standing decision on this pattern was a reset.
        written: The `override` that the pattern's record carries and that no pin explains, as JSON text, if any.
        writable: The pattern's file is one that curation writes; a mirror's is not.
        anti_file: Project-relative file that anti-patterns go into.
        id, at, by, reason: Of the decision.
        text: Gives the keys of the record that hold the text of `pattern`, {} where they are not to be had.
    """

    pattern: Pattern
    assessment: Assessment
    state: CurationState
    settings: Settings
    was_reset: bool
    written: str | None
    writable: bool
    anti_file: str
    id: str
    at: datetime
    by: str
    reason: str
    text: Callable[[], dict[str, Any]] = dict

    @property
    def name(self) -> str:
        """The pattern's id as it may be shown."""
        return short_id(self.pattern.id)

    @property
    def pin(self) -> Pin | None:
        """The standing human decision, stale or not."""
        return self.state.pins.get(self.pattern.id)

    @property
    def effective(self) -> Maturity:
        """The state that holds now: a pin on this very text, candidate under a stale pin, else arithmetic."""
        if self.pin is not None:
            fresh = self.pin.content_hash == self.pattern.content_hash
            return self.pin.state if fresh else Maturity.CANDIDATE
        return self.assessment.state if self.assessment.pin is None else self.assessment.computed

    def seen(self, state: Maturity) -> dict[str, Any]:
        """What `Decision.before` and `.after` say of the pattern."""
        return {
            "state": state.value,
            "computed": self.assessment.computed.value,
            "content_hash": self.pattern.content_hash,
            "successes": self.assessment.successes,
            "failures": self.assessment.failures,
        }

    def approved(self, state: Maturity) -> dict[str, Any]:
        """What `Decision.after` says of a pattern whose text was seen: the text as well, to be put back one day."""
        text = self.text()
        return {**self.seen(state), SEEN_TEXT: text} if text else self.seen(state)


class Draft(Struct, frozen=True, kw_only=True):
    """A decision that the rules allow, before it is written down; see `Decision`.

    Attributes:
        summary: One line: `promoted X: established → proven`, `promoted X: stays proven`.
        warnings: What to tell the person.
        ledger_only: It changes a pattern whose file curation does not write.
        quoted: Ids of other patterns, whose text it takes over.
    """

    verb: Verb
    subject: str
    summary: str
    reason: str = ""
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    effects: tuple[Effect, ...] = ()
    inverse: tuple[Effect, ...] = ()
    warnings: tuple[str, ...] = ()
    ledger_only: bool = False
    quoted: tuple[str, ...] = ()


def verb_text(decision: Decision) -> str:
    """What was decided, as a verb for people; an escalation is acknowledged."""
    if decision.verb is Verb.DISMISS and decision.subject.startswith(ESCALATION_PREFIX):
        return "acknowledge"
    return decision.verb.value.replace("_", " ")


def subject_text(decision: Decision) -> str:
    """What a decision is about, for people: the name that it was given, else what it is filed under."""
    about = decision.after.get(_ABOUT)
    return short_id(about if isinstance(about, str) and about else decision.subject)


def about_text(decision: Decision, known: Mapping[str, Decision]) -> str:
    """The same; of undo and redo, what was taken back or repeated, if it is among `known`, by id."""
    taken = known.get(decision.subject) if decision.verb in TURNS else None
    return f"{verb_text(taken)} {subject_text(taken)}" if taken else subject_text(decision)


def promote(case: Case) -> Draft:
    """Pin as proven; refused for a deprecated pattern until it is reset (2) Promotion Rules.

    A promotion that later evidence contradicts can be given again, with that evidence seen.
    """
    if case.effective is Maturity.DEPRECATED and not (case.was_reset and case.pin is None):
        raise Refused(f"{case.name} is deprecated{since(case.pin)}; reset it first")
    if case.effective is Maturity.PROVEN and case.pin is not None and not case.assessment.contradicted:
        raise AlreadyDone(f"{case.name} is promoted already{since(case.pin)}")
    _check_reason(case, "promoting")
    warnings = []
    least = case.settings.learning.min_feedback_for_adjustment
    if case.effective is Maturity.CANDIDATE and case.assessment.successes < least:
        helpful = plural(case.assessment.successes, "helpful observation")
        warnings.append(f"{case.name} is a candidate with only {helpful}")
    return _pinned(case, Verb.PROMOTE, Maturity.PROVEN, "promoted", warnings)


def promote_among_many(case: Case) -> Draft:
    """Promote one of several patterns; a held or quarantined text is to be read and released first."""
    if case.assessment.held:
        raise Refused(f"{case.name} is held: read it and approve it first")
    if case.assessment.quarantined:
        raise Refused(f"{case.name} is in quarantine: read it and release it by itself")
    return promote(case)


def promote_after_reset(case: Case) -> Draft:
    """Promote as if `reset` had been decided just before; the second half of re-enabling a deprecated pattern."""
    pins = {key: pin for key, pin in case.state.pins.items() if key != case.pattern.id}
    return promote(replace(case, state=replace(case.state, pins=pins), was_reset=True))


def deprecate(case: Case) -> Draft:
    """Pin as deprecated, for a reason."""
    if not case.reason:
        raise BadInput(f"deprecating {case.name} needs a reason")
    if case.effective is Maturity.DEPRECATED and case.pin is not None and not case.assessment.contradicted:
        raise AlreadyDone(f"{case.name} is deprecated already{since(case.pin)}")
    return _pinned(case, Verb.DEPRECATE, Maturity.DEPRECATED, "deprecated", [])


def reset(case: Case) -> Draft:
    """Take the pin away. What the rules alone deprecate is reset once, after which it can be promoted."""
    if case.pin is None and (case.effective is not Maturity.DEPRECATED or case.was_reset):
        raise Refused(f"{case.name} has no decision to reset; it is {case.effective} by rule")
    effects: tuple[Effect, ...] = ()
    inverse: tuple[Effect, ...] = ()
    if case.pin is not None and case.writable:
        effects = (_effect(case, None),)
        inverse = (_effect(case, override_of(case.pin)),)
    return Draft(
        verb=Verb.RESET,
        subject=case.pattern.id,
        summary=f"reset {case.name}: {change(case.effective, case.assessment.computed)}",
        reason=case.reason,
        before=case.seen(case.effective),
        after=case.seen(case.assessment.computed),
        effects=effects,
        inverse=inverse,
        ledger_only=case.pin is not None and not case.writable,
    )


def accept_inversion(case: Case, proposal: Inversion, text: str, next_id: Callable[[str], str]) -> Draft:
    """Write an anti-pattern and deprecate the pattern.

    Args:
        case: See `Case`.
        proposal: What was proposed.
        text: Its text, perhaps rewritten.
        next_id: Slug -> the next free id of an anti-pattern.
    """
    if not text:
        raise BadInput(f"the anti-pattern made of {case.name} needs a text")
    _check_invertible(case)
    anti_id = next_id(_NOT_IN_SLUG.sub("-", proposal.slug.lower())[:_MAX_SLUG].strip("-") or "pattern")
    record = anti_pattern(case.pattern, case.assessment, proposal, text, anti_id, case.at)
    anti_hash = as_pattern(record).content_hash
    accepted = Pin(
        state=Maturity.ESTABLISHED,
        at=case.at,
        by=case.by,
        reason=case.reason,
        content_hash=anti_hash,
        decision_id=case.id,
    )
    record[OVERRIDE] = override_of(accepted)
    made = Effect(file=case.anti_file, type=PatternType.ANTI.value, pattern_id=anti_id, insert=record)
    gone = Effect(file=case.anti_file, type=PatternType.ANTI.value, pattern_id=anti_id, remove=True)
    deprecated = _pinned(case, Verb.ACCEPT_INVERSION, Maturity.DEPRECATED, "inverted", [])
    return Draft(
        verb=Verb.ACCEPT_INVERSION,
        subject=case.pattern.id,
        summary=f"inverted {case.name} into {anti_id}: {change(case.effective, Maturity.DEPRECATED)}",
        reason=case.reason,
        before=deprecated.before,
        after={**deprecated.after, "text": text, "anti_id": anti_id, "anti_hash": anti_hash},
        effects=(made, *deprecated.effects),
        inverse=(gone, *deprecated.inverse),
        warnings=deprecated.warnings,
        ledger_only=deprecated.ledger_only,
        quoted=(proposal.better_pattern_id,) if proposal.better_pattern_id else (),
    )


def reject_inversion(case: Case) -> Draft:
    """Keep the pattern as it is; the proposal comes back after further failures (setting)."""
    _check_invertible(case)
    verdict = case.state.inversions.get(case.pattern.id)
    more = case.settings.anti_pattern.failures_until_asked_again
    if verdict is not None and verdict.verdict == "rejected" and case.assessment.failures < verdict.failures + more:
        raise Refused(f"the inversion of {case.name} is rejected already, on {format_day(verdict.at)}")
    return Draft(
        verb=Verb.REJECT_INVERSION,
        subject=case.pattern.id,
        summary=f"rejected the inversion of {case.name}; asked again after {plural(more, 'further failure')}",
        reason=case.reason,
        before=case.seen(case.effective),
        after=case.seen(case.effective),
    )


def snooze(case: Case, until: datetime | None, uses: int | None = None) -> Draft:
    """Keep the pattern out of the review queue until a time, or until so many more uses of it are known."""
    beyond = None if uses is None else case.assessment.uses + uses
    return Draft(
        verb=Verb.SNOOZE,
        subject=case.pattern.id,
        summary=f"snoozed {case.name} until {_snoozed_until(until, uses, case.at)}",
        reason=case.reason,
        before=case.seen(case.effective),
        after={**case.seen(case.effective), **_snoozed(until, beyond)},
    )


def _snoozed_until(until: datetime | None, more: int | None, at: datetime) -> str:
    """When a snooze ends, in words."""
    if until is not None and until <= at:
        raise BadInput(f"snooze until {iso(until)} is not in the future")
    if more is not None and more < 1:
        raise BadInput(f"snooze until {plural(more, 'more use')} is over before it begins")
    if until is None and more is None:
        raise BadInput("snooze needs an end: a time, or so many more uses")
    ends = [format_day(until)] if until is not None else []
    return " or ".join([*ends, f"{plural(more, 'more use')}"] if more is not None else ends)


def _snoozed(until: datetime | None, beyond: int | None) -> dict[str, Any]:
    after: dict[str, Any] = {} if until is None else {"until": iso(until)}
    return after if beyond is None else {**after, "beyond": beyond}


def judge_burst(verb: Verb, burst: Burst, state: CurationState, reason: str) -> Draft:
    """Let the harmful marks of a burst count (confirm), or not (revoke)."""
    for verdict in state.bursts.get(burst.source, ()):
        if verdict.first <= burst.first and burst.last <= verdict.last and {*burst.patterns} <= {*verdict.patterns}:
            raise Refused(f"the marks of {short_id(burst.source)} are {verdict.verdict} already")
    word = "revoked" if verb is Verb.REVOKE else "confirmed"
    marked = plural(len(burst.patterns), "pattern")
    return Draft(
        verb=verb,
        subject=burst.source,
        summary=f"{word} the harmful marks of {short_id(burst.source)} on {marked}",
        reason=reason,
        after={"first": burst.first.isoformat(), "last": burst.last.isoformat(), "patterns": list(burst.patterns)},
    )


def quarantine(case: Case) -> Draft:
    """Keep the pattern out of every context until somebody has seen its text. A decision on another text of it is no
    bar: it does not hold for this one.
    """
    if not case.reason:
        raise BadInput(f"putting {case.name} into quarantine needs a reason")
    if _waits(case) or _is_blocked(case):
        raise AlreadyDone(f"{case.name} is in quarantine already")
    if case.pin is not None and case.pin.content_hash in ("", case.pattern.content_hash):
        raise Refused(f"a decision on {case.name} holds{since(case.pin)}; deprecate it, or reset it first")
    return Draft(
        verb=Verb.QUARANTINE,
        subject=case.pattern.id,
        summary=f"put {case.name} into quarantine: {change(case.effective, QUARANTINE)}",
        reason=case.reason,
        before=case.seen(case.effective),
        after={**case.seen(Maturity.CANDIDATE), "hashes": {case.pattern.id: case.pattern.content_hash}},
    )


def release(case: Case) -> Draft:
    """Let a text that was seen be injected; another text of the same pattern will wait again.

    A blocked text is released only for a reason, a held one is approved without.
    """
    arrival = case.state.arrivals.get(case.pattern.id)
    waits = arrival is not None and arrival.waits(case.pattern.content_hash)
    stopped = _stopped(case)
    if not waits and stopped is None:
        if case.state.approves(case.pattern.id, case.pattern.content_hash):
            raise AlreadyDone(f"{case.name} is approved already")
        raise Refused(f"{case.name} is neither held nor in quarantine")
    _check_reason(case, "releasing")
    state = case.assessment.computed if case.pin is None else case.effective
    word, origin = "released", {_QUARANTINED: True}
    if stopped is Severity.HELD and not _waits(case):
        word, origin = "approved", {_WAS_HELD: True}
    elif stopped is None and not _waits(case):
        word, origin = "kept", {}
    return Draft(
        verb=Verb.RELEASE,
        subject=case.pattern.id,
        summary=f"{word} {case.name}: {state}",
        reason=case.reason,
        before={**case.seen(case.effective), **origin},
        after=case.approved(state),
    )


def _waits(case: Case) -> bool:
    arrival = case.state.arrivals.get(case.pattern.id)
    return arrival is not None and arrival.blocks and arrival.waits(case.pattern.content_hash)


def _stopped(case: Case) -> Severity | None:
    """Severity that keeps this text out of every context, as long as no person has decided otherwise."""
    if case.pin is not None and case.pin.content_hash == case.pattern.content_hash:
        return None
    return stops(case.pattern, case.state, case.settings.scan)


def _is_blocked(case: Case) -> bool:
    """Whether the text is released or promoted only for a reason."""
    return _stopped(case) is Severity.BLOCKED


def _check_reason(case: Case, doing: str) -> None:
    if not case.reason and _is_blocked(case):
        raise BadInput(f"{doing} {case.name} needs a reason: this text {describe_suspicions(case.pattern.suspicions)}")


def approve_text(question: str, text: str, about: str, reason: str, state: CurationState) -> Draft:
    """Let a held text that is not a pattern be injected, as long as it is this very text."""
    digest = text_hash(text)
    if digest in state.approved_texts:
        raise AlreadyDone(f"{short_id(about or question)} is approved already")
    return Draft(
        verb=Verb.RELEASE,
        subject=question,
        summary=f"approved {short_id(about or question)}",
        reason=reason,
        after={TEXT_HASH: digest, "text": text} | ({_ABOUT: about} if about else {}),
    )


def dismiss(question: str, summary: str, about: str, reason: str, state: CurationState) -> Draft:
    """Never ask a question again."""
    if question in state.dismissed:
        raise Refused(f"{short_id(about or question)} is answered already")
    after = {_ABOUT: about} if about else {}
    return Draft(verb=Verb.DISMISS, subject=question, summary=summary, reason=reason, after=after)


def snooze_question(
    question: str, until: datetime | None, more: More | None, at: datetime, about: str, reason: str
) -> Draft:
    """Keep a question that is about no single pattern out of the review queue until a time, or more evidence."""
    ends = _snoozed_until(until, None if more is None else more.count, at)
    return Draft(
        verb=Verb.SNOOZE,
        subject=question,
        summary=f"snoozed {short_id(about or question)} until {ends}",
        reason=reason,
        after=_snoozed(until, None if more is None else more.known + more.count) | ({_ABOUT: about} if about else {}),
    )


def anti_pattern(
    pattern: Pattern, assessment: Assessment, proposal: Inversion, text: str, anti_id: str, at: datetime
) -> dict[str, Any]:
    """The record (3) AntiPattern of an inverted pattern, with where it came from (formats C25)."""
    contributed = {source.loop_id: source for source in pattern.source_loops}
    source_loops = []
    for loop_id in proposal.source_loops:
        entry: dict[str, Any] = {"loop_id": loop_id}
        source = contributed.get(loop_id)
        if source is not None and source.iteration is not None:
            entry["failure_iteration"] = source.iteration
        if source is not None and source.at is not None:
            entry["timestamp"] = iso(source.at)
        source_loops.append(entry)
    record: dict[str, Any] = {
        "pattern_id": anti_id,
        "approach_description": text,
        "failure_mode": proposal.failure_mode,
        "why_it_fails": proposal.why_it_fails,
    }
    if proposal.better_alternative:
        record["better_alternative"] = {"description": proposal.better_alternative}
        if proposal.better_pattern_id:
            record["better_alternative"]["success_pattern_id"] = proposal.better_pattern_id
    record |= {
        "source_loops": source_loops,
        "failure_rate": proposal.failures / proposal.total if proposal.total else 0.0,
        "occurrence_count": proposal.total,
        "first_discovered": iso(at),
    }
    if assessment.last_used is not None:
        record["last_used"] = iso(assessment.last_used)
    record |= {
        "tags": list(pattern.tags),
        "inverted_from": pattern.id,
        "aliases": [f"anti-{pattern.id}"],
    }
    # Quoted files may hold half characters, which cannot be stored.
    return dict(json.loads(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")))


def as_pattern(record: Mapping[str, Any]) -> Pattern:
    """A record as it will be read again from its file."""
    found = read_patterns("patterns.json", json.dumps({"patterns": [record]}).encode()).patterns
    if not found:
        raise Refused("a record is no pattern that can be read again")
    return found[0]


def override_of(pin: Pin) -> dict[str, Any]:
    """What a pin looks like in the record of its pattern."""
    return {
        "state": pin.state.value,
        "reason": pin.reason,
        "by": pin.by,
        "at": iso(pin.at),
        "decision": pin.decision_id,
    }


def change(before: str, after: str) -> str:
    """A change of state as messages write it: `established → proven`, or `stays proven`."""
    return f"stays {after}" if before == after else f"{before} → {after}"


def changed(decision: Decision) -> str:
    """What a decision changed, as lists of decisions show it: `established → proven`, `8 patterns`, or nothing."""
    merged = decision.after.get("merged")
    if isinstance(merged, str):
        return f"with {short_id(merged)}"
    about, joined = decision.after.get("patterns"), decision.after.get("joined")
    if isinstance(about, list):
        describe_suspicions = [plural(len(about), "pattern")] if about or not joined else []
        if isinstance(joined, list) and joined:
            describe_suspicions.append(plural(len(joined), "further use"))
        return ", ".join(describe_suspicions)
    before, after = decision.before.get("state"), decision.after.get("state")
    before = QUARANTINE if decision.before.get(_QUARANTINED) is True else before
    before = HELD if decision.before.get(_WAS_HELD) is True else before
    after = QUARANTINE if decision.verb is Verb.QUARANTINE else after
    return change(before, after) if isinstance(before, str) and isinstance(after, str) else ""


def _pinned(case: Case, verb: Verb, state: Maturity, word: str, warnings: list[str]) -> Draft:
    pin = Pin(
        state=state,
        at=case.at,
        by=case.by,
        reason=case.reason,
        content_hash=case.pattern.content_hash,
        decision_id=case.id,
    )
    effects: tuple[Effect, ...] = ()
    inverse: tuple[Effect, ...] = ()
    if case.writable:
        effects = (_effect(case, override_of(pin)),)
        inverse = (_effect(case, override_of(case.pin) if case.pin is not None else case.written),)
    return Draft(
        verb=verb,
        subject=case.pattern.id,
        summary=f"{word} {case.name}: {change(case.effective, state)}",
        reason=case.reason,
        before=case.seen(case.effective),
        after=case.approved(state),
        effects=effects,
        inverse=inverse,
        warnings=tuple(warnings),
        ledger_only=not case.writable,
    )


def _effect(case: Case, override: dict[str, Any] | str | None) -> Effect:
    """What makes `override` (as a string: this very text) stand in the record, or none."""
    pattern = case.pattern
    if override is None:
        return Effect(file=pattern.file, type=pattern.type.value, pattern_id=pattern.id, unset=(OVERRIDE,))
    if isinstance(override, str):
        return Effect(file=pattern.file, type=pattern.type.value, pattern_id=pattern.id, text={OVERRIDE: override})
    return Effect(file=pattern.file, type=pattern.type.value, pattern_id=pattern.id, set={OVERRIDE: override})


def _check_invertible(case: Case) -> None:
    if case.pattern.type is PatternType.ANTI:
        raise Refused(f"{case.name} is an anti-pattern; only other patterns are inverted")
    verdict = case.state.inversions.get(case.pattern.id)
    if verdict is not None and verdict.verdict == "accepted":
        made = f" into {short_id(verdict.anti_id)}" if verdict.anti_id else ""
        raise Refused(f"{case.name} is inverted already{made}, on {format_day(verdict.at)}")
    settings, failures = case.settings.anti_pattern, case.assessment.failures
    total = failures + case.assessment.successes
    if total < settings.min_observations or failures < settings.failure_ratio_threshold * total:
        needed = f"{settings.failure_ratio_threshold:.0%} of at least {settings.min_observations} uses"
        raise Refused(f"{case.name} is not due for inversion: {failures} of {total} uses failed, not {needed}")


def since(pin: Pin | None) -> str:
    """By whom and when, for the end of a sentence: ` (by ana on 3 May 2026)`."""
    if pin is None:
        return " by rule"
    return f" (by {visible_line(pin.by, 40)} on {format_day(pin.at)})"
