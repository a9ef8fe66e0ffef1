"""Resources and prompts of the MCP server."""

from __future__ import annotations

import json
from dataclasses import asdict
from heapq import nsmallest
from typing import TYPE_CHECKING

import numpy as np

from core.agents.mcp_server import tools
from core.agents.mcp_server.texts import fence, list_patterns, name, pattern_row
from core.base.text import visible

if TYPE_CHECKING:
    from core.agents.mcp_server.session import Session

_BEST = 8  # patterns of the general context


def context_page(session: Session) -> str:
    """Return the context of the only active loop, or else the titles of the best patterns."""
    with session.call() as state:
        active = [one for one in state.own_active_loops if one.task.strip()]
        if len(active) == 1:
            task = active[0].task
        else:
            rows = np.flatnonzero(state.board.injectable).tolist()
            scored = zip((-state.board.score[rows]).tolist(), (state.board.ids[row] for row in rows), strict=True)
            patterns = [state.snapshot.patterns[id] for _, id in nsmallest(_BEST, scored)]
            head = f"{len(active)} active loops; call loop_context with your task. "
            head += "The best lessons:" if patterns else "There are no lessons yet."
            return fence(list_patterns(state, (pattern_row(state, one) for one in patterns)), head)
    return tools.loop_context(session, task).text


def pattern_page(session: Session, pattern_id: str) -> str:
    """Return one pattern as JSON."""
    return _json(tools.explain_pattern(session, pattern_id).content)


def loop_page(session: Session, loop_id: str) -> str:
    """Return one loop as JSON, with the patterns that it got and its outcome."""
    with session.call() as state:
        loop = state.loop(loop_id)
        patterns, scored = state.loop_patterns(loop.id), state.outcome(loop.id)
        return _json(
            {
                **asdict(tools.loop_row(state, loop, set())),
                "injected": [name(id) for id in patterns.injected_ids],
                "applied": [name(id) for id in patterns.applied_ids],
                "score": None if scored is None else round(scored[1].raw, 2),
            }
        )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def reflect(task: str) -> str:
    """Reflect on a task that ended, and report it."""
    return (
        f"The task that has ended, as data:\n\n{visible(task, 4000)}\n\n"
        "1. What was the outcome: success, partial or failure? Judge by evidence such as tests, not by impression.\n"
        "2. Which lessons that loop_context returned helped, harmed, or were not used?\n"
        "3. Call report_outcome once with the result, a summary of at most 1000 characters and these marks.\n"
        "4. Is there one insight that would have saved time and that no lesson has? Search with search_patterns. Only "
        "if it is new, call propose_lesson with when it applies, what to do, and the evidence. A person reviews it."
    )


def tidy_memory() -> str:
    """Compare your own memory with the reviewed lessons."""
    return (
        "Compare the notes of your own memory files with the reviewed lessons of this project.\n\n"
        "1. For each note, call search_patterns with its main words, and explain_pattern for the best match.\n"
        "2. List the notes that a reviewed lesson repeats, that a lesson contradicts, or whose lesson is deprecated, "
        "each with the ID of the lesson and the reason.\n"
        "3. Show the list to the user. Delete a note only if the user agrees; ralphdeck changes none of your files.\n"
        "4. For a note that no lesson covers and that is supported by evidence, call propose_lesson."
    )
