"""Blocks that describe patterns which can be extracted from loops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from core.base.formatting import format_percent
from core.base.text import plural
from core.show.pages.document import Block, Line, Sign, fields, items, line, more, section
from core.show.pages.signs import TYPE_WORDS, status_sign

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.extractions import Extraction, Proposal
    from core.records.patterns import Pattern

_MAX_SOURCES: Final = 20


def count_offered(offer: Extraction | None) -> int:
    """Return the number of patterns that an extraction would add or merge."""
    return len(offer.new) + len(offer.merges) if offer is not None else 0


def offer_blocks(offer: Extraction | None, key: str) -> Iterable[Block]:
    """List the patterns to extract, one per line; `key` is the key for details."""
    if offer is None:
        return
    count = plural(count_offered(offer), "lesson")
    yield line((f"{count} to extract", "strong accent"), (f"   {key}: details", "quiet"))
    for one in (*offer.new, *offer.merges):
        duplicate = f" → {one.duplicate_of}" if one.duplicate_of else ""
        yield line((f"{TYPE_WORDS[one.type]}  ", "name"), _title(one), (duplicate, "quiet"), indent=2)


def lesson_sources(view: ProjectState, offer: Extraction) -> Iterable[Block]:
    """Describe a recurring lesson, and each loop or task that reported it."""
    for proposal in offer.proposals:
        pattern = _pattern(proposal)
        sources = list(dict.fromkeys(loop.loop_id for loop in pattern.source_loops))
        yield line((pattern.description or pattern.title, "strong"))
        yield line("")
        yield line((f"reported by {plural(len(sources), 'loop or task', 'loops or tasks')}:", "quiet"))
        for source in sources[:_MAX_SOURCES]:
            loop = view.snapshot.loops.get(source)
            yield line((f"{source}  ", "name"), status_sign(loop.status) if loop else ("task", "quiet"))
            if loop is not None and loop.task:
                yield line((loop.task, "quiet"), indent=2)
        yield from more(len(sources), "source", _MAX_SOURCES)


def proposals(offer: Extraction) -> Iterable[Block]:
    """Describe every proposed pattern: new, duplicate, or refused with a reason."""
    from core.retrieval.similarity import cap_similarity  # imports numpy
    from core.show.pages.patterns import body

    for proposal in (*offer.new, *offer.merges):
        status = ("+ new", "good")
        if proposal.duplicate_of:
            similarity = format_percent(cap_similarity(proposal.similarity))
            status = (f"→ one more use of {proposal.duplicate_of}, similarity {similarity}", "name")
        pattern, title = _pattern(proposal), _title(proposal)
        yield line((f"{TYPE_WORDS[proposal.type]}  ", "name"), status)
        yield line((title, "strong"))
        yield from body(pattern, title)
        yield from fields(("Tags", ", ".join(pattern.tags)), ("From", ("; ".join(proposal.trace), "name")))
        yield line("")
    refused: list[Line] = []
    for proposal in offer.refused:
        refused += [
            line(Sign(f"{TYPE_WORDS[proposal.type]}  ", "quiet", "deprecated"), " ", _title(proposal)),
            line((proposal.refused, "warning"), indent=2),
            line(("; ".join(proposal.trace), "quiet"), indent=2),
        ]
    yield from section("Not extracted", refused)
    yield from section("Not found", items("", offer.missing))


def _pattern(proposal: Proposal) -> Pattern:
    from core.decisions.merge import as_read

    return as_read(proposal.record, proposal.type)


def _title(proposal: Proposal) -> str:
    return _pattern(proposal).title or proposal.slug
