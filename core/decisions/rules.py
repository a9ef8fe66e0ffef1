"""Decision rules: what is allowed and what it changes; see docs/curation.md.

Pure functions: no file is read or written. Decisions that write whole records are in `record_changes`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from core.base.errors import AlreadyDone, BadInput, Refused
from core.base.formatting import format_day, shorten_id
from core.base.regexes import lazy_regex
from core.base.scanning.normalization import find_scripts
from core.base.scanning.verdict import describe_suspicions, find_stopping_severity, list_suspicions, pin_covers
from core.base.text import plural
from core.decisions import commands
from core.decisions.case import ABOUT, DECIDED_TEXT, Case, Draft, already_done, change, since
from core.decisions.merge import as_read
from core.decisions.pattern_registry import OVERRIDE
from core.learning.bursts import MEMBER, UNDATED
from core.learning.maturity import QUARANTINE
from core.records.decisions import (
    ALL_USES,
    APPROVE,
    RE_ENABLE,
    RE_ENABLED,
    SCRIPTS,
    SENT,
    TEXT_HASH,
    VERBS,
    WAS_HELD,
    WAS_QUARANTINED,
    WITHDRAW,
    Author,
    CurationState,
    Decision,
    Effect,
    Pin,
    Verb,
    author_of,
    text_hash,
)
from core.records.patterns import Maturity, Pattern, PatternType, Severity
from core.records.times import iso
from core.sources.pattern_text import id_key
from core.sources.patterns import text_of

if TYPE_CHECKING:
    from core.decisions.commands import Command, JudgeReports, PatternCommand
    from core.decisions.pattern_registry import Stored
    from core.index.project_state import ProjectState
    from core.learning.inversion import Inversion

_NOT_IN_SLUG: Final = lazy_regex(r"[^a-z0-9]+")
_MAX_SLUG: Final = 60


def promote(case: Case, _command: PatternCommand) -> Draft:
    """Pin a pattern as proven; see docs/curation.md#promote.

    A promotion that later evidence contradicts can be repeated; the new pin then covers that evidence. A person can
    repeat the promotion of a script, which approves the text.
    """
    if case.effective is Maturity.DEPRECATED and not (case.was_reset and case.pin is None):
        raise Refused(f"{case.name} is deprecated{since(case.pin)}; reset it first")
    is_pinned = case.effective is Maturity.PROVEN and case.pin is not None
    if is_pinned and not case.assessment.contradicted and not _approves_text_of_script(case):
        raise case.already_done(f"{case.name} is already promoted{since(case.pin)}")
    _require_reason_if_blocked(case, "promoting")
    warnings: tuple[str, ...] = ()
    minimum = case.settings.learning.min_feedback_for_adjustment
    if case.effective is Maturity.CANDIDATE and case.assessment.successes < minimum:
        claim = f" ({case.assessment.claim_text})" if case.assessment.claim_text else ""
        uses = plural(case.assessment.successes, "use")
        warnings = (f"{case.name} is a candidate with only {uses} recorded as helpful{claim}",)
    return _pin_draft(case, Verb.PROMOTE, Maturity.PROVEN, warnings=warnings)


def _approves_text_of_script(case: Case) -> bool:
    """Whether a person decides about a pin that no person set."""
    return case.pin is not None and case.pin.decided_by is not Author.PERSON and author_of(case.by) is Author.PERSON


def promote_among_many(case: Case, command: PatternCommand) -> Draft:
    """Promote one of many patterns; refuse a held or quarantined one."""
    if case.assessment.held:
        raise Refused(f"{case.name} is held: read it and approve it first")
    if case.assessment.quarantined:
        raise Refused(f"{case.name} is in quarantine: read it and release it by itself")
    return promote(case, command)


def promote_after_reset(case: Case, command: PatternCommand) -> Draft:
    """Promote as if `reset` had just been decided, to re-enable a pattern."""
    id = case.pattern.id
    pins = {key: pin for key, pin in case.state.pins.items() if key != id}
    return promote(replace(case, state=replace(case.state, pins=pins, reset=case.state.reset | {id})), command)


def deprecate(case: Case, _command: PatternCommand) -> Draft:
    """Pin a pattern as deprecated; requires a reason."""
    if not case.reason:
        raise BadInput(f"deprecating {case.name} needs a reason")
    if case.effective is Maturity.DEPRECATED and case.pin is not None and not case.assessment.contradicted:
        raise case.already_done(f"{case.name} is already deprecated{since(case.pin)}")
    return _pin_draft(case, Verb.DEPRECATE, Maturity.DEPRECATED)


def reset(case: Case, _command: PatternCommand) -> Draft:
    """Remove the pin; a pattern deprecated by rule can be reset once, then promoted."""
    if case.pin is None and (case.effective is not Maturity.DEPRECATED or case.was_reset):
        raise case.already_done(f"{case.name} is not pinned; it is {case.effective} by rule")
    state = case.assessment.computed
    is_same = case.pin is not None and case.effective is state
    effect = f"pin removed; the evidence keeps it {state}" if is_same else change(case.effective, state)
    return case.draft(
        Verb.RESET,
        f"reset {case.name}: {effect}",
        case.recorded(state),
        **(_override_changes(case, None) if case.pin is not None else {}),
    )


def accept_inversion(case: Case, proposal: Inversion, text: str, next_id: Callable[[str], str]) -> Draft:
    """Deprecate the pattern and write an anti-pattern; `next_id` makes ID from slug."""
    if not text:
        raise BadInput(f"the anti-pattern for {case.name} needs a text")
    _check_invertible(case, AlreadyDone)
    anti_id = next_id(_NOT_IN_SLUG.sub("-", proposal.slug.lower())[:_MAX_SLUG].strip("-") or "pattern")
    record = _anti_pattern_record(case, proposal, text, anti_id)
    anti_hash = as_read(record, PatternType.ANTI).content_hash
    record[OVERRIDE] = override_of(_pin(case, Maturity.ESTABLISHED, anti_hash))
    effect = partial(Effect, file=case.anti_file, type=PatternType.ANTI.value, pattern_id=anti_id)
    deprecated = _pin_draft(case, Verb.ACCEPT_INVERSION, Maturity.DEPRECATED)
    return replace(
        deprecated,
        summary=f"inverted {case.name} into {anti_id}: {change(case.effective, Maturity.DEPRECATED)}",
        after={**deprecated.after, "text": text, "anti_id": anti_id, "anti_hash": anti_hash},
        effects=(effect(insert=record), *deprecated.effects),
        inverse=(effect(remove=True), *deprecated.inverse),
        quoted=(proposal.better_pattern_id,) if proposal.better_pattern_id else (),
    )


def _anti_pattern_record(case: Case, proposal: Inversion, text: str, anti_id: str) -> dict[str, Any]:
    """Make the record of the anti-pattern; see docs/file-formats.md."""
    pattern = case.pattern
    sources = {source.loop_id: source for source in pattern.source_loops}
    source_loops = []
    times = dict(zip(proposal.source_loops, proposal.failed_at, strict=False))
    for loop_id in proposal.source_loops:
        entry: dict[str, Any] = {"loop_id": loop_id}
        source = sources.get(loop_id)
        if source is not None and source.iteration is not None:
            entry["failure_iteration"] = source.iteration
        at = times.get(loop_id) or (source.at if source is not None else None)
        if at is not None:
            entry["timestamp"] = iso(at)
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
        "first_discovered": iso(case.at),
    }
    if case.assessment.last_used is not None:
        record["last_used"] = iso(case.assessment.last_used)
    record |= {"tags": list(pattern.tags), "inverted_from": pattern.id, "aliases": [f"anti-{pattern.id}"]}
    # Text quoted from files can contain lone surrogates, which no file can store.
    return dict(json.loads(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")))


def reject_inversion(case: Case, _command: PatternCommand) -> Draft:
    """Keep the pattern, and propose the inversion again after further failures."""
    _check_invertible(case, Refused)
    verdict = case.state.inversions.get(case.pattern.id)
    more = case.settings.anti_pattern.failures_until_asked_again
    if verdict is not None and verdict.verdict == "rejected" and case.assessment.failures < verdict.failures + more:
        raise case.already_done(f"the inversion of {case.name} was already rejected on {format_day(verdict.at)}")
    summary = f"rejected the inversion of {case.name}; asked again after {plural(more, 'further failure')}"
    return case.draft(Verb.REJECT_INVERSION, summary, case.recorded(case.effective))


def snooze(case: Case, command: commands.Snooze) -> Draft:
    """Remove a pattern from the review queue until a time or further uses."""
    ends = snooze_end(command.until, command.uses, case.at)
    beyond = None if command.uses is None else case.assessment.uses + command.uses
    after = case.recorded(case.effective) | snoozed_fields(command.until, beyond)
    return case.draft(Verb.SNOOZE, f"snoozed {case.name} until {ends}", after)


def snooze_end(until: datetime | None, more: int | None, at: datetime) -> str:
    """Describe when a snooze ends; raise `BadInput` if the end is missing or past."""
    if until is not None and until <= at:
        raise BadInput(f"cannot snooze until {iso(until)}: it is not in the future")
    if more is not None and more < 1:
        raise BadInput(f"cannot snooze until {plural(more, 'more use')}: give at least 1")
    if until is None and more is None:
        raise BadInput("a snooze needs an end: a time, or a number of further uses")
    ends = [format_day(until)] if until is not None else []
    return " or ".join([*ends, f"{plural(more, 'more use')}"] if more is not None else ends)


def snoozed_fields(until: datetime | None, beyond: int | None) -> dict[str, Any]:
    fields = {"until": iso(until), "beyond": beyond}
    return {key: value for key, value in fields.items() if value is not None}


def quarantine(case: Case, _command: PatternCommand) -> Draft:
    """Quarantine a pattern; refused if its current text is pinned."""
    if not case.reason:
        raise BadInput(f"quarantining {case.name} needs a reason")
    if _is_quarantined(case) or _is_blocked(case):
        raise case.already_done(f"{case.name} is already in quarantine")
    if case.pin is not None and case.pin.content_hash in ("", case.pattern.content_hash):
        raise Refused(f"{case.name} is pinned{since(case.pin)}; deprecate it, or reset it first")
    after = case.recorded(Maturity.CANDIDATE) | {"hashes": {case.pattern.id: case.pattern.content_hash}}
    return case.draft(Verb.QUARANTINE, f"quarantined {case.name}: {change(case.effective, QUARANTINE)}", after)


def release(case: Case, _command: PatternCommand) -> Draft:
    """Allow the current text to be injected; a changed text is withheld again.

    A pattern that the rules deprecate is pinned as established, the state of its evidence without that rule. Releasing
    a blocked text requires a reason; approving a held one does not.
    """
    arrival = case.state.arrivals.get(case.pattern.id)
    waits = arrival is not None and arrival.needs_review(case.pattern.content_hash)
    stopped = _stopping_severity(case)
    if stopped is None and not _is_quarantined(case) and case.pin is None and case.effective is Maturity.DEPRECATED:
        return _re_enable(case)
    if not waits and stopped is None:
        if case.state.approves(case.pattern.id, case.pattern.content_hash):
            raise case.already_done(f"{case.name} is already approved")
        raise Refused(f"{case.name} is neither held nor in quarantine")
    _require_reason_if_blocked(case, "releasing")
    state = case.assessment.computed if case.pin is None else case.effective
    past, origin = VERBS[Verb.RELEASE].past, {WAS_QUARANTINED: True}
    if stopped is Severity.HELD and not _is_quarantined(case):
        past, origin = APPROVE.past, {WAS_HELD: True}
    elif stopped is None and not _is_quarantined(case):
        past, origin = APPROVE.past, {}
    before = case.recorded(case.effective) | origin
    return case.draft(Verb.RELEASE, f"{past} {case.name}: {state}", case.recorded_with_text(state), before=before)


def _re_enable(case: Case) -> Draft:
    state = Maturity.ESTABLISHED
    return case.draft(
        Verb.RELEASE,
        f"{RE_ENABLE.past} {case.name}: {change(case.effective, state)}",
        case.recorded_with_text(state) | {RE_ENABLED: True},
        **_override_changes(case, override_of(_pin(case, state, case.pattern.content_hash))),
    )


def note(pattern: Pattern, command: commands.Note) -> Draft:
    """Attach a remark to a pattern."""
    summary = f"{VERBS[Verb.NOTE].past} {shorten_id(pattern.id)}"
    return Draft(verb=Verb.NOTE, subject=pattern.id, summary=summary, after={"text": command.text})


PATTERN_RULES: Final[Mapping[type[PatternCommand], Callable[[Case, Any], Draft]]] = {
    commands.Promote: promote,
    commands.Deprecate: deprecate,
    commands.Reset: reset,
    commands.RejectInversion: reject_inversion,
    commands.Snooze: snooze,
    commands.Quarantine: quarantine,
    commands.Release: release,
}
"""Rules that need only the case and the command."""


def why_refused(command: PatternCommand, state: ProjectState) -> str:
    """Return why a person may not carry out a command, or ""; see `check_allowed`."""
    try:
        check_allowed(command, state)
    except (Refused, BadInput) as error:
        return str(error)
    return ""


def check_allowed(command: PatternCommand, state: ProjectState) -> None:
    """Raise unless a person may carry out a command; ignores a missing reason.

    Raises `AlreadyDone` if it would change nothing, `Refused` or `BadInput` if it is refused, and `UnknownRecord` if
    the pattern does not exist.
    """
    pattern = state.pattern(command.pattern_id)
    if isinstance(command, commands.Archive):
        if not pattern.is_registered:
            raise Refused("its file cannot be changed")
        return
    re_enables = isinstance(command, commands.Promote) and command.re_enable
    rule = promote_after_reset if re_enables else PATTERN_RULES.get(type(command))
    if rule is None:
        return
    case = Case(
        pattern=pattern,
        assessment=state.assessment(pattern.id),
        state=state.snapshot.curation,
        settings=state.settings,
        writable=pattern.is_registered,
        at=state.now.astimezone(UTC),
        # A blank is a reason to the rules, and `already_done` does not report it as lost.
        reason=command.reason or " ",
        label="it",
    )
    rule(case, command)


def override_of(pin: Pin) -> dict[str, Any]:
    """Return the `override` that shows a pin in the record of its pattern."""
    at, state = iso(pin.at), pin.state.value
    return {"state": state, "reason": pin.reason, "by": pin.by, "at": at, "decision": pin.decision_id}


def _is_quarantined(case: Case) -> bool:
    """Whether the text is in quarantine by a decision or an import."""
    arrival = case.state.arrivals.get(case.pattern.id)
    return arrival is not None and arrival.blocks and arrival.needs_review(case.pattern.content_hash)


def _stopping_severity(case: Case) -> Severity | None:
    """Return the scan result that withholds this text, unless a person approved it."""
    pin = case.pin
    if pin is not None and pin.content_hash == case.pattern.content_hash and pin_covers(pin, case.pattern):
        return None
    return find_stopping_severity(case.pattern, case.state, case.settings.scan)


def _is_blocked(case: Case) -> bool:
    return _stopping_severity(case) is Severity.BLOCKED


def _require_reason_if_blocked(case: Case, doing: str) -> None:
    if not case.reason and _is_blocked(case):
        does = describe_suspicions(list_suspicions(case.pattern, case.state))
        raise BadInput(f"{doing} {case.name} needs a reason: this text {does}")


def _pin(case: Case, state: Maturity, content_hash: str) -> Pin:
    return Pin(state=state, at=case.at, by=case.by, reason=case.reason, content_hash=content_hash, decision_id=case.id)


def _pin_draft(case: Case, verb: Verb, state: Maturity, *, warnings: tuple[str, ...] = ()) -> Draft:
    return case.draft(
        verb,
        f"{VERBS[verb].past} {case.name}: {change(case.effective, state)}",
        case.recorded_with_text(state),
        warnings=warnings,
        **_override_changes(case, override_of(_pin(case, state, case.pattern.content_hash))),
    )


def _override_changes(case: Case, override: dict[str, Any] | None) -> dict[str, Any]:
    """Return `Draft` fields that set `override` in the record; None removes it."""
    if not case.writable:
        return {"ledger_only": True}
    before = override_of(case.pin) if case.pin is not None else case.written
    return override_changes(case.pattern, before, override)


def override_changes(
    pattern: Pattern, before: dict[str, Any] | str | None, override: dict[str, Any] | None
) -> dict[str, Any]:
    """Return `effects` and `inverse` that set `override` in place of `before`.

    A string is JSON text; None removes the key.
    """
    return {"effects": (_override_effect(pattern, override),), "inverse": (_override_effect(pattern, before),)}


def _override_effect(pattern: Pattern, override: dict[str, Any] | str | None) -> Effect:
    keys: dict[str, Any] = {"unset": (OVERRIDE,)}
    if override is not None:
        keys = {"text" if isinstance(override, str) else "set": {OVERRIDE: override}}
    return Effect(file=pattern.file, type=pattern.type.value, pattern_id=pattern.id, **keys)


def _check_invertible(case: Case, if_inverted: type[Refused]) -> None:
    if case.pattern.type is PatternType.ANTI:
        raise Refused(f"{case.name} is an anti-pattern; only other patterns can be inverted")
    verdict = case.state.inversions.get(case.pattern.id)
    if verdict is not None and verdict.verdict == "accepted":
        into = f" into {shorten_id(verdict.anti_id)}" if verdict.anti_id else ""
        raise if_inverted(f"{case.name} was already inverted{into} on {format_day(verdict.at)}")
    settings, failures = case.settings.anti_pattern, case.assessment.failures
    total = failures + case.assessment.successes
    if total < settings.min_observations or failures < settings.failure_ratio_threshold * total:
        needed = f"{settings.failure_ratio_threshold:.0%} of at least {settings.min_observations} uses"
        raise Refused(f"{case.name} is not due for inversion: {failures} of {total} uses failed, not {needed}")


# Approved texts; see docs/curation.md#text.


def approved_text(decision: Decision, pattern: Pattern) -> dict[str, Any]:
    """Return the text keys of the record when it was decided on; {} if not stored."""
    stored = decision.after.get(DECIDED_TEXT)
    if decision.subject == pattern.id and isinstance(stored, dict):
        return stored
    inserted = (effect.insert for effect in decision.effects if effect.insert and effect.pattern_id == pattern.id)
    return next((text_of(record, pattern.type) for record in inserted), {})


def find_approved_pattern(state: ProjectState, pattern_id: str) -> Pattern | None:
    """Return the pattern with the text of its pin; None if not pinned or not stored."""
    pattern, pin = state.pattern(pattern_id), state.assessment(pattern_id).pin
    if pin is None:
        return None
    decision = next((one for one in reversed(state.snapshot.decisions) if one.id == pin.decision_id), None)
    text = approved_text(decision, pattern) if decision is not None else {}
    return as_read({**text, id_key(text): pattern.id}, pattern.type) if text else None


def restore_text(case: Case, approved: Mapping[str, Any], stored: Stored) -> Draft:
    """Restore the text for which the pattern was pinned; see `approved_text`."""
    if case.pin is None:
        raise Refused(f"{case.name} is not pinned, so it has no approved text")
    if not approved:
        raise Refused(f"the text of {case.name} was not stored when it was {case.pin.verb}{since(case.pin)}")
    here = text_of(stored.value, case.pattern.type)
    keys = {key: value for key, value in approved.items() if key not in here or here[key] != value}
    removed = tuple(key for key in here if key not in approved)
    if not keys and not removed:
        raise AlreadyDone(f"{case.name} already has the approved text")
    before = [key for key in (*keys, *removed) if key in stored.value]
    effect = partial(Effect, file=stored.file, type=case.pattern.type.value, pattern_id=case.pattern.id)
    new = tuple(key for key in keys if key not in stored.value)
    return case.draft(
        Verb.EDIT,
        f"restored the text of {case.name} that was {case.pin.verb}{since(case.pin)}",
        case.recorded(case.pin.state) | {"content_hash": case.pin.content_hash},
        effects=(effect(set=keys, unset=removed),),
        inverse=(effect(text=stored.texts_of(before), unset=new),),
    )


# Questions that are not about a single pattern.


def judge_reports(command: JudgeReports, state: CurationState, _at: datetime) -> Draft:
    """Count or discard the suspicious reports of one source."""
    burst = command.burst
    assert burst is not None
    for verdict in state.bursts.get(burst.source, ()):
        if verdict.first <= burst.first and burst.last <= verdict.last and {*burst.patterns} <= {*verdict.patterns}:
            is_same = (verdict.verdict == "confirmed") is isinstance(command, commands.CountReports)
            why = f"the reports of {shorten_id(burst.source)} are already {verdict.verdict}"
            raise already_done(why, command.reason) if is_same else Refused(why)
    counted = plural(len(burst.patterns), "pattern")
    summary = f"{VERBS[command.verb].past} {shorten_id(burst.source)} on {counted}"
    after = {"first": burst.first.isoformat(), "last": burst.last.isoformat(), "patterns": list(burst.patterns)}
    return _question_draft(command, burst.source, summary, after)


def withdraw_uses(command: commands.WithdrawMember, _state: CurationState, _at: datetime) -> Draft:
    """Let no use count that a member of the team has sent."""
    after = {"first": UNDATED.isoformat(), "last": command.until.isoformat(), "patterns": [], SENT: ALL_USES}
    source = f"{MEMBER}{command.member}"
    return _question_draft(command, source, f"{WITHDRAW.past} {shorten_id(source)}", after)


def approve_text(command: commands.ApproveText, state: CurationState, _at: datetime) -> Draft:
    """Allow a held text that is not a pattern to be injected while unchanged."""
    digest, name = text_hash(command.text), shorten_id(command.about or command.key)
    if digest in state.approved_texts:
        raise already_done(f"{name} is already approved", command.reason)
    after: dict[str, Any] = {TEXT_HASH: digest, "text": command.text} | _about(command.about)
    if scripts := find_scripts(command.text):
        after[SCRIPTS] = list(scripts)
    return _question_draft(command, command.key, f"{APPROVE.past} {name}", after)


def dismiss(command: commands.Dismiss, state: CurationState, _at: datetime) -> Draft:
    if command.key in state.dismissed:
        raise already_done(f"{shorten_id(command.about or command.key)} is already answered", command.reason)
    return _question_draft(command, command.key, command.summary, _about(command.about))


def snooze_question(command: commands.SnoozeQuestion, _state: CurationState, at: datetime) -> Draft:
    """Remove a question from the queue until a time, or more evidence."""
    more = command.more
    ends = snooze_end(command.until, None if more is None else more.count, at)
    beyond = None if more is None else more.known + more.count
    after = snoozed_fields(command.until, beyond) | _about(command.about)
    return _question_draft(
        command, command.key, f"snoozed {shorten_id(command.about or command.key)} until {ends}", after
    )


def _question_draft(command: Command, subject: str, summary: str, after: dict[str, Any]) -> Draft:
    return Draft(verb=command.verb, subject=subject, summary=summary, reason=command.reason, after=after)


def _about(name: str) -> dict[str, Any]:
    return {ABOUT: name} if name else {}


QUESTION_RULES: Final[Mapping[type[Command], Callable[[Any, CurationState, datetime], Draft]]] = {
    commands.DiscardReports: judge_reports,
    commands.CountReports: judge_reports,
    commands.WithdrawMember: withdraw_uses,
    commands.ApproveText: approve_text,
    commands.Dismiss: dismiss,
    commands.SnoozeQuestion: snooze_question,
}
"""Rules of commands that are not about a single pattern and change no record."""
