"""Which proposals are taken: not too broad, not known already, each once (0) 6_check_for_duplicates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from core.base.text import safe_matcher
from core.config.settings import ExtractionSettings
from core.debug_memory.error_signatures import generalize_message
from core.extraction.errors import Sighting
from core.extraction.known_patterns import Known
from core.extraction.record_parts import pattern_of
from core.records.extractions import Proposal
from core.records.patterns import Pattern, PatternType
from core.retrieval.similarity import similarity


def narrowed(proposal: Proposal, error: Sighting, known: Known, settings: ExtractionSettings) -> Proposal:
    """An error pattern whose trigger finds few enough of the known messages: as it is, with names, or refused."""
    if len(known.messages) < settings.min_known_messages:
        return proposal
    signature = proposal.record["error_signature"]
    share = known.share(signature["error_pattern"])
    if share <= settings.max_match_share:
        return proposal
    broad = f"matches {share:.0%} of {len(known.messages):,} known error messages"
    narrow = generalize_message(error.message, keep_names=True)
    if narrow and known.share(narrow) <= settings.max_match_share:
        record = {**proposal.record, "error_signature": {**signature, "error_pattern": narrow}}
        trace = (*proposal.trace, f"names were kept in the signature: without them it {broad}")
        return replace(proposal, record=record, trace=trace)
    return replace(proposal, refused=f"too broad: {broad}")


def without_broad_task(proposal: Proposal, known: Known, settings: ExtractionSettings) -> Proposal:
    """A success pattern without its `task_description_pattern` where that finds too many of the known tasks."""
    pattern = proposal.record.get("task_description_pattern")
    if not pattern or len(known.tasks) < settings.min_known_messages:
        return proposal
    if known.share_of_tasks(pattern) <= settings.max_match_share:
        return proposal
    return replace(proposal, record=_without(proposal.record, "task_description_pattern"))


def each_once(proposals: Iterable[Proposal], settings: ExtractionSettings) -> tuple[Proposal, ...]:
    """The proposals of one extraction without those that say the same as an earlier one; its trace takes them in."""
    kept: list[tuple[Proposal, Pattern]] = []
    for proposal in proposals:
        pattern = pattern_of(proposal.type, proposal.slug, proposal.record)
        for place, (other, like) in enumerate(kept):
            if _same(pattern, like) or similarity(pattern, like) > settings.similarity_threshold:
                trace = tuple(dict.fromkeys((*other.trace, *proposal.trace)))
                kept[place] = (replace(other, trace=trace), like)
                break
        else:
            kept.append((proposal, pattern))
    return tuple(proposal for proposal, _ in kept)


def compared(proposal: Proposal, loop_id: str, known: Known, settings: ExtractionSettings) -> Proposal:
    """A proposal with what the registry knows of it: new, a further use of a pattern, or nothing new at all."""
    if proposal.refused:
        return proposal
    pattern = pattern_of(proposal.type, proposal.slug, proposal.record)
    alike = known.similar.nearest(pattern, settings.similarity_threshold)
    told = [known.patterns[identifier] for identifier, _ in alike if identifier in known.patterns]
    from_here = [other for other in told if any(source.loop_id == loop_id for source in other.source_loops)]
    from_here += [other for other in known.from_loop(loop_id, pattern.type) if _told_before(pattern, other, loop_id)]
    if from_here:
        known_as = from_here[0].id
        return replace(proposal, refused=f"already known from this loop as {known_as}", known_as=known_as)
    return rated(standing(proposal, alike, settings), known, settings)


def rated(proposal: Proposal, known: Known, settings: ExtractionSettings) -> Proposal:
    """A proposal, refused if it seldom worked: here, and where the registry knows it already.

    Anti-patterns are about failure, so no rate is too low for them.
    """
    if proposal.type is PatternType.ANTI:
        return proposal
    worked, failed = known.results(proposal.duplicate_of) if proposal.duplicate_of else (0, 0)
    uses = worked + failed + 1 + proposal.failures
    rate = (worked + 1) / uses
    if uses < settings.min_usage_count_for_evaluation or rate >= settings.min_success_rate_threshold:
        return proposal
    least = f"{settings.min_success_rate_threshold:.0%}"
    return replace(
        proposal,
        refused=f"worked in {worked + 1} of {uses} uses ({rate:.0%}), below the threshold of {least} "
        "(extraction.min_success_rate_threshold)",
    )


def standing(proposal: Proposal, alike: Sequence[tuple[str, float]], settings: ExtractionSettings) -> Proposal:
    """A proposal as what it is beside the patterns that it is like, best first: new, or a further use of one."""
    if not alike:
        return proposal
    identifier, share = alike[0]
    if settings.merge_similar_patterns:
        return replace(proposal, duplicate_of=identifier, similarity=share)
    return replace(proposal, record={**proposal.record, "related_patterns": [identifier]}, similarity=share)


def _same(one: Pattern, other: Pattern) -> bool:
    """Whether two patterns of one loop are about the same thing, however they put it."""
    if one.type is not other.type:
        return False
    if one.type is PatternType.ERROR:
        return one.error_pattern == other.error_pattern
    return one.type is PatternType.TEMPLATE and one.template_code == other.template_code


def _told_before(new: Pattern, known: Pattern, loop_id: str) -> bool:
    """Whether a pattern that names this loop among its sources is what the loop offers now, in other words."""
    if new.type is PatternType.ERROR:
        # The message itself is not at hand; without escapes its signature reads as one of its kind.
        text = new.error_pattern.replace("\\", "")
        return known.error_pattern == new.error_pattern or (
            known.category == new.category
            and bool(known.error_pattern)
            and safe_matcher(known.error_pattern).matches(text)
        )
    if new.type is PatternType.SUCCESS:  # one approach a loop; as a later source it may have used another's
        return known.source_loops[0].loop_id == loop_id and known.category == new.category
    if new.type is PatternType.ANTI:
        return known.category == new.category and known.source_loops[0].loop_id == loop_id
    return known.template_code == new.template_code


def _without(record: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != key}
