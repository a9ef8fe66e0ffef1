"""Decision rules that write whole records, without I/O; see docs/curation.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import AlreadyDone, BadInput, Conflict, Refused, UnknownRecord
from core.base.formatting import shorten_id
from core.base.masking import mask_values
from core.base.paths import ProjectPaths
from core.base.scanning.verdict import describe_suspicions
from core.base.text import plural, visible_line
from core.decisions.apply import FreeIds, pattern_path
from core.decisions.case import ABOUT, Draft, already_done
from core.decisions.merge import as_read, check_pair, merge_changes
from core.decisions.pattern_registry import Registry, Stored, check_storable
from core.files.git import read_head, read_head_at
from core.records.anchors import MAX_ANCHORS, explain_invalid, list_anchors, rename_in_text
from core.records.decisions import (
    ANCHORS,
    EDIT_TEXT,
    EDITED,
    REPAIR,
    REPAIRED,
    SET_ANCHORS,
    CurationState,
    Effect,
    Verb,
)
from core.records.patterns import ID_PREFIXES, Pattern, PatternType, Severity
from core.records.reflections import LESSON_ID
from core.records.times import iso, parse_time
from core.sources.patterns import read_patterns, text_of

if TYPE_CHECKING:
    from core.decisions.import_plan import ImportPlan
    from core.records.extractions import Extraction
    from core.records.patterns import RecordRepair

_BETTER: Final = "better_alternative"
_LINK: Final = "success_pattern_id"
_RELATED: Final = "related_patterns"
ARCHIVED: Final = "archived"  # Key of an archived record: when, why, by whom, by which decision, and from which file.
ANCHOR_COMMIT: Final = "anchor_commit"  # Key of a record: the commit at which its anchors were known to be there.
_FIXED_KEYS: Final = frozenset(
    {
        *("error_type", "error_pattern", "error_message", "task_category", "task_description_pattern"),
        *("fix_category", "failure_mode", "language", "placeholders"),
    }
)
"""Keys with text in which no path is renamed: programs print it, or it is a name or a category."""
PRUNE: Final = "prune"  # Subject of a decision made by the pruning policy.


class Batch(Struct, frozen=True, kw_only=True):
    """Context of a decision on whole records: ID, time, author, reason, records."""

    paths: ProjectPaths
    registry: Registry
    ids: FreeIds
    state: CurationState
    id: str
    at: datetime
    by: str
    reason: str

    def file_of(self, kind: PatternType) -> str:
        """Return the file for new patterns of a type."""
        return self.paths.relative(self.paths.pattern_file(kind.value))

    def archive_file(self) -> str:
        """Return this month's archive; `Refused` if a link leads out of the project."""
        file = self.paths.relative(self.paths.archive / f"{self.at:%Y-%m}-patterns.json")
        try:
            pattern_path(self.paths, file)
        except BadInput as error:
            raise Refused(str(error)) from None
        return file

    def draft(self, changes: Changes, verb: Verb, subject: str, summary: str, after: dict[str, Any]) -> Draft:
        return Draft(
            verb=verb, subject=subject, summary=summary, reason=self.reason, after=after, **changes.draft_fields()
        )


class Changes:
    """Collects the effects of a decision and their inverse, record by record."""

    def __init__(self) -> None:
        self._effects: list[Effect] = []
        self._inverse: list[Effect] = []
        self._set: dict[tuple[str, str], tuple[PatternType, Stored, dict[str, Any]]] = {}
        self._unset: dict[tuple[str, str], tuple[str, ...]] = {}

    def insert(self, file: str, kind: PatternType, identifier: str, record: dict[str, Any], **options: Any) -> None:
        """Add a record; `options` are `keep_id` and `beside` of `Effect`."""
        check_storable(record, identifier)
        effect = partial(Effect, file=file, type=kind.value, pattern_id=identifier)
        self._effects.append(effect(insert=record, **options))
        self._inverse.insert(0, effect(remove=True))

    def remove(self, file: str, kind: PatternType, identifier: str, record: dict[str, Any]) -> None:
        effect = partial(Effect, file=file, type=kind.value, pattern_id=identifier)
        self._effects.append(effect(remove=True, was=record))
        self._inverse.insert(0, effect(insert=record, keep_id=True))

    def present(self, stored: Stored, kind: PatternType, identifier: str) -> dict[str, Any]:
        """Return a record with the keys set so far."""
        _, _, keys = self._set.get((stored.file, identifier), (kind, stored, {}))
        return {**stored.value, **keys}

    def set(
        self, stored: Stored, kind: PatternType, identifier: str, keys: Mapping[str, Any], unset: Sequence[str] = ()
    ) -> None:
        """Set some keys of a record and remove others."""
        known = self._set.setdefault((stored.file, identifier), (kind, stored, {}))
        known[2].update(keys)
        check_storable(known[2], identifier)
        self._unset[stored.file, identifier] = tuple(key for key in unset if key in stored.value)

    def draft_fields(self) -> dict[str, Any]:
        """Return `effects` and `inverse` of a `Draft`."""
        effects, inverse = list(self._effects), list(self._inverse)
        for (file, identifier), (kind, stored, keys) in self._set.items():
            effect = partial(Effect, file=file, type=kind.value, pattern_id=identifier)
            removed = self._unset[file, identifier]
            before = {key: stored.value[key] for key in (*keys, *removed) if key in stored.value}
            effects.append(effect(set=keys, seen=before, unset=removed))
            texts = stored.texts_of(before)
            inverse.insert(0, effect(text=texts, unset=tuple(key for key in keys if key not in before)))
        return {"effects": tuple(effects), "inverse": tuple(inverse)}


