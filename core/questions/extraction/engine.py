"""Extraction from finished work: draft, narrow, compare with the registry.

See docs/extraction.md. Reflections on attempts are drafted in `core.tasks.reflections`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from core.base.masking import mask_secrets
from core.base.paths import relative_to_project
from core.base.regexes import lazy_regex
from core.base.steps import Steps, group_in_steps, group_pairs, run_all, sort_in_steps
from core.base.text import MatchedTexts, make_slug, one_line, safe_matcher, strip_label, visible_line
from core.questions.extraction.approaches import (
    explain_no_approach,
    find_anti_patterns,
    find_approaches,
)
from core.questions.extraction.attempt_fixes import find_replacements
from core.questions.extraction.changes import is_document
from core.questions.extraction.fixes import (
    LANGUAGES,
    Repair,
    describe_action,
    describe_placeholder,
    drop_same_fixes,
    file_language,
    find_logged_repairs,
    find_reflected_repairs,
    find_repairs,
    fix_category,
    fix_description,
    has_passed,
    make_clean_template,
    make_tags,
    make_template,
    mentioned_language,
)
from core.questions.extraction.material import find_contributor, find_end, make_proposal, make_source, parse_pattern
from core.questions.extraction.triggers import (
    Sighting,
    clean_message,
    extract_message,
    find_errors,
    is_comparison,
    make_trigger,
)
from core.records.anchors import Anchor, is_manifest, list_anchors, parse_anchor
from core.records.extractions import ALL_TYPES, Extraction, Material, Proposal
from core.records.patterns import Pattern, PatternType
from core.retrieval.similarity import measure_similarity
from core.tasks.error_messages import Names, generalize_message, is_test_file, location_hint

if TYPE_CHECKING:
    from core.base.settings import ExtractionSettings
    from core.index.similarity import SimilarityIndex
    from core.records.snapshot import Snapshot
    from core.sources.patterns import ArchivedPattern

MAX_PROPOSALS: Final = 50  # maximum number of proposals of one type per loop; each is compared with all others
_SLUGS: Final = {"add_null_check": "null-check", "add_import": "missing-import"}
_VARIABLE: Final = re.compile(r"\\.\+?|\[[^]]*\]\+|\.\*")  # wildcards and escapes in a signature


def extract(
    material: Material,
    registry: KnownPatterns,
    settings: ExtractionSettings,
    types: Collection[PatternType] = ALL_TYPES,
) -> Extraction:
    """Extract candidate patterns of the given types from a loop, task or session."""
    logged = find_logged_repairs(material.attempts, material.root)
    repairs = (*find_repairs(material), *islice(logged, MAX_PROPOSALS), *find_reflected_repairs(material))
    ranked = sorted(repairs, key=lambda repair: not repair.diff)[:MAX_PROPOSALS]  # those with code first
    fixed = drop_same_fixes(ranked)
    proposals = remove_duplicates(_find_proposals(material, fixed, registry, settings, types), settings)
    judged = (compare_with_registry(proposal, material.own_ids, registry, settings) for proposal in proposals)
    return Extraction(
        source_id=material.source_id,
        proposals=add_alternatives(tuple(judged)),
        missing=tuple(_explain_missing(material, proposals, fixed, settings, types)),
    )


def _find_proposals(
    material: Material,
    fixed: list[Repair],
    registry: KnownPatterns,
    settings: ExtractionSettings,
    types: Collection[PatternType],
) -> Iterator[Proposal]:
    without_record = fixed
    if PatternType.ERROR in types:
        without_record = []
        for proposal, repair in find_error_patterns(material, fixed, registry, settings):
            if not repair.failures:
                counted = replace(proposal, failures=_failures(material, repair))
                proposal = narrow_trigger(counted, repair.error, registry, settings)
            if proposal.refused:
                without_record.append(repair)
            yield proposal
    if PatternType.SUCCESS in types:
        fixes = [repair.description for repair in fixed] if PatternType.ERROR in types else []
        for proposal in find_approaches(material, fixes):
            yield drop_broad_task(proposal, registry, settings)
    if PatternType.ANTI in types:
        yield from islice(find_anti_patterns(material, fixed, settings), MAX_PROPOSALS)
    if PatternType.TEMPLATE in types and settings.extract_code_templates:
        yield from find_code_templates(material, without_record, settings)


def _failures(material: Material, repair: Repair) -> int:
    """Count how often the same fix failed."""
    tried = repair.description.casefold()
    failed = sum(describe_action(one).casefold() == tried and not has_passed(one) for one in material.iterations)
    runs = ((run, held) for one in material.sessions for run, held in zip(one.executions, one.verdicts, strict=True))
    return failed + sum(
        held is False and run.fix is not None and strip_label(run.fix.description).casefold() == tried
        for run, held in runs
    )


def _explain_missing(
    material: Material,
    proposals: Iterable[Proposal],
    repairs: Sequence[Repair],
    settings: ExtractionSettings,
    types: Collection[PatternType],
) -> Iterator[str]:
    """Yield one reason for each type without proposals."""
    proposed = {proposal.type for proposal in proposals}
    missing = [kind for kind in PatternType if kind in types and kind not in proposed]
    if PatternType.ERROR in missing:
        yield "no error was fixed" if _has_error(material) else "no error was recorded"
    if PatternType.SUCCESS in missing:
        yield explain_no_approach(material)
    if PatternType.ANTI in missing:
        yield f"no error occurred {settings.repeated_error_count} times, and no approach was recorded as wrong"
    if PatternType.TEMPLATE in missing:
        if not settings.extract_code_templates:
            yield "code templates are disabled in the settings (extraction.extract_code_templates)"
        elif repairs and not any(repair.diff for repair in repairs):
            yield "no fix recorded its diff"
        elif repairs:
            yield "no fix adds code that could be generalised"


def _has_error(material: Material) -> bool:
    return (
        bool(material.errors)
        or any(run.failures for session in material.sessions for run in session.executions)
        or any(action.has_failed for logged in material.attempts for action in logged.actions)
        or any(any(find_errors(iteration)) or iteration.failed for iteration in material.iterations)
    )


def find_error_patterns(
    material: Material, repairs: Iterable[Repair], registry: KnownPatterns, settings: ExtractionSettings
) -> Iterator[tuple[Proposal, Repair]]:
    """Yield an error pattern for each repair, with the repair."""
    for repair in repairs:
        error, at = repair.error, repair.at or find_end(material)
        category, description, language, tags = _describe(material, repair)
        if not description:
            continue
        fix = {"description": description, "fix_category": category}
        code = make_template(repair.diff, error.message)
        if repair.failures:
            code = make_clean_template(repair.diff, language)
            fix["diff_pattern"] = mask_secrets(repair.diff)
        if code is not None and settings.extract_code_templates:
            fix["code_template"] = code.code
            if language:
                fix["code_template_language"] = language
        signature: dict[str, Any] = {"error_type": error.error_type, "error_pattern": error.signature}
        if repair.failures:
            trigger = make_trigger(repair.failures, registry.messages)
            signature["error_pattern"] = trigger.pattern
            signature["error_message"] = clean_message(repair.failures[0])
            signature["error_places"] = [visible_line(place) for place in trigger.places] or None
        if hint := location_hint(error.file, error.function):
            signature["error_location_hints"] = [hint]
        proposal = make_proposal(
            PatternType.ERROR,
            (not repair.failures and _SLUGS.get(category)) or make_slug(_VARIABLE.sub(" ", error.signature), "error"),
            {
                "error_signature": {key: value for key, value in signature.items() if value is not None},
                "fix_approach": {key: value for key, value in fix.items() if value},
            },
            sources=[make_source(material.loop_id, at, by=find_contributor(material, repair.agent))],
            at=at,
            tags=tags,
            trace=(repair.trace,),
            anchors=find_anchors(repair, material.root) if settings.extract_anchors else (),
        )
        yield proposal, repair


def find_code_templates(
    material: Material, repairs: Iterable[Repair], settings: ExtractionSettings
) -> Iterator[Proposal]:
    """Yield a code template for each repair whose code contains placeholders."""
    for repair in repairs:
        category, description, language, tags = _describe(material, repair)
        has_diff = bool(repair.failures)  # then only a clean template says more than the diff
        code = (
            make_clean_template(repair.diff, language) if has_diff else make_template(repair.diff, repair.error.message)
        )
        if code is None or not code.placeholders:
            continue
        fields = {
            "language": language if language in LANGUAGES.values() else "other",
            "template_code": code.code,
            "description": description,
            "placeholders": {name: describe_placeholder(name) for name in code.placeholders},
            "use_case": one_line(f"{repair.error.error_type}: {repair.error.signature}"),
        }
        slug = make_slug(category.removeprefix("add_").replace("_", " "), "code")
        at, sources, trace = repair.at or find_end(material), [material.loop_id], (repair.trace,)
        anchors = find_anchors(repair, material.root) if settings.extract_anchors else ()
        yield make_proposal(
            PatternType.TEMPLATE, slug, fields, sources=sources, at=at, tags=tags, trace=trace, anchors=anchors
        )


def _describe(material: Material, repair: Repair) -> tuple[str, str, str, list[str]]:
    """Return category, description, language ("" if unknown) and tags of a repair."""
    error = repair.error
    category = fix_category(repair.description, repair.diff, repair.cause, error.message)
    language = file_language((error.file, *repair.files), repair.diff)
    language = language or mentioned_language(material.goal, error.message)
    places = (error.file, *repair.files[:3], repair.description, material.goal)
    tags = make_tags(language, category, error.error_type, places)
    text = repair.description
    if not repair.failures:
        text = fix_description(text, category, error.message, repair.diff)
    return category, text, language, tags


_MAX_MESSAGES: Final = 1_000  # maximum number of messages that a trigger is tested on, evenly sampled
_MAX_MESSAGE: Final = 1_000
_MAX_REASON: Final = 120  # characters

_BETTER: Final = "better_alternative"
_LINK: Final = "success_pattern_id"
_STEPS: Final = 3  # number of steps (the last ones) in the description of an alternative


def narrow_trigger(
    proposal: Proposal, error: Sighting, registry: KnownPatterns, settings: ExtractionSettings
) -> Proposal:
    """Add names to a trigger that matches too many known messages, or refuse it."""
    signature = proposal.record["error_signature"]
    if not registry.is_broad(signature["error_pattern"], settings):
        return proposal
    share = registry.share(signature["error_pattern"])
    broad = f"matches {share:.0%} of {len(registry.messages):,} known error messages"
    narrow = generalize_message(error.message, names=Names.ALL)
    if narrow and registry.share(narrow) <= settings.max_match_share:
        record = {**proposal.record, "error_signature": {**signature, "error_pattern": narrow}}
        trace = (*proposal.trace, f"names were kept in the signature: without them it {broad}")
        return replace(proposal, record=record, trace=trace)
    return replace(proposal, refused=f"too broad: {broad}")


def drop_broad_task(proposal: Proposal, registry: KnownPatterns, settings: ExtractionSettings) -> Proposal:
    """Remove a `task_description_pattern` that matches too many known tasks."""
    record = dict(proposal.record)
    pattern = record.pop("task_description_pattern", "")
    is_judged = pattern and len(registry.tasks) >= settings.min_known_messages
    is_broad = is_judged and _measure_share(pattern, registry.tasks) > settings.max_match_share
    return replace(proposal, record=record) if is_broad else proposal


def remove_duplicates(proposals: Iterable[Proposal], settings: ExtractionSettings) -> tuple[Proposal, ...]:
    """Remove proposals that repeat an earlier one, and add their trace to it."""
    unique: list[tuple[Proposal, Pattern]] = []
    for proposal in proposals:
        pattern = parse_pattern(proposal.type, proposal.slug, proposal.record)
        for place, (other, like) in enumerate(unique):
            if _has_same_trigger(pattern, like) or measure_similarity(pattern, like) > settings.similarity_threshold:
                trace = tuple(dict.fromkeys((*other.trace, *proposal.trace)))
                unique[place] = (replace(other, trace=trace), like)
                break
        else:
            unique.append((proposal, pattern))
    return tuple(proposal for proposal, _ in unique)


def compare_with_registry(
    proposal: Proposal, own_ids: Collection[str], registry: KnownPatterns, settings: ExtractionSettings
) -> Proposal:
    """Mark a proposal as new, a use of a registered pattern, or known from `own_ids`."""
    if proposal.refused:
        return proposal
    pattern = parse_pattern(proposal.type, proposal.slug, proposal.record)
    similar = registry.similar.nearest(pattern, settings.similarity_threshold)
    alike = registry.of_message.get(pattern.error_message, ())
    if same := next((one for one in alike if is_same_fix(one, pattern)), None):
        similar = ((same.id, 1.0), *(pair for pair in similar if pair[0] != same.id))
    candidates = [registry.patterns[identifier] for identifier, _ in similar if identifier in registry.patterns]
    from_here = [other for other in candidates if any(source.loop_id in own_ids for source in other.source_loops)]
    own = (other for id in own_ids for other in registry.of_loop.get(id, ()) if other.type is pattern.type)
    from_here += [other for other in own if _is_same_lesson(pattern, other, own_ids)]
    if from_here:
        known_as = from_here[0].id
        return replace(proposal, refused=f"already known from this loop as {known_as}", known_as=known_as)
    if archived := registry.find_archived(pattern, own_ids):
        why = visible_line(one_line(archived.reason or "no reason is recorded", _MAX_REASON))
        return replace(proposal, refused=f"archived before as {archived.pattern.id}: {why}")
    return refuse_ineffective(mark_duplicate(proposal, similar, settings), registry, settings)


def refuse_ineffective(proposal: Proposal, registry: KnownPatterns, settings: ExtractionSettings) -> Proposal:
    """Refuse a proposal with a low success rate, including uses of its duplicate.

    See docs/extraction.md#threshold. An anti-pattern describes failures, so it is never refused for its rate.
    """
    if proposal.type is PatternType.ANTI:
        return proposal
    worked, failed = registry.results(proposal.duplicate_of) if proposal.duplicate_of else (0, 0)
    uses = worked + failed + 1 + proposal.failures
    rate = (worked + 1) / uses
    if uses < settings.min_usage_count_for_evaluation or rate >= settings.min_success_rate_threshold:
        return proposal
    least = f"{settings.min_success_rate_threshold:.0%} (extraction.min_success_rate_threshold)"
    refused = f"worked in {worked + 1} of {uses} uses ({rate:.0%}), below the threshold of {least}"
    return replace(proposal, refused=refused)


def mark_duplicate(proposal: Proposal, similar: Sequence[tuple[str, float]], settings: ExtractionSettings) -> Proposal:
    """Mark a proposal as a use of the most similar pattern, or as related to it."""
    if not similar:
        return proposal
    identifier, share = similar[0]
    if settings.merge_similar_patterns:
        return replace(proposal, duplicate_of=identifier, similarity=share)
    return replace(proposal, record={**proposal.record, "related_patterns": [identifier]}, similarity=share)


def _has_same_trigger(one: Pattern, other: Pattern) -> bool:
    """Return whether two patterns of one loop have the same trigger or code."""
    if one.type is not other.type:
        return False
    if one.type is PatternType.ERROR:
        is_equal = _are_equal_triggers(one, other)
        return is_equal or fits(one, other) or fits(other, one)
    return one.type is PatternType.TEMPLATE and one.template_code == other.template_code


def has_common_place(one: Pattern, other: Pattern) -> bool:
    """Return whether two triggers share a place; one without places applies in all."""
    return not one.places or not other.places or not set(one.places).isdisjoint(other.places)


def is_same_fix(one: Pattern, other: Pattern) -> bool:
    """Return whether two patterns fix the same message by the same replacement."""
    if not one.error_message or one.error_message != other.error_message or is_comparison(one.error_message):
        return False
    changes = [find_replacements(pattern.diff_pattern) for pattern in (one, other)]
    return bool(changes[0]) and changes[0] == changes[1]


def fits(pattern: Pattern, other: Pattern) -> bool:
    """Return whether a trigger matches another's error, in a common place."""
    if not pattern.error_pattern or not other.error_message or not has_common_place(pattern, other):
        return False
    return safe_matcher(pattern.error_pattern).matches(other.error_message)


