"""What is decided on an open project about patterns, bursts and questions, and the undo of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from core.base.errors import Conflict, Refused, StaleDecision, UnknownRecord
from core.base.text import visible_line
from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.curation.curator import Asked, Curator, Decided, Refusal
from core.curation.rules import OVERRIDE, More
from core.learning.bursts import Burst
from core.learning.scoreboard import Assessment
from core.metrics.derived_files import write_derived
from core.project.reader import Reader
from core.records.decisions import Verb
from core.records.findings import Finding
from core.records.patterns import Pattern
from core.records.question_ids import held_text_question_id
from core.storage.read_only import check_writable

_TRIES: Final = 5
"""How often a decision is worked out anew because others decided meanwhile."""


class Decider(Reader):
    """An open project that is decided on. Each decision reads the newest files first, writes, and returns what was
    decided; `view` shows it.

    Args:
        project: Where the files are.
        settings: All thresholds.
        by: Who decides, as the ledger will name them.
        clock: The present moment, aware UTC.
        cache: Whether to keep parsed files between runs.
        findings: What is wrong with the settings, to be told with the rest.
        readonly: Nothing is written in the project, by this process: whatever would raises `ReadOnly`.
    """

    def __init__(
        self,
        project: ProjectPaths,
        settings: Settings,
        *,
        by: str,
        clock: Callable[[], datetime],
        cache: bool = True,
        findings: tuple[Finding, ...] = (),
        readonly: bool = False,
    ) -> None:
        super().__init__(project, settings, clock=clock, cache=cache, findings=findings, readonly=readonly)
        self.by = by
        self.curator = Curator(project, settings, by=by)
        self._known = 0

    def settle(self) -> tuple[str, ...]:
        """Write what an interrupted decision left unwritten; returns warnings for a person."""
        if self.is_readonly:
            return ()
        with self._lock:
            warnings = self.curator.settle()
            self.apply((self.project.ledger, self.project.patterns))
            return warnings

    def promote(self, pattern_id: str, *, reason: str = "") -> Decided:
        """Pin a pattern as proven."""
        return self._decide(pattern_id, lambda p, a, now: self.curator.promote(p, a, now=now, reason=reason))

    def re_enable(self, pattern_id: str, *, reason: str = "") -> Decided:
        """Reset a deprecated pattern and promote it, as one act that one undo takes back."""
        return self.decide_many(Verb.PROMOTE, (pattern_id,), reason=reason, re_enable=True)

    def deprecate(self, pattern_id: str, *, reason: str) -> Decided:
        """Pin a pattern as deprecated: never injected until reset."""
        return self._decide(pattern_id, lambda p, a, now: self.curator.deprecate(p, a, now=now, reason=reason))

    def reset(self, pattern_id: str, *, reason: str = "") -> Decided:
        """Take the pin off: the arithmetic decides again."""
        return self._decide(pattern_id, lambda p, a, now: self.curator.reset(p, a, now=now, reason=reason))

    def accept_inversion(
        self, pattern_id: str, *, text: str | None = None, better: str | None = None, reason: str = ""
    ) -> Decided:
        """Make the pattern an anti-pattern, with `text` instead of the proposed wording if given.

        Args:
            pattern_id: The pattern.
            text: The anti-pattern in other words.
            better: Id of the pattern to do instead, "" for none; None for the one that is proposed.
            reason: Why.
        """

        def accept(pattern: Pattern, assessment: Assessment, now: datetime) -> Decided:
            proposal = self._view.inversion(pattern.id)
            if text is not None:
                proposal = proposal.worded(text)
            if better is not None:
                proposal = proposal.instead(self._view.pattern(better) if better else None)
            return self.curator.accept_inversion(pattern, assessment, proposal, now=now, reason=reason)

        return self._decide(pattern_id, accept)

    def reject_inversion(self, pattern_id: str, *, reason: str = "") -> Decided:
        """Keep the pattern as it is until some more failures come."""
        return self._decide(pattern_id, lambda p, a, now: self.curator.reject_inversion(p, a, now=now, reason=reason))

    def snooze(
        self, pattern_id: str, *, until: datetime | None = None, uses: int | None = None, reason: str = ""
    ) -> Decided:
        """Ask again about a pattern after `until`, or once so many more uses of it are known: what comes first."""
        return self._decide(
            pattern_id, lambda p, a, now: self.curator.snooze(p, a, until=until, uses=uses, now=now, reason=reason)
        )

    def note(self, pattern_id: str, *, text: str) -> Decided:
        """Write a remark beside a pattern."""
        return self._decide(pattern_id, lambda p, a, now: self.curator.note(p, text=text, now=now))

    def quarantine(self, pattern_id: str, *, reason: str) -> Decided:
        """Keep a pattern out of every context until somebody has seen its text."""
        return self._decide(pattern_id, lambda p, a, now: self.curator.quarantine(p, a, now=now, reason=reason))

    def release(self, pattern_id: str, *, reason: str = "") -> Decided:
        """Let a pattern's text be injected."""
        return self._decide(pattern_id, lambda p, a, now: self.curator.release(p, a, now=now, reason=reason))

    def restore_text(self, pattern_id: str, *, reason: str = "") -> Decided:
        """Put the text back that the standing decision on a pattern was about."""
        return self._decide(pattern_id, lambda p, a, now: self.curator.restore_text(p, a, now=now, reason=reason))

    def decide_many(
        self,
        verb: Verb,
        pattern_ids: Iterable[str],
        *,
        reason: str = "",
        until: datetime | None = None,
        uses: int | None = None,
        re_enable: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> Decided:
        """Decide the same about many patterns, as one act that one undo takes back; see `Curator.decide_many`.

        Args:
            verb: promote, deprecate, reset, quarantine, release, archive, note, snooze, accept or reject an inversion.
            pattern_ids: The patterns; one that is not known is told with what is refused.
            reason: Why; of a note its text.
            until, uses: The end of a snooze: a time, or so many more uses.
            re_enable: Reset deprecated patterns in the same act before they are promoted.
            progress: Told (patterns done, patterns in all).
        """
        wanted = tuple(dict.fromkeys(pattern_ids))

        def decide(now: datetime) -> Decided:
            asked: dict[str, Asked] = {}
            unknown: list[Refusal] = []
            for name in wanted:
                try:
                    pattern = self._view.pattern(name)
                    proposal = self._view.inversion(pattern.id) if verb is Verb.ACCEPT_INVERSION else None
                    asked[pattern.id] = Asked(pattern, self._view.assessment(pattern.id), proposal)
                except UnknownRecord as error:
                    unknown.append(Refusal(name, str(error)))
            return self.curator.decide_many(
                verb,
                tuple(asked.values()),
                now=now,
                known=self._known,
                reason=reason,
                until=until,
                uses=uses,
                re_enable=re_enable,
                unknown=unknown,
                progress=progress,
            )

        return self._decide_any(decide)

    def revoke(self, source: str, *, seen: Burst | None = None, reason: str = "") -> Decided:
        """Let none of the marks of a burst count.

        Args:
            source: Who gave the marks.
            seen: The burst as the person saw it; `Conflict` if it is another one by now.
        """
        return self._decide_any(lambda now: self.curator.revoke(self._burst(source, seen), now=now, reason=reason))

    def confirm(self, source: str, *, seen: Burst | None = None, reason: str = "") -> Decided:
        """Let the marks of a burst count; see `revoke`."""
        return self._decide_any(lambda now: self.curator.confirm(self._burst(source, seen), now=now, reason=reason))

    def _burst(self, source: str, seen: Burst | None = None) -> Burst:
        for burst in self._view.board.bursts:
            if burst.source == source:
                if seen is not None and burst != seen:
                    raise Conflict(f"the marks of {visible_line(source, 80)} are others by now; look again")
                return burst
        raise UnknownRecord(f"no burst of {visible_line(source, 80)!r} waits for a verdict; see: ralphdeck bursts")

    def snooze_question(
        self,
        question: str,
        *,
        until: datetime | None = None,
        more: More | None = None,
        about: str = "",
        reason: str = "",
    ) -> Decided:
        """Ask again after `until`, or with `more` evidence, what `ReviewItem.question_key` names; `about` is
        `ReviewItem.about`.
        """
        return self._decide_any(
            lambda now: self.curator.snooze_question(
                question, until=until, more=more, now=now, about=about, reason=reason
            )
        )

    def dismiss(self, question: str, summary: str, *, about: str = "", reason: str = "") -> Decided:
        """Never ask again what `ReviewItem.question_key` names; `summary` says what that means, `about` see there."""
        return self._decide_any(
            lambda now: self.curator.dismiss(question, summary, now=now, about=about, reason=reason)
        )

    def approve_text(self, question: str, text: str, *, about: str = "", reason: str = "") -> Decided:
        """Let a held text that is not a pattern be injected; `question` and `about` as of `ReviewItem`."""
        return self._decide_any(
            lambda now: self.curator.approve_text(question, text, now=now, about=about, reason=reason)
        )

    def approve_reflection(self, reflection_id: str, *, reason: str = "") -> Decided:
        """Let a held reflection be injected, named by its ID.

        Raises:
            UnknownRecord: No learning has this ID.
            Refused: It gives no orders, or the scan blocks it.
        """
        from core.retrieval.reflections import HELD_PREFIX, find_stop_reason

        name = visible_line(reflection_id, 80)
        learned = (one for one in self._view.learnings.learnings if one is not None and one.id == reflection_id)
        learning = next(learned, None)
        if learning is None:
            raise UnknownRecord(f"no pattern and no reflection {name!r}; see: ralphdeck reflections")
        stopped = find_stop_reason(learning.text, self.settings.injection.max_field_chars, True)
        if not stopped.startswith(HELD_PREFIX):
            raise Refused(f"{name} cannot be approved: {stopped or 'it gives no orders'}")
        question = held_text_question_id(reflection_id, learning.text)
        return self.approve_text(question, learning.text, about=f"the reflection {name}", reason=reason)

    def undo(self, decision_id: str = "", *, any_author: bool = False) -> Decided:
        """Undo the newest decision that holds, with all of its group; or the decision or group of an id, unless one
        that was made later rests on it. Another person's newest decision only with `any_author`.
        """
        return self._decide_any(lambda now: self.curator.undo(now=now, name=decision_id, any_author=any_author))

    def redo(self) -> Decided:
        """Repeat the decision that was taken back last."""
        return self._decide_any(lambda now: self.curator.redo(now=now))

    def _decide(self, pattern_id: str, decide: Callable[[Pattern, Assessment, datetime], Decided]) -> Decided:
        def decide_now(now: datetime) -> Decided:
            pattern = self._view.pattern(pattern_id)
            return decide(pattern, self._view.assessment(pattern.id), now)

        return self._decide_any(decide_now)

    def _decide_any(self, decide: Callable[[datetime], Decided]) -> Decided:
        if self.is_readonly:
            check_writable(self.project.ledger)
        with self._lock:
            touched = (self.project.ledger, self.project.patterns, self.project.events)
            for left in reversed(range(_TRIES)):
                self._known = self.curator.caught_up()
                self.apply(touched)
                try:
                    return self._with_derived(self._applied(decide, touched))
                except StaleDecision:
                    if not left:
                        raise
            raise AssertionError

    def _applied(self, decide: Callable[[datetime], Decided], touched: Iterable[Path]) -> Decided:
        try:
            return decide(self._clock())
        finally:
            self.apply(touched)

    def _with_derived(self, decided: Decided) -> Decided:
        """After a decision that wrote more than overrides into records index and metrics follow."""
        effects = (effect for decision in decided.decisions for effect in decision.effects)
        if not any(
            effect.insert is not None or effect.remove or {*effect.set, *effect.text, *effect.unset} - {OVERRIDE}
            for effect in effects
        ):
            return decided
        view = self._view
        failed = write_derived(self.project, self.settings, view.snapshot, view.board, view.now)
        return msgspec.structs.replace(decided, warnings=(*decided.warnings, *failed))
