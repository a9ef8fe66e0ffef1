"""What Patterns and Review share: a key, a reason where one is needed, and the decision goes to the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.content import Content

from core.curation.curator import Decided
from core.deck import Deck
from core.errors import RalphdeckError
from core.learning.scoreboard import Assessment
from core.text import plural, visible_line
from tui.present.numbers import fraction
from tui.screens.dialogs import AskLine, Confirm
from tui.screens.place import Place

Decide = Callable[[Deck, str], Decided]


def consequence(action: str, assessment: Assessment) -> str | None:
    """What a decision would change, short enough for its key."""
    if action == "promote":
        return f"promote → x1.5, score {fraction(_score(assessment, 1.5))}"
    if action == "deprecate":
        return "deprecate → never injected"
    if action == "reset":
        return f"reset → {assessment.computed.value}" if assessment.pin else "reset → may be promoted"
    return None


def _score(assessment: Assessment, multiplier: float) -> float:
    return assessment.score / assessment.multiplier * multiplier if assessment.multiplier else 0.0


class Deciding(Place):
    """Mixin of places in which patterns are promoted, deprecated, reset, put away and annotated."""

    def subjects(self) -> Sequence[str]:
        """The patterns that a decision is about: the marked ones, else the one under the cursor."""
        raise NotImplementedError

    def decided(self, subjects: Sequence[str]) -> None:
        """The decision about these is on its way."""

    def do_promote(self) -> None:
        """Pin as proven."""
        self._for_each("promote", lambda deck, key: deck.promote(key))

    def do_reset(self) -> None:
        """Take the pin off."""
        self._for_each("reset", lambda deck, key: deck.reset(key))

    def do_deprecate(self) -> None:
        """Pin as deprecated, with a reason."""
        self._with_reason(
            "Deprecate",
            "It will not be injected into any loop until somebody resets it.",
            lambda deck, key, reason: deck.deprecate(key, reason=reason),
        )

    def do_quarantine(self) -> None:
        """Put into quarantine, with a reason."""
        self._with_reason(
            "Quarantine",
            "No loop gets it until somebody has seen its text; Review asks about it.",
            lambda deck, key, reason: deck.quarantine(key, reason=reason),
        )

    def do_archive(self) -> None:
        """Move into the archive, with a reason."""
        self._with_reason(
            "Archive",
            "It leaves the registry for this month's archive and can be restored from there.",
            lambda deck, key, reason: deck.archive(key, reason=reason),
        )

    def _with_reason(self, word: str, effect: str, decide: Callable[[Deck, str, str], Decided]) -> None:
        subjects = self.subjects()

        def answered(reason: str | None) -> None:
            if reason:
                self._run(subjects, lambda deck, key: decide(deck, key, reason))

        self.deck_app.push_screen(
            AskLine(
                Content(f"{word} {self._names(subjects)}: why?"),
                Content(f"{effect} Undo takes this back."),
                required=True,
            ),
            answered,
        )

    def do_note(self) -> None:
        """Write a note beside it."""
        subjects = self.subjects()

        def answered(text: str | None) -> None:
            if text:
                self._run(subjects, lambda deck, key: deck.note(key, text=text))

        self.deck_app.push_screen(
            AskLine(
                Content(f"A note on {self._names(subjects)}"),
                Content("It is kept in the log and shown under History; it changes no state."),
                required=True,
            ),
            answered,
        )

    def _for_each(self, word: str, decide: Decide) -> None:
        subjects = self.subjects()
        if len(subjects) < 2:
            self._run(subjects, decide)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._run(subjects, decide)

        self.deck_app.push_screen(
            Confirm(
                Content(f"{word.capitalize()} {plural(len(subjects), 'pattern')}?"),
                Content("Each gets its own entry in the log; undo takes them back one by one."),
            ),
            answered,
        )

    def _run(self, subjects: Sequence[str], decide: Decide) -> None:
        self.decided(subjects)
        if len(subjects) == 1:
            self.deck_app.decide(lambda deck: decide(deck, subjects[0]))
        elif subjects:
            self.deck_app.decide(lambda deck: decide_all(deck, subjects, decide))

    def _names(self, subjects: Sequence[str]) -> str:
        return visible_line(subjects[0], 60) if len(subjects) == 1 else plural(len(subjects), "pattern")


def decide_all(deck: Deck, subjects: Sequence[str], decide: Decide) -> Decided:
    """Decide about many, one by one; what is refused is told as a warning, the rest holds."""
    last: Decided | None = None
    warnings: list[str] = []
    done = 0
    for key in subjects:
        try:
            last = decide(deck, key)
        except RalphdeckError as error:
            warnings.append(f"{visible_line(key, 60)}: {error}")
        else:
            done += 1
            warnings += last.warnings
    if last is None:
        raise RalphdeckError(f"none of {plural(len(subjects), 'pattern')} could be decided: {warnings[0]}")
    told = (*warnings[:3], *((f"and {len(warnings) - 3} more warnings",) if len(warnings) > 3 else ()))
    return Decided(
        decision=last.decision,
        warnings=told,
        written=last.written,
        summary=f"{last.decision.verb.value}: {plural(done, 'pattern')} of {len(subjects)}",
    )
