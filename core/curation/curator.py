"""What a human decides about patterns, one method each (semantics 4, 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from core.base.errors import BadInput, StaleDecision
from core.base.formatting import short_id
from core.curation import record_changes, rules, text_approval
from core.curation.apply import ID_PREFIXES
from core.curation.decision_writer import Decided as Decided
from core.curation.decision_writer import Make, Progress, Recorder, clean
from core.curation.decision_writer import Refusal as Refusal
from core.curation.record_changes import Batch
from core.curation.rules import Case, Draft
from core.curation.unit_of_work import Act
from core.learning.assessment import HELD, QUARANTINE, Assessment
from core.learning.bursts import Burst
from core.learning.inversion_proposals import Inversion
from core.records.decisions import CurationState, Verb
from core.records.extractions import Extraction
from core.records.patterns import Maturity, Pattern, PatternType

if TYPE_CHECKING:
    from core.curation.exchange.import_plan import ImportPlan

_ALIKE: Final[Mapping[Verb, Callable[[Case], Draft]]] = {
    Verb.PROMOTE: rules.promote,
    Verb.DEPRECATE: rules.deprecate,
    Verb.RESET: rules.reset,
    Verb.REJECT_INVERSION: rules.reject_inversion,
    Verb.QUARANTINE: rules.quarantine,
    Verb.RELEASE: rules.release,
}
"""What needs no more than the pattern and a reason."""
_DONE: Final = {
    Verb.PROMOTE: "promoted",
    Verb.DEPRECATE: "deprecated",
    Verb.RESET: "reset",
    Verb.ACCEPT_INVERSION: "inverted",
    Verb.REJECT_INVERSION: "rejected the inversion of",
    Verb.SNOOZE: "snoozed",
    Verb.NOTE: "noted on",
    Verb.ARCHIVE: "archived",
    Verb.QUARANTINE: "put into quarantine",
    Verb.RELEASE: "released",
}
"""What can be decided about many patterns at once, in the past tense."""


class Asked(NamedTuple):
    """One of many patterns that something is decided about.

    Attributes:
        proposal: What it would become, where an inversion is accepted.
    """

    pattern: Pattern
    assessment: Assessment
    proposal: Inversion | None = None


class Curator(Recorder):
    """Makes decisions on one project, see `Recorder`.

    What is decided about whole records rests on all of them: `known` is what `caught_up` gave before
    whoever asks read the files, and `StaleDecision` is raised if there are more decisions by now.

    All methods that decide raise `Refused` where a rule forbids it, `BadInput` for a value that cannot be
    used, `Unwritable` or `Conflict` where the ledger cannot be written or no id is to be had; then nothing is
    decided. A pattern file that cannot be written is no error, see `Decided.written`.
    """

    def promote(self, pattern: Pattern, assessment: Assessment, *, now: datetime, reason: str = "") -> Decided:
        """Pin the pattern as proven, bound to its text and to the evidence seen."""
        return self._append(self._about(pattern, assessment, now, reason, rules.promote), now)

    def deprecate(self, pattern: Pattern, assessment: Assessment, *, now: datetime, reason: str) -> Decided:
        """Pin the pattern as deprecated: it is injected no more. The reason is required and kept."""
        return self._append(self._about(pattern, assessment, now, reason, rules.deprecate), now)

    def reset(self, pattern: Pattern, assessment: Assessment, *, now: datetime, reason: str = "") -> Decided:
        """Take the pin away: arithmetic decides again.

        An anti-pattern made by an accepted inversion stays; undo takes that back. A pattern that the rules
        alone deprecate can be reset once as well; then it may be promoted.
        """
        return self._append(self._about(pattern, assessment, now, reason, rules.reset), now)

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
        return self._append(self._inversion(Asked(pattern, assessment, proposal), now, reason, self._act()), now)

    def reject_inversion(self, pattern: Pattern, assessment: Assessment, *, now: datetime, reason: str = "") -> Decided:
        """Turn the proposal down; it comes back after some further failures (setting)."""
        return self._append(self._about(pattern, assessment, now, reason, rules.reject_inversion), now)

    def snooze(
        self,
        pattern: Pattern,
        assessment: Assessment,
        *,
        until: datetime | None = None,
        uses: int | None = None,
        now: datetime,
        reason: str = "",
    ) -> Decided:
        """Keep whatever there is to review about the pattern out of the queue until a time, or so many more uses."""
        return self._append(
            self._about(pattern, assessment, now, reason, lambda case: rules.snooze(case, until, uses)), now
        )

    def note(self, pattern: Pattern, *, text: str, now: datetime) -> Decided:
        """Write a remark on the pattern down."""
        return self._append(self._note(pattern, text), now)

    def revoke(self, burst: Burst, *, now: datetime, reason: str = "") -> Decided:
        """Let none of the harmful marks of a burst count, now and for good."""
        return self._judge(Verb.REVOKE, burst, now, reason)

    def confirm(self, burst: Burst, *, now: datetime, reason: str = "") -> Decided:
        """Let the harmful marks of a burst count."""
        return self._judge(Verb.CONFIRM, burst, now, reason)

    def snooze_question(
        self,
        question: str,
        *,
        until: datetime | None = None,
        more: rules.More | None = None,
        now: datetime,
        about: str = "",
        reason: str = "",
    ) -> Decided:
        """Ask again after a time, or with more evidence, about something that is no single pattern; `about` names it
        for people.
        """
        reason = clean(reason, "reason")
        return self._append(lambda _state, _: rules.snooze_question(question, until, more, now, about, reason), now)

    def dismiss(self, question: str, summary: str, *, now: datetime, about: str = "", reason: str = "") -> Decided:
        """Never ask a question again; `about` names it for people."""
        reason = clean(reason, "reason")
        return self._append(lambda state, _: rules.dismiss(question, summary, about, reason, state), now)

    def approve_text(self, question: str, text: str, *, now: datetime, about: str = "", reason: str = "") -> Decided:
        """Let a held text that is not a pattern be injected; `about` names it for people."""
        reason = clean(reason, "reason")
        return self._append(lambda state, _: rules.approve_text(question, text, about, reason, state), now)

    def quarantine(self, pattern: Pattern, assessment: Assessment, *, now: datetime, reason: str) -> Decided:
        """Keep the pattern out of every context until somebody has seen its text."""
        return self._append(self._about(pattern, assessment, now, reason, rules.quarantine), now)

    def release(self, pattern: Pattern, assessment: Assessment, *, now: datetime, reason: str = "") -> Decided:
        """Let a text that was seen be injected."""
        return self._append(self._about(pattern, assessment, now, reason, rules.release), now)

    def restore_text(self, pattern: Pattern, assessment: Assessment, *, now: datetime, reason: str = "") -> Decided:
        """Put the text back that the standing decision on the pattern was about."""
        act = self._act()

        def draft(case: Case) -> Draft:
            kept = text_approval.approved_text(self._ledger.decision(case.pin.decision_id), pattern) if case.pin else {}
            return text_approval.restore_text(case, kept, act.registry.record(pattern))

        return self._append(self._about(pattern, assessment, now, reason, draft, act), now)

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
            lambda batch: record_changes.extract(batch, extraction, patterns, unattended=unattended), now, known, reason
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
            lambda batch: record_changes.import_patterns(batch, plan(batch), patterns), now, known, reason
        )

    def merge(self, kept: Pattern, other: Pattern, *, now: datetime, known: int, reason: str = "") -> Decided:
        """Make one pattern of two; the other one is archived."""
        return self._write_records(lambda batch: record_changes.merge(batch, kept, other), now, known, reason)

    def archive(
        self, reasons: Sequence[tuple[Pattern, str]], *, subject: str, now: datetime, known: int, reason: str = ""
    ) -> Decided:
        """Move patterns into the archive, each for its reason; `subject` says whose idea it was."""
        return self._write_records(lambda batch: record_changes.archive(batch, reasons, subject), now, known, reason)

    def restore(
        self, pattern_id: str, patterns: Mapping[str, Pattern], *, now: datetime, known: int, reason: str = ""
    ) -> Decided:
        """Bring a pattern back from the archive."""
        return self._write_records(
            lambda batch: record_changes.restore(batch, pattern_id, patterns), now, known, reason
        )

    def decide_many(
        self,
        verb: Verb,
        asked: Sequence[Asked],
        *,
        now: datetime,
        known: int,
        reason: str = "",
        until: datetime | None = None,
        uses: int | None = None,
        re_enable: bool = False,
        unknown: Sequence[Refusal] = (),
        progress: Progress | None = None,
    ) -> Decided:
        """Decide the same about many patterns in one act: each decision has its line in the ledger, undo takes all
        of them back. What is refused is reported, the rest holds.

        Args:
            verb: One of `_DONE`. Of several patterns, those in quarantine are not promoted.
            asked: The patterns, each once.
            now: The present moment.
            known: See the class.
            reason: Why; of a note its text.
            until, uses: The end of a snooze: a time, or so many more uses.
            re_enable: Reset deprecated patterns in the same act before they are promoted.
            unknown: What else was asked for, to be reported with what is refused.
            progress: See `Progress`.

        Raises:
            BadInput: This cannot be decided about many patterns.
            Refused: It is refused for all of them.
        """
        if verb not in _DONE:
            raise BadInput(f"{verb.value} is not decided about many patterns at once")
        act = self._act()
        is_bulk = len(asked) + len(unknown) > 1
        makes: list[tuple[str, Sequence[Make]]] = []
        for one in asked:
            if re_enable and verb is Verb.PROMOTE and one.assessment.state is Maturity.DEPRECATED:
                makes.append((one.pattern.id, self._re_enabled(one, now, reason, act)))
            else:
                make = self._one_of_many(verb, one, now, known, reason, until, uses, act, is_bulk=is_bulk)
                makes.append((one.pattern.id, (make,)))
        decided = self._append_group(makes, now, unknown, progress)
        if not decided.group:
            return decided
        if not is_bulk:
            before, after = decided.group[0].before["state"], decided.group[-1].after["state"]
            return replace(
                decided, summary=f"re-enabled {short_id(asked[0].pattern.id)}: {rules.change(before, after)}"
            )
        of = f" of {len(asked) + len(unknown):,}" if decided.refused else ""
        count = len({decision.subject for decision in decided.group})
        withheld = Counter(one.assessment.shown for one in asked if one.assessment.quarantined)
        where = [f"{withheld[QUARANTINE]:,} in quarantine"] if withheld[QUARANTINE] else []
        where += [f"{withheld[HELD]:,} held"] if withheld[HELD] else []
        skipped = f"; skipped {', '.join(where)}" if where and verb is Verb.PROMOTE else ""
        return replace(decided, summary=f"{_DONE[verb]} {count:,}{of} patterns{skipped}")

    def _re_enabled(self, one: Asked, now: datetime, reason: str, act: Act) -> Sequence[Make]:
        """Promote a deprecated pattern, after a reset unless the last decision on it was one."""
        promote = self._about(one.pattern, one.assessment, now, reason, rules.promote_after_reset, act)
        if one.pattern.id in self._ledger.state().reset:
            return (promote,)
        return (self._about(one.pattern, one.assessment, now, reason, rules.reset, act), promote)

    def _one_of_many(
        self,
        verb: Verb,
        one: Asked,
        now: datetime,
        known: int,
        reason: str,
        until: datetime | None,
        uses: int | None,
        act: Act,
        *,
        is_bulk: bool,
    ) -> Make:
        if verb is Verb.NOTE:
            return self._note(one.pattern, reason)
        if verb is Verb.ARCHIVE:
            reasons = ((one.pattern, reason),)
            return self._records(
                lambda batch: record_changes.archive(batch, reasons, one.pattern.id), now, known, reason, act
            )
        if verb is Verb.ACCEPT_INVERSION:
            return self._inversion(one, now, reason, act)
        if verb is Verb.SNOOZE:
            return self._about(
                one.pattern, one.assessment, now, reason, lambda case: rules.snooze(case, until, uses), act
            )
        rule = _ALIKE[verb]
        if verb is Verb.PROMOTE and is_bulk:
            rule = rules.promote_among_many
        return self._about(one.pattern, one.assessment, now, reason, rule, act)

    def _inversion(self, one: Asked, now: datetime, reason: str, act: Act) -> Make:
        proposal = one.proposal
        if proposal is None:
            raise BadInput(f"{short_id(one.pattern.id)} has no inversion to accept")
        text = clean(proposal.text, "the text of the anti-pattern")

        def draft(case: Case) -> Draft:
            return rules.accept_inversion(
                case, proposal, text, lambda slug: act.ids.next(ID_PREFIXES[PatternType.ANTI], slug)
            )

        return self._about(one.pattern, one.assessment, now, reason or proposal.reason, draft, act)

    def _note(self, pattern: Pattern, text: str) -> Make:
        text = clean(text, "note")
        if not text:
            raise BadInput(f"the note on {short_id(pattern.id)} is empty")

        def draft(_state: CurationState, _identifier: str) -> Draft:
            subject, after = _subject(pattern), {"text": text}
            return Draft(verb=Verb.NOTE, subject=subject, summary=f"noted on {short_id(subject)}", after=after)

        return draft

    def _write_records(self, rule: Callable[[Batch], Draft], now: datetime, known: int, reason: str) -> Decided:
        return self._append(self._records(rule, now, known, reason, self._act()), now)

    def _records(self, rule: Callable[[Batch], Draft], now: datetime, known: int, reason: str, act: Act) -> Make:
        reason = clean(reason, "reason")

        def draft(state: CurationState, identifier: str) -> Draft:
            if len(self._ledger.decisions()) != known:
                raise StaleDecision("others decide faster than this can be worked out; try again")
            batch = Batch(
                paths=self._paths,
                registry=act.registry,
                ids=act.ids,
                state=state,
                id=identifier,
                at=now.astimezone(UTC),
                by=self._by,
                reason=reason,
            )
            return rule(batch)

        return draft

    def _judge(self, verb: Verb, burst: Burst, now: datetime, reason: str) -> Decided:
        reason = clean(reason, "reason")
        return self._append(lambda state, _: rules.judge_burst(verb, burst, state, reason), now)

    def _about(
        self,
        pattern: Pattern,
        assessment: Assessment,
        now: datetime,
        reason: str,
        rule: Callable[[Case], Draft],
        act: Act | None = None,
    ) -> Make:
        reason = clean(reason, "reason")
        act = act or self._act()

        def draft(state: CurationState, identifier: str) -> Draft:
            _subject(pattern)
            writable = act.is_writable(pattern)
            pinned = pattern.id in state.pins
            by_rule = assessment.computed is Maturity.DEPRECATED
            case = Case(
                pattern=pattern,
                assessment=assessment,
                state=state,
                settings=self._settings,
                was_reset=not pinned and by_rule and pattern.id in state.reset,
                written=act.written_override(pattern) if writable and not pinned else None,
                writable=writable,
                anti_file=self._paths.relative(self._paths.pattern_file(PatternType.ANTI.value)),
                id=identifier,
                at=now.astimezone(UTC),
                by=self._by,
                reason=reason,
                text=lambda: act.text(pattern),
            )
            return rule(case)

        return draft


def _subject(pattern: Pattern) -> str:
    try:
        pattern.id.encode()
    except UnicodeEncodeError:
        raise BadInput(f"id {short_id(pattern.id)} is no valid text; nothing can be decided about it") from None
    return pattern.id