def extract(
    batch: Batch,
    extraction: Extraction,
    patterns: Mapping[str, Pattern],
    *,
    unattended: bool,
    by_agent: bool = False,
) -> Draft:
    """Add new patterns, and uses of known patterns, from the accepted proposals.

    `patterns` is the registry by ID. If `unattended`, no person has read the proposals, so Review asks about them. If
    `by_agent`, an agent proposed them, so the patterns are not injected before a person has released them. Secrets in
    the texts of actions are masked, because pattern files are shared.
    """
    changes, source = Changes(), extraction.source_id
    name = shorten_id(extraction.about or source)
    joined: list[str] = []
    hashes: dict[str, str] = {}
    found: dict[str, dict[str, str | None]] = {}
    for proposal in extraction.merges:
        stored = batch.registry.record(patterns[proposal.duplicate_of])
        kind = proposal.type
        present, new = changes.present(stored, kind, proposal.duplicate_of), mask_values(proposal.record)
        keys = merge_changes(present, new, kind, batch.at)
        if keys:
            changes.set(stored, kind, proposal.duplicate_of, keys)
            joined.append(proposal.duplicate_of)
            found[proposal.duplicate_of] = _discovery(proposal.record, kind, source, batch.at)
    proposed = {batch.ids.next(ID_PREFIXES[one.type], one.slug): one for one in extraction.new}
    kinds = {identifier: one.type for identifier, one in proposed.items()}
    for identifier, linked in link_alternatives({id: one.record for id, one in proposed.items()}, kinds).items():
        kind = kinds[identifier]
        record = with_id(kind, identifier, mask_values(_with_commit(linked, batch)))
        changes.insert(batch.file_of(kind), kind, identifier, record)
        hashes[identifier] = as_read(record, kind).content_hash
        found[identifier] = _discovery(record, kind, source, batch.at)
    if not hashes and not joined:
        why = visible_line(extraction.why_nothing or "nothing new was found", 400)
        is_known = bool(extraction.proposals) and all(one.known_as for one in extraction.proposals)
        raise (AlreadyDone if is_known else Refused)(f"nothing to extract from {name}: {why}")
    parts = [plural(len(hashes), "pattern")] if hashes else []
    further = "further place" if source.startswith(LESSON_ID) else "further use"
    parts += [f"{plural(len(set(joined)), further)} of known patterns"] if joined else []
    summary = f"extracted {' and '.join(parts)} from {name}"
    after: dict[str, Any] = {"patterns": [*hashes], "joined": list(dict.fromkeys(joined)), "found": found}
    after |= {"hashes": hashes} if unattended else {}
    after |= {"proposed": True} if by_agent else {}
    after |= {ABOUT: extraction.about} if extraction.about else {}
    return batch.draft(changes, Verb.EXTRACT, source, summary, after)


def link_alternatives(
    records: Mapping[str, dict[str, Any]], types: Mapping[str, PatternType]
) -> dict[str, dict[str, Any]]:
    """Link the anti-patterns and the success pattern of one loop, by pattern ID."""
    success = next((id for id in records if types[id] is PatternType.SUCCESS), None)
    if success is None:
        return dict(records)
    antis = [id for id in records if types[id] is PatternType.ANTI and _LINK not in records[id].get(_BETTER, {})]
    found = dict(records)
    for id in antis:
        found[id] = {**records[id], _BETTER: {**records[id].get(_BETTER, {}), _LINK: success}}
    if antis:
        found[success] = {**records[success], _RELATED: [*records[success].get(_RELATED, ()), *antis]}
    return found


