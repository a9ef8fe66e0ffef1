"""Extraction from many loops, and the search for near-duplicate patterns."""

from __future__ import annotations

from itertools import islice
from statistics import median

from core.project.project import Project
from core.retrieval.similarity import SimilarityIndex
from core.state.project_state import ProjectState
from tests.bench.measures import milliseconds, spread


def extraction(project: Project, loops: int = 1000) -> str:
    """Extract from finished loops, reading their files from disk."""
    ended = [loop.id for loop in project.view.snapshot.loops.values() if loop.status.ended]
    taken: list[float] = []
    found = 0
    for loop_id in islice(ended, loops):
        taken += milliseconds(lambda loop_id=loop_id: project.extraction(loop_id))  # type: ignore[misc]
        found += len(project.extraction(loop_id).proposals)
    return f"{sum(taken) / 1000:.1f} s for {len(taken):,}, median {median(taken):.1f} ms, {found:,} proposals"


def near_duplicates(view: ProjectState, threshold: float = 0.8) -> str:
    """Find all near-duplicate pairs, then those of a single pattern."""
    patterns = view.snapshot.patterns
    (made,) = milliseconds(lambda: SimilarityIndex.build(patterns))
    index = SimilarityIndex.build(patterns)
    pairs: list[int] = []
    (searched,) = milliseconds(lambda: pairs.append(len(index.pairs(threshold))))
    single = [
        milliseconds(lambda pattern=pattern: index.nearest(pattern, threshold))[0]  # type: ignore[misc]
        for pattern in islice(patterns.values(), 0, None, max(len(patterns) // 200, 1))
    ]
    one = spread(sorted(single), 0.95)
    return f"{searched / 1000:.1f} s, {pairs[0]:,} pairs; index {made:.0f} ms; one pattern {one}"
