"""Cached extraction on request, and checks of patterns by today's rules."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from operator import is_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from core.base.errors import RalphdeckError, Refused, UnknownRecord
from core.base.masking import mask_secrets
from core.base.regexes import lazy_regex
from core.base.steps import Steps, run_all
from core.base.text import visible_line
from core.index.review_items import WeakenedTest
from core.index.verdicts import StoredVerdicts, VerdictsInMemory
from core.questions.extraction.approaches import adds_steps, has_steps
from core.questions.extraction.attempt_fixes import find_weakening_changes
from core.questions.extraction.engine import KnownPatterns, extract, fits, has_common_place
from core.questions.extraction.fixes import has_partial_holes, has_reason
from core.questions.extraction.learnings import (
    CLUSTER_ID,
    Cluster,
    Comparison,
    cluster_in_steps,
    compare_lessons_in_steps,
    extract_lesson,
    extract_recurring_lesson,
    judge_lessons_in_steps,
)
from core.questions.extraction.material import MAX_ACTIONS, Materials, parse_pattern
from core.questions.extraction.triggers import Trigger, describe_failure, extract_message, keeps_rules, make_trigger
from core.records.debug_sessions import Failure
from core.records.decisions import Verb
from core.records.extractions import ALL_TYPES, LoggedAttempt
from core.records.patterns import OldRecords, Pattern, PatternType, Problem, RecordRepair
from core.records.reflections import LESSON_ID
from core.sources.patterns import read_archives
from core.tasks.history import read_attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.base.paths import ProjectPaths
    from core.base.settings import ExtractionSettings
    from core.index.project_state import ProjectState
    from core.records.episodes import Attempt
    from core.records.extractions import Extraction, Proposal
    from core.records.loops import Loop, LoopDetails
    from core.records.reflections import JoinedLesson
    from core.records.snapshot import Snapshot

MAX_JUDGED: Final = 200  # maximum number of recurring learnings that are checked for a candidate, those of most loops


class Extractor:
    """Extracts patterns from a project; only methods marked thread-safe are.

    `read_details` reads the details of a loop, by default from the files in `.aiwg`. `stored` keeps the groups of
    similar learnings.
    """

    def __init__(
        self,
        project: ProjectPaths,
        settings: ExtractionSettings,
        read_details: Callable[[Loop], LoopDetails] | None = None,
        stored: StoredVerdicts | None = None,
    ) -> None:
        self._stored = VerdictsInMemory() if stored is None else stored
        self._read_details = read_details
        self._project = project
        self._settings = settings
        self._indexed: tuple[Snapshot, Materials, KnownPatterns] | None = None
        self._recurring: tuple[tuple[object, ...], tuple[Cluster, ...]] | None = None
        self._is_prepared = False  # whether the indexes are made
        self._unfit: tuple[Snapshot, dict[str, str]] | None = None
        self._compared: tuple[tuple[object, ...], tuple[Comparison, ...]] | None = None

    def extract(self, source_id: str, view: ProjectState, types: frozenset[PatternType], agent: str = "") -> Extraction:
        """Extract patterns of a loop, task, debug session, recurring learning or lesson.

        `source_id` may be a unique prefix of a loop ID. `agent` is the contributor; if "", the agent in the files is.
        Raises UnknownRecord for an unknown ID, and Refused if the loop or task has not ended, or the settings forbid
        extraction.
        """
        if not self._settings.enabled:
            raise Refused("extraction is disabled in the settings (extraction.enabled)")
        snapshot = view.snapshot
        if source_id.startswith(LESSON_ID):
            return self.extract_lesson(find_lesson(source_id, self.find_lessons(view)), view, types)
        if source_id.startswith(CLUSTER_ID):
            cluster = next((cluster for cluster in self.find_recurring(snapshot) if cluster.id == source_id), None)
            if cluster is None:
                name = visible_line(source_id, 80)
                raise UnknownRecord(f"no recurring learning {name!r}; see: ralphdeck lesson --recurring")
            offer = self.extract_cluster(cluster, view)
            return replace(offer, proposals=tuple(one for one in offer.proposals if one.type in types))
        if source_id not in snapshot.debug_sessions:
            task = None if source_id in snapshot.loops else snapshot.tasks.get(source_id)
            work = task or view.loop(source_id)
            if not work.status.ended:
                raise Refused(f"{visible_line(work.id, 80)} has not ended; extract from it after it has ended")
            source_id = work.id
        materials, registry = self._of_snapshot(view)
        return extract(replace(materials.read(source_id), agent=agent), registry, self._settings, types)

    def find_recurring(self, snapshot: Snapshot) -> tuple[Cluster, ...]:
        """Return the recurring learnings; takes seconds if not cached. Thread-safe."""
        return run_all(self.find_recurring_in_steps(snapshot))

    def find_recurring_in_steps(self, snapshot: Snapshot) -> Steps[tuple[Cluster, ...]]:
        """Do `find_recurring` step by step."""
        key = snapshot.reflections, snapshot.tasks, snapshot.memory_tasks, snapshot.loops.keys()
        cached = self._recurring
        if cached is None or cached[0] != key:
            self._recurring = cached = key, (yield from cluster_in_steps(snapshot, self._stored))
        return cached[1]

    def explain_unfit(self, cluster: Cluster, view: ProjectState) -> str:
        """Return why a recurring learning gives no candidate, or "" if it does; cached."""
        if not self._settings.enabled:
            return ""
        snapshot = view.snapshot
        if self._unfit is None or self._unfit[0] is not snapshot:
            self._unfit = snapshot, {}
        reasons = self._unfit[1]
        if cluster.id not in reasons:
            reasons[cluster.id] = self.extract_cluster(cluster, view).why_nothing
        return reasons[cluster.id]

    def extract_cluster(self, cluster: Cluster, view: ProjectState) -> Extraction:
        materials, registry = self._of_snapshot(view)
        return extract_recurring_lesson(cluster, materials.descriptions, registry, self._settings)

    def find_lessons(self, view: ProjectState) -> tuple[JoinedLesson, ...]:
        """Return joined, judged lessons; uncached, 3,000 take about 1 s. Thread-safe."""
        return run_all(self.find_lessons_in_steps(view))

    def find_lessons_in_steps(self, view: ProjectState) -> Steps[tuple[JoinedLesson, ...]]:
        """Do `find_lessons` step by step."""
        snapshot = view.snapshot
        key, cached = (snapshot.lessons, snapshot.patterns), self._compared
        if cached is None or not all(map(is_, cached[0], key)):
            self._compared = cached = key, (yield from compare_lessons_in_steps(*key))
        return (yield from judge_lessons_in_steps(cached[1], snapshot, view.board))

    def extract_lesson(
        self, joined: JoinedLesson, view: ProjectState, types: frozenset[PatternType] = ALL_TYPES
    ) -> Extraction:
        _, registry = self._of_snapshot(view)
        return extract_lesson(joined, registry, self._settings, types)

    def find_repairs(self, view: ProjectState, only: Collection[str] = ()) -> OldRecords:
        """Return repairs of patterns that break today's rules; all, or the IDs `only`."""
        return OldRules(view.snapshot, *self._of_snapshot(view), self._settings).find(only)

    def find_weakened_tests(self, attempt: Attempt) -> tuple[WeakenedTest, ...]:
        """Return the tests that passed in an attempt because they check less."""
        try:
            actions = read_attempt(self._project, attempt.task_id, attempt.number).actions
        except UnknownRecord:  # its folder was removed since the lists were read
            return ()
        logged = LoggedAttempt(attempt=attempt, actions=actions[-MAX_ACTIONS:])
        return tuple(
            WeakenedTest(
                attempt_id=attempt.id,
                task_id=attempt.task_id,
                number=fix.last.number,
                change=fix.weakening,
                diff=mask_secrets(fix.diff),
                files=fix.files,
                command=mask_secrets(fix.first.command),
                failure=mask_secrets(describe_failure(fix.failures[0])),
                words=fix.description,
                agent=attempt.agent,
            )
            for fix in find_weakening_changes(logged, str(self._project.project))
        )

    def prepare_in_steps(self, view: ProjectState) -> Steps[None]:
        """Make the indexes of `extract` step by step; at once if they are of this view."""
        materials, registry = self._of_snapshot(view)
        if not self._is_prepared:
            yield from materials.prepare_in_steps()
            yield from registry.prepare_in_steps()
            self._is_prepared = self._of_snapshot(view)[0] is materials

    def release(self) -> None:
        """Free the indexes of `extract`, which are made again when needed."""
        self._indexed, self._is_prepared = None, False
        extract_message.cache_clear()

    def _of_snapshot(self, view: ProjectState) -> tuple[Materials, KnownPatterns]:
        """Return the indexes of the current snapshot; computed once per snapshot."""
        if self._indexed is None or self._indexed[0] is not view.snapshot:
            registry = KnownPatterns(
                view.snapshot, view.similarity, view.board.results, lambda: read_archives(self._project)[0]
            )
            self._indexed = view.snapshot, Materials(self._project, view.snapshot, self._read_details), registry
            self._is_prepared = False
        return self._indexed[1:]


