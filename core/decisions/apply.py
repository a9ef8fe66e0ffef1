"""Idempotent effects of decisions on files; docs/curation.md#pending-effects.

Above, what is written and when; below, how the effects change the text of one file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from core.base.errors import BadInput, Conflict, Unwritable
from core.base.paths import PATTERN_FILES, ProjectPaths
from core.base.regexes import lazy_regex
from core.base.text import visible_line
from core.files.atomic_write import curation_lock, rewrite
from core.files.file_reader import convert_to_utf8
from core.files.json_editor import BadJson, JsonText, Path, parse_value
from core.records.decisions import TURNS, Decision, Effect, Verb
from core.records.patterns import ID_PREFIXES, PatternType
from core.sources.keys import RecordText
from core.sources.pattern_text import (
    LIST_OF,
    Record,
    empty_file,
    id_key,
    insert_all,
    merge_records,
    records,
    remove_all,
)
from core.sources.schema import CLAIMED_RATE

if TYPE_CHECKING:
    from core.base.settings import Settings
    from core.sources.ledger import Ledger

_SUFFIXES: Final = (".json", ".jsonl")
_NUMBERED: Final = lazy_regex(r"(pat-(?:error|success|anti)|tmpl)-(.+?)-\d{3}")
_QUOTED_ID: Final = lazy_regex(r'"((?:pat-(?:error|success|anti)|tmpl)-[a-z0-9-]{1,120})-(\d{3})"')
_ARCHIVE_NAME: Final = lazy_regex(r"\d{4}-\d{2}-patterns\.json")
_MISSING: Final = object()
_LAST_USED: Final = "last_used"
_GROWING: Final = frozenset(
    {
        *("pattern_id", "template_id", "override", "source_loops", "effectiveness_trend", _LAST_USED, "tags"),
        *("usage_count", "success_rate", "successful_applications", "failed_applications", "average_iterations"),
        *("failure_rate", "occurrence_count", CLAIMED_RATE, "related_patterns", "aliases", "origins"),
        *("anchors", "anchor_commit"),
    }
)
"""Keys that change while a pattern is used; records that differ only in these are the same."""


class Step(NamedTuple):
    """One effect of one decision.

    For undo and redo, `expected` is the effect to reverse, so that later changes by other programs stay; otherwise
    None.
    """

    decision_id: str
    effect: Effect
    expected: Effect | None = None

    @property
    def name(self) -> str:
        return visible_line(self.effect.pattern_id, 80)

    @property
    def file(self) -> str:
        return visible_line(self.effect.file, 160)


class Outcome(NamedTuple):
    """A message about one decision; `done` if its effect is in the file anyway."""

    decision_id: str
    text: str
    done: bool


Outcomes = tuple[Outcome, ...]
Allocate = Callable[[str], str]  # Returns a free ID for a record whose planned ID is taken.


def pattern_path(paths: ProjectPaths, file: str) -> FilePath:
    """Return the path of a writable pattern file, by its project-relative name.

    Raises `BadInput` if it is neither a JSON file in `shared/patterns` nor an archive, if a link leads out of that
    folder, or if it does not exist and is not the file of a pattern type.
    """
    path = paths.inside(file)
    name = paths.relative(paths.archive)
    if file.rpartition("/")[0] == name and path.parent == paths.inside(name) and _ARCHIVE_NAME.fullmatch(path.name):
        return path
    name = paths.relative(paths.patterns)
    in_place = file.rpartition("/")[0] == name and path.parent == paths.inside(name)
    if not in_place or not file.endswith(_SUFFIXES) or path.suffix not in _SUFFIXES:
        raise BadInput(f"{visible_line(file, 120)} cannot be changed; only JSON files in {name}/ are written")
    if path.name not in PATTERN_FILES.values() and not path.exists():
        raise BadInput(f"{visible_line(file, 120)} cannot be created: it is not the file of a pattern type")
    return path


class FreeIds:
    """Allocates pattern IDs that no file or archive contains; reads the files once."""

    def __init__(self, paths: ProjectPaths, taken: Iterable[str] = ()) -> None:
        self._highest: dict[str, int] = {}
        for path in sorted([*paths.patterns.glob("*.json*"), *paths.archive.glob("*.json")]):
            if path.suffix in _SUFFIXES and path.is_file():
                try:
                    self._note(convert_to_utf8(path.read_bytes())[0].decode(errors="replace"))
                except OSError as error:
                    raise Unwritable(f"cannot read {path}: {error.strerror}") from None
        self.reserve(taken)

    def reserve(self, identifiers: Iterable[str]) -> None:
        self._note("\n".join(f'"{identifier}"' for identifier in identifiers))

    def _note(self, text: str) -> None:
        for stem, number in _QUOTED_ID.findall(text):
            self._highest[stem] = max(self._highest.get(stem, 0), int(number))

    def next(self, prefix: str, slug: str) -> str:
        """Allocate the next `<prefix>-<slug>-NNN`; after 999 the slug gets a suffix.

        `slug` consists of lower-case letters, digits and hyphens. Raises `Conflict` if all IDs are taken.
        """
        for name in (slug, *(f"{slug}-{number}" for number in range(2, 1000))):
            stem = f"{prefix}-{name}"
            number = self._highest.get(stem, 0) + 1
            if number <= 999:
                self._highest[stem] = number
                return f"{stem}-{number:03d}"
        raise Conflict(f"no free ID begins with {prefix}-{slug}")

    def like(self, identifier: str) -> str:
        """Allocate the next ID with the same type and slug as `identifier`."""
        match = _NUMBERED.fullmatch(identifier)
        return self.next(match[1], match[2]) if match else self.next(ID_PREFIXES[PatternType.ERROR], "renamed")


def apply_pending(paths: ProjectPaths, settings: Settings, ledger: Ledger) -> Outcomes:
    """Apply the effects of all pending decisions to the pattern files.

    Effects are applied to a file in ledger order. Returns a message for each effect that was not applied as planned; it
    stays pending if the file cannot be written. Raises nothing if a file cannot be written or the ledger cannot be
    read.
    """
    try:
        if not ledger.pending():
            return ()
    except Unwritable as error:
        return (Outcome("", str(error), False),)
    try:
        with curation_lock(paths):
            return _apply_all(paths, settings, ledger)
    except (Conflict, Unwritable) as error:
        return tuple(Outcome(decision.id, str(error), False) for decision, _ in ledger.pending())


def _apply_all(paths: ProjectPaths, settings: Settings, ledger: Ledger) -> Outcomes:
    known = {decision.id: decision for decision in ledger.decisions()}
    left: dict[str, list[Step]] = {}
    for decision, file in ledger.pending():
        left.setdefault(file, []).extend(steps_of(decision, file, known))
    work = _Work({(step.decision_id, file) for file, steps in left.items() for step in steps})
    outcomes: list[Outcome] = []
    progress = True
    while progress:
        progress = False
        for file, steps in list(left.items()):
            waiting = next((n for n, step in enumerate(steps) if work.waits(known[step.decision_id], step, file)), None)
            ready = steps[:waiting]
            if not ready:
                continue
            found, written = _apply_to_file(paths, settings, file, [step for step in ready if not work.stays(step)])
            outcomes += found
            if not written:
                del left[file]
                continue
            left[file] = steps[len(ready) :]
            work.done(file, ready, found, left[file])
            stuck = [step for step in ready if work.stays(step)]
            outcomes += (Outcome(step.decision_id, f"{step.name} stays in {step.file}", False) for step in stuck)
            progress = True
    if work.applied:
        ledger.mark_applied(work.applied)
    return tuple(outcomes)


class _Work:
    """Orders effects so that a moved record is inserted before it is removed."""

    def __init__(self, todo: set[tuple[str, str]]) -> None:
        self.applied: dict[str, list[str]] = {}
        self._open = todo
        self._failed: set[str] = set()

    def waits(self, decision: Decision, step: Step, file: str) -> bool:
        """Whether the step removes a record that is not inserted at its destination yet."""
        return step.effect.remove and any(
            effect.insert is not None and effect.pattern_id == step.effect.pattern_id and effect.file != file
            for effect in decision.effects
            if (decision.id, effect.file) in self._open
        )

    def stays(self, step: Step) -> bool:
        """Whether a record must stay because inserting it elsewhere failed."""
        return step.effect.remove and step.decision_id in self._failed

    def done(self, file: str, steps: Sequence[Step], outcomes: Sequence[Outcome], left: Sequence[Step]) -> None:
        inserting = {step.decision_id for step in steps if step.effect.insert is not None}
        self._failed |= inserting & {outcome.decision_id for outcome in outcomes if not outcome.done}
        open_still = {step.decision_id for step in left}
        for decision_id in dict.fromkeys(step.decision_id for step in steps):
            if decision_id not in open_still:
                self._open.discard((decision_id, file))
                self.applied.setdefault(decision_id, []).append(file)


def _apply_to_file(paths: ProjectPaths, settings: Settings, file: str, steps: Sequence[Step]) -> tuple[Outcomes, bool]:
    """Apply steps to one file; return the outcomes and whether all are finished."""
    usable = [step for step in steps if step.effect.type in LIST_OF]
    text = f"the decision log contains an unknown pattern type for {visible_line(file, 120)}"
    unknown = (Outcome(step.decision_id, text, False) for step in steps if step.effect.type not in LIST_OF)
    is_finished = True
    try:
        found = _write(paths, settings, file, usable) if usable else ()
    except (BadInput, Conflict, Unwritable) as error:
        found = tuple(Outcome(step.decision_id, str(error), False) for step in usable)
        is_finished = isinstance(error, BadInput)  # it can never be written, so nothing stays pending
    return (*unknown, *found), is_finished


def steps_of(decision: Decision, file: str, known: Mapping[str, Decision]) -> list[Step]:
    """Return the effects of a decision on one file; `known` has all decisions by ID."""
    reversed_effects: Sequence[Effect] = ()
    if decision.verb in TURNS and decision.subject in known:
        subject = known[decision.subject]
        reversed_effects = subject.effects if decision.verb is Verb.UNDO else subject.inverse
    expected = {(effect.file, effect.pattern_id): effect for effect in reversed_effects}
    own = [effect for effect in decision.effects if effect.file == file]
    return [Step(decision.id, effect, expected.get((file, effect.pattern_id))) for effect in own]


def _write(paths: ProjectPaths, settings: Settings, file: str, steps: Sequence[Step]) -> Outcomes:
    path = pattern_path(paths, file)
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise Unwritable(f"cannot create {path.parent}: {error.strerror}") from None
    outcomes: Outcomes = ()

    def allocate(taken: str) -> str:
        return FreeIds(paths, [taken]).like(taken)

    def change(data: bytes | None) -> bytes | None:
        nonlocal outcomes
        result, found = apply_steps(data, steps, allocate)
        # `change` runs again after a conflict, when an outcome of the first run may not recur.
        outcomes = tuple(dict.fromkeys([*(outcome for outcome in outcomes if outcome.done), *found]))
        return result

    rewrite(path, change, merge=merge_records, retry_seconds=settings.watch.retry_seconds)
    return outcomes


# The text of one file.


def apply_steps(data: bytes | None, steps: Sequence[Step], allocate: Allocate) -> tuple[bytes | None, Outcomes]:
    """Return the file after all `steps`, and messages about unexpected results.

    `data` is None if the file does not exist. All steps are about this file, in ledger order. Raises `BadJson` if the
    file cannot be parsed.
    """
    document: JsonText | None = None if data is None else RecordText(data)
    outcomes: list[Outcome] = []
    for kind, group in groupby(steps, _kind):
        run = list(group)
        if document is None and kind is _insert:
            document = empty_file(run[0].effect.type)
        if document is None:
            for step in run:
                text = f"{step.file} no longer exists: {step.name} was not changed"
                outcomes.append(Outcome(step.decision_id, text, step.effect.remove))
        else:
            outcomes += kind(document, run, allocate)
    return None if document is None else document.encode(), tuple(outcomes)


def _kind(step: Step) -> Callable[[JsonText, Sequence[Step], Allocate], Iterable[Outcome]]:
    if step.effect.insert is not None:
        return _insert
    return _remove if step.effect.remove else _change


def _insert(document: JsonText, steps: Sequence[Step], allocate: Allocate) -> Iterator[Outcome]:
    every: dict[str, list[dict[str, Any]]] = {}
    for found_record in records(document):
        every.setdefault(found_record.id, []).append(found_record.value)
    here = {identifier: values[0] for identifier, values in every.items()}
    new: dict[str, list[dict[str, Any]]] = {}
    for step in steps:
        identifier, record = step.effect.pattern_id, step.effect.insert or {}
        if step.effect.beside:
            if record in every.get(identifier, ()):
                continue
        elif identifier in here:
            if _is_same(here[identifier], record):
                continue
            if step.effect.keep_id:
                yield Outcome(step.decision_id, f"{step.name} already exists: not written", False)
                continue
            slug = identifier.rpartition("-")[0]
            if any(key.rpartition("-")[0] == slug and _is_same(value, record) for key, value in here.items()):
                continue
            free = allocate(identifier)
            while free in here:
                free = allocate(free)
            yield Outcome(step.decision_id, f"{step.name} already exists: written as {free}", True)
            identifier, record = free, {**record, id_key(record): free}
        here[identifier] = record
        new.setdefault(step.effect.type, []).append(record)
    for pattern_type, found in new.items():
        insert_all(document, pattern_type, found)


def _is_same(here: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a record equals the inserted one, apart from `_GROWING` keys."""
    return all(here.get(key, _MISSING) == value for key, value in new.items() if key not in _GROWING)


