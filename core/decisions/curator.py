"""Carries out decision commands on one project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from core.base.errors import BadInput, StaleDecision, UnknownRecord
from core.base.formatting import shorten_id
from core.base.text import plural
from core.decisions import commands, record_changes, rules, text_approval
from core.decisions.case import Case, Draft, change
from core.decisions.commands import Command, PatternCommand, Promote
from core.decisions.decision_writer import Decided, DecisionWriter, Make, Progress, Refusal, clean
from core.decisions.question_rules import QUESTION_RULES
from core.decisions.record_changes import Batch
from core.learning.assessment import HELD, QUARANTINE, Assessment
from core.learning.bursts import MEMBER
from core.records.decisions import EDIT_TEXT, REPAIR, SET_ANCHORS, VERBS, WITHDRAW, CurationState, Verb
from core.records.patterns import ID_PREFIXES, Maturity, Pattern, PatternType

if TYPE_CHECKING:
    from core.decisions.pattern_registry import UnitOfWork
    from core.learning.inversion_rules import Inversion


_ARCHIVED_AT_ONCE: Final = 100  # patterns that one decision archives


class Target(NamedTuple):
    """The pattern of a command, as the user saw it; `propose` creates its inversion."""

    pattern: Pattern
    assessment: Assessment
    propose: Callable[[], Inversion] | None = None


BatchRule = Callable[[Batch], Draft]
CaseRule = Callable[[Case, PatternCommand], Draft]
FindTarget = Callable[[str], Target]  # Finds a pattern by ID; raises `UnknownRecord`.


class _Act(NamedTuple):
    unit: UnitOfWork
    find: FindTarget
    now: datetime
    known: int


class Curator(DecisionWriter):
    """Makes decisions on one project; see `DecisionWriter`.

    Decisions about whole records depend on all records. `known` is the number of decisions (`settled_count`) from
    before the caller read the files; `StaleDecision` is raised if there are more now.

    Raises `Refused` if a rule forbids the decision, `BadInput` for an invalid value, and `Unwritable` or `Conflict` if
    the ledger cannot be written or no ID is free; then no decision is made. A pattern file that cannot be written is
    not an error, see `Decided.written`.
    """

    def decide(
        self, command: Command, find: FindTarget, *, now: datetime, known: int, progress: Progress | None = None
    ) -> Decided:
        """Carry out a command, except those that `write_records` handles."""
        act = _Act(self._unit(), find, now, known)
        match command:
            case commands.Undo():
                return self.undo(now=now, decision_id=command.decision_id, any_author=command.any_author)
            case commands.Redo():
                return self.redo(now=now)
            case commands.Bulk():
                return self._decide_many(command.commands, act, progress)
            case Promote(re_enable=True):
                return self._decide_many((command,), act, progress)
            case PatternCommand():
                return self._append(self._make(command, find(command.pattern_id), act), now)
            case commands.WithdrawMember():
                return self._withdraw(command, act)
        return self._append(_answer(command, now), now)

    def write_records(self, rule: BatchRule, *, now: datetime, known: int, reason: str = "") -> Decided:
        """Make a decision about whole records; `rule` receives the current records."""
        return self._append(self._with_batch(rule, reason, self._unit(), now, known), now)

    def write_many(
        self, rules: Sequence[tuple[str, BatchRule]], *, now: datetime, known: int, reason: str = ""
    ) -> Decided:
        """Make decisions about whole records in one act, each by a rule for the subject beside it."""
        unit = self._unit()
        makes = [(subject, (self._with_batch(rule, reason, unit, now, known),)) for subject, rule in rules]
        return self._append_group(makes, now, [], None)

    def repair(self, command: commands.RepairPatterns, *, now: datetime, known: int) -> Decided:
        """Change or archive patterns that do not keep today's rules, in one act."""
        changes = [(one.pattern.id, partial(record_changes.repair, proposed=one)) for one in command.repairs]
        decided = self.write_many(changes, now=now, known=known, reason=command.reason)
        if not decided.group:
            return decided
        verbs = Counter(decision.verb for decision in decided.group)
        parts = [f"{REPAIR.past} {plural(verbs[Verb.EDIT], 'pattern')}"] if verbs[Verb.EDIT] else []
        parts += [f"archived {plural(verbs[Verb.ARCHIVE], 'pattern')}"] if verbs[Verb.ARCHIVE] else []
        return replace(decided, summary=", ".join(parts))

    def edit(self, command: commands.EditTexts, find: FindTarget, *, now: datetime, known: int) -> Decided:
        """Change texts of patterns as a person edited them, in one act: all of them or none."""
        unit = self._unit()
        rules = [
            partial(record_changes.edit_text, pattern=find(one.pattern_id).pattern, texts=one.texts)
            for one in command.edits
        ]
        makes = [self._with_batch(rule, command.reason, unit, now, known) for rule in rules]
        decided = self._append_all([_answer(command.answer, now), *makes], now)
        return replace(decided, summary=f"{EDIT_TEXT.past} {plural(len(command.edits), 'pattern')}")

    def set_anchors(self, command: commands.SetAnchors, pattern: Pattern, *, now: datetime, known: int) -> Decided:
        """Replace the anchors of a pattern, and the paths of renamed files in its text, in one act."""
        unit, renames = self._unit(), dict(command.renames)
        rules: list[BatchRule] = [partial(record_changes.set_anchors, pattern=pattern, texts=command.anchors)]
        if record_changes.has_paths(self._unit().registry, pattern, renames):  # the unit reads files under the lock
            rules.append(partial(record_changes.rename_paths, pattern=pattern, renames=renames))
        makes = [self._with_batch(rule, command.reason, unit, now, known) for rule in rules]
        if len(makes) == 1:
            return self._append(makes[0], now)
        decided = self._append_all(makes, now)
        self.ledger.origins.follow_text(pattern, decided.decision.after["content_hash"])
        return replace(decided, summary=f"{SET_ANCHORS.past} {shorten_id(pattern.id)}, and the paths in its text")

    def _withdraw(self, command: commands.WithdrawMember, act: _Act) -> Decided:
        """Withdraw what a member sent, in one act; each decision archives few patterns, as a team limits its size."""
        source = f"{MEMBER}{command.member}"
        makes: list[tuple[str, tuple[Make]]] = [(source, (_answer(command, act.now),))]
        for start in range(0, len(command.pattern_ids), _ARCHIVED_AT_ONCE):
            ids = command.pattern_ids[start : start + _ARCHIVED_AT_ONCE]
            reasons = [(act.find(id).pattern, command.reason) for id in ids]
            rule = partial(record_changes.archive, reasons=reasons, subject=source)
            makes.append((source, (self._with_batch(rule, command.reason, act.unit, act.now, act.known),)))
        decided = self._append_group(makes, act.now, [], None)
        count = plural(len(command.pattern_ids), "pattern")
        return replace(decided, summary=f"{WITHDRAW.past} {shorten_id(source)}, archived {count}")

    def _decide_many(self, many: Sequence[PatternCommand], act: _Act, progress: Progress | None) -> Decided:
        """Make the same decision about many patterns in one act."""
        verbs = {command.verb for command in many}
        if len(verbs) > 1 or not all(VERBS[verb].is_bulk for verb in verbs):
            raise BadInput(f"cannot decide {', '.join(sorted(verbs))} about many patterns at once")
        targets: dict[str, tuple[PatternCommand, Target]] = {}
        unknown: list[Refusal] = []
        for command in many:
            try:
                target = act.find(command.pattern_id)
                targets[target.pattern.id] = command, target
            except UnknownRecord as error:
                unknown.append(Refusal(command.pattern_id, str(error)))
        asked = len(targets) + len(unknown)
        is_bulk = asked > 1
        makes = [(id, self._makes(command, target, act, is_bulk=is_bulk)) for id, (command, target) in targets.items()]
        decided = self._append_group(makes, act.now, unknown, progress)
        if not decided.group:
            return decided
        if asked == 1:
            before, after = decided.group[0].before["state"], decided.group[-1].after["state"]
            return replace(decided, summary=f"re-enabled {shorten_id(makes[0][0])}: {change(before, after)}")
        (verb,) = verbs
        of = f" of {asked:,}" if decided.refused else ""
        count = len({decision.subject for decision in decided.group})
        withheld = Counter(target.assessment.shown for _, target in targets.values() if target.assessment.quarantined)
        where = [f"{withheld[QUARANTINE]:,} in quarantine"] if withheld[QUARANTINE] else []
        where += [f"{withheld[HELD]:,} held"] if withheld[HELD] else []
        skipped = f"; skipped {', '.join(where)}" if where and verb is Verb.PROMOTE else ""
        return replace(decided, summary=f"{VERBS[verb].past} {count:,}{of} patterns{skipped}")

    def _makes(self, command: PatternCommand, target: Target, act: _Act, *, is_bulk: bool) -> Sequence[Make]:
        """Return the decisions of one of many commands; two for reset and promote."""
        if isinstance(command, Promote):
            if command.re_enable and target.assessment.state is Maturity.DEPRECATED:
                promote = self._with_case(command, target, act, rules.promote_after_reset)
                if target.pattern.id in self.ledger.state().reset:
                    return (promote,)
                return (self._with_case(command, target, act, rules.reset), promote)
            if is_bulk:
                return (self._with_case(command, target, act, rules.promote_among_many),)
        return (self._make(command, target, act),)

    def _make(self, command: PatternCommand, target: Target, act: _Act) -> Make:
        pattern, unit = target.pattern, act.unit
        match command:
            case commands.Note():
                return _note(pattern, command.text)
            case commands.Archive():
                reasons = ((pattern, command.reason),)
                rule = partial(record_changes.archive, reasons=reasons, subject=pattern.id)
                return self._with_batch(rule, command.reason, unit, act.now, act.known)
            case commands.AcceptInversion():
                return self._accept_inversion(command, target, act)
            case commands.RestoreText():
                return self._with_case(command, target, act, lambda case, _: self._restore_text(case, unit))
        return self._with_case(command, target, act, rules.PATTERN_RULES[type(command)])

    def _restore_text(self, case: Case, unit: UnitOfWork) -> Draft:
        text = {}
        if case.pin is not None:
            text = text_approval.approved_text(self.ledger.decision(case.pin.decision_id), case.pattern)
        return text_approval.restore_text(case, text, unit.registry.record(case.pattern))

    def _accept_inversion(self, command: commands.AcceptInversion, target: Target, act: _Act) -> Make:
        if target.propose is None:
            raise BadInput(f"{shorten_id(target.pattern.id)} has no inversion to accept")
        proposal = target.propose()
        if command.text is not None:
            proposal = proposal.with_text(command.text)
        if command.better is not None:
            proposal = proposal.with_alternative(act.find(command.better).pattern if command.better else None)
        text = clean(proposal.text, "the text of the anti-pattern")

        def rule(case: Case, _command: PatternCommand) -> Draft:
            next_id = partial(act.unit.ids.next, ID_PREFIXES[PatternType.ANTI])
            return rules.accept_inversion(case, proposal, text, next_id)

        return self._with_case(replace(command, reason=command.reason or proposal.reason), target, act, rule)

    def _with_batch(self, rule: BatchRule, reason: str, unit: UnitOfWork, now: datetime, known: int) -> Make:
        reason = clean(reason, "reason")

        def draft(state: CurationState, identifier: str) -> Draft:
            if len(self.ledger.decisions()) != known:
                raise StaleDecision("The decision log kept changing; try again")
            shared = self._decision_fields(state, identifier, now, reason)
            return rule(Batch(paths=self._paths, registry=unit.registry, ids=unit.ids, **shared))

        return draft

    def _with_case(self, command: PatternCommand, target: Target, act: _Act, rule: CaseRule) -> Make:
        reason, pattern, unit = clean(command.reason, "reason"), target.pattern, act.unit

        def draft(state: CurationState, identifier: str) -> Draft:
            writable = unit.is_writable(pattern)
            case = Case(
                pattern=pattern,
                assessment=target.assessment,
                settings=self._settings,
                written=unit.written_override(pattern) if writable and pattern.id not in state.pins else None,
                writable=writable,
                anti_file=self._paths.relative(self._paths.pattern_file(PatternType.ANTI.value)),
                text=lambda: unit.text(pattern),
                **self._decision_fields(state, identifier, act.now, reason),
            )
            return rule(case, command)

        return draft

    def _decision_fields(self, state: CurationState, identifier: str, now: datetime, reason: str) -> dict[str, Any]:
        """Return the fields that `Case` and `Batch` share."""
        return {"state": state, "id": identifier, "at": now.astimezone(UTC), "by": self._by, "reason": reason}


def _answer(command: Command, now: datetime) -> Make:
    """Return the decision of a command that is not about a single pattern and changes no record."""
    rule = QUESTION_RULES[type(command)]
    cleaned = replace(command, reason=clean(command.reason, "reason"))
    return lambda state, _id: rule(cleaned, state, now)


def _note(pattern: Pattern, text: str) -> Make:
    text = clean(text, "note")
    if not text:
        raise BadInput(f"the note on {shorten_id(pattern.id)} is empty")

    def draft(_state: CurationState, _identifier: str) -> Draft:
        summary = f"{VERBS[Verb.NOTE].past} {shorten_id(pattern.id)}"
        return Draft(verb=Verb.NOTE, subject=pattern.id, summary=summary, after={"text": text})

    return draft
