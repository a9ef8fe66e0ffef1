"""What leaves the machine: masked decisions, and records without counts, loops.

The rules for masks are those of `pattern export --team-shared`. A text that is masked has another content hash; pairs
of both hashes are collected, so that pins and approvals hold on both sides.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from core.base.text import ELLIPSIS
from core.decisions.export import (
    LOCAL_KEYS,
    MAX_SHARED_CHARS,
    OTHER_KEYS,
    LoopNames,
    Masked,
    Masker,
    is_role,
    kinds_of,
    plain,
)
from core.decisions.merge import ORIGINS, text_hash
from core.decisions.record_changes import with_id
from core.files.json_editor import BadJson, parse_value
from core.learning.bursts import MEMBER
from core.records.decisions import SYNC, TEXT_HASH, Decision, Effect, Verb
from core.records.patterns import PatternType
from core.sources.pattern_text import LIST_OF, id_key
from core.sources.schema import CLAIMED_RATE, PATTERNS

if TYPE_CHECKING:
    from collections.abc import Callable

COUNTERS: Final = frozenset(
    {
        *("usage_count", "success_rate", "successful_applications", "failed_applications", "average_iterations"),
        *("failure_rate", "occurrence_count", "occurrences", "last_used", "last_seen", "effectiveness_trend"),
        *("source_loops", CLAIMED_RATE, ORIGINS),
    }
)
"""Keys of a record that stay: its evidence is sent as uses."""
_KEPT_HERE: Final = COUNTERS | {*LOCAL_KEYS}
_NO_USES: Final = {
    kind: {name: 0 for name, rule in PATTERNS[kind].keys.items() if rule.required and name in COUNTERS}
    for kind in PatternType
}
_SHORT: Final = 40  # characters
_MAX_UNMASKED: Final = 10_000
_LOOP_KEYS: Final = frozenset({"loop_id", "source_loop", "loop"})
_HASH_KEYS: Final = frozenset({"content_hash", "anti_hash", TEXT_HASH})
_PRIVATE_DETAILS: Final = frozenset({"from", "decision"})  # of the note in an archived record


class SharedText(NamedTuple):
    """A shared pattern: the record, and hashes of its local and masked text."""

    record: dict[str, Any]
    local_hash: str
    shared_hash: str


class Sharing:
    """Masks records and decisions of one project.

    `origin` is the ID of the project, which makes the pseudonyms of its loops; `loops` are the IDs of its loops, and
    `persons` names that are masked in texts. `masked` collects what was masked, and `pairs` hashes of local and shared
    texts.
    """

    def __init__(self, origin: str, loops: Iterable[str] = (), persons: Iterable[str] = ()) -> None:
        self._loops = LoopNames(origin, loops)
        self._masker = Masker(name for name in persons if not is_role(name))
        self._to_shared: dict[str, str] = {}
        self._unmasked: set[str] = set()  # short texts such as keys and tags, which many records have
        self.masked: list[Masked] = []

    @property
    def pairs(self) -> Mapping[str, str]:
        """Hashes of shared texts by that of the local text, of everything shared so far."""
        return self._to_shared

    def add_pairs(self, pairs: Mapping[str, str]) -> None:
        """Add known pairs of hashes, local to shared."""
        self._to_shared |= pairs

    def text(self, text: str, place: tuple[str, str] = ("", "")) -> str:
        """Return a text as others get it."""
        if text in self._unmasked:
            return text
        before = self._loops.without(plain(text))
        if len(before) > MAX_SHARED_CHARS:
            before = before[:MAX_SHARED_CHARS] + ELLIPSIS
        after = self._masker.mask(before)
        self.masked += (Masked(*place, kind) for kind in kinds_of(before, after))
        if after == text and len(text) <= _SHORT and len(self._unmasked) < _MAX_UNMASKED:
            self._unmasked.add(text)
        return after

    def pattern(self, kind: PatternType, record: Mapping[str, Any], local_hash: str = "") -> SharedText:
        """Return a shared pattern; `local_hash` is the record's content hash, if known."""
        shared = self._record(kind.value, record)
        local_hash = local_hash or text_hash(record, kind)
        shared_hash = text_hash({**shared, **_NO_USES[kind]}, kind)
        self._to_shared[local_hash] = shared_hash
        return SharedText(shared, local_hash, shared_hash)

    def _record(self, kind: str, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keys of the schema, masked, without what stays here."""
        pattern_id = str(record.get(id_key(record), ""))
        kept = keep_shared_keys(PatternType(kind), record) if kind in LIST_OF else {}
        return {name: self._value(value, (pattern_id, f"/{name}"), name) for name, value in kept.items()}

    def _value(self, value: Any, place: tuple[str, str], key: str = "") -> Any:
        if isinstance(value, str):
            return self._loops.pseudonym(value) if key in _LOOP_KEYS else self.text(value, place)
        if isinstance(value, Mapping):
            return {
                self.text(str(name), place): self._value(item, (place[0], f"{place[1]}/{name}"), str(name))
                for name, item in value.items()
                if name not in _PRIVATE_DETAILS or key != "archived"
            }
        if isinstance(value, list | tuple):
            return [self._value(item, place, key) for item in value]
        return plain(value)

    def decision(self, decision: Decision) -> Decision | None:
        """Return a decision as others get it; None if not about the shared patterns."""
        if not is_shared(decision):
            return None
        effects, inverse = (tuple(map(self._effect, many)) for many in (decision.effects, decision.inverse))
        is_source = decision.verb in (Verb.EXTRACT, Verb.IMPORT)
        return replace(
            decision,
            subject=self._source(decision.subject) if is_source else decision.subject,
            reason=self.text(decision.reason, (decision.id, "/reason")),
            before=self._details(decision.before, decision.id),
            after=self._details(decision.after, decision.id),
            effects=tuple(filter(None, effects)),
            inverse=tuple(filter(None, inverse)),
        )

    def _source(self, subject: str) -> str:
        """Mask an extraction's or import's source: pseudonym of a loop, text of a file."""
        masked = self.text(subject)
        return masked if masked != subject or not subject else self._loops.pseudonym(subject)

    def _details(self, details: Mapping[str, Any], decision_id: str) -> dict[str, Any]:
        """Return `before` or `after` of a decision, with the hashes of the masked texts."""
        found: dict[str, Any] = {}
        for key, value in details.items():
            if key in _HASH_KEYS:
                found[key] = self._to_shared.get(value, value)
            elif key == "hashes" and isinstance(value, Mapping):
                found[key] = {name: self._to_shared.get(one, one) for name, one in value.items()}
            elif key == "imported" and isinstance(value, Mapping):
                found[key] = {name: self._value_of_record(one, name) for name, one in value.items()}
            elif key != "about":
                found[key] = self._value(value, (decision_id, f"/{key}"), key)
        return found

    def _value_of_record(self, record: Any, pattern_id: str) -> Any:
        if not isinstance(record, Mapping):
            return self._value(record, (pattern_id, ""))
        kept = {key: value for key, value in record.items() if key not in _KEPT_HERE}
        return self._value(kept, (pattern_id, ""))

    def _effect(self, effect: Effect) -> Effect | None:
        """Return an effect without counts and loops; None if nothing of it is left."""
        place = effect.pattern_id, ""

        def keys(values: Mapping[str, Any], make: Callable[[str, Any], Any]) -> dict[str, Any]:
            return {key: make(key, value) for key, value in values.items() if key not in _KEPT_HERE}

        def value(key: str, one: Any) -> Any:
            return self._value(one, (place[0], f"/{key}"), key)

        def text(key: str, one: str) -> str:
            try:
                return json.dumps(value(key, parse_value(one)), ensure_ascii=False)
            except BadJson:
                return "null"

        if effect.insert is not None or effect.remove:
            insert, was = (
                self._inserted(effect.type, record) if record is not None else None
                for record in (effect.insert, effect.was)
            )
            return replace(effect, insert=insert, was=was)
        left = replace(
            effect,
            set=keys(effect.set, value),
            seen=keys(effect.seen, value),
            text=keys(effect.text, text),
            unset=tuple(key for key in effect.unset if key not in _KEPT_HERE),
        )
        return left if left.set or left.text or left.unset else None

    def _inserted(self, kind: str, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record of an effect; an archived one keeps its note."""
        shared = self._record(kind, record)
        if kind in LIST_OF:
            hashes = (text_hash(one, PatternType(kind)) for one in (record, shared))
            self._to_shared[next(hashes)] = next(hashes)
        if isinstance(note := record.get("archived"), Mapping):
            shared["archived"] = self._value(note, (str(record.get(id_key(record), "")), "/archived"), "archived")
        return shared


def keep_shared_keys(kind: PatternType, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record's schema keys, without evidence and local decisions."""
    known = PATTERNS[kind].keys
    return {
        name: value
        for name, value in record.items()
        if (name in known or name in OTHER_KEYS) and name not in _KEPT_HERE
    }


def new_record(kind: PatternType, pattern_id: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of the space for a project that does not have it: without uses."""
    return {**with_id(kind, pattern_id, keep_shared_keys(kind, record)), **_NO_USES[kind]}


def is_shared(decision: Decision) -> bool:
    """Return whether a decision is about patterns or a member, which a team shares.

    A decision about reports of a loop, an escalation, a lesson or a text that is not a pattern is not shared. Undo and
    redo are shared if the decision that they are about is; that is for the caller to check.
    """
    if decision.by == SYNC:
        return False
    if decision.verb in (Verb.REVOKE, Verb.CONFIRM):
        return decision.subject.startswith(MEMBER)
    if decision.verb is Verb.RELEASE:
        return TEXT_HASH not in decision.after
    if decision.verb is Verb.DISMISS or decision.verb is Verb.SNOOZE:
        return not decision.subject.startswith(("escalation of ", "lesson ", "text ", "burst of "))
    return True
