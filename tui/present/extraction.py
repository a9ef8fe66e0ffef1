"""What could be extracted from a loop, as paragraphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from textual.content import Content

from core.base.text import plural, visible_line
from core.curation.merge import as_read
from core.records.extractions import Extraction, Proposal
from core.retrieval.similarity import cap_similarity
from core.state.project_state import ProjectState
from tui.present.glyphs import TYPE_LETTERS, Glyphs, status_mark
from tui.present.loops import now_lines
from tui.present.numbers import percent
from tui.present.patterns import TYPE_WORDS, body

MOST_SOURCES: Final = 20
"""Loops and tasks that are listed as those that told a learning."""


def offer_count(offer: Extraction | None) -> int:
    """How many patterns an extraction would add or join."""
    return len(offer.new) + len(offer.merges) if offer is not None else 0


def offer_lines(offer: Extraction, key: str, glyphs: Glyphs) -> list[Content]:
    """What a loop offers, a line a pattern; `key` shows the whole."""
    lines = [
        Content.assemble(
            (f"{plural(offer_count(offer), 'pattern')} to extract", "bold $accent"), (f"   {key} shows them", "$quiet")
        )
    ]
    for proposal in (*offer.new, *offer.merges):
        known = f" {glyphs.arrow} {visible_line(proposal.duplicate_of, 80)}" if proposal.duplicate_of else ""
        lines.append(
            Content.assemble((f"  {TYPE_LETTERS[proposal.type]} ", "$secondary"), _title(proposal), (known, "$quiet"))
        )
    return lines


def loop_lines(view: ProjectState, loop_id: str, glyphs: Glyphs) -> list[Content]:
    """The loop or debug session that the patterns come from."""
    loop = view.snapshot.loops.get(loop_id)
    if loop is None:
        return [Content.styled(visible_line(loop_id, 200), "bold")]
    return now_lines(loop, None, view, glyphs)


def told_lines(view: ProjectState, offer: Extraction, glyphs: Glyphs) -> list[Content]:
    """What a recurring learning says, and each loop or task that told it, with what it was to do."""
    lines: list[Content] = []
    for proposal in offer.proposals:
        pattern = as_read(proposal.record, proposal.type)
        sources = list(dict.fromkeys(loop.loop_id for loop in pattern.source_loops))
        lines += [
            Content.styled(visible_line(pattern.description or pattern.title, 1000), "bold"),
            Content(""),
            Content.styled(f"told by {plural(len(sources), 'loop or task', 'loops or tasks')}:", "$quiet"),
        ]
        for source in sources[:MOST_SOURCES]:
            loop = view.snapshot.loops.get(source)
            mark = status_mark(loop.status, glyphs) if loop is not None else Content.styled("task", "$quiet")
            lines.append(Content.assemble((visible_line(source, 120), "$secondary"), "  ", mark))
            if loop is not None and loop.task:
                lines.append(Content.styled(f"  {visible_line(loop.task, 300)}", "$quiet"))
        if len(sources) > MOST_SOURCES:
            lines.append(Content.styled(f"and {len(sources) - MOST_SOURCES:,} more", "$quiet"))
    return lines


def proposal_lines(offer: Extraction, glyphs: Glyphs) -> list[Content]:
    """Every proposal with its text and its trace: what is new, what is known, what is refused and why."""
    lines: list[Content] = []
    for proposal in (*offer.new, *offer.merges):
        lines += [*_one(proposal, glyphs), Content("")]
    if offer.refused:
        lines.append(Content.styled("Not taken:", "$quiet"))
    for proposal in offer.refused:
        lines += [
            Content.assemble((f"{glyphs.deprecated} {TYPE_WORDS[proposal.type]}  ", "$quiet"), _title(proposal)),
            Content.styled(f"  {visible_line(proposal.refused, 300)}", "$warning"),
            Content.styled(f"  {_trace(proposal)}", "$quiet"),
        ]
    if offer.missing:
        lines.append(Content.styled("Not found:", "$quiet"))
        lines += [Content.styled(f"  {visible_line(reason, 300)}", "$quiet") for reason in offer.missing]
    return lines


def _one(proposal: Proposal, glyphs: Glyphs) -> Iterator[Content]:
    standing = (
        Content.styled(
            f"{glyphs.arrow} a further use of {visible_line(proposal.duplicate_of, 80)}, "
            f"{percent(cap_similarity(proposal.similarity))} alike",
            "$secondary",
        )
        if proposal.duplicate_of
        else Content.styled("+ new", "$success")
    )
    yield Content.assemble((f"{TYPE_WORDS[proposal.type]}  ", "$secondary"), standing)
    title = _title(proposal)
    yield title.stylize("bold")
    pattern = as_read(proposal.record, proposal.type)
    told = (line for line in body(pattern) if line.plain and line.plain.partition(": ")[2] != title.plain)
    yield from (Content.assemble("  ", line) for line in told)
    if pattern.tags:
        yield Content.assemble(("  Tags: ", "$quiet"), visible_line(", ".join(pattern.tags), 300))
    yield Content.assemble(("  From: ", "$quiet"), (_trace(proposal), "$secondary"))


def _title(proposal: Proposal) -> Content:
    pattern = as_read(proposal.record, proposal.type)
    return Content(visible_line(pattern.title or proposal.slug, 300))


def _trace(proposal: Proposal) -> str:
    return visible_line("; ".join(proposal.trace), 500)