def _are_equal_triggers(one: Pattern, other: Pattern) -> bool:
    """Return whether two triggers are equal but for a word end, in a common place."""
    ends = {pattern.error_pattern.removesuffix("\\b") for pattern in (one, other)}
    return len(ends) == 1 and has_common_place(one, other)


def _is_same_lesson(new: Pattern, registered: Pattern, own_ids: Collection[str]) -> bool:
    """Return whether a pattern of this loop is the same lesson in other words."""
    if new.type is PatternType.ERROR:
        text = new.error_pattern.replace("\\", "")  # without escapes, a signature can be matched like a message
        is_alike = registered.category == new.category and bool(registered.error_pattern)
        if new.error_message and registered.error_pattern:
            is_other = registered.category != new.category
            is_equal = _are_equal_triggers(registered, new)
            return is_equal or (not is_other and fits(registered, new))
        return registered.error_pattern == new.error_pattern or (
            is_alike and safe_matcher(registered.error_pattern).matches(text)
        )
    if new.type is not PatternType.TEMPLATE:  # a loop has one approach; as a later source it may have used another one
        return registered.source_loops[0].loop_id in own_ids and registered.category == new.category
    return registered.template_code == new.template_code


def add_alternatives(proposals: Sequence[Proposal]) -> tuple[Proposal, ...]:
    """Add the successful approach of a loop to its anti-patterns, as the alternative."""
    success = next((one for one in proposals if one.type is PatternType.SUCCESS), None)
    if success is None or (success.refused and not success.known_as):
        return tuple(proposals)
    known_id = success.known_as or success.duplicate_of
    steps = one_line("; ".join(success.record["approach"]["steps"][-_STEPS:]))
    completed = []
    for proposal in proposals:
        if proposal.type is PatternType.ANTI and not proposal.refused:
            better = {"description": steps} | proposal.record.get(_BETTER, {}) | ({_LINK: known_id} if known_id else {})
            proposal = replace(proposal, record={**proposal.record, _BETTER: better})
        completed.append(proposal)
    return tuple(completed)


