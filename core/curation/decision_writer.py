"""Writing decisions down: checked against the ledger as it is, one act in one write, then brought into the files."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import AlreadyDone, BadInput, Conflict, Refused, StaleDecision
from core.base.formatting import short_id
from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.curation import undo
from core.curation.apply import settle
from core.curation.conflicts import Seen, check_last_seen, check_seen, check_texts
from core.curation.effects import Outcome
from core.curation.rules import Draft
from core.curation.unit_of_work import Act
from core.ledger.ledger import Ledger
from core.records.decisions import CurationState, Decision, Verb

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


class Refusal(NamedTuple):
    """Why nothing was decided about one of many patterns.

    Attributes:
        is_done: It holds already what was asked for.
    """

    pattern_id: str
    why: str
    is_done: bool = False


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


class Recorder:
    """Writes decisions into the ledger of one project, and takes them back.

    Every decision is checked against the ledger as it is at that moment, whoever wrote to it, and is in it
    for good before anything else happens. Then the pattern files follow.

    Args:
        paths: The project.
        settings: All thresholds.
        by: Who decides.
    """

    def __init__(self, paths: ProjectPaths, settings: Settings, *, by: str) -> None:
        self._paths = paths
        self._settings = settings
        self._by = clean(by, "the name of who decides").replace("\n", " ")
        self._ledger = Ledger(paths)
        self._seen: Seen | None = None

    @contextmanager
    def seeing(self, seen: Seen) -> Iterator[None]:
        """Meanwhile decide for a person who saw this: `Conflict` where a later decision is about the same, or the text
        of a pattern is another one.
        """
        before, self._seen = self._seen, seen
        try:
            yield
        finally:
            self._seen = before

    @contextmanager
    def signing(self, by: str) -> Iterator[None]:
        """Meanwhile sign decisions with another name; "" changes nothing."""
        before, self._by = self._by, by or self._by
        try:
            yield
        finally:
            self._by = before

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
            decisions, settled = self._ledger.status()
            if settled:
                break
            self._settle()
        return decisions

    def undo(self, *, now: datetime, name: str = "", any_author: bool = False) -> Decided:
        """Undo the newest decision that still holds, with all that one act decided; over the whole ledger.

        Args:
            now: The present moment.
            name: Instead of the newest one, the decision or group of this id; refused where a later one rests on it.
            any_author: Undo the newest one also where another person made it; else that is refused.
        """
        return self._turn(Verb.UNDO, now, name, any_author=any_author)

    def redo(self, *, now: datetime) -> Decided:
        """Repeat what was undone last; possible until something new is decided."""
        return self._turn(Verb.REDO, now, any_author=True)

    def _turn(self, verb: Verb, now: datetime, name: str = "", *, any_author: bool) -> Decided:
        def drafts(state: CurationState, act: str) -> dict[str, Draft]:
            decisions, known = self._ledger.decisions(), self._ledger.by_id()
            if not name:
                check_last_seen(self._by, self._news(), known, now)
            chosen = undo.one_act(name, state, decisions) if name else undo.last_act(verb, state)
            if not name and not any_author:
                undo.check_own(known[chosen[0]], self._by)
            turned = [self._seen_by(undo.turned(verb, known[one], self._by), now) for one in chosen]
            return {act: turned[0]} if len(turned) == 1 else dict(zip(_ids(act), turned, strict=False))

        decided = self._decide(drafts, now)
        if not decided.group:
            return decided
        turned = [self._ledger.decision(decision.subject) for decision in decided.group]
        return replace(decided, summary=undo.summary(verb, turned, self._by))

    def _append(self, make: Make, now: datetime) -> Decided:
        def draft(state: CurationState, identifier: str) -> dict[str, Draft]:
            return {identifier: self._seen_by(_storable(make(state, identifier)), now)}

        return self._decide(draft, now)

    def _seen_by(self, draft: Draft, now: datetime) -> Draft:
        """A draft, unless it is about something that the person has not seen, see `seeing`."""
        if news := self._news():
            check_seen(draft, self._by, news, self._ledger.by_id(), now)
        if self._seen is not None:
            check_texts(draft, self._seen)
        return draft

    def _news(self) -> Sequence[Decision]:
        """The decisions that the person has not seen."""
        return () if self._seen is None else self._ledger.decisions()[self._seen.decisions :]

    def _append_group(
        self,
        makes: Sequence[tuple[str, Sequence[Make]]],
        now: datetime,
        unknown: Sequence[Refusal],
        progress: Progress | None,
    ) -> Decided:
        """Decide what is not refused.

        Args:
            makes: The id of each pattern, with the decisions about it: all of them are made, or none.
        """
        refused = list(unknown)

        def drafts(state: CurationState, act: str) -> dict[str, Draft]:
            found: dict[str, Draft] = {}
            is_single = sum(len(parts) for _, parts in makes) + len(unknown) == 1
            ids = iter([act]) if is_single else _ids(act)
            for number, (pattern_id, parts) in enumerate(makes, 1):
                try:
                    found |= {
                        identifier: self._seen_by(_storable(make(state, identifier)), now)
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
                    raise Refused("there is nothing to decide")
                more = f" (and {len(refused) - 1:,} more like this)" if len(refused) > 1 else ""
                raise (AlreadyDone if first.is_done else Refused)(f"{first.why}{more}")
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
        kept = [short_id(draft.subject) for draft in drafts.values() if draft.ledger_only]
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

    def _act(self) -> Act:
        return Act(self._paths, self._ledger)


def clean(text: str, what: str) -> str:
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
        raise BadInput(f"the record of {short_id(draft.subject)} holds text that is no valid Unicode") from None
    return draft


def _ids(act: str) -> Iterator[str]:
    """Ids of the decisions of one act, in order."""
    return (f"{act}-{number:04d}" for number in count(1))


def _capped(warnings: Iterable[str]) -> tuple[str, ...]:
    told = list(warnings)
    more = len(told) - MOST_WARNINGS
    return (*told[:MOST_WARNINGS], f"and {more:,} more like this") if more > 0 else tuple(told)
