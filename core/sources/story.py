"""The story of one loop, read from disk only when somebody looks at it."""

from __future__ import annotations

from core.paths import ProjectPaths
from core.records.loops import Loop, LoopStory


def read_story(paths: ProjectPaths, loop: Loop) -> LoopStory:
    """Iterations, notes and facts of `loop` from its own files, each capped; what is missing is left out."""
    raise NotImplementedError
