"""Compute the state that results from all decisions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from core.records.decisions import (
    EDITED,
    RE_ENABLED,
    SCAN_RULES,
    SCRIPTS,
    SYNC,
    TEXT_HASH,
    TURNS,
    Author,
    BurstVerdict,
    CurationState,
    Decision,
    InversionVerdict,
    Pin,
    UnreviewedText,
    Verb,
)
from core.records.patterns import Maturity
from core.records.times import parse_time
from core.trust.own_records import Effect

if TYPE_CHECKING:
    from core.records.decisions import ProposedDecision
    from core.trust.origins import Origins
    from core.trust.own_records import LastWord

_ARRIVALS: Final = {Verb.IMPORT: "import", Verb.EXTRACT: "extraction", Verb.QUARANTINE: "quarantine"}
MOST_PROPOSED: Final = 100  # number of proposals that wait at once; further ones are refused
_BESIDE: Final = {Verb.NOTE, Verb.SNOOZE}  # Verbs of decisions that answer no proposal of another one.
_BURST_VERDICTS: Final = {Verb.REVOKE: "revoked", Verb.CONFIRM: "confirmed"}


def fold(
    decisions: Iterable[Decision], claims: Collection[str] = (), *, do_claims_count: bool = False
) -> CurationState:
    """Compute the state after `decisions`, oldest first.

    Undo removes a decision as if it had never been made, and redo restores it in its place. Any new decision clears
    what could be redone, as in an editor; a redo that a member of the team made earlier still counts. What the sync
    with a team undid cannot be redone. An invalid undo or redo (in a log that was merged by hand) changes nothing.

    `claims` are the IDs of decisions that were made elsewhere and are not confirmed here (docs/safety.md#origin). They
    only withhold texts: those that they quarantine, or that they added and that need a review. With `do_claims_count`
    they decide what they would decide here, but approve no text that is held or blocked.
    """
    made: dict[str, Decision] = {}
    undoable: dict[str, None] = {}
    redoable: dict[str, None] = {}
    undone_claims: set[str] = set()
    acts: dict[str, str] = {}
    early: dict[str, Decision] = {}  # undo of decisions whose lines follow, because a merge moved them
    for decision in decisions:
        is_claim = decision.id in claims
        if decision.verb in (Verb.UNDO, Verb.REDO):
            subject, is_undo = decision.subject, decision.verb is Verb.UNDO
            if is_claim:
                if subject in claims and subject in made:
                    (undone_claims.add if is_undo else undone_claims.discard)(subject)
            elif subject not in made and is_undo:
                early[subject] = decision
            elif subject in made and (subject in undoable) is is_undo and subject not in claims:
                acts[subject] = decision.act
                source, target = (undoable, redoable) if is_undo else (redoable, undoable)
                source.pop(subject, None)
                if not is_undo or decision.by != SYNC:
                    target[subject] = None
        elif decision.id not in made:
            made[decision.id] = decision
            acts[decision.id] = decision.act
            if not is_claim:
                redoable.clear()
                if decision.id in early:
                    acts[decision.id] = early[decision.id].act
                else:
                    undoable[decision.id] = None
    undone = (made.keys() - undoable.keys() - set(claims)) | undone_claims
    state = _State()
    for decision in made.values():
        if decision.id not in undone and (do_claims_count or decision.id not in claims):
            state.apply(decision, approves=decision.id not in claims)
        elif decision.verb is Verb.IMPORT or (decision.verb in _ARRIVALS and decision.id not in undone):
            # A record that was used or edited since stays in its file, so it still has to be reviewed.
            state.add_arrivals(decision)
    fields: dict[str, Any] = {
        name: frozenset(value) if isinstance(value, set) else value for name, value in vars(state).items()
    }
    return CurationState(
        **fields,
        undone=frozenset(undone),
        undoable=tuple(undoable),
        redoable=tuple(redoable),
        acts=acts,
        claims=frozenset(claims),
        do_claims_count=do_claims_count,
        pending_claims=frozenset() if do_claims_count else frozenset((made.keys() & set(claims)) - undone),
    )


def fold_log(decisions: Sequence[Decision], claims: Collection[str], origins: Origins) -> CurationState:
    """Compute the state after a log's decisions and known origins; see `fold`."""
    state = fold(decisions, claims, do_claims_count=origins.do_claims_count)
    return with_lost_words(state, origins.lost_words(decisions, claims))


def with_lost_words(state: CurationState, lost: Mapping[str, LastWord]) -> CurationState:
    """Withhold texts that this user withheld in lost decisions; `lost` is by pattern."""
    words = {subject: word for subject, word in lost.items() if word.effect is not Effect.APPROVES}
    if not words:
        return state
    arrivals = dict(state.arrivals)
    for subject, word in words.items():
        known = arrivals.get(subject)
        if word.effect is Effect.WITHHOLDS:
            arrivals[subject] = UnreviewedText(
                kind="quarantine",
                at=word.at,
                by=word.by,
                decision_id=word.id,
                blocks=True,
                reason="this decision is missing from the log",
            )
        elif known is not None:
            arrivals[subject] = replace(known, reviewed=frozenset())
    return replace(
        state,
        arrivals=arrivals,
        pins={id: pin for id, pin in state.pins.items() if id not in words or pin.state is Maturity.DEPRECATED},
        approved={id: texts for id, texts in state.approved.items() if id not in words},
        cleared={id: texts for id, texts in state.cleared.items() if id not in words},
    )


def with_proposals(
    state: CurationState, decisions: Iterable[Decision], proposed: Sequence[ProposedDecision]
) -> CurationState:
    """Add agents' newest proposals not rejected and not answered by a later decision.

    `state` is that after `decisions`. The proposal to undo a decision waits until that is undone.
    """
    waiting = {one.question: one for one in proposed if one.question not in state.dismissed}
    if not waiting:
        return replace(state, proposed=()) if state.proposed else state
    newest: dict[tuple[str, str], str] = {}  # by verb and subject, and by "" and subject if any verb answers
    for decision in decisions:
        has_effect = decision.id not in state.undone and decision.id not in state.pending_claims
        if has_effect and decision.verb not in TURNS:
            for subject in (decision.subject, *(effect.pattern_id for effect in decision.effects)):
                for verb in (decision.verb, "") if decision.verb not in _BESIDE else (decision.verb,):
                    newest[verb, subject] = max(decision.id, newest.get((verb, subject), ""))
    kept = [
        one
        for one in waiting.values()
        if not (
            state.undone.issuperset(one.subjects)
            if one.verb == Verb.UNDO
            else any(newest.get((verb, subject), "") > one.id for subject in one.subjects for verb in (one.verb, ""))
        )
    ]
    return replace(state, proposed=tuple(kept[-MOST_PROPOSED:]))


class _State:
    """The mutable fields of `CurationState`."""

    def __init__(self) -> None:
        self.pins: dict[str, Pin] = {}
        self.inversions: dict[str, InversionVerdict] = {}
        self.notes: dict[str, tuple[Decision, ...]] = {}
        self.bursts: dict[str, tuple[BurstVerdict, ...]] = {}
        self.arrivals: dict[str, UnreviewedText] = {}
        self.cleared: dict[str, dict[str, int]] = {}
        self.approved: dict[str, frozenset[str]] = {}
        self.guidance: dict[str, frozenset[str]] = {}
        self.approved_texts: set[str] = set()
        self.scripts: set[str] = set()
        self.extracted: set[str] = set()
        self.imported: dict[str, dict[str, Any]] = {}
        self.dismissed: set[str] = set()
        self.reset: set[str] = set()

    def apply(self, decision: Decision, *, approves: bool) -> None:
        """Apply a decision; without `approves` it is not taken as an approval of a text."""
        subject, after = decision.subject, decision.after
        match decision.verb:
            case Verb.REVOKE | Verb.CONFIRM:
                self._judge_burst(decision)
            case Verb.DISMISS:
                self.dismissed.add(subject)
            case Verb.IMPORT:
                self.add_arrivals(decision)
                self.imported |= {one.pattern_id: one.insert for one in decision.effects if one.insert is not None}
                records = after.get("imported")
                known = records.items() if isinstance(records, dict) else ()
                self.imported |= {pattern_id: record for pattern_id, record in known if isinstance(record, dict)}
            case Verb.EXTRACT:
                self.add_arrivals(decision)
                self.extracted |= {effect.pattern_id for effect in decision.effects if effect.insert is not None}
            case Verb.QUARANTINE:
                self.add_arrivals(decision)
                self.cleared.pop(subject, None)
                self.approved.pop(subject, None)
                self.guidance.pop(subject, None)
            case Verb.RESET:
                self.pins.pop(subject, None)
                self.reset.add(subject)
            case Verb.NOTE:
                notes = (*self.notes.get(subject, ()), decision)
                self.notes[subject] = tuple(sorted(notes, key=lambda note: (note.at, note.id)))
            case Verb.SNOOZE:
                self._snooze(decision)
            case Verb.RELEASE:
                if approves:
                    self._review(decision)
                    if text := _text(after.get(TEXT_HASH)):
                        self.approved_texts.add(text)
                        self._use_scripts(decision)
                else:
                    self._guide(decision)
                if after.get(RE_ENABLED) is True:
                    self.pins[subject] = _make_pin(
                        decision, Maturity.ESTABLISHED, "content_hash", "successes", "failures"
                    )
                    self.reset.discard(subject)
            case Verb.EDIT:
                if after.get(EDITED) is True:
                    self._edit(decision, approves=approves)
            case Verb.PROMOTE | Verb.DEPRECATE:
                if approves:
                    self._review(decision)
                self._pin(decision)
            case Verb.ACCEPT_INVERSION:
                self._pin(decision)
                self._judge_inversion(decision, "accepted")
                if anti_id := _text(after.get("anti_id")):
                    # A failure of the avoided approach confirms the anti-pattern.
                    self.pins[anti_id] = _make_pin(decision, Maturity.ESTABLISHED, "anti_hash", "failures", "successes")
            case Verb.REJECT_INVERSION:
                self._judge_inversion(decision, "rejected")
        if not approves:
            for id in (subject, _text(after.get("anti_id"))):
                if id in self.pins and self.pins[id].decision_id == decision.id:
                    self.pins[id] = replace(self.pins[id], approves=False)

    def add_arrivals(self, decision: Decision) -> None:
        """Add the unreviewed texts of a decision: `after["hashes"]`, by pattern ID."""
        hashes = decision.after.get("hashes")
        for pattern_id in hashes if isinstance(hashes, dict) else ():
            known = self.arrivals.get(pattern_id)
            # Quarantine asks for a new review, even of a text that was reviewed before.
            keeps_reviews = known is not None and decision.verb is not Verb.QUARANTINE
            self.arrivals[pattern_id] = UnreviewedText(
                kind="proposal" if decision.is_proposal else _ARRIVALS[decision.verb],
                at=decision.at,
                by=decision.by,
                decision_id=decision.id,
                blocks=decision.verb is not Verb.EXTRACT
                or decision.is_proposal
                or (known is not None and known.blocks),
                reviewed=known.reviewed if known is not None and keeps_reviews else frozenset(),
                reason=decision.reason,
            )

    def _judge_burst(self, decision: Decision) -> None:
        first, last = parse_time(decision.after.get("first")), parse_time(decision.after.get("last"))
        patterns = decision.after.get("patterns")
        if first is not None and last is not None:
            verdict = BurstVerdict(
                verdict=_BURST_VERDICTS[decision.verb],
                first=first,
                last=last,
                decision_id=decision.id,
                patterns=tuple(filter(None, map(_text, patterns))) if isinstance(patterns, list) else (),
            )
            self.bursts[decision.subject] = (*self.bursts.get(decision.subject, ()), verdict)

    def _review(self, decision: Decision) -> None:
        """Record that the text was reviewed, and approved unless it was deprecated."""
        subject, text = decision.subject, _text(decision.after.get("content_hash"))
        if not text:
            return
        if (known := self.arrivals.get(subject)) is not None:
            self.arrivals[subject] = replace(known, reviewed=known.reviewed | {text})
        if decision.verb is not Verb.DEPRECATE:
            self.approved[subject] = self.approved.get(subject, frozenset()) | {text}
            self._guide(decision)
            self._use_scripts(decision)
            if decision.reason:
                known_rules = self.cleared.get(subject, {})
                self.cleared[subject] = known_rules | {text: max(_scan_rules(decision), known_rules.get(text, 0))}

    def _edit(self, decision: Decision, *, approves: bool) -> None:
        """Approve an edited text if `approves`; move the old text's pin to it."""
        if approves:
            self._review(decision)
        else:
            self._guide(decision)
        pin, text = self.pins.get(decision.subject), _text(decision.after.get("content_hash"))
        if pin is not None and text and pin.content_hash == decision.before.get("content_hash"):
            self.pins[decision.subject] = replace(pin, content_hash=text)

    def _guide(self, decision: Decision) -> None:
        """Record a text as guidance if a person decided; it may still be held or blocked."""
        subject, text = decision.subject, _text(decision.after.get("content_hash"))
        if text and decision.decided_by is Author.PERSON:
            self.guidance[subject] = self.guidance.get(subject, frozenset()) | {text}

    def _use_scripts(self, decision: Decision) -> None:
        scripts = decision.after.get(SCRIPTS)
        self.scripts.update(filter(None, map(_text, scripts if isinstance(scripts, list) else ())))

    def _pin(self, decision: Decision) -> None:
        state = Maturity.PROVEN if decision.verb is Verb.PROMOTE else Maturity.DEPRECATED
        self.pins[decision.subject] = _make_pin(decision, state, "content_hash", "successes", "failures")
        self.reset.discard(decision.subject)

    def _judge_inversion(self, decision: Decision, verdict: str) -> None:
        self.inversions[decision.subject] = InversionVerdict(
            verdict=verdict,
            at=decision.at,
            failures=_count(decision.after.get("failures")),
            anti_id=_text(decision.after.get("anti_id")),
            decision_id=decision.id,
        )

    def _snooze(self, decision: Decision) -> None:
        until = parse_time(decision.after.get("until"))
        beyond = _count(decision.after.get("beyond")) or None
        known = self.inversions.get(decision.subject)
        if known is None or known.verdict == "snoozed":
            known = InversionVerdict(verdict="snoozed", at=decision.at, decision_id=decision.id)
        self.inversions[decision.subject] = replace(known, until=until, beyond=beyond)


def _make_pin(decision: Decision, state: Maturity, text: str, successes: str, failures: str) -> Pin:
    """Make the pin that a decision sets; the last arguments are keys in its `after`."""
    return Pin(
        state=state,
        at=decision.at,
        by=decision.by,
        reason=decision.reason,
        content_hash=_text(decision.after.get(text)),
        decision_id=decision.id,
        successes=_count(decision.after.get(successes)),
        failures=_count(decision.after.get(failures)),
        scan_rules=_scan_rules(decision),
    )


def _scan_rules(decision: Decision) -> int:
    return max(_count(decision.after.get(SCAN_RULES)), 1)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
