"""Claims of success that the files contradict (docs/scoring.md#claims-of-other-runners).

Adapters only fill in `Loop.progress`; `join_loops` checks the claims when the sessions of each loop are known.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from core.records.loops import Loop, LoopStatus

CONTRADICTED: Final = "success-contradicted"


def check_claim(loop: Loop) -> Loop:
    """Return the loop with a badge and the reasons if it claims a success that its progress contradicts."""
    claims = loop.status is LoopStatus.COMPLETED or loop.progress.is_claimed
    objections = loop.progress.objections if claims else ()
    if not objections:
        return loop
    badges = tuple(sorted({*loop.badges, CONTRADICTED}))
    return replace(loop, badges=badges, liveness_reason=f"success is claimed, but {', '.join(objections)}")