def find_lesson(lesson_id: str, joined: Iterable[JoinedLesson]) -> JoinedLesson:
    """Return the joined lesson that has this ID; raises UnknownRecord."""
    lesson = next((one for one in joined if any(place.id == lesson_id for place in one.places)), None)
    if lesson is None:
        raise UnknownRecord(f"no lesson {visible_line(lesson_id, 80)!r}; see: ralphdeck lesson")
    return lesson


MAX_RECORDS: Final = 500  # maximum number of patterns with problems of which a repair is searched
_MAX_SOURCES: Final = 5  # maximum number of source loops of a pattern that are extracted again
_CHANGED: Final = lazy_regex(r"(?:Change|until) (\S{1,400}?)(?=;? |;?$)")
_FILE_HEADER: Final = lazy_regex(r"^@@ (.{1,400}) @@$", re.MULTILINE)


class OldRules:
    """Judges the patterns of one snapshot that ralphdeck extracted."""

    def __init__(
        self, snapshot: Snapshot, materials: Materials, registry: KnownPatterns, settings: ExtractionSettings
    ) -> None:
        self._snapshot = snapshot
        self._materials = materials
        self._registry = registry
        self._settings = settings
        self._fresh: dict[tuple[str, PatternType], list[_Fresh]] = {}  # by the ID of the source

    def find(self, only: Collection[str] = ()) -> OldRecords:
        """Return repairs of the patterns `only`, or of all; repaired texts first."""
        faulty: dict[str, tuple[Problem, ...]] = {}
        decided: list[str] = []
        for id in self._extracted:
            pattern = self._snapshot.patterns.get(id)
            if pattern is None or not pattern.is_registered or not (problems := self._judge(pattern)):
                continue
            is_approved = self._snapshot.curation.approves(id, pattern.content_hash)
            if is_approved or id in self._snapshot.curation.pins or self._is_edited(pattern):
                decided.append(id)
            elif len(faulty) < MAX_RECORDS:
                faulty[id] = problems
        repairs = [repair for repair in self._propose(faulty) if not only or repair.pattern.id in only]
        repairs.sort(key=lambda repair: (repair.is_archived, repair.pattern.id))
        return OldRecords(tuple(repairs), tuple(id for id in decided if not only or id in only))

    @cached_property
    def _extracted(self) -> Mapping[str, dict[str, Any]]:
        """Records of patterns that were extracted from work, as they were then, by ID.

        Without lessons of agents and proposals, whose words are those of their authors.
        """
        curation = self._snapshot.curation
        return {
            effect.pattern_id: effect.insert
            for one in self._snapshot.decisions
            if one.verb is Verb.EXTRACT and not one.is_proposal and not one.subject.startswith(LESSON_ID)
            if one.id not in curation.undone
            for effect in one.effects
            if effect.insert is not None and effect.pattern_id not in curation.imported
        }

    def _is_edited(self, pattern: Pattern) -> bool:
        """Return whether the text of a pattern is not the extracted one."""
        try:
            inserted = parse_pattern(pattern.type, "record", self._extracted[pattern.id])
        except (RalphdeckError, ValueError):  # the decision log was edited
            return True
        return inserted.content_hash != pattern.content_hash

    def _judge(self, pattern: Pattern) -> tuple[Problem, ...]:
        if pattern.type is PatternType.ERROR:
            return tuple(self._judge_fix(pattern))
        has_text, is_repeated = True, False
        if pattern.type is PatternType.ANTI:
            has_text = has_steps(pattern.description)
        elif pattern.type is PatternType.SUCCESS:
            is_repeated = not adds_steps(pattern.steps, [fix.description for fix in self._fixes_of(pattern)])
        else:
            has_text = has_reason(pattern.description)
            is_repeated = any(
                pattern.template_code == fix.template_code or pattern.description == fix.description
                for fix in self._fixes_of(pattern)
            )
        is_partial = has_partial_holes(pattern.template_code, pattern.template_language)
        checks = ((Problem.REPEATED, is_repeated), (Problem.TEXT, not has_text), (Problem.TEMPLATE, is_partial))
        return tuple(problem for problem, is_found in checks if is_found)

    def _judge_fix(self, pattern: Pattern) -> Iterator[Problem]:
        trigger = Trigger(pattern.error_pattern, pattern.places)
        is_old = not pattern.error_message  # today's triggers are tested when they are made
        is_broad = is_old and not pattern.places and self._registry.is_broad(pattern.error_pattern, self._settings)
        if is_broad or not keeps_rules(trigger, pattern.error_message, self._registry.matching(trigger.pattern)):
            yield Problem.TRIGGER
        if not has_reason(pattern.description):
            yield Problem.TEXT
        if has_partial_holes(pattern.template_code, pattern.template_language):
            yield Problem.TEMPLATE

    def _fixes_of(self, pattern: Pattern) -> list[Pattern]:
        """Return the error patterns that were extracted from the same work."""
        sources = dict.fromkeys(source.loop_id for source in pattern.source_loops)
        same = (other for id in sources for other in self._registry.of_loop.get(id, ()))
        return [other for other in same if other.type is PatternType.ERROR]

    def _propose(self, faulty: Mapping[str, tuple[Problem, ...]]) -> Iterator[RecordRepair]:
        """Yield a repair for each pattern unless today's rules extract the same."""
        matches: list[tuple[int, Pattern, _Fresh]] = []
        others: list[Pattern] = []
        for id in faulty:
            pattern = self._snapshot.patterns[id]
            extracted = self._extract_again(pattern)
            ranked = [(rank, fresh) for fresh in extracted if (rank := _rank(pattern, fresh))]
            if any(fresh.equals(pattern) for fresh in extracted):
                continue
            if ranked:
                rank, best = min(ranked, key=lambda pair: pair[0])
                matches.append((rank, pattern, best))
            else:
                others.append(pattern)
        first: dict[tuple[str, ...], str] = {}  # the pattern that becomes the one of a fix
        kept: dict[str, str] = {}  # that pattern, by the IDs of those that repeat it
        matches.sort(key=lambda match: (match[0], -(match[1].recorded_counts.uses or 0), match[1].id))
        for _, pattern, fresh in matches:
            kept[pattern.id] = first.setdefault(fresh.key, pattern.id)
            if kept[pattern.id] == pattern.id:
                yield self._as_extracted(pattern, faulty[pattern.id], fresh)
            else:
                yield _archive(pattern, (*faulty[pattern.id], Problem.REPEATED), kept[pattern.id])
        for pattern in others:
            problems, fixes = faulty[pattern.id], self._fixes_of(pattern)
            if pattern.type is PatternType.ERROR and Problem.TEXT not in problems:
                text = pattern.description.casefold()
                same = [
                    fix for fix in fixes if fix.description.casefold() == text and kept.get(fix.id, fix.id) == fix.id
                ]
                fixes = sorted(same, key=lambda fix: (fix in others, fix.id))[:1]  # the one that stays
                problems += (Problem.REPEATED,) if fixes and fixes[0] != pattern else ()
            if Problem.REPEATED in problems and fixes:
                yield _archive(pattern, problems, kept.get(fixes[0].id, fixes[0].id))
            else:
                yield self._without_source(pattern, problems)

    def _as_extracted(self, pattern: Pattern, problems: tuple[Problem, ...], fresh: _Fresh) -> RecordRepair:
        """Return the repair that makes a pattern what is extracted from its work today."""
        return RecordRepair(
            pattern=pattern,
            problems=problems,
            changes={
                "error_signature": _replacing(fresh.record, "error_signature", _SIGNATURE),
                "fix_approach": _replacing(fresh.record, "fix_approach", _FIX),
            },
            because=f"as extracted from {fresh.source} today",
            other_sources=self._find_other_sources(pattern, fresh),
        )

    def _find_other_sources(self, pattern: Pattern, fresh: _Fresh) -> tuple[str, ...]:
        """Return a pattern's sources that now yield another fix than `fresh`."""
        same = fresh.pattern
        by_source: dict[str, list[Pattern]] = {}
        for other in self._extract_again(pattern):
            by_source.setdefault(other.source, []).append(other.pattern)
        return tuple(
            source
            for source, fixes in by_source.items()
            if not any(one.error_pattern == same.error_pattern and has_common_place(one, same) for one in fixes)
        )

    def _without_source(self, pattern: Pattern, problems: tuple[Problem, ...]) -> RecordRepair:
        """Return the repair of a pattern that cannot be extracted again."""
        because = "its work is no longer recorded, or has no such lesson by today's rules"
        if pattern.type is not PatternType.ERROR or Problem.TEXT in problems:
            return RecordRepair(pattern=pattern, problems=problems, because=because)
        changes: dict[str, dict[str, Any]] = {}
        if Problem.TRIGGER in problems:
            message = pattern.error_message
            trigger = make_trigger((Failure(message=message),), self._registry.messages) if message else Trigger("")
            changes["error_signature"] = {"error_pattern": trigger.pattern}
            because += "; without a trigger, it is given to similar tasks" if not trigger.pattern else ""
        if Problem.TEMPLATE in problems:
            changes["fix_approach"] = {"code_template": None, "code_template_language": None}
        return RecordRepair(pattern=pattern, problems=problems, changes=changes, because=because)

    def _extract_again(self, pattern: Pattern) -> list[_Fresh]:
        """Return what today's rules extract, of the type of a pattern, from its work."""
        sources = list(dict.fromkeys(source.loop_id for source in pattern.source_loops))[:_MAX_SOURCES]
        return [fresh for id in sources for fresh in self._extract(id, pattern.type)]

    def _extract(self, source_id: str, kind: PatternType) -> Sequence[_Fresh]:
        if (source_id, kind) not in self._fresh:
            proposals: Sequence[Proposal] = ()
            with suppress(RalphdeckError, OSError):  # its records were removed
                material, types = self._materials.read(source_id), {PatternType.ERROR, kind}
                proposals = extract(material, self._registry, self._settings, types).proposals
            usable = (one for one in proposals if one.type is kind and (one.known_as or not one.refused))
            parsed = [_Fresh(source_id, one.record, parse_pattern(kind, one.slug, one.record)) for one in usable]
            self._fresh[source_id, kind] = parsed
        return self._fresh[source_id, kind]