def _with_commit(record: dict[str, Any], batch: Batch) -> dict[str, Any]:
    """Add the commit at which a pattern was learned to a record with anchors."""
    if not record.get(ANCHORS):
        return record
    at = parse_time(record.get("first_discovered")) or batch.at
    project = batch.paths.project
    commit = read_head_at(project, at.timestamp()) or read_head(project)
    return {**record, ANCHOR_COMMIT: commit} if commit else record


def _discovery(record: Mapping[str, Any], kind: PatternType, source_id: str, at: datetime) -> dict[str, str | None]:
    """Return loop and time of a discovery; a debug session may belong to a loop."""
    pattern = as_read(record, kind)
    first = pattern.source_loops[:1]
    times = filter(None, (pattern.last_used, *(loop.at for loop in first)))
    return {"loop": first[0].loop_id if first else source_id, "at": iso(max(times, default=at))}


def import_patterns(batch: Batch, plan: ImportPlan, patterns: Mapping[str, Pattern]) -> Draft:
    """Import patterns as planned for the current registry; quarantine new texts."""
    changes = Changes()
    texts: list[str] = []
    joined: list[str] = []
    for row in plan.changes:
        if row.record is not None:
            changes.insert(batch.file_of(row.type), row.type, row.target, row.record, keep_id=True)
        else:
            stored = batch.registry.record(patterns[row.target])
            changes.set(stored, row.type, row.target, row.set, row.unset)
        (texts if row.content_hash else joined).append(row.target)
    if not texts and not joined:
        raise AlreadyDone(f"{shorten_id(plan.file)} contains nothing new")
    parts = [f"{plural(len(texts), 'pattern')} into quarantine"] if texts else []
    parts += [f"counts of {plural(len(joined), 'known one')}"] if joined else []
    summary = f"imported {' and '.join(parts)} from {shorten_id(plan.file)}"
    after = {
        "patterns": texts,
        "joined": joined,
        "hashes": {row.target: row.content_hash for row in plan.changes if row.content_hash},
        "imported": {row.target: row.theirs for row in plan.changes if row.record is None},
    }
    return batch.draft(changes, Verb.IMPORT, plan.file, summary, after)


def merge(batch: Batch, target: Pattern, other: Pattern) -> Draft:
    """Add counts and lineage of `other` to `target`, and archive `other`."""
    check_pair(target, other)
    stored, merged_record = batch.registry.record(target), batch.registry.record(other)
    changes = Changes()
    changes.set(stored, target.type, target.id, merge_changes(stored.value, merged_record.value, target.type, batch.at))
    _archive(batch, changes, other, merged_record, f"merged into {target.id}")
    summary = f"merged {shorten_id(other.id)} into {shorten_id(target.id)}"
    return batch.draft(changes, Verb.MERGE, target.id, summary, {"merged": other.id, "patterns": [target.id, other.id]})


def archive(batch: Batch, reasons: Sequence[tuple[Pattern, str]], subject: str) -> Draft:
    """Move patterns into this month's archive, each with its reason."""
    if not reasons:
        raise Refused("nothing to archive")
    changes = Changes()
    for pattern, reason in reasons:
        _archive(batch, changes, pattern, batch.registry.record(pattern), reason)
    ids = [pattern.id for pattern, _ in reasons]
    what = shorten_id(ids[0]) if len(ids) == 1 else plural(len(ids), "pattern")
    draft = batch.draft(changes, Verb.ARCHIVE, subject, f"archived {what}", {"patterns": ids})
    return replace(draft, warnings=tuple(_copy_warning(pattern) for pattern, _ in reasons if pattern.copies))


def _copy_warning(pattern: Pattern) -> str:
    """Describe that the copies of an archived pattern are used in its place."""
    name, files = shorten_id(pattern.id), ", ".join({visible_line(copy.file, 120): None for copy in pattern.copies})
    return f"agents still get the copy of {name} in {files}; deprecate {name} to stop that"


