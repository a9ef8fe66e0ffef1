"""Pairs of instructions as documents: both texts, their places, what they cost, and how to remove one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from core.base.text import plural
from core.questions.conflict import choose_kept
from core.records.instructions import Loading, Relation
from core.retrieval.rendering import count_tokens
from core.show.pages.document import Block, Code, Document, line, more, section

if TYPE_CHECKING:
    from core.records.instructions import InstructionPair, PlacedInstruction
    from core.sources.adapters.agent_files import AgentFile

_MAX_PAIRS: Final = 10
_CONTEXT: Final = 2  # lines around a change
_WHEN: Final = {
    Loading.START: "in each session",
    Loading.PATH: "when a file of its scope is touched",
    Loading.REQUEST: "when it is asked for",
}


def pairs_document(pairs: Sequence[InstructionPair], files: Sequence[AgentFile]) -> Document:
    """Describe the pairs of one question, with the diffs that would remove one of two; `files` are those of diffs."""
    first = pairs[0]
    return Document(f"{first.one.place} {first.relation} {first.other.place}", tuple(pairs_blocks(pairs, files)))


def pairs_blocks(pairs: Sequence[InstructionPair], files: Sequence[AgentFile]) -> Iterator[Block]:
    """Show the pairs of one question, and how to keep one of each."""
    for number, pair in enumerate(pairs[:_MAX_PAIRS]):
        if number:
            yield line("")
        yield from _pair(pair, files)
    yield from more(len(pairs), "pair", _MAX_PAIRS)


def _pair(pair: InstructionPair, files: Sequence[AgentFile]) -> Iterator[Block]:
    for one in pair.both:
        yield from _instruction(one)
        yield line("")
    if not pair.shares_agent:
        yield line(("No agent loads both files; different agents get different instructions.", "quiet"))
    kept, removed = choose_kept(pair)
    yield from section(f"To keep {kept.place}", _removal(removed, files))
    if pair.relation is Relation.CONTRADICTS:
        yield from section(f"To keep {removed.place}", _removal(kept, files))


def _instruction(one: PlacedInstruction) -> Iterator[Block]:
    yield line((one.place, "strong accent"), (f"   {describe_cost(one)}", "quiet"))
    if one.section:
        yield line((f"below “{one.section}”", "quiet"))
    yield Code(one.text, "", "", 2)


def describe_cost(one: PlacedInstruction) -> str:
    """Say how many tokens an instruction takes, when, and of which agents."""
    tokens = plural(count_tokens(one.text), "token")
    if one.pattern_id:
        return f"lesson, {tokens} when it is given"
    scope = f" ({', '.join(one.scope)})" if one.scope else ""
    return f"{', '.join(one.agents)}: {tokens} {_WHEN[one.loading]}{scope}"


def _removal(one: PlacedInstruction, files: Sequence[AgentFile]) -> Iterable[Block]:
    if one.pattern_id:
        yield line(f"ralphdeck pattern deprecate {one.pattern_id} --reason …", indent=2)
        return
    diff = removal_diff(one, files)
    if diff:
        yield Code("\n".join(diff), "", "diff", 2)
    else:
        yield line(f"Delete it in {one.place}.", indent=2)


def removal_diff(one: PlacedInstruction, files: Sequence[AgentFile]) -> list[str]:
    """Return the unified diff that removes an instruction from its file; [] if its lines contain more.

    It is made of masked text, so it does not fit beside a secret. ralphdeck never applies it.
    """
    file = next((file for file in files if file.file == one.file), None)
    if file is None:
        return []
    first, last = one.lines
    before, lines = file.lines, list(file.lines)
    if one.is_whole:
        del lines[first - 1 : last]
    elif first == last and lines[first - 1 : first] and one.text in lines[first - 1]:
        lines[first - 1] = " ".join(lines[first - 1].replace(one.text, "").rstrip().split(" "))
        lines[first - 1] = lines[first - 1].replace("  ", " ")
    else:
        return []
    names = (f"a/{file.file}", f"b/{file.file}") if file.file[:1] not in "~/" else (file.file, file.file)
    return list(difflib.unified_diff(before, lines, *names, lineterm="", n=_CONTEXT))
