"""What a human decides about patterns, one method each (semantics 4, 5)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.curation import batches, rules, turning
from core.curation.act import Act
from core.curation.batches import Batch
from core.curation.effects import Outcome
from core.curation.ledger import Ledger
from core.curation.rules import Case, Draft, shown
from core.curation.seeing import check_last_seen, check_seen
from core.curation.settling import ID_PREFIXES, settle
from core.errors import BadInput, Conflict, MovedOn, Refused
from core.exchange.importing import ImportPlan
from core.extraction.proposals import Extraction
from core.learning.assessment import Assessment
from core.learning.bursts import Burst
from core.learning.proposing import Inversion
from core.paths import ProjectPaths
from core.records.decisions import CurationState, Decision, Verb
from core.records.patterns import Maturity, Pattern, PatternType
from core.settings import Settings

_TRIES: Final = 3
"""How often to write what decisions still owe to files before going on without it."""
MAX_TEXT: Final = 10_000
"""Longest reason, note or rewritten text, in characters."""
MOST_WARNINGS: Final = 6
"""Warnings that one act tells; of more the number is told."""

Make = Callable[[CurationState, str], Draft]
"""A decision worked out: from what the ledger amounts to and the decision's id."""
Progress = Callable[[int, int], None]
"""Told (patterns done, patterns in all)."""

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


class Refusal(NamedTuple):
    """Why nothing was decided about one of many patterns."""

    pattern_id: str
    why: str