def _remove(document: JsonText, steps: Sequence[Step], _allocate: Allocate) -> Iterator[Outcome]:
    every = list(records(document))
    by_id: dict[str, list[Record]] = {}
    for record in every:
        by_id.setdefault(record.id, []).append(record)
    removed: dict[Path, Record] = {}
    for step in steps:
        written = step.effect.was or (step.expected.insert if step.expected else None)
        if written is None:
            continue
        # It may have been inserted under another ID.
        own, inverted = step.effect.pattern_id, written.get("inverted_from")
        same = [r for r in every if r.value.get("inverted_from") == inverted] if inverted else by_id.get(own, [])
        exact = [r for r in same if {**r.value, id_key(written): own} == written and r.path not in removed]
        if exact:
            removed[exact[0].path] = exact[0]
        elif any(_is_same(record.value, written) for record in same):
            yield Outcome(step.decision_id, f"{step.name} was changed since: not removed", False)
    remove_all(document, removed.values())


def _change(document: JsonText, steps: Sequence[Step], _allocate: Allocate) -> Iterator[Outcome]:
    by_id = {record.id: record for record in reversed([*records(document)])}  # the first one of an ID counts
    lists: dict[Path, set[int]] = {}
    for step in steps:
        record = by_id.get(step.effect.pattern_id)
        if record is not None and record.path and isinstance(record.path[-1], int) and not document.is_lines:
            lists.setdefault(record.path[:-1], set()).add(record.path[-1])
    parts = {path: document.items(path, indices) for path, indices in lists.items()}
    for step in steps:
        record = by_id.get(step.effect.pattern_id)
        if record is None:
            yield Outcome(step.decision_id, f"{step.name} is no longer in {step.file}", False)
        elif record.path and isinstance(record.path[-1], int) and record.path[:-1] in parts:
            part = parts[record.path[:-1]][record.path[-1]]
            yield from _edit(part, Record((), record.id, part.value), step)
        else:
            yield from _edit(document, record, step)
    for path, edited in parts.items():
        document.put_back(path, edited)


