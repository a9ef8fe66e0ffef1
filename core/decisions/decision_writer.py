"""Writes decisions to the ledger, then updates the pattern files."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import AlreadyDone, BadInput, Conflict, Refused, StaleDecision
from core.base.formatting import shorten_id
from core.decisions import undo
from core.decisions.apply import apply_pending
from core.decisions.case import Draft
from core.decisions.conflicts import ExpectedState, check_decisions, check_newest, check_texts
from core.decisions.decision_gate import DecisionGate, OpenGate
from core.decisions.pattern_registry import UnitOfWork
from core.records.decisions import CurationState, Decision, Verb
from core.sources.ledger import Ledger

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.settings import Settings
    from core.decisions.effects import Outcome

_SHARED: Final = [name for name in Decision.__struct_fields__ if name in Draft.__struct_fields__]
"""Fields of a decision that its draft already has."""
_TRIES: Final = 3  # Attempts to write pending effects to pattern files before continuing without them.
MAX_TEXT: Final = 10_000  # Maximum length of a reason, note or rewritten text, in characters.
MOST_WARNINGS: Final = 6  # Maximum number of warnings listed for one act; further ones are only counted.
Make = Callable[[CurationState, str], Draft]
"""Drafts a decision, given the state of the ledger and the ID of the decision."""
Makes = Sequence[tuple[str, Sequence[Make]]]
"""Pairs of a pattern ID and the decisions about it, of which all or none are made."""
Progress = Callable[[int, int], None]  # Called with (patterns done, patterns in all).


class Refusal(NamedTuple):
    """Why a decision on a pattern was not made; `is_done` if already in effect."""

    pattern_id: str
    why: str
    is_done: bool = False


class Decided(Struct, frozen=True, kw_only=True):
    """A decision that is in the ledger, or the decisions of one act.

    `decision` is the last one. `group` has all decisions of an act on many patterns, in ledger order, and `refused` the
    patterns without a decision. `written` is whether the pattern files contain all effects. If not, the decision is
    still in effect, and the next decision writes the file. `summary` is one line: `promoted 12 of 14 patterns`.
    """

    decision: Decision
    warnings: tuple[str, ...]
    written: bool
    summary: str
    group: tuple[Decision, ...] = ()
    refused: tuple[Refusal, ...] = ()

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """All decisions of the act, also if there is only one."""
        return self.group or (self.decision,)


class DecisionWriter:
    """Writes decisions of `by` into the ledger of one project, and undoes them.

    Every decision is checked against the current ledger, including decisions of other processes, and then by the
    `gate`. It is durable in the ledger before the pattern files are updated.
    """

    gate: DecisionGate = OpenGate()

    def __init__(self, paths: ProjectPaths, settings: Settings, *, by: str, ledger: Ledger | None = None) -> None:
        self._paths = paths
        self._settings = settings
        self._by = clean(by, "the reviewer's name").replace("\n", " ")
        self.ledger = ledger or Ledger(paths)
        self._expected_state: ExpectedState | None = None

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
        before, self._by = self._by, by or self._by
        try:
            yield
        finally:
            self._by = before

    def apply_pending(self) -> tuple[str, ...]:
        """Write pending effects to files, e.g. after a crash; return warnings."""
        return tuple(dict.fromkeys(outcome.text for outcome in self._apply_pending()))

    def settled_count(self) -> int:
        """Write pending effects, then return the number of decisions.

        A caller that reads the files afterwards sees the effects of these decisions. Effects that cannot be written are
        skipped.
        """
        for _ in range(_TRIES):
            decisions, settled = self.ledger.status()
            if settled:
                break
            self._apply_pending()
        return decisions

    def undo(self, *, now: datetime, decision_id: str = "", any_author: bool = False) -> Decided:
        """Undo the newest decision in effect, with its whole act; see `commands.Undo`."""
        return self._turn(Verb.UNDO, now, decision_id, any_author=any_author)

    def redo(self, *, now: datetime) -> Decided:
        """Repeat the act that was undone last; see `commands.Redo`."""
        return self._turn(Verb.REDO, now, any_author=True)

    def _turn(self, verb: Verb, now: datetime, name: str = "", *, any_author: bool) -> Decided:
        def drafts(state: CurationState, act: str) -> dict[str, Draft]:
            decisions, known = self.ledger.decisions(), self.ledger.by_id()
            if not name:
                check_newest(self._by, self._unseen_decisions(), known, now)
            chosen = undo.named_act(name, state, decisions) if name else undo.last_act(verb, state, decisions)
            if not name and not any_author:
                undo.check_own(known[chosen[0]], self._by)
            reversals = [self._check_conflicts(undo.reversal(verb, known[one], self._by), now) for one in chosen]
            return {act: reversals[0]} if len(reversals) == 1 else dict(zip(_ids(act), reversals, strict=False))

        decided = self._decide(drafts, now)
        if not decided.group:
            return decided
        decisions = [self.ledger.decision(decision.subject) for decision in decided.group]
        return replace(decided, summary=undo.summary(verb, decisions, self._by))

    def _append(self, make: Make, now: datetime) -> Decided:
        def draft(state: CurationState, identifier: str) -> dict[str, Draft]:
            return {identifier: self._check_conflicts(_storable(make(state, identifier)), now)}

        return self._decide(draft, now)

    def _check_conflicts(self, draft: Draft, now: datetime) -> Draft:
        """Return the draft; raise `Conflict` if its subject changed, see `deciding_on`."""
        if news := self._unseen_decisions():
            check_decisions(draft, self._by, news, self.ledger.by_id(), now)
        if self._expected_state is not None:
            check_texts(draft, self._expected_state)
        return draft

    def _unseen_decisions(self) -> Sequence[Decision]:
        """Return the decisions that the user has not seen."""
        return () if self._expected_state is None else self.ledger.decisions()[self._expected_state.decisions :]

    def _append_all(self, makes: Sequence[Make], now: datetime) -> Decided:
        """Make several decisions in one act: all of them, or none if one is refused."""

        def drafts(state: CurationState, act: str) -> dict[str, Draft]:
            return {
                identifier: self._check_conflicts(_storable(make(state, identifier)), now)
                for identifier, make in zip(_ids(act), makes, strict=False)
            }

        return self._decide(drafts, now)

    def _append_group(self, makes: Makes, now: datetime, unknown: list[Refusal], progress: Progress | None) -> Decided:
        refused = list(unknown)

        def drafts(state: CurationState, act: str) -> dict[str, Draft]:
            found: dict[str, Draft] = {}
            is_single = sum(len(parts) for _, parts in makes) + len(unknown) == 1
            ids = iter([act]) if is_single else _ids(act)
            for number, (pattern_id, parts) in enumerate(makes, 1):
                try:
                    found |= {
                        identifier: self._check_conflicts(_storable(make(state, identifier)), now)
                        for make, identifier in zip(parts, ids, strict=False)
                    }
                except StaleDecision:
                    raise
                except (BadInput, Refused, Conflict) as error:
                    refused.append(Refusal(pattern_id, str(error), isinstance(error, AlreadyDone)))
                if progress is not None:
                    progress(number, len(makes))
            if not found:
                first = next((one for one in refused if not one.is_done), refused[0] if refused else None)
                if first is None:
                    raise Refused("nothing to decide")
                more = f" (and {len(refused) - 1:,} more like this)" if len(refused) > 1 else ""
                raise (AlreadyDone if first.is_done else Refused)(f"{first.why}{more}")
            return found

        decided = self._decide(drafts, now, refused)
        warnings = list(dict.fromkeys([*(refusal.why for refusal in refused), *decided.warnings]))
        if (more := len(warnings) - MOST_WARNINGS) > 0:
            warnings[MOST_WARNINGS:] = [f"and {more:,} more like this"]
        return replace(decided, refused=tuple(refused), warnings=tuple(warnings))

    def _decide(
        self,
        make: Callable[[CurationState, str], dict[str, Draft]],
        now: datetime,
        refused: list[Refusal] | None = None,
    ) -> Decided:
        """Append the drafts, by decision ID, that `make` returns for state and act ID.

        Those that the gate does not accept are added to `refused`; without it all are written or none.
        """
        now = now.astimezone(UTC)
        self._apply_pending()
        act = f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}-{secrets.token_hex(4)}"
        with self.ledger.exclusive():
            drafts = make(self.ledger.state(), act)
            made = []
            for identifier, draft in drafts.items():
                group = act if identifier != act else ""
                shared = {name: getattr(draft, name) for name in _SHARED}
                made.append(Decision(id=identifier, at=now, by=self._by, group=group, **shared))
            made = self._admitted(made, refused)
            drafts = {decision.id: drafts[decision.id] for decision in made}
            self.ledger.append(*made)
        outcomes = [outcome for outcome in self._apply_pending() if outcome.decision_id in drafts]
        warnings = [*(text for draft in drafts.values() for text in draft.warnings), *(one.text for one in outcomes)]
        warnings += filter(None, [self.gate.note])
        ledger_only = [shorten_id(draft.subject) for draft in drafts.values() if draft.ledger_only]
        warnings += (f"the file of {name} cannot be changed; only the decision log was updated" for name in ledger_only)
        return Decided(
            decision=made[-1],
            warnings=tuple(dict.fromkeys(warnings)),
            written=not ledger_only and all(outcome.done for outcome in outcomes),
            summary=drafts[made[-1].id].summary,
            group=tuple(made) if made[-1].group else (),
        )

    def _admitted(self, made: list[Decision], refused: list[Refusal] | None) -> list[Decision]:
        """Return the decisions that the gate accepts; raise `Conflict` if it accepts none."""
        conflicts = self.gate.admit(made, is_whole=refused is None)
        left = [decision for decision in made if decision.id not in conflicts]
        if conflicts and (refused is None or not left):
            raise Conflict(next(iter(conflicts.values())))
        if refused is not None:
            whys = {decision.subject: conflicts[decision.id] for decision in made if decision.id in conflicts}
            refused += (Refusal(subject, why) for subject, why in whys.items())
        return left

    def _apply_pending(self) -> tuple[Outcome, ...]:
        return apply_pending(self._paths, self._settings, self.ledger)

    def _unit(self) -> UnitOfWork:
        return UnitOfWork(self._paths, self.ledger)


def clean(text: str, what: str) -> str:
    """Strip text and replace lone surrogates; raise `BadInput` if it is too long."""
    text = text.encode("utf-8", "replace").decode().strip()
    if len(text) > MAX_TEXT:
        raise BadInput(f"{what} is {len(text):,} characters long; at most {MAX_TEXT:,} are allowed")
    return text


def _storable(draft: Draft) -> Draft:
    """Return the draft; raise `BadInput` if it contains a lone surrogate."""
    try:
        msgspec.json.encode(draft)
    except UnicodeEncodeError:
        raise BadInput(
            f"the record of {shorten_id(draft.subject)} contains text that is not valid Unicode, which cannot be stored"
        ) from None
    return draft


def _ids(act: str) -> Iterator[str]:
    """Return IDs for the decisions of one act, in order."""
    return (f"{act}-{number:04d}" for number in count(1))
