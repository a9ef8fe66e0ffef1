"""Selection of proposals: narrow triggers, no duplicates; docs/extraction.md."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from core.base.grouping import group_in_steps, group_pairs
from core.base.record_text import one_line
from core.base.steps import Steps, run_all, sort_in_steps
from core.base.text import MatchedTexts, safe_matcher, visible_line
from core.questions.extraction.errors import Sighting, extract_message
from core.questions.extraction.net_changes import find_replacements
from core.questions.extraction.record_parts import parse_pattern
from core.questions.extraction.trigger_check import is_comparison
from core.records.patterns import Pattern, PatternType
from core.retrieval.similarity import measure_similarity
from core.tasks.error_messages import Names, generalize_message

if TYPE_CHECKING:
    from core.base.settings import ExtractionSettings
    from core.index.similarity import SimilarityIndex
    from core.records.extractions import Proposal
    from core.records.snapshot import Snapshot
    from core.sources.patterns import ArchivedPattern

_MAX_MESSAGES: Final = 1_000  # maximum number of messages that a trigger is tested on, evenly sampled
_MAX_MESSAGE: Final = 1_000
_MAX_REASON: Final = 120  # characters

_BETTER: Final = "better_alternative"
_LINK: Final = "success_pattern_id"
_STEPS: Final = 3  # number of steps (the last ones) in the description of an alternative


def narrow_trigger(proposal: Proposal, error: Sighting, known: KnownPatterns, settings: ExtractionSettings) -> Proposal:
    """Add names to a trigger that matches too many known messages, or refuse it."""
    signature = proposal.record["error_signature"]
    if not known.is_broad(signature["error_pattern"], settings):
        return proposal
    share = known.share(signature["error_pattern"])
    broad = f"matches {share:.0%} of {len(known.messages):,} known error messages"
    narrow = generalize_message(error.message, names=Names.ALL)
    if narrow and known.share(narrow) <= settings.max_match_share:
        record = {**proposal.record, "error_signature": {**signature, "error_pattern": narrow}}
        trace = (*proposal.trace, f"names were kept in the signature: without them it {broad}")
        return replace(proposal, record=record, trace=trace)
    return replace(proposal, refused=f"too broad: {broad}")


def drop_broad_task(proposal: Proposal, known: KnownPatterns, settings: ExtractionSettings) -> Proposal:
    """Remove a `task_description_pattern` that matches too many known tasks."""
    record = dict(proposal.record)
    pattern = record.pop("task_description_pattern", "")
    is_judged = pattern and len(known.tasks) >= settings.min_known_messages
    is_broad = is_judged and _measure_share(pattern, known.tasks) > settings.max_match_share
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
    proposal: Proposal, own_ids: Collection[str], known: KnownPatterns, settings: ExtractionSettings
) -> Proposal:
    """Mark a proposal as new, as a use of a registered pattern, or as already known from one of `own_ids`."""
    if proposal.refused:
        return proposal
    pattern = parse_pattern(proposal.type, proposal.slug, proposal.record)
    similar = known.similar.nearest(pattern, settings.similarity_threshold)
    alike = known.of_message.get(pattern.error_message, ())
    if same := next((one for one in alike if is_same_fix(one, pattern)), None):
        similar = ((same.id, 1.0), *(pair for pair in similar if pair[0] != same.id))
    candidates = [known.patterns[identifier] for identifier, _ in similar if identifier in known.patterns]
    from_here = [other for other in candidates if any(source.loop_id in own_ids for source in other.source_loops)]
    own = (other for id in own_ids for other in known.of_loop.get(id, ()) if other.type is pattern.type)
    from_here += [other for other in own if _is_same_lesson(pattern, other, own_ids)]
    if from_here:
        known_as = from_here[0].id
        return replace(proposal, refused=f"already known from this loop as {known_as}", known_as=known_as)
    if archived := known.find_archived(pattern, own_ids):
        why = visible_line(one_line(archived.reason or "no reason is recorded", _MAX_REASON))
        return replace(proposal, refused=f"archived before as {archived.pattern.id}: {why}")
    return refuse_ineffective(mark_duplicate(proposal, similar, settings), known, settings)


def refuse_ineffective(proposal: Proposal, known: KnownPatterns, settings: ExtractionSettings) -> Proposal:
    """Refuse a proposal with a low success rate, including uses of its duplicate.

    See docs/extraction.md#threshold. An anti-pattern describes failures, so it is never refused for its rate.
    """
    if proposal.type is PatternType.ANTI:
        return proposal
    worked, failed = known.results(proposal.duplicate_of) if proposal.duplicate_of else (0, 0)
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
    """Return whether the triggers of two patterns apply in a common place; a trigger without places applies in all."""
    return not one.places or not other.places or not set(one.places).isdisjoint(other.places)


def _has_same_text(one: Pattern, other: Pattern) -> bool:
    return (one.error_message, one.description) == (other.error_message, other.description)


def is_same_fix(one: Pattern, other: Pattern) -> bool:
    """Return whether two patterns remove an error with the same message by the same replacement, wherever it is."""
    if not one.error_message or one.error_message != other.error_message or is_comparison(one.error_message):
        return False
    changes = [find_replacements(pattern.diff_pattern) for pattern in (one, other)]
    return bool(changes[0]) and changes[0] == changes[1]


def fits(pattern: Pattern, other: Pattern) -> bool:
    """Return whether the trigger of a pattern matches the error of another one, in a common place."""
    if not pattern.error_pattern or not other.error_message or not has_common_place(pattern, other):
        return False
    return safe_matcher(pattern.error_pattern).matches(other.error_message)


def _are_equal_triggers(one: Pattern, other: Pattern) -> bool:
    """Return whether two triggers are equal, with or without the end of a word, in a common place."""
    ends = {pattern.error_pattern.removesuffix("\\b") for pattern in (one, other)}
    return len(ends) == 1 and has_common_place(one, other)


def _is_same_lesson(new: Pattern, known: Pattern, own_ids: Collection[str]) -> bool:
    """Return whether a pattern of this loop is the same lesson in other words."""
    if new.type is PatternType.ERROR:
        text = new.error_pattern.replace("\\", "")  # without escapes, a signature can be matched like a message
        is_alike = known.category == new.category and bool(known.error_pattern)
        if new.error_message and known.error_pattern:
            is_other = known.category != new.category
            is_equal = _are_equal_triggers(known, new)
            return is_equal or (not is_other and fits(known, new))
        return known.error_pattern == new.error_pattern or (
            is_alike and safe_matcher(known.error_pattern).matches(text)
        )
    if new.type is not PatternType.TEMPLATE:  # a loop has one approach; as a later source it may have used another one
        return known.source_loops[0].loop_id in own_ids and known.category == new.category
    return known.template_code == new.template_code


def add_alternatives(proposals: Sequence[Proposal]) -> tuple[Proposal, ...]:
    """Add the successful approach of a loop to its anti-patterns, as the alternative."""
    success = next((one for one in proposals if one.type is PatternType.SUCCESS), None)
    if success is None or (success.refused and not success.known_as):
        return tuple(proposals)
    known_id = success.known_as or success.duplicate_of
    steps = one_line("; ".join(success.record["approach"]["steps"][-_STEPS:]))
    found = []
    for one in proposals:
        if one.type is PatternType.ANTI and not one.refused:
            better = {"description": steps} | one.record.get(_BETTER, {}) | ({_LINK: known_id} if known_id else {})
            one = replace(one, record={**one.record, _BETTER: better})
        found.append(one)
    return tuple(found)


@dataclass(eq=False)
class KnownPatterns:
    """The patterns, errors and tasks of a project, collected on first use."""

    patterns: Mapping[str, Pattern]  # by ID
    similar: SimilarityIndex
    _messages: Callable[[], Iterable[str]] = tuple
    _tasks: Callable[[], Iterable[str]] = tuple
    results: Callable[[str], tuple[int, int]] = lambda _id: (0, 0)  # returns successes and failures of a pattern
    _archived: Callable[[], Iterable[ArchivedPattern]] = tuple
    _shares: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        similar: SimilarityIndex,
        results: Callable[[str], tuple[int, int]] = lambda _id: (0, 0),
        archived: Callable[[], Iterable[ArchivedPattern]] = tuple,
    ) -> KnownPatterns:
        messages, tasks = partial(_messages, snapshot), partial(_tasks, snapshot)
        return cls(snapshot.patterns, similar, messages, tasks, results, archived)

    @cached_property
    def messages(self) -> tuple[str, ...]:
        """Known error messages, without duplicates."""
        return run_all(_deduplicate(self._messages()))

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """Descriptions of loops and tasks, without duplicates."""
        return run_all(_deduplicate(self._tasks()))

    def prepare_in_steps(self) -> Steps[None]:
        """Collect everything step by step."""
        self.messages = yield from _deduplicate(self._messages())
        self.tasks = yield from _deduplicate(self._tasks())
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
        """Return whether a trigger matches too many of the known error messages, if there are enough to judge it."""
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
        """Return an archived pattern from the same work (`own_ids`) that says the same as a new one."""
        found = (one for id in own_ids for one in self.archived_of_loop.get(id, ()))
        same = (one for one in found if one.pattern.type is pattern.type)
        return next(
            (one for one in same if _has_same_text(one.pattern, pattern) or is_same_fix(one.pattern, pattern)), None
        )

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
    found = safe_matcher(regex)
    return sum(map(found.matches, texts)) / len(texts) if texts else 0.0


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
