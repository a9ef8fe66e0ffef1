"""Own records of a project, and those from elsewhere (docs/safety.md#origin)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from core.base.errors import Unwritable
from core.base.paths import ProjectPaths, is_in_trusted_path
from core.base.user_settings import read_user_settings
from core.records.snapshot import ForeignRecords
from core.records.times import parse_time
from core.trust.own_records import (
    KnownHead,
    LastWord,
    LastWords,
    OwnRecords,
    own_records_path,
    record_digest,
    text_digest,
)
from core.trust.projects import find_answer, is_joined

if TYPE_CHECKING:
    from core.files.hash_chain import Place
    from core.records.decisions import CurationState, Decision, ProposedDecision
    from core.records.events import Event
    from core.records.patterns import Pattern


class Origins:
    """The own records of one project; `project` is its folder."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._decisions = OwnRecords(project, "decisions")
        self._events = OwnRecords(project, "events")
        self._patterns = OwnRecords(project, "patterns")
        self.do_claims_count = is_in_trusted_path(project)
        """Whether the user's environment trusts the folder, so that decisions from elsewhere count; see `fold`."""
        self._words = LastWords(project)
        self._own: dict[str, Decision] = {}
        self._version = 0

    @cached_property
    def _counts_claims(self) -> bool:
        return read_user_settings().trust.claims == "count"

    def refresh(self) -> int:
        """Read additions; return a higher number if decisions or patterns may be own now."""
        are_changed = [self._decisions.refresh(), self._patterns.refresh()]
        if any(are_changed):
            self._own.clear()
            self._version += 1
        return self._version

    def state_key(self, *, with_events: bool) -> bytes:
        """Return a value that changes whenever the user's state about origins does.

        With `with_events` also after each own event.
        """
        kinds = ("decisions", "patterns", "words", *(("events",) if with_events else ()))
        stamps = [_stamp_of(own_records_path(self._project, kind)) for kind in kinds]
        answer = find_answer(ProjectPaths(self._project))
        since = answer.since if answer is not None else None
        flags = self.do_claims_count, self._counts_claims, is_joined(self._project), since
        return msgspec.msgpack.encode((stamps, flags))

    def add_decisions(self, decisions: Iterable[Decision | ProposedDecision]) -> None:
        """Make decisions own: made or proposed now, or confirmed. Raises Unwritable."""
        self._decisions.add(map(record_digest, decisions))

    def add_words(self, decisions: Iterable[Decision], known: Mapping[str, Decision]) -> None:
        """Record own decisions on texts; `known`: undone or redone. Raises Unwritable."""
        self._words.add(decisions, known)

    def lost_words(self, decisions: Sequence[Decision], claims: Collection[str]) -> dict[str, LastWord]:
        """Return by pattern the newest own text decisions that the log has lost.

        `claims` are left out. Those from before the user trusted this folder are of another project at the same path.
        """
        if not (lost := self._words.find_lost(one for one in decisions if one.id not in claims)):
            return {}
        answer = find_answer(ProjectPaths(self._project))
        since = parse_time(answer.since) if answer is not None else None
        return {word.subject: word for word in lost if since is not None and word.at >= since}

    def add_head(self, places: Sequence[Place], decisions: int) -> None:
        """Record the end of a log of only own decisions; `places` are its line ends."""
        with suppress(Unwritable):
            self._decisions.add_head(KnownHead(len(places) - 1, places[-1].chain, decisions))

    def claims(self, decisions: Sequence[Decision], places: Sequence[Place] = ()) -> frozenset[str]:
        """Return the IDs of decisions made elsewhere and not confirmed here.

        `places` are the ends of the log after each line, see `DecisionLog`; they only save time.
        """
        head = self._decisions.head
        is_known = head is not None and head.lines < len(places) and places[head.lines].chain == head.chain
        first = head.decisions if head is not None and is_known else 0
        return frozenset(decision.id for decision in decisions[first:] if not self._is_own(decision))

    def _is_own(self, decision: Decision) -> bool:
        if self._own.get(decision.id) is decision:
            return True
        is_own = record_digest(decision) in self._decisions
        if is_own:
            self._own[decision.id] = decision
        return is_own

    def own_proposals(self, proposals: Sequence[ProposedDecision]) -> Sequence[ProposedDecision]:
        """Return proposals of agents that worked here, not those of a repository."""
        if self.do_claims_count:
            return proposals
        return [one for one in proposals if record_digest(one) in self._decisions]

    def add_events(self, events: Iterable[Event]) -> None:
        """Record that events happened here; no effect if the state is unwritable."""
        with suppress(Unwritable):
            self._events.add(map(record_digest, events), is_durable=False)

    def is_own_event(self, event: Event) -> bool:
        """Return whether an event happened here; True where foreign decisions count."""
        if self.do_claims_count:
            return True
        digest = record_digest(event)
        if digest not in self._events:  # it is not read yet, or another process has added it since
            self._events.refresh()
        return digest in self._events

    def foreign(self, patterns: Mapping[str, Pattern], curation: CurationState) -> ForeignRecords:
        """Return records from elsewhere since the project was trusted, not reviewed here.

        With the user's setting `trust.claims` = "candidate", the numbers in no file count.
        """
        if self.do_claims_count or (self._counts_claims and not self.has_patterns):
            return ForeignRecords(is_own_event=self.is_own_event)
        own = curation.own_patterns
        arrived = frozenset(
            id
            for id, pattern in (patterns.items() if self.has_patterns else ())
            if id not in own and not self._has_pattern(pattern) and not curation.approves(id, pattern.content_hash)
        )
        found = arrived if self._counts_claims else frozenset(patterns)
        return ForeignRecords(found, arrived, self.is_own_event)

    @property
    def has_patterns(self) -> bool:
        """Whether it is known which patterns the project had when it was trusted."""
        return self._patterns.exists

    def add_patterns(self, patterns: Iterable[Pattern]) -> None:
        """Let only the numbers in these patterns' records count. Raises Unwritable."""
        self._patterns.add(map(_pattern_digest, patterns))

    def follow_text(self, pattern: Pattern, content_hash: str) -> None:
        """Let a pattern's numbers count for its new text if they do. Raises Unwritable."""
        if self.has_patterns and self._has_pattern(pattern):
            self.add_patterns([structs.replace(pattern, content_hash=content_hash)])

    def _has_pattern(self, pattern: Pattern) -> bool:
        return _pattern_digest(pattern) in self._patterns


def forget_origins(project: Path) -> None:
    """Remove what is known about the records of a project that is to be deleted."""
    with suppress(OSError):
        for file in own_records_path(project, "").parent.glob(f"{own_records_path(project, '').name}*"):
            file.unlink(missing_ok=True)


def _pattern_digest(pattern: Pattern) -> bytes:
    return text_digest(f"{pattern.id}\0{pattern.content_hash}".encode(errors="replace"))


def _stamp_of(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