class Decided(Struct, frozen=True, kw_only=True):
    """A decision that is in the ledger, or the decisions of one act.

    Attributes:
        decision: As it was written down; of many the last one.
        warnings: What to tell the person, one line each.
        written: Whether all that it changes in pattern files is in them. If not, the ledger still holds, and
            a file that could not be written is tried again with the next decision.
        summary: One line: `promoted X: established → proven`, `promoted 12 of 14 patterns`.
        group: All decisions of an act on many patterns, in the order of the ledger.
        refused: About which of them nothing was decided.
    """

    decision: Decision
    warnings: tuple[str, ...]
    written: bool
    summary: str
    group: tuple[Decision, ...] = ()
    refused: tuple[Refusal, ...] = ()

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """All that was decided."""
        return self.group or (self.decision,)


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
        self._seen: int | None = None

    @contextmanager
    def seeing(self, decisions: int) -> Iterator[None]:
        """Meanwhile decide for a person who saw what this many decisions, from the first on, amount to: `Conflict`
        where a later one is about the same.
        """
        before, self._seen = self._seen, decisions
        try:
            yield
        finally:
            self._seen = before

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
        reason = _clean(reason, "reason")
        return self._append(lambda _state, _: rules.snooze_question(question, until, more, now, about, reason), now)

    def dismiss(self, question: str, summary: str, *, now: datetime, about: str = "", reason: str = "") -> Decided:
        """Never ask a question again; `about` names it for people."""
        reason = _clean(reason, "reason")
        return self._append(lambda state, _: rules.dismiss(question, summary, about, reason, state), now)

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
            kept = rules.approved_text(self._ledger.decision(case.pin.decision_id), pattern) if case.pin else {}
            return rules.restore_text(case, kept, act.registry.record(pattern))

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
        unknown: Sequence[Refusal] = (),
        progress: Progress | None = None,
    ) -> Decided:
        """Decide the same about many patterns in one act: each decision has its line in the ledger, undo takes all
        of them back. What is refused is told, the rest holds.

        Args:
            verb: One of `_DONE`.
            asked: The patterns, each once.
            now: The present moment.
            known: See the class.
            reason: Why; of a note its text.
            until, uses: The end of a snooze: a time, or so many more uses.
            unknown: What else was asked for, to be told with what is refused.
            progress: See `Progress`.

        Raises:
            BadInput: This cannot be decided about many patterns.
            Refused: It is refused for all of them.
        """
        if verb not in _DONE:
            raise BadInput(f"{verb.value} is not decided about many patterns at once")
        act = self._act()
        makes = [(one.pattern.id, self._one_of_many(verb, one, now, known, reason, until, uses, act)) for one in asked]
        decided = self._append_group(makes, now, unknown, progress)
        if not decided.group:
            return decided
        of = f" of {len(asked) + len(unknown):,}" if decided.refused else ""
        return replace(decided, summary=f"{_DONE[verb]} {len(decided.group):,}{of} patterns")

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
    ) -> Make:
        if verb is Verb.NOTE:
            return self._note(one.pattern, reason)
        if verb is Verb.ARCHIVE:
            reasons = ((one.pattern, reason),)
            return self._records(lambda batch: batches.archive(batch, reasons, one.pattern.id), now, known, reason, act)
        if verb is Verb.ACCEPT_INVERSION:
            return self._inversion(one, now, reason, act)
        if verb is Verb.SNOOZE:
            return self._about(
                one.pattern, one.assessment, now, reason, lambda case: rules.snooze(case, until, uses), act
            )
        return self._about(one.pattern, one.assessment, now, reason, _ALIKE[verb], act)

    def _inversion(self, one: Asked, now: datetime, reason: str, act: Act) -> Make:
        proposal = one.proposal
        if proposal is None:
            raise BadInput(f"{shown(one.pattern.id)} has no inversion to accept")
        text = _clean(proposal.text, "the text of the anti-pattern")

        def draft(case: Case) -> Draft:
            return rules.accept_inversion(
                case, proposal, text, lambda slug: act.ids.next(ID_PREFIXES[PatternType.ANTI], slug)
            )

        return self._about(one.pattern, one.assessment, now, reason or proposal.reason, draft, act)

    def _note(self, pattern: Pattern, text: str) -> Make:
        text = _clean(text, "note")
        if not text:
            raise BadInput(f"the note on {shown(pattern.id)} is empty")

        def draft(_state: CurationState, _identifier: str) -> Draft:
            subject, after = _subject(pattern), {"text": text}
            return Draft(verb=Verb.NOTE, subject=subject, summary=f"noted on {shown(subject)}", after=after)

        return draft

    def _write_records(self, rule: Callable[[Batch], Draft], now: datetime, known: int, reason: str) -> Decided:
        return self._append(self._records(rule, now, known, reason, self._act()), now)

    def _records(self, rule: Callable[[Batch], Draft], now: datetime, known: int, reason: str, act: Act) -> Make:
        reason = _clean(reason, "reason")

        def draft(state: CurationState, identifier: str) -> Draft:
            if len(self._ledger.decisions()) != known:
                raise MovedOn("others decide faster than this can be worked out; try again")
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

    def _act(self) -> Act:
        return Act(self._paths, self._ledger)

    def _judge(self, verb: Verb, burst: Burst, now: datetime, reason: str) -> Decided:
        reason = _clean(reason, "reason")
        return self._append(lambda state, _: rules.judge_burst(verb, burst, state, reason), now)

    def undo(self, *, now: datetime, name: str = "") -> Decided:
        """Take the last decision back that still holds, whoever made it, with all that one act decided; over the
        whole ledger.

        Args:
            now: The present moment.
            name: Instead of the last one, the decision or group of this id; refused where a later one rests on it.
        """
        return self._turn(Verb.UNDO, now, name)

    def redo(self, *, now: datetime) -> Decided:
        """Repeat what was undone last; possible until something new is decided."""
        return self._turn(Verb.REDO, now)

    def _turn(self, verb: Verb, now: datetime, name: str = "") -> Decided:
        def drafts(state: CurationState, act: str) -> dict[str, Draft]:
            decisions, known = self._ledger.decisions(), self._ledger.by_id()
            if not name:
                check_last_seen(self._by, self._news(), known, now)
            chosen = turning.one_act(name, state, decisions) if name else turning.last_act(verb, state)
            turned = [self._seen_by(turning.turned(verb, known[one]), now) for one in chosen]
            return {act: turned[0]} if len(turned) == 1 else dict(zip(_ids(act), turned, strict=False))

        decided = self._decide(drafts, now)
        if not decided.group:
            return decided
        turned = [self._ledger.decision(decision.subject) for decision in decided.group]
        return replace(decided, summary=turning.summary(verb, turned))

    def _about(
        self,
        pattern: Pattern,
        assessment: Assessment,
        now: datetime,
        reason: str,
        rule: Callable[[Case], Draft],
        act: Act | None = None,
    ) -> Make:
        reason = _clean(reason, "reason")
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

    def _append(self, make: Make, now: datetime) -> Decided:
        def draft(state: CurationState, identifier: str) -> dict[str, Draft]:
            return {identifier: self._seen_by(_storable(make(state, identifier)), now)}

        return self._decide(draft, now)

    def _seen_by(self, draft: Draft, now: datetime) -> Draft:
        """A draft, unless it is about something that the person has not seen, see `seeing`."""
        if news := self._news():
            check_seen(draft, self._by, news, self._ledger.by_id(), now)
        return draft

    def _news(self) -> Sequence[Decision]:
        """What the person has not seen."""
        return () if self._seen is None else self._ledger.decisions()[self._seen :]

    def _append_group(
        self,
        makes: Sequence[tuple[str, Make]],
        now: datetime,
        unknown: Sequence[Refusal],
        progress: Progress | None,
    ) -> Decided:
        """Decide what is not refused, of makes and the patterns' ids."""
        refused = list(unknown)

        def drafts(state: CurationState, act: str) -> dict[str, Draft]:
            found = {}
            ids = iter([act]) if len(makes) + len(unknown) == 1 else _ids(act)
            for number, (identifier, (pattern_id, make)) in enumerate(zip(ids, makes, strict=False), 1):
                try:
                    draft = _storable(make(state, identifier))
                    found[identifier] = self._seen_by(draft, now)
                except MovedOn:
                    raise
                except (BadInput, Refused, Conflict) as error:
                    refused.append(Refusal(pattern_id, str(error)))
                if progress is not None:
                    progress(number, len(makes))
            if not found:
                more = f" (and {len(refused) - 1:,} more like this)" if len(refused) > 1 else ""
                raise Refused(f"{refused[0].why}{more}" if refused else "there is nothing to decide")
            return found

        decided = self._decide(drafts, now)
        told = dict.fromkeys([*(refusal.why for refusal in refused), *decided.warnings])
        return replace(decided, refused=tuple(refused), warnings=_capped(told))

    def _decide(self, make: Callable[[CurationState, str], dict[str, Draft]], now: datetime) -> Decided:
        """Write down what `make` works out: from the state and the id of the act, drafts by the ids of decisions."""
        now = now.astimezone(UTC)
        self._settle()
        act = f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}-{secrets.token_hex(4)}"
        with self._ledger.exclusive():
            drafts = make(self._ledger.state(), act)
            made = tuple(self._decision(identifier, act, draft, now) for identifier, draft in drafts.items())
            self._ledger.append(*made)
        outcomes = [outcome for outcome in self._settle() if outcome.decision_id in drafts]
        warnings = [*(text for draft in drafts.values() for text in draft.warnings), *(one.text for one in outcomes)]
        kept = [shown(draft.subject) for draft in drafts.values() if draft.ledger_only]
        warnings += (f"the file of {name} is not written to; the ledger holds the decision" for name in kept)
        return Decided(
            decision=made[-1],
            warnings=tuple(dict.fromkeys(warnings)),
            written=not kept and all(outcome.done for outcome in outcomes),
            summary=drafts[made[-1].id].summary,
            group=made if made[-1].group else (),
        )

    def _decision(self, identifier: str, act: str, draft: Draft, now: datetime) -> Decision:
        return Decision(
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
            group=act if identifier != act else "",
        )

    def _settle(self) -> tuple[Outcome, ...]:
        return settle(self._paths, self._settings, self._ledger)


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


def _storable(draft: Draft) -> Draft:
    """A draft, unless it holds half a character, which no file can hold."""
    try:
        msgspec.json.encode(draft)
    except UnicodeEncodeError:
        raise BadInput(f"the record of {shown(draft.subject)} holds text that is no valid Unicode") from None
    return draft


def _ids(act: str) -> Iterator[str]:
    """Ids of the decisions of one act, in order."""
    return (f"{act}-{number:04d}" for number in count(1))


def _capped(warnings: Iterable[str]) -> tuple[str, ...]:
    told = list(warnings)
    more = len(told) - MOST_WARNINGS
    return (*told[:MOST_WARNINGS], f"and {more:,} more like this") if more > 0 else tuple(told)
