"""Whether the ledger is as it was written (safety: in the files)."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from core.curation.chain import Chain, Link, Place, read_anchor
from core.curation.ledger import read_decisions
from core.errors import Unwritable
from core.paths import ProjectPaths
from core.sources.reading import MAX_PATTERN_BYTES, Problem, read_file
from core.text import plural


class Break(NamedTuple):
    """Something that is not as it was written.

    Attributes:
        line: Where it shows, from 1.
    """

    line: int
    what: str


class Verification(Struct, frozen=True, kw_only=True):
    """What became of looking at every line.

    Attributes:
        lines: All of them; `linked` are those that bear a hash.
        decisions: Those among them that count.
        problems: In the order of the lines; none if all is as it was written.
    """

    lines: int
    linked: int
    decisions: int
    problems: tuple[Break, ...]

    @property
    def summary(self) -> str:
        """In one line."""
        what = f"{plural(self.lines, 'line')}, {plural(self.decisions, 'decision')}"
        if self.problems:
            return f"{what}: {plural(len(self.problems), 'place')} not as written"
        older = f"; {self.linked:,} bear a hash, those before are older" if 0 < self.linked < self.lines else ""
        if self.lines and not self.linked:
            older = "; written by an older version: nothing vouches for them before the next decision"
        return f"{what}: as written{older}"


def verify_ledger(paths: ProjectPaths) -> Verification:
    """Look at every line of a project's ledger, see `verify`.

    Raises:
        Unwritable: It is there but cannot be read.
    """
    anchor = read_anchor(paths.ledger)
    raw = read_file(paths.ledger, paths.aiwg, MAX_PATTERN_BYTES)
    if isinstance(raw, Problem):
        raise Unwritable(f"cannot read {paths.ledger}: it {raw.message}")
    return verify(raw.data if raw else b"", anchor)


def verify(data: bytes, anchor: Place | None) -> Verification:
    """Look at every line of a ledger.

    What has no line end yet is no line; the next writer sets it aside.

    Args:
        data: The ledger.
        anchor: Read before `data` was; None if there is none.
    """
    chain = Chain()
    places, links = [chain.place], []
    for line in data.split(b"\n")[:-1]:
        links.append(chain.feed(line))
        places.append(chain.place)
    problems: list[Break] = []
    first = 1  # of the lines that the next link vouches for
    begun = False
    for number, (link, before) in enumerate(zip(links, places, strict=False), 1):
        if link is not None:
            if link != (before.line + 1, before.chain):
                problems.append(_broken(number, first, link, before))
            first, begun = number, True
        elif begun:
            problems.append(Break(number, "was not written by this program, or by an older version of it"))
    problems += _last_lines(places, anchor, begun)
    return Verification(
        lines=chain.lines,
        linked=sum(link is not None for link in links),
        decisions=len(read_decisions(data)[0]),
        problems=tuple(sorted(problems)),
    )


def _broken(number: int, first: int, link: Link, before: Place) -> Break:
    """What a link says that does not fit to the lines from `first` on that stand before it."""
    ahead = link.line - before.line - 1
    if ahead > 0:
        return Break(number, f"{plural(ahead, 'line')} before it {'is' if ahead == 1 else 'are'} missing")
    if ahead < 0:
        return Break(number, f"was written as line {link.line}: moved or copied here, or lines were put in before")
    last = number - 1
    if last < 1:
        return Break(number, "lines before it are missing")
    if last == first:
        return Break(last, "was changed after it was written")
    return Break(first, f"one of lines {first} to {last} was changed after it was written")


def _last_lines(places: list[Place], anchor: Place | None, begun: bool) -> list[Break]:
    """What the anchor says that does not fit to the end."""
    end = places[-1]
    last = max(len(places) - 1, 1)
    if anchor is None:
        return [Break(last, "the anchor is missing: nobody can tell if lines after it are")] if begun else []
    if end.line < anchor.line:
        gone = anchor.line - end.line
        return [Break(last, f"{plural(gone, 'line')} after it {'is' if gone == 1 else 'are'} missing")]
    if anchor in places:
        return []
    if anchor.line == end.line:
        return [Break(last, "was changed after it was written, or what stood here is gone")]
    found = next((number for number, place in enumerate(places) if place.line == anchor.line), last)
    return [Break(max(found, 1), "was the last line once, and was changed since")]
