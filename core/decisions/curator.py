"""Carries out decision commands on one project, each in one transaction.

A transaction locks the decision log, lets rules draft decisions for the newest state, asks the gate, and appends to the
log. Then the pattern files are updated; the next process does that after a crash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from core.base.errors import AlreadyDone, BadInput, Conflict, Refused, StaleDecision, UnknownRecord
from core.base.formatting import shorten_id
from core.base.text import plural
from core.decisions import commands, record_changes, rules, undo
from core.decisions.apply import apply_pending
from core.decisions.case import Case, Decided, Draft, Progress, Refusal, change, clean, make_id
from core.decisions.commands import Command, PatternCommand, Promote
from core.decisions.conflicts import ExpectedState, check_decisions, check_newest, check_texts
from core.decisions.pattern_registry import UnitOfWork
from core.decisions.record_changes import Batch
from core.learning.bursts import MEMBER
from core.learning.maturity import HELD, QUARANTINE, Assessment
from core.records.decisions import EDIT_TEXT, REPAIR, SET_ANCHORS, VERBS, WITHDRAW, Decision, Verb
from core.records.patterns import ID_PREFIXES, Maturity, Pattern, PatternType
from core.sources.ledger import Ledger

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.settings import Settings
    from core.decisions.apply import Outcome
    from core.learning.inversion import Inversion

_SHARED: Final = [name for name in Decision.__struct_fields__ if name in Draft.__struct_fields__]
"""Fields of a decision that its draft already has."""
_TRIES: Final = 3  # Attempts to write pending effects to pattern files before continuing without them.
MOST_WARNINGS: Final = 6  # Maximum number of warnings listed for one act; further ones are only counted.
_ARCHIVED_AT_ONCE: Final = 100  # patterns that one decision archives


class Target(NamedTuple):
    """The pattern of a command, as the user saw it; `propose` creates its inversion."""

    pattern: Pattern
    assessment: Assessment
    propose: Callable[[], Inversion] | None = None


FindTarget = Callable[[str], Target]  # Finds a pattern by ID; raises `UnknownRecord`.


class DecisionGate(Protocol):
    """What may stop decisions that the rules allow, such as the registry of a team."""

    @property
    def note(self) -> str:
        """What the user should know about the decisions that were accepted last, or ""."""
        ...

    def admit(self, decisions: Sequence[Decision], *, is_whole: bool) -> Mapping[str, str]:
        """Return why decisions of an act cannot be made, by ID; the others are accepted.

        If `is_whole`, either all are accepted or none. Called while the decision log is locked, so it returns within a
        few seconds. Raises `Refused` if the author may not make such a decision; then none is accepted.
        """
        ...


class OpenGate:
    """Accepts every decision: the project belongs to no team."""

    note = ""

    def admit(self, decisions: Sequence[Decision], *, is_whole: bool) -> Mapping[str, str]:
        return {}


class Transaction:
    """Decisions of one act, while the log is locked; see `Curator.transaction`.

    Rules get a `case` or a `batch`, and `add` takes their drafts in the order of the log. With `is_group`, the act has
    several decisions, or may have; set it before the first one. With `is_whole`, all are made or none. `decided` is the
    result after the block.
    """

    decided: Decided

    def __init__(self, curator: Curator, now: datetime, known: int | None, *, is_group: bool, is_whole: bool) -> None:
        self.at = now.astimezone(UTC)
        self.state = curator.ledger.state()
        self.files = curator.open_files()
        self.is_group = is_group
        self.is_whole = is_whole
        self.refused: list[Refusal] = []
        self._curator = curator
        self._known = known
        self._act = make_id(self.at)
        self._drafts: dict[str, Draft] = {}
        self._skipped = 0

    @property
    def next_id(self) -> str:
        """ID of the decision that is added next."""
        number = len(self._drafts) + self._skipped + 1
        return f"{self._act}-{number:04d}" if self.is_group else self._act

    def case(self, target: Target, reason: str) -> Case:
        """Return what the rules for one pattern need."""
        curator, pattern = self._curator, target.pattern
        writable = self.files.is_writable(pattern)
        is_unpinned = writable and pattern.id not in self.state.pins
        return Case(
            pattern=pattern,
            assessment=target.assessment,
            state=self.state,
            settings=curator.settings,
            at=self.at,
            reason=clean(reason, "reason"),
            writable=writable,
            written=self.files.written_override(pattern) if is_unpinned else None,
            anti_file=curator.paths.relative(curator.paths.pattern_file(PatternType.ANTI.value)),
            id=self.next_id,
            by=curator.by,
            text=partial(self.files.text, pattern),
        )

    def batch(self, reason: str) -> Batch:
        """Return what rules for whole records need; StaleDecision if decisions are newer."""
        curator = self._curator
        if len(curator.ledger.decisions()) != self._known:
            raise StaleDecision("The decision log kept changing; try again")
        return Batch(
            paths=curator.paths,
            registry=self.files.registry,
            ids=self.files.ids,
            state=self.state,
            id=self.next_id,
            at=self.at,
            by=curator.by,
            reason=clean(reason, "reason"),
        )

    def add(self, draft: Draft) -> None:
        """Add a decision; raises `Conflict` if stale, see `Curator.deciding_on`."""
        try:
            msgspec.json.encode(draft)
        except UnicodeEncodeError:
            name = shorten_id(draft.subject)
            raise BadInput(
                f"the record of {name} contains text that is not valid Unicode, which cannot be stored"
            ) from None
        self._curator.check_conflicts(draft, self.at)
        self._drafts[self.next_id] = draft

    @contextmanager
    def skipping(self, subject: str) -> Iterator[None]:
        """Add what the block adds; if any of it is refused, nothing but the reason."""
        before = len(self._drafts)
        try:
            yield
        except StaleDecision:
            raise
        except (BadInput, Refused, Conflict) as error:
            self._skipped += len(self._drafts) - before + 1  # their numbers are not used again
            while len(self._drafts) > before:
                self._drafts.popitem()
            self.refused.append(Refusal(subject, str(error), isinstance(error, AlreadyDone)))

    def admit(self, gate: DecisionGate) -> list[Decision]:
        """Return the decisions that the gate accepts; if none, raises the first reason."""
        self._require_drafts()
        group = self._act if self.is_group else ""
        made = [
            Decision(
                id=id, at=self.at, by=self._curator.by, group=group, **{name: getattr(draft, name) for name in _SHARED}
            )
            for id, draft in self._drafts.items()
        ]
        conflicts = gate.admit(made, is_whole=self.is_whole)
        admitted = [decision for decision in made if decision.id not in conflicts]
        if conflicts and (self.is_whole or not admitted):
            raise Conflict(next(iter(conflicts.values())))
        whys = {decision.subject: conflicts[decision.id] for decision in made if decision.id in conflicts}
        self.refused += (Refusal(subject, why) for subject, why in whys.items())
        return admitted

    def _require_drafts(self) -> None:
        if self._drafts:
            return
        first = next((one for one in self.refused if not one.is_done), self.refused[0] if self.refused else None)
        if first is None:
            raise Refused("nothing to decide")
        more = f" (and {len(self.refused) - 1:,} more like this)" if len(self.refused) > 1 else ""
        raise (AlreadyDone if first.is_done else Refused)(f"{first.why}{more}")

    def finish(self, made: Sequence[Decision], outcomes: Sequence[Outcome], note: str) -> None:
        """Describe the decisions that were made, and what became of their effects."""
        drafts = {decision.id: self._drafts[decision.id] for decision in made}
        outcomes = [outcome for outcome in outcomes if outcome.decision_id in drafts]
        ledger_only = [shorten_id(draft.subject) for draft in drafts.values() if draft.ledger_only]
        warnings = [refusal.why for refusal in self.refused]
        warnings += (text for draft in drafts.values() for text in draft.warnings)
        warnings += (outcome.text for outcome in outcomes)
        warnings += filter(None, [note])
        warnings += (f"the file of {name} cannot be changed; only the decision log was updated" for name in ledger_only)
        warnings = list(dict.fromkeys(warnings))
        if not self.is_whole and (more := len(warnings) - MOST_WARNINGS) > 0:
            warnings[MOST_WARNINGS:] = [f"and {more:,} more like this"]
        self.decided = Decided(
            decision=made[-1],
            warnings=tuple(warnings),
            written=not ledger_only and all(outcome.done for outcome in outcomes),
            summary=drafts[made[-1].id].summary,
            group=tuple(made) if self.is_group else (),
            refused=tuple(self.refused),
        )


class Curator:
    """Makes decisions of `by` on one project, and undoes them.

    Every decision is checked against the current ledger, including decisions of other processes, and then by the
    `gate`. It is durable in the ledger before the pattern files are updated.

    Decisions about whole records depend on all records. `known` is the number of decisions (`settled_count`) from
    before the caller read the files; `StaleDecision` is raised if there are more now.

    Raises `Refused` if a rule forbids the decision, `BadInput` for an invalid value, and `Unwritable` or `Conflict` if
    the ledger cannot be written or no ID is free; then no decision is made. A pattern file that cannot be written is
    not an error, see `Decided.written`.
    """

    gate: DecisionGate = OpenGate()

    def __init__(self, paths: ProjectPaths, settings: Settings, *, by: str, ledger: Ledger | None = None) -> None:
        self.paths = paths
        self.settings = settings
        self.by = clean(by, "the reviewer's name").replace("\n", " ")
        self.ledger = ledger or Ledger(paths)
        self._expected_state: ExpectedState | None = None

    @contextmanager
    def transaction(
        self, now: datetime, known: int | None = None, *, is_group: bool = False, is_whole: bool = True
    ) -> Iterator[Transaction]:
        """Make the decisions that the block adds; if it raises, nothing is written."""
        self.write_pending()
        with self.ledger.exclusive():
            act = Transaction(self, now, known, is_group=is_group, is_whole=is_whole)
            yield act
            made = act.admit(self.gate)
            self.ledger.append(*made)
        act.finish(made, self.write_pending(), self.gate.note)

    @contextmanager
    def deciding_on(self, expected: ExpectedState) -> Iterator[None]:
        """Within the block, decide for a user who saw the state `expected`.

        A decision raises `Conflict` if a later one has the same subject, or if the text of a pattern changed since.
        """
        before, self._expected_state = self._expected_state, expected
        try:
            yield
        finally:
            self._expected_state = before

    @contextmanager
    def signing(self, by: str) -> Iterator[None]:
        """Within the block, sign decisions with another name; "" changes nothing."""
        before, self.by = self.by, by or self.by
        try:
            yield
        finally:
            self.by = before

    def check_conflicts(self, draft: Draft, now: datetime) -> None:
        """Raise `Conflict` if a draft's subject changed since seen, see `deciding_on`."""
        if news := self._unseen_decisions():
            check_decisions(draft, self.by, news, self.ledger.by_id(), now)
        if self._expected_state is not None:
            check_texts(draft, self._expected_state)

    def _unseen_decisions(self) -> Sequence[Decision]:
        """Return the decisions that the user has not seen."""
        return () if self._expected_state is None else self.ledger.decisions()[self._expected_state.decisions :]

    def open_files(self) -> UnitOfWork:
        return UnitOfWork(self.paths, self.ledger)

    def write_pending(self) -> tuple[Outcome, ...]:
        """Write pending effects to files, e.g. after a crash."""
        return apply_pending(self.paths, self.settings, self.ledger)

    def apply_pending(self) -> tuple[str, ...]:
        """Write pending effects to files; return warnings."""
        return tuple(dict.fromkeys(outcome.text for outcome in self.write_pending()))

    def settled_count(self) -> int:
        """Write pending effects, then return the number of decisions.

        A caller that reads the files afterwards sees the effects of these decisions. Effects that cannot be written are
        skipped.
        """
        for _ in range(_TRIES):
            decisions, settled = self.ledger.status()
            if settled:
                break
            self.write_pending()
        return decisions

    def decide(
        self, command: Command, find: FindTarget, *, now: datetime, known: int, progress: Progress | None = None
    ) -> Decided:
        """Carry out a command about patterns, questions or decisions."""
        match command:
            case commands.Undo():
                return self.undo(now=now, decision_id=command.decision_id, any_author=command.any_author)
            case commands.Redo():
                return self.redo(now=now)
            case commands.Bulk():
                return self._decide_many(command.commands, find, now, known, progress)
            case Promote(re_enable=True):
                return self._decide_many((command,), find, now, known, progress)
            case commands.EditTexts():
                return self._edit(command, find, now, known)
            case commands.SetAnchors():
                return self._set_anchors(command, find(command.pattern_id).pattern, now, known)
            case commands.RepairPatterns():
                return self._repair(command, now, known)
            case commands.WithdrawMember():
                return self._withdraw(command, find, now, known)
            case PatternCommand():
                command, target = _cleaned(command), find(command.pattern_id)
                with self.transaction(now, known) as act:
                    act.add(self._draft(act, command, target, find))
                return act.decided
        with self.transaction(now) as act:
            act.add(_answer(act, command))
        return act.decided

    def undo(self, *, now: datetime, decision_id: str = "", any_author: bool = False) -> Decided:
        """Undo the newest decision in effect, with its whole act; see `commands.Undo`."""
        return self._turn(Verb.UNDO, now, decision_id, any_author=any_author)

    def redo(self, *, now: datetime) -> Decided:
        """Repeat the act that was undone last; see `commands.Redo`."""
        return self._turn(Verb.REDO, now, any_author=True)

    def _turn(self, verb: Verb, now: datetime, name: str = "", *, any_author: bool) -> Decided:
        with self.transaction(now) as act:
            decisions, known = self.ledger.decisions(), self.ledger.by_id()
            if not name:
                check_newest(self.by, self._unseen_decisions(), known, now)
            chosen = undo.named_act(name, act.state, decisions) if name else undo.last_act(verb, act.state, decisions)
            if not name and not any_author:
                undo.check_own(known[chosen[0]], self.by)
            act.is_group = len(chosen) > 1
            for identifier in chosen:
                act.add(undo.reversal(verb, known[identifier], self.by))
        decided = act.decided
        if not decided.group:
            return decided
        decisions = tuple(self.ledger.decision(decision.subject) for decision in decided.group)
        return replace(decided, summary=undo.summary(verb, decisions, self.by))

    def _draft(self, act: Transaction, command: PatternCommand, target: Target, find: FindTarget) -> Draft:
        """Return the decision that the rules make of a command about one pattern."""
        pattern = target.pattern
        match command:
            case commands.Note():
                return rules.note(pattern, command)
            case commands.Archive():
                reasons = ((pattern, command.reason),)
                return record_changes.archive(act.batch(command.reason), reasons, pattern.id)
            case commands.AcceptInversion():
                return self._accept_inversion(act, command, target, find)
            case commands.RestoreText():
                case, approved = act.case(target, command.reason), {}
                if case.pin is not None:
                    approved = rules.approved_text(self.ledger.decision(case.pin.decision_id), pattern)
                return rules.restore_text(case, approved, act.files.registry.record(pattern))
        return rules.PATTERN_RULES[type(command)](act.case(target, command.reason), command)

    def _accept_inversion(
        self, act: Transaction, command: commands.AcceptInversion, target: Target, find: FindTarget
    ) -> Draft:
        if target.propose is None:
            raise BadInput(f"{shorten_id(target.pattern.id)} has no inversion to accept")
        proposal = target.propose()
        if command.text is not None:
            proposal = proposal.with_text(command.text)
        if command.better is not None:
            proposal = proposal.with_alternative(find(command.better).pattern if command.better else None)
        text = clean(proposal.text, "the text of the anti-pattern")
        case = act.case(target, command.reason or proposal.reason)
        return rules.accept_inversion(case, proposal, text, partial(act.files.ids.next, ID_PREFIXES[PatternType.ANTI]))

    def _decide_many(
        self,
        many: Sequence[PatternCommand],
        find: FindTarget,
        now: datetime,
        known: int,
        progress: Progress | None,
    ) -> Decided:
        """Make the same decision about many patterns in one act."""
        verbs = {command.verb for command in many}
        if len(verbs) > 1 or not all(VERBS[verb].is_bulk for verb in verbs):
            raise BadInput(f"cannot decide {', '.join(sorted(verbs))} about many patterns at once")
        targets: dict[str, tuple[PatternCommand, Target]] = {}
        unknown: list[Refusal] = []
        for command in map(_cleaned, many):
            try:
                target = find(command.pattern_id)
                targets[target.pattern.id] = command, target
            except UnknownRecord as error:
                unknown.append(Refusal(command.pattern_id, str(error)))
        asked = len(targets) + len(unknown)
        with self.transaction(now, known, is_group=asked > 1, is_whole=False) as act:
            act.refused += unknown
            for number, (id, (command, target)) in enumerate(targets.items(), 1):
                with act.skipping(id):
                    self._add_one_of_many(act, command, target, find)
                if progress is not None:
                    progress(number, len(targets))
        decided = act.decided
        if not decided.group:
            return decided
        if asked == 1:
            before, after = decided.group[0].before["state"], decided.group[-1].after["state"]
            return replace(decided, summary=f"re-enabled {shorten_id(next(iter(targets)))}: {change(before, after)}")
        (verb,) = verbs
        of = f" of {asked:,}" if decided.refused else ""
        count = len({decision.subject for decision in decided.group})
        withheld = Counter(target.assessment.shown for _, target in targets.values() if target.assessment.quarantined)
        where = [f"{withheld[QUARANTINE]:,} in quarantine"] if withheld[QUARANTINE] else []
        where += [f"{withheld[HELD]:,} held"] if withheld[HELD] else []
        skipped = f"; skipped {', '.join(where)}" if where and verb is Verb.PROMOTE else ""
        return replace(decided, summary=f"{VERBS[verb].past} {count:,}{of} patterns{skipped}")

    def _add_one_of_many(self, act: Transaction, command: PatternCommand, target: Target, find: FindTarget) -> None:
        """Add the decision about one of many patterns; two of them to re-enable it."""
        if not isinstance(command, Promote):
            act.add(self._draft(act, command, target, find))
        elif command.re_enable and target.assessment.state is Maturity.DEPRECATED:
            if target.pattern.id not in act.state.reset:
                act.is_group = True
                act.add(rules.reset(act.case(target, command.reason), command))
            act.add(rules.promote_after_reset(act.case(target, command.reason), command))
        else:
            promote = rules.promote_among_many if act.is_group else rules.promote
            act.add(promote(act.case(target, command.reason), command))

    def _repair(self, command: commands.RepairPatterns, now: datetime, known: int) -> Decided:
        """Change or archive patterns that do not keep today's rules, in one act."""
        reason = clean(command.reason, "reason")
        with self.transaction(now, known, is_group=len(command.repairs) > 1, is_whole=False) as act:
            for proposed in command.repairs:
                with act.skipping(proposed.pattern.id):
                    act.add(record_changes.repair(act.batch(reason), proposed))
        decided = act.decided
        if not decided.group:
            return decided
        verbs = Counter(decision.verb for decision in decided.group)
        parts = [f"{REPAIR.past} {plural(verbs[Verb.EDIT], 'pattern')}"] if verbs[Verb.EDIT] else []
        parts += [f"archived {plural(verbs[Verb.ARCHIVE], 'pattern')}"] if verbs[Verb.ARCHIVE] else []
        return replace(decided, summary=", ".join(parts))

    def _edit(self, command: commands.EditTexts, find: FindTarget, now: datetime, known: int) -> Decided:
        """Change texts of patterns as a person edited them; all in one act, or none."""
        with self.transaction(now, known, is_group=True) as act:
            act.add(_answer(act, command.answer))
            for edit in command.edits:
                pattern = find(edit.pattern_id).pattern
                act.add(record_changes.edit_text(act.batch(command.reason), pattern, edit.texts))
        return replace(act.decided, summary=f"{EDIT_TEXT.past} {plural(len(command.edits), 'pattern')}")

    def _set_anchors(self, command: commands.SetAnchors, pattern: Pattern, now: datetime, known: int) -> Decided:
        """Replace a pattern's anchors, and renamed paths in its text, in one act."""
        renames = dict(command.renames)
        with self.transaction(now, known) as act:
            act.is_group = record_changes.has_paths(act.files.registry, pattern, renames)
            act.add(record_changes.set_anchors(act.batch(command.reason), pattern, command.anchors))
            if act.is_group:
                act.add(record_changes.rename_paths(act.batch(command.reason), pattern, renames))
        decided = act.decided
        if not act.is_group:
            return decided
        self.ledger.origins.follow_text(pattern, decided.decision.after["content_hash"])
        return replace(decided, summary=f"{SET_ANCHORS.past} {shorten_id(pattern.id)}, and the paths in its text")

    def _withdraw(self, command: commands.WithdrawMember, find: FindTarget, now: datetime, known: int) -> Decided:
        """Withdraw what a member sent, in one act; a team limits the size of a decision."""
        source, ids, reason = f"{MEMBER}{command.member}", command.pattern_ids, clean(command.reason, "reason")
        with self.transaction(now, known, is_group=bool(ids), is_whole=False) as act:
            with act.skipping(source):
                act.add(_answer(act, command))
            for start in range(0, len(ids), _ARCHIVED_AT_ONCE):
                with act.skipping(source):
                    reasons = [(find(id).pattern, reason) for id in ids[start : start + _ARCHIVED_AT_ONCE]]
                    act.add(record_changes.archive(act.batch(reason), reasons, source))
        summary = f"{WITHDRAW.past} {shorten_id(source)}, archived {plural(len(ids), 'pattern')}"
        return replace(act.decided, summary=summary)


def _cleaned(command: PatternCommand) -> PatternCommand:
    """Clean a command's texts; raises `BadInput` for a long text or an empty note."""
    if isinstance(command, commands.Note):
        text = clean(command.text, "note")
        if not text:
            raise BadInput(f"the note on {shorten_id(command.pattern_id)} is empty")
        return replace(command, text=text)
    return replace(command, reason=clean(command.reason, "reason"))


def _answer(act: Transaction, command: Command) -> Draft:
    """Return the decision of a command about no single pattern, changing no record."""
    command = replace(command, reason=clean(command.reason, "reason"))
    return rules.QUESTION_RULES[type(command)](command, act.state, act.at)