def _edit(document: JsonText, record: Record, step: Step) -> Sequence[Outcome]:
    left = []
    effect = step.effect
    if effect.seen and step.expected is None:
        _merge_into(document, record, effect)
        return ()
    reverted = _subtract(record, step.expected) if step.expected is not None else {}
    for key in dict.fromkeys((*effect.unset, *effect.set, *effect.text)):
        if _is_unchanged(document, record, key, effect):
            continue
        if step.expected is not None and not _is_unchanged(document, record, key, step.expected):
            if key not in reverted:
                left.append(key)
            elif reverted[key] != record.value.get(key):
                document.set(record.path, key, reverted[key])
        elif key in effect.text:
            # A record in JSON lines must not contain line ends; valid JSON has them only between tokens.
            text = effect.text[key].replace("\n", " ") if document.is_lines else effect.text[key]
            try:
                document.set(record.path, key, parse_value(text), text)
            except BadJson:
                left.append(key)
        elif key in effect.set:
            document.set(record.path, key, effect.set[key])
        else:
            document.remove((*record.path, key))
    if not left:
        return ()
    keys = ", ".join(visible_line(key, 40) for key in left)
    return (Outcome(step.decision_id, f"{keys} of {step.name} was changed since: left unchanged", False),)


def _merge_into(document: JsonText, record: Record, effect: Effect) -> None:
    """Apply an effect that was decided on `effect.seen` to the current values.

    Counts and list entries that were added since remain. The effect was already applied if the entries that it adds to
    lists are there. An effect without such entries is applied again.
    """
    added = _added_entries(effect)
    present = {key: record.value.get(key) for key in added}
    is_recognisable = any(added.values())
    if is_recognisable and not any(_more(items, present[key]) for key, items in added.items()):
        return
    for key, wanted in effect.set.items():
        here, seen = record.value.get(key, _MISSING), effect.seen.get(key, _MISSING)
        if key in added and isinstance(here, list):
            wanted = [*here, *_more(added[key], here)]
        elif is_recognisable and here != seen and all(map(_is_count, (here, seen, wanted))):
            wanted = here + wanted - seen
        if here != wanted:
            document.set(record.path, key, wanted)
    for key in effect.unset:
        if key in record.value:
            document.remove((*record.path, key))