class KnownPatterns:
    """The patterns, errors and tasks of a project, collected on first use.

    `results` returns the successes and failures of a pattern, `archived` reads the archived patterns.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        similar: SimilarityIndex,
        results: Callable[[str], tuple[int, int]] = lambda _id: (0, 0),
        archived: Callable[[], Iterable[ArchivedPattern]] = tuple,
    ) -> None:
        self.patterns = snapshot.patterns
        self.similar = similar
        self.results = results
        self._snapshot = snapshot
        self._archived = archived
        self._shares: dict[str, float] = {}

    @cached_property
    def messages(self) -> tuple[str, ...]:
        """Known error messages, without duplicates."""
        return run_all(_deduplicate(_messages(self._snapshot)))

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """Descriptions of loops and tasks, without duplicates."""
        return run_all(_deduplicate(_tasks(self._snapshot)))

    def prepare_in_steps(self) -> Steps[None]:
        """Collect everything step by step."""
        self.messages = yield from _deduplicate(_messages(self._snapshot))
        self.tasks = yield from _deduplicate(_tasks(self._snapshot))
        self.of_loop = yield from group_in_steps(self._of_loops())
        self.archived_of_loop = yield from group_in_steps(self._archived_of_loops())
        self.of_message = yield from group_in_steps(self._of_messages())

    def share(self, regex: str) -> float:
        """Return the share (0..1) of all known error messages that a regex matches."""
        if regex not in self._shares:
            self._shares[regex] = len(list(self.matching(regex))) / len(self.messages) if self.messages else 0.0
        return self._shares[regex]

    def matching(self, regex: str) -> Iterator[str]:
        """Yield the known error messages that a regex matches."""
        return self._matched_messages.matching(regex)

    @cached_property
    def _matched_messages(self) -> MatchedTexts:
        return MatchedTexts(self.messages)

    def is_broad(self, regex: str, settings: ExtractionSettings) -> bool:
        """Return whether a trigger matches too many of at least `min_known_messages`."""
        return len(self.messages) >= settings.min_known_messages and self.share(regex) > settings.max_match_share

    @cached_property
    def of_loop(self) -> dict[str, list[Pattern]]:
        """Patterns by the IDs of their source loops."""
        return group_pairs(self._of_loops())

    @cached_property
    def of_message(self) -> dict[str, list[Pattern]]:
        """Error patterns by the message of their error."""
        return group_pairs(self._of_messages())

    def _of_messages(self) -> Iterator[tuple[str, Pattern]]:
        return ((one.error_message, one) for one in self.patterns.values() if one.error_message)

    def find_archived(self, pattern: Pattern, own_ids: Collection[str]) -> ArchivedPattern | None:
        """Return an archived pattern of the same work (`own_ids`) that says the same."""
        candidates = (one for id in own_ids for one in self.archived_of_loop.get(id, ()))
        for archived in candidates:
            old = archived.pattern
            has_same_text = (old.error_message, old.description) == (pattern.error_message, pattern.description)
            if old.type is pattern.type and (has_same_text or is_same_fix(old, pattern)):
                return archived
        return None

    @cached_property
    def archived_of_loop(self) -> dict[str, list[ArchivedPattern]]:
        """Archived patterns by the IDs of their source loops."""
        return group_pairs(self._archived_of_loops())

    def _archived_of_loops(self) -> Iterator[tuple[str, ArchivedPattern]]:
        return ((id, one) for one in self._archived() for id in {source.loop_id for source in one.pattern.source_loops})

    def _of_loops(self) -> Iterator[tuple[str, Pattern]]:
        patterns = self.patterns.values()
        return ((id, one) for one in patterns for id in {source.loop_id for source in one.source_loops})


def _measure_share(regex: str, texts: tuple[str, ...]) -> float:
    matcher = safe_matcher(regex)
    return sum(map(matcher.matches, texts)) / len(texts) if texts else 0.0


def _deduplicate(texts: Iterable[str]) -> Steps[tuple[str, ...]]:
    different = set()
    for text in texts:
        different.add(text.strip()[:_MAX_MESSAGE])
        yield
    every = yield from sort_in_steps(different - {""}, str)
    step = max(len(every) / _MAX_MESSAGES, 1)
    return tuple(every[int(place * step)] for place in range(min(len(every), _MAX_MESSAGES)))


def _messages(snapshot: Snapshot) -> Iterator[str]:
    for event in snapshot.events:
        if event.error is not None:
            yield event.error.message
    for session in snapshot.debug_sessions.values():
        for run in session.executions:
            yield from (failure.message for failure in run.failures)
    for loop in snapshot.loops.values():
        for iteration in loop.iterations:
            yield from (failure.message for failure in iteration.failures)
            yield extract_message(iteration.result)


def _tasks(snapshot: Snapshot) -> Iterator[str]:
    yield from (loop.task for loop in snapshot.loops.values())
    yield from (task.description for task in snapshot.tasks.values())


_MAX_FILES: Final = 3
_MAX_NAMES: Final = 3
_MAX_LINE: Final = 300  # characters of a line that are read
_MIN_NAME: Final = 3  # characters; shorter names are found by chance
_HEADER: Final = lazy_regex(r"@@ (\S.{0,300}) @@$|\+\+\+ (?:b/)?(\S.{0,300})$")
_NAME: Final = r"([A-Za-z_$][\w$]{0,80})"
_DEFINED: Final = lazy_regex(
    r"[ +]\s*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub)\s+){0,4}"
    rf"(?:def|class|func|fn|function|struct|enum|trait|interface|type|module)\s+(?:\([^)]{{0,80}}\)\s*)?{_NAME}"
    rf"|[ +]\s*(?:export\s+)?(?:const|let|var)\s+{_NAME}\s*=\s*(?:async\s*)?(?:\([^)]{{0,200}}\)|\w+)\s*=>"
)
_REQUIRED: Final = lazy_regex(r"\+\s*(?:[\"']?)([A-Za-z0-9@][\w.@/-]{1,100})[\"']?\s*(?:[=<>~!:,\[ ]|v\d|$)")
_NOT_REQUIRED: Final = frozenset(
    {"dependencies", "devDependencies", "name", "version", "require", "module", "python", "requires-python", "go"}
)
_COMMON: Final = frozenset({"main", "run", "test", "init", "self", "constructor", "setup", "default"})


def find_anchors(repair: Repair, root: str) -> tuple[str, ...]:
    """Return the anchors of a fix: code files before tests, each with its names."""
    files = [file for one in repair.files if (file := _relative(one, root)) and not is_document(file)]
    code = [file for file in dict.fromkeys(files) if not is_test_file(file)] or list(dict.fromkeys(files))
    chosen = code[:_MAX_FILES]
    names = dict.fromkeys(one for one in _find_anchors(repair, root) if one.file in chosen)
    clear = (one for one in names if len(one.name) >= _MIN_NAME and not one.name.startswith(("__", "<")))
    anchored = [one for one in clear if one.name not in _COMMON][:_MAX_NAMES]
    texts = [text for file in chosen for text in (file, *(one.text for one in anchored if one.file == file))]
    return tuple(one.text for one in list_anchors(texts))


def _find_anchors(repair: Repair, root: str) -> Iterator[Anchor]:
    """Yield the function of the error, then names that the fix defines or requires."""
    error = repair.error
    yield Anchor(_relative(error.file, root), error.function.rpartition(".")[2])
    file = _relative(repair.files[0], root) if repair.files else ""
    for line in (line[:_MAX_LINE] for line in repair.diff.splitlines()):
        if (header := _HEADER.match(line)) is not None:
            file = _relative(header[1] or header[2], root)
        elif is_manifest(file):
            if (required := _REQUIRED.match(line)) is not None and required[1] not in _NOT_REQUIRED:
                yield Anchor(file, required[1])
        elif (defined := _DEFINED.match(line)) is not None:
            yield Anchor(file, defined[1] or defined[2])


def _relative(file: str, root: str) -> str:
    """Return a path in the project, "" for another one."""
    anchor = parse_anchor(relative_to_project(file, root)) if file else None
    return anchor.file if anchor is not None and not anchor.name else ""