def _archive(batch: Batch, changes: Changes, pattern: Pattern, stored: Stored, reason: str) -> None:
    note = {"at": iso(batch.at), "reason": reason, "by": batch.by, "decision": batch.id, "from": stored.file}
    record = {**stored.value, ARCHIVED: note}
    changes.insert(batch.archive_file(), pattern.type, pattern.id, record, beside=True)
    changes.remove(stored.file, pattern.type, pattern.id, stored.value)


def repair(batch: Batch, proposed: RecordRepair) -> Draft:
    """Change or archive a pattern that breaks today's rules; Conflict if it changed."""
    pattern, batch = proposed.pattern, replace(batch, reason=batch.reason or proposed.reason)
    name, stored = shorten_id(pattern.id), batch.registry.record(pattern)
    if as_read(stored.value, pattern.type).content_hash != pattern.content_hash:
        raise Conflict(f"{name} was edited meanwhile; review it again")
    if pattern.id in batch.state.pins or batch.state.approves(pattern.id, pattern.content_hash):
        raise Refused(f"a person decided on {name}; deprecate or archive it, or reset it first")
    if proposed.is_archived:
        return archive(batch, ((pattern, batch.reason),), pattern.id)
    keys = {}
    for key, values in proposed.changes.items():
        if not isinstance(present := stored.value.get(key), dict):
            raise Refused(f"the record of {name} has no {key}")
        new = {name: value for name, value in {**present, **values}.items() if value is not None}
        keys[key] = mask_values(new)
    changes = Changes()
    changes.set(stored, pattern.type, pattern.id, keys)
    digest = as_read({**stored.value, **keys}, pattern.type).content_hash
    after = {"content_hash": digest, REPAIRED: [problem.value for problem in proposed.problems]}
    draft = batch.draft(changes, Verb.EDIT, pattern.id, f"{REPAIR.past} {name}", after)
    return replace(draft, before={"content_hash": pattern.content_hash})


def edit_text(batch: Batch, pattern: Pattern, texts: Sequence[tuple[str, str]]) -> Draft:
    """Replace a pattern's texts (before, after) in order; the new text is approved."""
    record = text = text_of(batch.registry.record(pattern).value, pattern.type)
    for before, after in texts:
        replaced = {key: _replace_text(value, before, after) for key, value in text.items()}
        if replaced == text:
            raise Conflict(f"the text of {shorten_id(pattern.id)} changed meanwhile; review it again")
        text = replaced
    return _write_text(batch, pattern, {key: text[key] for key in text if text[key] != record[key]}, is_approved=True)


def has_paths(registry: Registry, pattern: Pattern, renames: Mapping[str, str]) -> bool:
    """Return whether the text of a pattern names a renamed file."""
    return bool(_renamed_text(registry.record(pattern), pattern, renames))


def rename_paths(batch: Batch, pattern: Pattern, renames: Mapping[str, str]) -> Draft:
    """Replace renamed paths in a pattern's text, without losing an approval or pin."""
    keys = _renamed_text(batch.registry.record(pattern), pattern, renames)
    pin = batch.state.pins.get(pattern.id)
    is_pinned = pin is not None and pin.content_hash == pattern.content_hash
    is_approved = is_pinned or batch.state.approves_as_guidance(pattern.id, pattern.content_hash)
    return _write_text(batch, pattern, keys, is_approved=is_approved)


def _renamed_text(stored: Stored, pattern: Pattern, renames: Mapping[str, str]) -> dict[str, Any]:
    """Return the changed keys, without those that must match what programs print."""
    fixed = {*_FIXED_KEYS, *(("name", "title") if pattern.type is PatternType.ERROR else ())}
    text = {key: value for key, value in text_of(stored.value, pattern.type).items() if key not in fixed}
    return {key: new for key, value in text.items() if (new := _rename_in(value, renames)) != value}


def _rename_in(value: Any, renames: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: inner if key in _FIXED_KEYS else _rename_in(inner, renames) for key, inner in value.items()}
    if isinstance(value, list):
        return [_rename_in(inner, renames) for inner in value]
    return rename_in_text(value, renames) if isinstance(value, str) else value


