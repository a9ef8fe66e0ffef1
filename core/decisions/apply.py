"""Apply the effects of decisions; see docs/curation.md#pending-effects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.base.errors import BadInput, Conflict, Unwritable
from core.base.paths import PATTERN_FILES, ProjectPaths
from core.base.regexes import lazy_regex
from core.base.text import visible_line
from core.decisions.effects import Outcome, Outcomes, Step, apply_steps
from core.files.atomic_write import curation_lock, rewrite
from core.files.file_reader import convert_to_utf8
from core.records.decisions import TURNS, Decision, Effect, Verb
from core.records.patterns import ID_PREFIXES, PatternType
from core.sources.pattern_text import LIST_OF, merge_records

if TYPE_CHECKING:
    from core.base.settings import Settings
    from core.sources.ledger import Ledger

_SUFFIXES: Final = (".json", ".jsonl")
_NUMBERED: Final = lazy_regex(r"(pat-(?:error|success|anti)|tmpl)-(.+?)-\d{3}")
_QUOTED_ID: Final = lazy_regex(r'"((?:pat-(?:error|success|anti)|tmpl)-[a-z0-9-]{1,120})-(\d{3})"')
_ARCHIVE_NAME: Final = lazy_regex(r"\d{4}-\d{2}-patterns\.json")


def pattern_path(paths: ProjectPaths, file: str) -> Path:
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