_SIGNATURE: Final = ("error_type", "error_pattern", "error_message", "error_places", "error_location_hints")
_FIX: Final = ("description", "fix_category", "diff_pattern", "code_template", "code_template_language")


class _Fresh(NamedTuple):
    """Pattern that is extracted today from a source."""

    source: str
    record: Mapping[str, Any]
    pattern: Pattern

    @property
    def key(self) -> tuple[str, ...]:
        return self.source, self.pattern.error_pattern, self.pattern.description

    def equals(self, pattern: Pattern) -> bool:
        names = ("error_pattern", "places", "description", "template_code", "steps")
        return all(getattr(self.pattern, name) == getattr(pattern, name) for name in names)


def _archive(pattern: Pattern, problems: tuple[Problem, ...], kept: str) -> RecordRepair:
    return RecordRepair(pattern=pattern, problems=problems, because=f"see {kept}")


def _rank(pattern: Pattern, fresh: _Fresh) -> int:
    """Return how an extracted pattern fits: 1 is best; 0 for another fix or none."""
    new = fresh.pattern
    if new.type is not PatternType.ERROR:
        return 0
    if pattern.error_pattern and (pattern.error_pattern == new.error_pattern or fits(pattern, new)):
        return 1
    changed = {name.rstrip(".") for name in _CHANGED.findall(pattern.description)}
    return 2 if changed & set(_FILE_HEADER.findall(new.diff_pattern)) else 0


def _replacing(record: Mapping[str, Any], key: str, names: Sequence[str]) -> dict[str, Any]:
    """Return a part of a new record, with None for the values that it lacks."""
    return {name: record[key].get(name) for name in names}
