"""What a human decides about patterns, one method each (semantics 4, 5)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from core.curation import batches, rules
from core.curation.batches import Batch
from core.curation.effects import Outcome
from core.curation.ledger import Ledger
from core.curation.registry import Registry
from core.curation.rules import OVERRIDE, Case, Draft, shown
from core.curation.settling import ID_PREFIXES, FreeIds, pattern_path, settle
from core.errors import BadInput, MovedOn, Refused
from core.exchange.importing import ImportPlan
from core.extraction.proposals import Extraction
from core.learning.assessment import Assessment
from core.learning.bursts import Burst
from core.learning.proposing import Inversion
from core.paths import ProjectPaths
from core.records.decisions import CurationState, Decision, Verb
from core.records.patterns import Maturity, Pattern, PatternType
from core.settings import Settings
from core.sources.json_text import BadJson, JsonText
from core.sources.pattern_text import find

_TRIES: Final = 3
"""How often to write what decisions still owe to files before going on without it."""
MAX_TEXT: Final = 10_000
"""Longest reason, note or rewritten text, in characters."""
_NOUNS: Final = {
    Verb.PROMOTE: "promotion",
    Verb.DEPRECATE: "deprecation",
    Verb.RESET: "reset",
    Verb.ACCEPT_INVERSION: "accepted inversion",
    Verb.REJECT_INVERSION: "rejected inversion",
    Verb.SNOOZE: "snooze",
    Verb.NOTE: "note",
    Verb.REVOKE: "revocation of the marks",
    Verb.CONFIRM: "confirmation of the marks",
    Verb.EXTRACT: "extraction",
    Verb.MERGE: "merge",
    Verb.ARCHIVE: "archiving",
    Verb.RESTORE: "restoring",
    Verb.IMPORT: "import",
    Verb.QUARANTINE: "quarantine",
    Verb.RELEASE: "release",
    Verb.DISMISS: "dismissal",
}


class Decided(Struct, frozen=True, kw_only=True):
    """A decision that is in the ledger.

    Attributes:
        decision: As it was written down.
        warnings: What to tell the person, one line each.
        written: Whether all that it changes in pattern files is in them. If not, the ledger still holds, and
            a file that could not be written is tried again with the next decision.
        summary: One line: `promoted X: established → proven`.
    """

    decision: Decision
    warnings: tuple[str, ...]
    written: bool
    summary: str


class Curator:
    """Makes decisions on one project.

    Every decision is checked against the ledger as it is at that moment, whoever wrote to it, and is in it
    for good before anything else happens. Then the pattern files follow.

    What is decided about whole records rests on all of them: `known` is what `caught_up` gave before
    whoever asks read the files, and `MovedOn` is raised if there are more decisions by now.

    All methods that decide raise `Refused` where a rule forbids it, `BadInput` for a value that cannot be
    used, `Unwritable` or `Conflict` where the ledger cannot be written or no id is to be had; then nothing is
    decided. A pattern file that cannot be written is no error, see `Decided.written`.
    """

    def __init__(self, paths: ProjectPaths, settings: Settings, *, by: str) -> None:
        self._paths = paths
        self._settings = settings
        self._by = _clean(by, "the name of who decides").replace("\n", " ")
        self._ledger = Ledger(paths)

    @property
    def ledger(self) -> Ledger:
        """The ledger that the decisions go to."""
        return self._ledger

    def settle(self) -> tuple[str, ...]:
        """Write what earlier decisions still owe to the pattern files, e.g. after a crash.

        Returns:
            What could not be done as planned, one line each.
        """
        return tuple(dict.fromkeys(outcome.text for outcome in self._settle()))

    def caught_up(self) -> int:
        """How many decisions there are at a moment at which the pattern files hold all that these change.

        Whoever reads the files afterwards has read what these decisions did. What cannot be written is passed over.
        """
        for _ in range(_TRIES):
            count, settled = self._ledger.standing()
            if settled:
                break
            self._settle()
        return count

    def promote(self, pattern: Pattern, assessment: Assessment, *, now: datetime, reason: str = "") -> Decided:
        """Pin the pattern as proven, bound to its text and to the evidence seen."""
        return self._decide(pattern, assessment, now, reason, rules.promote)

    def deprecate(self, pattern: Pattern, assessment: Assessment, *, now: datetime, reason: str) -> Decided:
        """Pin the pattern as deprecated: it is injected no more. The reason is required and kept."""
        return self._decide(pattern, assessment, now, reason, rules.deprecate)

    def reset(self, pattern: Pattern, assessment: Assessment, *, now: datetime, reason: str = "") -> Decided:
        """Take the pin away: arithmetic decides again.

        An anti-pattern made by an accepted inversion stays; undo takes that back. A pattern that the rules
        alone deprecate can be reset once as well; then it may be promoted.
        """
        return self._decide(pattern, assessment, now, reason, rules.reset)

    def accept_inversion(
        self,
        pattern: Pattern,
        assessment: Assessment,
        proposal: Inversion,
        *,
        now: datetime,
        reason: str = "",
    ) -> Decided:
        """Make an anti-pattern (3) of the pattern and deprecate it; `proposal.text` may be a rewrite."""
        text = _clean(proposal.text, "the text of the anti-pattern")

        def draft(case: Case) -> Draft:
            return rules.accept_inversion(
                case, proposal, text, lambda slug: self._free_ids().next(ID_PREFIXES[PatternType.ANTI], slug)
            )

        return self._decide(pattern, assessment, now, reason or proposal.reason, draft)

    def reject_inversion(self, pattern: Pattern, assessment: Assessment, *, now: datetime, reason: str = "") -> Decided:
        """Turn the proposal down; it comes back after some further failures (setting)."""
        return self._decide(pattern, assessment, now, reason, rules.reject_inversion)

    def snooze(
        self,
        pattern: Pattern,
        assessment: Assessment,
        *,
        until: datetime,
        now: datetime,
        reason: str = "",
    ) -> Decided:
        """Keep whatever there is to review about the pattern out of the queue until a time."""
        return self._decide(pattern, assessment, now, reason, lambda case: rules.snooze(case, until))

    def note(self, pattern: Pattern, *, text: str, now: datetime) -> Decided:
        """Write a remark on the pattern down."""
        text = _clean(text, "note")
        if not text:
            raise BadInput(f"the note on {shown(pattern.id)} is empty")
        subject = _subject(pattern)

        def draft(_state: CurationState, _identifier: str) -> Draft:
            after = {"text": text}
            return Draft(verb=Verb.NOTE, subject=subject, summary=f"noted on {shown(subject)}", after=after)

        return self._append(draft, now)

    def revoke(self, burst: Burst, *, now: datetime, reason: str = "") -> Decided:
        """Let none of the harmful marks of a burst count, now and for good."""
        return self._judge(Verb.REVOKE, burst, now, reason)

    def confirm(self, burst: Burst, *, now: datetime, reason: str = "") -> Decided:
        """Let the harmful marks of a burst count."""
        return self._judge(Verb.CONFIRM, burst, now, reason)

    def snooze_question(
        self, question: str, *, until: datetime, now: datetime, about: str = "", reason: str = ""
    ) -> Decided:
        """Ask again after a time about something that is no single pattern; `about` names it for people."""
        reason = _clean(reason, "reason")
        return self._append(lambda _state, _: rules.snooze_question(question, until, now, about, reason), now)

    def dismiss(self, question: str, summary: str, *, now: datetime, about: str = "", reason: str = "") -> Decided:
        """Never ask a question again; `about` names it for people."""
        reason = _clean(reason, "reason")
        return self._append(lambda state, _: rules.dismiss(question, summary, about, reason, state), now)

    def quarantine(self, pattern: Pattern, assessment: Assessment, *, now: datetime, reason: str) -> Decided:
        """Keep the pattern out of every context until somebody has seen its text."""
        return self._decide(pattern, assessment, now, reason, rules.quarantine)

    def release(self, pattern: Pattern, assessment: Assessment, *, now: datetime, reason: str = "") -> Decided:
        """Let a text that was seen be injected."""
        return self._decide(pattern, assessment, now, reason, rules.release)

    def extract(
        self,
        extraction: Extraction,
        patterns: Mapping[str, Pattern],
        *,
        now: datetime,
        known: int,
        reason: str = "",
        unattended: bool = False,
    ) -> Decided:
        """Put what a loop has learned into the registry."""
        return self._write_records(
            lambda batch: batches.extract(batch, extraction, patterns, unattended=unattended), now, known, reason
        )

    def import_patterns(
        self,
        plan: Callable[[Batch], ImportPlan],
        patterns: Mapping[str, Pattern],
        *,
        now: datetime,
        known: int,
        reason: str = "",
    ) -> Decided:
        """Import a file of patterns; `plan` is made from the records as they are then."""
        return self._write_records(
            lambda batch: batches.import_patterns(batch, plan(batch), patterns), now, known, reason
        )

    def merge(self, kept: Pattern, other: Pattern, *, now: datetime, known: int, reason: str = "") -> Decided:
        """Make one pattern of two; the other one is archived."""
        return self._write_records(lambda batch: batches.merge(batch, kept, other), now, known, reason)

    def archive(
        self, reasons: Sequence[tuple[Pattern, str]], *, subject: str, now: datetime, known: int, reason: str = ""
    ) -> Decided:
        """Move patterns into the archive, each for its reason; `subject` says whose idea it was."""
        return self._write_records(lambda batch: batches.archive(batch, reasons, subject), now, known, reason)

    def restore(
        self, pattern_id: str, patterns: Mapping[str, Pattern], *, now: datetime, known: int, reason: str = ""
    ) -> Decided:
        """Bring a pattern back from the archive."""
        return self._write_records(lambda batch: batches.restore(batch, pattern_id, patterns), now, known, reason)

    def _write_records(self, rule: Callable[[Batch], Draft], now: datetime, known: int, reason: str) -> Decided:
        reason = _clean(reason, "reason")

        def draft(state: CurationState, identifier: str) -> Draft:
            if len(self._ledger.decisions()) != known:
                raise MovedOn("others decide faster than this can be worked out; try again")
            batch = Batch(
                paths=self._paths,
                registry=Registry(self._paths),
                ids=self._free_ids(),
                state=state,
                id=identifier,
                at=now.astimezone(UTC),
                by=self._by,
                reason=reason,
            )
            return rule(batch)

        return self._append(draft, now)

    def _free_ids(self) -> FreeIds:
        pending = {decision.id: decision for decision, _ in self._ledger.pending()}
        return FreeIds(self._paths, (effect.pattern_id for item in pending.values() for effect in item.effects))

    def _judge(self, verb: Verb, burst: Burst, now: datetime, reason: str) -> Decided:
        reason = _clean(reason, "reason")
        return self._append(lambda state, _: rules.judge_burst(verb, burst, state, reason), now)

    def undo(self, *, now: datetime) -> Decided:
        """Take the last decision back that still holds, whoever made it; over the whole ledger."""
        return self._append(lambda state, _: self._turn(Verb.UNDO, state.undoable), now)

    def redo(self, *, now: datetime) -> Decided:
        """Repeat the decision that was undone last; possible until something new is decided."""
        return self._append(lambda state, _: self._turn(Verb.REDO, state.redoable), now)

    def _turn(self, verb: Verb, candidates: tuple[str, ...]) -> Draft:
        if not candidates:
            raise Refused(f"there is nothing to {verb}")
        decision = self._ledger.decision(candidates[-1])
        back = verb is Verb.UNDO
        before, after = (decision.after, decision.before) if back else (decision.before, decision.after)
        states = ""
        if before.get("state") != after.get("state"):
            states = f": {before.get('state')} → {after.get('state')}"
        done = "took back" if back else "repeated"
        return Draft(
            verb=verb,
            subject=decision.id,
            summary=f"{done} the {_NOUNS[decision.verb]} of {rules.subject_text(decision)}{states}",
            before=before,
            after=after,
            effects=decision.inverse if back else decision.effects,
            inverse=decision.effects if back else decision.inverse,
        )

    def _decide(
        self,
        pattern: Pattern,
        assessment: Assessment,
        now: datetime,
        reason: str,
        rule: Callable[[Case], Draft],
    ) -> Decided:
        _subject(pattern)
        reason = _clean(reason, "reason")

        def draft(state: CurationState, identifier: str) -> Draft:
            writable = self._is_writable(pattern)
            pinned = pattern.id in state.pins
            case = Case(
                pattern=pattern,
                assessment=assessment,
                state=state,
                settings=self._settings,
                was_reset=not pinned and self._was_reset(pattern.id, assessment, state),
                written=self._written_override(pattern) if writable and not pinned else None,
                writable=writable,
                anti_file=self._paths.relative(self._paths.pattern_file(PatternType.ANTI.value)),
                id=identifier,
                at=now,
                by=self._by,
                reason=reason,
            )
            return rule(case)

        return self._append(draft, now)

    def _append(self, make: Callable[[CurationState, str], Draft], now: datetime) -> Decided:
        now = now.astimezone(UTC)
        self._settle()
        identifier = f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}-{secrets.token_hex(4)}"
        with self._ledger.exclusive():
            draft = make(self._ledger.state(), identifier)
            decision = Decision(
                id=identifier,
                at=now,
                by=self._by,
                verb=draft.verb,
                subject=draft.subject,
                reason=draft.reason,
                before=draft.before,
                after=draft.after,
                effects=draft.effects,
                inverse=draft.inverse,
            )
            try:
                self._ledger.append(decision)
            except UnicodeEncodeError:
                name = shown(draft.subject)
                raise BadInput(f"the record of {name} holds text that is no valid Unicode") from None
        outcomes = [outcome for outcome in self._settle() if outcome.decision_id == identifier]
        warnings = [*draft.warnings, *(outcome.text for outcome in outcomes)]
        if draft.ledger_only:
            name = shown(draft.subject)
            warnings.append(f"the file of {name} is not written to; the ledger holds the decision")
        written = not draft.ledger_only and all(outcome.done for outcome in outcomes)
        return Decided(
            decision=decision,
            warnings=tuple(dict.fromkeys(warnings)),
            written=written,
            summary=draft.summary,
        )

    def _settle(self) -> tuple[Outcome, ...]:
        return settle(self._paths, self._settings, self._ledger)

    def _is_writable(self, pattern: Pattern) -> bool:
        if pattern.mirror_of:
            return False
        try:
            pattern_path(self._paths, pattern.file)
        except BadInput:
            return False
        return True

    def _was_reset(self, pattern_id: str, assessment: Assessment, state: CurationState) -> bool:
        if assessment.computed is not Maturity.DEPRECATED:
            return False
        pinning = {Verb.PROMOTE, Verb.DEPRECATE, Verb.ACCEPT_INVERSION, Verb.RESET}
        verbs = [
            decision.verb
            for decision in self._ledger.find(subject=pattern_id)
            if decision.verb in pinning and decision.id not in state.undone
        ]
        return bool(verbs) and verbs[-1] is Verb.RESET

    def _written_override(self, pattern: Pattern) -> str | None:
        """The override in the pattern's record as written there, for undo, unless the ledger wrote it."""
        try:
            data = pattern_path(self._paths, pattern.file).read_bytes()
            if OVERRIDE.encode() not in data:
                return None
            document = JsonText(data)
            record = find(document, pattern.id)
        except (OSError, BadJson):
            return None
        if record is None or OVERRIDE not in record.value:
            return None
        value = record.value[OVERRIDE]
        if isinstance(value, dict) and value.get("decision") in self._ledger:
            return None
        return document.text_at((*record.path, OVERRIDE))


def _subject(pattern: Pattern) -> str:
    try:
        pattern.id.encode()
    except UnicodeEncodeError:
        raise BadInput(f"id {shown(pattern.id)} is no valid text; nothing can be decided about it") from None
    return pattern.id


def _clean(text: str, what: str) -> str:
    """What a person typed, without blank ends; half characters, which no file can hold, are replaced."""
    text = text.encode("utf-8", "replace").decode().strip()
    if len(text) > MAX_TEXT:
        raise BadInput(f"{what} is {len(text):,} characters long; at most {MAX_TEXT:,} are kept")
    return text