def _subtract(record: Record, expected: Effect) -> dict[str, Any]:
    """Return the current counts and lists without what `expected` added to them."""
    added = _added_entries(expected)
    is_applied = any(len(_more(items, record.value.get(key))) < len(items) for key, items in added.items())
    reverted: dict[str, Any] = {}
    for key, wanted in expected.set.items():
        here, seen = record.value.get(key), expected.seen.get(key, _MISSING)
        if key in added and isinstance(here, list):
            reverted[key] = _more(here, added[key])
        elif any(added.values()) and all(map(_is_count, (here, seen, wanted))):
            reverted[key] = max(here - (wanted - seen), 0) if is_applied else here
        elif key == _LAST_USED and isinstance(here, str):
            reverted[key] = here  # later uses were uses of this pattern
    good, bad = reverted.get("successful_applications"), reverted.get("failed_applications")
    if good is not None and bad is not None and good + bad:
        reverted["success_rate"] = good / (good + bad)
    return reverted


def _added_entries(effect: Effect) -> dict[str, list[Any]]:
    """Return the list entries that an effect adds, by key."""
    return {key: _more(value, effect.seen.get(key)) for key, value in effect.set.items() if isinstance(value, list)}


def _more(items: Any, known: Any) -> list[Any]:
    return [item for item in items if not isinstance(known, list) or item not in known]


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_unchanged(document: JsonText, record: Record, key: str, effect: Effect) -> bool:
    """Whether `key` of the record has the value that `effect` sets."""
    if key in effect.text:
        return key in record.value and document.text_at((*record.path, key)) == effect.text[key]
    return bool(record.value.get(key, _MISSING) == effect.set.get(key, _MISSING))