def _write_text(batch: Batch, pattern: Pattern, keys: Mapping[str, Any], *, is_approved: bool) -> Draft:
    """Write keys with text; Refused if the safety scan stops the new text."""
    name, stored = shorten_id(pattern.id), batch.registry.record(pattern)
    keys = {key: mask_values(value) for key, value in keys.items()}
    changed = as_read({**stored.value, **keys}, pattern.type)
    if stopped := [one for one in changed.suspicions if one.severity in (Severity.BLOCKED, Severity.HELD)]:
        raise Refused(f"the new text of {name} {describe_suspicions(stopped)}; change the pattern and release it")
    changes = Changes()
    changes.set(stored, pattern.type, pattern.id, keys)
    result = {"content_hash": changed.content_hash, EDITED: is_approved}
    draft = batch.draft(changes, Verb.EDIT, pattern.id, f"{EDIT_TEXT.past} {name}", result)
    return replace(draft, before={"content_hash": as_read(stored.value, pattern.type).content_hash})


def _replace_text(value: Any, before: str, after: str) -> Any:
    """Return a value of a record with another text wherever it has this one."""
    if isinstance(value, dict):
        return {key: _replace_text(inner, before, after) for key, inner in value.items()}
    if isinstance(value, list):
        return [_replace_text(inner, before, after) for inner in value]
    return after if isinstance(value, str) and value.strip() == before.strip() else value


def set_anchors(batch: Batch, pattern: Pattern, texts: Sequence[str]) -> Draft:
    """Replace a pattern's anchors, which hold for the commit checked out now."""
    name = shorten_id(pattern.id)
    for text in texts:
        if defect := explain_invalid(text):
            example = "src/cart.py, src/cart.py#total or package.json#left-pad"
            raise BadInput(f"Invalid anchor {text[:80]!r}: {defect}. Use a path such as {example}.")
    if len(texts) > MAX_ANCHORS:
        raise BadInput(f"{name} would have {len(texts)} anchors; at most {MAX_ANCHORS} are allowed")
    anchors = [one.text for one in list_anchors(texts)]
    if anchors == list(pattern.anchors):
        raise already_done(f"{name} has these anchors", batch.reason)
    stored, commit = batch.registry.record(pattern), read_head(batch.paths.project)
    keys = {key: value for key, value in ((ANCHORS, anchors), (ANCHOR_COMMIT, commit)) if value}
    before = [key for key in (ANCHORS, ANCHOR_COMMIT) if key in stored.value]
    # Without the values before, which would add the new anchors to the old ones.
    effect = partial(Effect, file=stored.file, type=pattern.type.value, pattern_id=pattern.id)
    return Draft(
        verb=Verb.EDIT,
        subject=pattern.id,
        summary=f"{SET_ANCHORS.past} {name}",
        reason=batch.reason,
        before={ANCHORS: list(pattern.anchors)},
        after={ANCHORS: anchors},
        effects=(effect(set=keys, unset=tuple(key for key in before if key not in keys)),),
        inverse=(effect(text=stored.texts_of(before), unset=tuple(key for key in keys if key not in before)),),
    )


def restore(batch: Batch, pattern_id: str, patterns: Mapping[str, Pattern]) -> Draft:
    """Restore a pattern from the newest archive that contains it."""
    present = patterns.get(pattern_id)
    if present is not None and not present.copy_folder:
        raise AlreadyDone(f"{shorten_id(pattern_id)} is already in the registry")
    heir = next((p.id for p in patterns.values() if pattern_id in p.aliases and not p.copy_folder), None)
    if heir is not None:
        name, into = shorten_id(pattern_id), shorten_id(heir)
        raise Refused(f"{name} was merged into {into}, which has its counts; undo the merge instead")
    for file in batch.registry.archives():
        stored = batch.registry.find(file, pattern_id)
        if stored is not None:
            break
    else:
        raise UnknownRecord(f"no archive contains {shorten_id(pattern_id)}; see: ralphdeck pattern list --archived")
    record = {key: value for key, value in stored.value.items() if key != ARCHIVED}
    found = read_patterns("patterns.json", json.dumps({"patterns": [record]}).encode()).patterns
    if not found:
        raise Refused("the record is not a valid pattern")
    kind = found[0].type
    changes = Changes()
    changes.insert(batch.file_of(kind), kind, pattern_id, record, keep_id=True)
    changes.remove(stored.file, kind, pattern_id, stored.value)
    summary = f"restored {shorten_id(pattern_id)} from {stored.file.rpartition('/')[2]}"
    return batch.draft(changes, Verb.RESTORE, pattern_id, summary, {"patterns": [pattern_id]})


def with_id(kind: PatternType, identifier: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record with this ID as its first key."""
    key = "template_id" if kind is PatternType.TEMPLATE else "pattern_id"
    return {key: identifier, **{name: value for name, value in record.items() if name != key}}
