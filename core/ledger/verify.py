"""Checks the hash chain of the ledger, its anchor, and heads that are kept elsewhere; see docs/safety.md#log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from core.base.errors import Unwritable
from core.base.text import plural
from core.config.paths import ProjectPaths
from core.ledger.decision_log import break_finding, read_decisions
from core.ledger.trusted_heads import Head, missing_heads
from core.records.findings import Finding
from core.storage.chain_check import ChainBreak, ChainCheck, last_lines
from core.storage.decoded import Problem
from core.storage.file_reader import MAX_PATTERN_BYTES, Stamp, read_file
from core.storage.hash_chain import Chain, Place, read_anchor


class Verification(Struct, frozen=True, kw_only=True):
    """The result of checking every line.

    Attributes:
        lines: All of them; `linked` are those that bear a hash.
        decisions: Those among them that count.
        problems: In the order of the lines; none if the chain is intact, and every head on it.
        heads: How many heads were compared.
        end: The end of the ledger.
    """

    lines: int
    linked: int
    decisions: int
    problems: tuple[ChainBreak, ...]
    heads: int = 0
    end: Place

    @property
    def summary(self) -> str:
        """In one line."""
        what = f"{plural(self.lines, 'line')}, {plural(self.decisions, 'decision')}"
        if self.problems:
            return f"{what}: {plural(len(self.problems), 'break')} in the hash chain"
        first = self.lines - self.linked + 1
        older = f"; lines before {first:,} are older and have no hash" if 0 < self.linked < self.lines else ""
        heads = f"; fits {plural(self.heads, 'head')} kept elsewhere" if self.heads else ""
        if self.lines and not self.linked:
            return f"{what}: no hash chain yet, the next decision begins it{heads}"
        return f"{what}: hash chain intact{older}{heads}"


def verify_ledger(paths: ProjectPaths, heads: Sequence[Head] = ()) -> Verification:
    """Check every line of a project's ledger, see `verify`.

    Raises:
        Unwritable: It is there but cannot be read.
    """
    anchor = read_anchor(paths.ledger)
    raw = read_file(paths.ledger, paths.aiwg, MAX_PATTERN_BYTES)
    if isinstance(raw, Problem):
        raise Unwritable(f"cannot read {paths.ledger}: it {raw.message}")
    return verify(raw.data if raw else b"", anchor, heads)


def verify(data: bytes, anchor: Place | None, heads: Sequence[Head] = ()) -> Verification:
    """Check every line of a ledger.

    What has no line end yet is no line: a crash may leave the beginning of one, which the next writer sets aside.

    Args:
        data: The ledger.
        anchor: Read before `data` was; None if there is none.
        heads: Earlier ends of the ledger, kept elsewhere.
    """
    *lines, rest = data.split(b"\n")
    seams = ChainCheck()
    for line in lines:
        seams.feed(line)
    problems = [*seams.breaks, *last_lines(seams.places, anchor, is_begun=seams.chain.is_begun)]
    problems += missing_heads(heads, seams.places)
    if rest.strip() and not rest.startswith(b"{"):
        problems.append(ChainBreak(len(lines) + 1, "has no end, and is not the beginning of a decision either"))
    return Verification(
        lines=len(lines),
        linked=seams.linked,
        decisions=len(read_decisions(data)[0]),
        problems=tuple(sorted(problems)),
        heads=len(heads),
        end=seams.places[-1],
    )


def end_findings(
    paths: ProjectPaths, stamp: Stamp | None, places: Sequence[Place], *, is_chained: bool
) -> Iterator[Finding]:
    """Where the end of a ledger that was read is not the one that its anchor records.

    Args:
        paths: The project.
        stamp: Of the ledger as it was read; None if there was none.
        places, is_chained: See `DecisionLog`.
    """
    anchor = read_anchor(paths.ledger)
    if _is_still(stamp, paths):  # else the anchor may be ahead of what was read
        found = last_lines(places or (Chain().place,), anchor, is_begun=is_chained)
        yield from map(break_finding, found)


def _is_still(stamp: Stamp | None, paths: ProjectPaths) -> bool:
    """Whether the ledger is the one that has this stamp; of None, whether there is none."""
    try:
        return Stamp.of(paths.ledger.lstat()) == stamp
    except FileNotFoundError:
        return stamp is None
    except OSError:
        return False
