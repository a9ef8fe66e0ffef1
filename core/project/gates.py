"""What others than the rules say about decisions of a project: who decides, and the team of the project.

See docs/curation.md#who-decides. Nothing of `core.team` is imported if the user has joined no project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.base.errors import RalphdeckError, Refused
from core.base.scanning.verdict import find_stopping_severity
from core.base.user_settings import read_user_settings, user_settings_file
from core.decisions.decision_text import verb_text
from core.decisions.merge import as_read
from core.decisions.undo import affected_ids
from core.files.user_files import team_file
from core.records.decisions import TURNS, Author, Decision, Verb, author_of
from core.records.patterns import Maturity, Pattern, PatternType
from core.records.reflections import LESSON_ID

if TYPE_CHECKING:
    from core.decisions.curator import DecisionGate
    from core.index.project_state import ProjectState
    from core.records.decisions import CurationState
    from core.records.snapshot import Delta
    from core.team.gate import TeamGate
    from core.team.texts import OpenProject

    ReadNow = Callable[[Iterable[Path] | None], tuple[ProjectState, Delta]]

_INJECTED: Final = (Maturity.PROVEN, Maturity.ESTABLISHED)


class AuthorGate:
    """Accepts what the author of the decisions may decide; then the team decides.

    An agent may add candidates. A script may do what `decisions.scripts` of the user's own settings allows.
    """

    def __init__(self, project: OpenProject, team: DecisionGate) -> None:
        self._project = project
        self._team = team

    @property
    def note(self) -> str:
        return self._team.note

    def admit(self, decisions: Sequence[Decision], *, is_whole: bool) -> Mapping[str, str]:
        refusals = self._refusals(decisions)
        left = [one for one in decisions if one.id not in refusals]
        if refusals and (is_whole or not left):
            raise Refused(next(iter(refusals.values())))
        return {**refusals, **self._team.admit(left, is_whole=is_whole)}

    def _refusals(self, decisions: Sequence[Decision]) -> dict[str, str]:
        others = [one for one in decisions if not adds_candidates(one)]
        author = author_of(decisions[0].by)
        if not others or author is Author.PERSON:
            return {}
        if author is Author.AGENT:
            raise Refused(f"an agent cannot {verb_text(others[0])}: a person has to decide that")
        allowed = read_user_settings().decisions.scripts
        if allowed == "none":
            raise Refused("a script decides nothing here (decisions.scripts is none); decide at a terminal")
        return {} if allowed == "all" else dict(self._releases(decisions))

    def _releases(self, decisions: Sequence[Decision]) -> Iterator[tuple[str, str]]:
        """Yield the decisions that let a stopped text through, with a refusal."""
        known = self._project.ledger.by_id()
        ledger = self._project.ledger
        before, after = ledger.state(), ledger.state_with(decisions)
        texts = self._project.view.snapshot.patterns
        for decision in decisions:
            about = affected_ids(decision)
            if decision.verb in TURNS and (other := known.get(decision.subject)) is not None:
                about = about | affected_ids(other)
            patterns = [texts[one] for one in about if one in texts]
            patterns += [
                as_read({**effect.insert, "id": effect.pattern_id}, PatternType(effect.type))
                for effect in decision.effects
                if effect.insert is not None
            ]
            released = any(self._is_stopped(one, before) and not self._is_stopped(one, after) for one in patterns)
            if released or (decision.verb is not Verb.UNDO and after.approved_texts - before.approved_texts):
                yield (
                    decision.id,
                    "a script releases no text that is held, blocked or in quarantine: read it and decide at a "
                    f'terminal, or set scripts = "all" in the group decisions of {user_settings_file()}',
                )

    def _is_stopped(self, pattern: Pattern, curation: CurationState) -> bool:
        """Whether a text is not injected until a person has read it; a pattern may be deprecated besides."""
        pin = curation.pins.get(pattern.id)
        if pin is not None and pin.state in _INJECTED and pin.content_hash == pattern.content_hash:
            return False
        arrival = curation.arrivals.get(pattern.id)
        if arrival is not None and arrival.blocks and arrival.needs_review(pattern.content_hash):
            return True
        return find_stopping_severity(pattern, curation, self._project.settings.scan) is not None


def adds_candidates(decision: Decision) -> bool:
    """Whether a decision only adds candidates and uses of patterns; a lesson of an agent is accepted by a person."""
    return decision.verb is Verb.EXTRACT and not decision.subject.startswith(LESSON_ID)


class JoinedGate:
    """Accepts everything unless the user has joined the project to a team; joining and leaving work at any time.

    Nothing of `core.team` is imported if the user has joined no project.
    """

    def __init__(self, project: OpenProject) -> None:
        self._project = project
        self._gate: TeamGate | None = None
        self._stamp: tuple[int, int] | None = None  # of the file with the joined projects
        self._problem = ""  # why the gate of a team cannot be opened

    @property
    def note(self) -> str:
        return self._gate.note if self._gate is not None else self._problem

    def admit(self, decisions: Sequence[Decision], *, is_whole: bool) -> Mapping[str, str]:
        gate = self._find_gate()
        return gate.admit(decisions, is_whole=is_whole) if gate is not None else {}

    def catch_up(self) -> None:
        """Receive what others have decided, after a conflict."""
        if self._gate is not None:
            self._gate.catch_up()

    def _find_gate(self) -> TeamGate | None:
        try:
            status = team_file().stat()
        except OSError:
            stamp = None
        else:
            stamp = status.st_ino, status.st_mtime_ns
        if stamp != self._stamp:
            self._stamp = stamp
            if self._gate is not None:
                self._gate.close()
            self._gate, self._problem = None, ""
            try:
                self._gate = self._open_gate() if stamp is not None else None
            except RalphdeckError as error:  # it is sent by the next sync that can use these files
                self._problem = f"not sent to the team: {error}"
                self._stamp = None  # the next decision tries again
        return self._gate

    def _open_gate(self) -> TeamGate | None:
        from core.team.consent import find_joined

        joined = find_joined(self._project.project.project)
        if joined is None:
            return None
        from core.team.gate import TeamGate

        return TeamGate(self._project, joined)
