"""Claims of success that the files contradict (docs/scoring.md#claims-of-other-runners).

Adapters only fill in `Loop.progress`; `join_loops` checks the claims when the sessions of each loop are known.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from core.records.loops import TESTS_FAILED, Loop, LoopStatus, StateSource

CONTRADICTED: Final = "success-contradicted"


def check_claim(loop: Loop) -> Loop:
    """Return the loop with a badge and the reasons if it claims a success that its progress contradicts.

    A session without a goal claims nothing at the end of its turn; if its last test run failed, it has failed.
    """
    if loop.runner and loop.runner == loop.owner and not (loop.criteria or loop.progress.is_claimed):
        if loop.status is not LoopStatus.COMPLETED or loop.progress.test_passed is not False:
            return loop
        return replace(loop, status=LoopStatus.FAILED, state_source=StateSource.REPORTED, end_reason=TESTS_FAILED)
    claims = loop.status is LoopStatus.COMPLETED or loop.progress.is_claimed
    objections = loop.progress.objections if claims else ()
    if not objections:
        return loop
    badges = tuple(sorted({*loop.badges, CONTRADICTED}))
    return replace(loop, badges=badges, liveness_reason=f"success is claimed, but {', '.join(objections)}")
