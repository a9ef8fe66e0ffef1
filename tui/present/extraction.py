"""Patterns that can be extracted from a loop, as details."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from textual.content import Content

from core.base.formatting import format_percent
from core.base.text import plural
from core.curation.merge import as_read
from core.documents.document import Block, Line, Sign, fields, items, line, more, section
from core.documents.loops import overview
from core.documents.patterns import body
from core.documents.signs import TYPE_WORDS, status_sign
from core.records.extractions import Extraction, Proposal
from core.records.patterns import Pattern
from core.retrieval.similarity import cap_similarity
from core.state.project_state import ProjectState
from tui.present.document import document_lines
from tui.present.glyphs import TYPE_LETTERS, Glyphs

_MAX_SOURCES: Final = 20


def count_offered(offer: Extraction | None) -> int:
    """Return the number of patterns that an extraction would add or merge."""
    return len(offer.new) + len(offer.merges) if offer is not None else 0


def offer_blocks(offer: Extraction | None, key: str) -> list[Block]:
    """Describe what can be extracted, one line per pattern; `key` opens the details."""
    if offer is None:
        return []
    head = line(
        (f"{plural(count_offered(offer), 'pattern')} to extract", "strong accent"), (f"   {key}: details", "quiet")
    )
    return [
        head,
        *(
            line((f"{TYPE_LETTERS[one.type]} ", "name"), _title(one), (_duplicate(one), "quiet"), indent=2)
            for one in (*offer.new, *offer.merges)
        ),
    ]


def loop_lines(view: ProjectState, loop_id: str, glyphs: Glyphs) -> list[Content]:
    """Return the loop or debug session that the patterns come from."""
    loop = view.snapshot.loops.get(loop_id)
    blocks = [line((loop_id, "strong"))] if loop is None else overview(view, loop, None)
    return document_lines(blocks, view.now, glyphs)


def source_lines(view: ProjectState, offer: Extraction, glyphs: Glyphs) -> list[Content]:
    """Return a recurring lesson, and each loop or task that reported it with its task."""
    blocks: list[Block] = []
    for proposal in offer.proposals:
        pattern = _pattern(proposal)
        sources = list(dict.fromkeys(loop.loop_id for loop in pattern.source_loops))
        reported = f"reported by {plural(len(sources), 'loop or task', 'loops or tasks')}:"
        blocks += [line((pattern.description or pattern.title, "strong")), line(""), line((reported, "quiet"))]
        for source in sources[:_MAX_SOURCES]:
            loop = view.snapshot.loops.get(source)
            blocks.append(line((f"{source}  ", "name"), status_sign(loop.status) if loop else ("task", "quiet")))
            if loop is not None and loop.task:
                blocks.append(line((loop.task, "quiet"), indent=2))
        blocks += more(len(sources), "source", _MAX_SOURCES)
    return document_lines(blocks, view.now, glyphs)


def proposal_lines(view: ProjectState, offer: Extraction, glyphs: Glyphs) -> list[Content]:
    """Return every proposed pattern with its text and sources: new, duplicate, or refused with the reason."""
    return document_lines(_proposal_blocks(offer), view.now, glyphs)


def _proposal_blocks(offer: Extraction) -> Iterable[Block]:
    for proposal in (*offer.new, *offer.merges):
        yield from _proposal(proposal)
        yield line("")
    refused: list[Line] = []
    for proposal in offer.refused:
        refused += [
            line(Sign(f"{TYPE_WORDS[proposal.type]}  ", "quiet", "deprecated"), " ", _title(proposal)),
            line((proposal.refused, "warning"), indent=2),
            line((_sources(proposal), "quiet"), indent=2),
        ]
    yield from section("Not extracted", refused)
    yield from section("Not found", items("", offer.missing))


def _proposal(proposal: Proposal) -> Iterable[Block]:
    status = ("+ new", "good")
    if proposal.duplicate_of:
        similarity = format_percent(cap_similarity(proposal.similarity))
        status = (f"→ one more use of {proposal.duplicate_of}, similarity {similarity}", "name")
    pattern, title = _pattern(proposal), _title(proposal)
    yield line((f"{TYPE_WORDS[proposal.type]}  ", "name"), status)
    yield line((title, "strong"))
    yield from body(pattern, title)
    yield from fields(("Tags", ", ".join(pattern.tags)), ("From", (_sources(proposal), "name")))


def _pattern(proposal: Proposal) -> Pattern:
    return as_read(proposal.record, proposal.type)


def _title(proposal: Proposal) -> str:
    return _pattern(proposal).title or proposal.slug


def _duplicate(proposal: Proposal) -> str:
    return f" → {proposal.duplicate_of}" if proposal.duplicate_of else ""


def _sources(proposal: Proposal) -> str:
    return "; ".join(proposal.trace)
