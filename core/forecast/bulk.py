"""Forecast of one decision about many patterns, by a dry run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from core.base.errors import RalphdeckError
from core.base.text import visible_line
from core.curation.commands import bulk
from core.curation.decision_writer import Refusal
from core.forecast.dry_run import dry_run
from core.forecast.forecast import SHOWN, SUPPOSED, Stop, shown_codes
from core.learning.scoreboard import Scoreboard
from core.project.project import Project
from core.records.decisions import Verb
from core.retrieval.embeddings import Coverage
from core.review.context_recipients import LOOP, PAUSED, TASK, ContextCache, list_recipients, same_texts

_NAMED = 80
"""Length of an ID in refusals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkForecast:
    """The effect of one decision about many patterns.

    `refused` has reasons and `turned` state changes (before, after), each with the number of patterns, the most
    frequent first; `removed` is the number of patterns that would leave the registry. `loops`, `paused` and `tasks` are
    the numbers of compared contexts of running loops, paused loops and past tasks, `changed_...` of those that would
    change, and `tokens` those of all contexts before and after, estimated. `by_words`: see `Forecast`.
    """

    asked: int
    decided: int
    refused: tuple[tuple[str, int], ...]
    turned: tuple[tuple[str, str, int], ...] = ()
    removed: int = 0
    loops: int = 0
    paused: int = 0
    tasks: int = 0
    changed_loops: int = 0
    changed_paused: int = 0
    changed_tasks: int = 0
    tokens: tuple[int, int] = (0, 0)
    by_words: Coverage | None = None


def forecast_bulk(
    project: Project, verb: Verb, pattern_ids: Sequence[str], stop: Stop = lambda: False
) -> BulkForecast | None:
    """Dry-run one decision about many patterns and compare all contexts.

    The verb can be decided about many patterns. Returns None if it was stopped.
    """
    state = project.view
    by_words = state.coverage
    asked = len(set(pattern_ids))
    try:
        run = dry_run(project, bulk(verb, pattern_ids, SUPPOSED), state)
    except RalphdeckError as error:
        return BulkForecast(asked=asked, decided=0, refused=((str(error), asked),))
    after = run.state
    readers, contexts, changed, tokens = list_recipients(state.snapshot), ContextCache(), Counter[str](), [0, 0]
    same = same_texts(state, after)
    for reader in readers:
        if stop():
            return None
        one, two = contexts.given(state, reader.task), contexts.supposed(after, reader.task, same=same)
        changed[reader.kind] += one.context != two.context
        tokens[0] += one.tokens
        tokens[1] += two.tokens
    kinds = Counter(reader.kind for reader in readers)
    return BulkForecast(
        asked=asked,
        decided=len(run.decided.decisions),
        refused=_grouped(run.decided.refused),
        turned=_turned(state.board, after.board),
        removed=len(state.snapshot.patterns.keys() - after.snapshot.patterns.keys()),
        loops=kinds[LOOP],
        paused=kinds[PAUSED],
        tasks=kinds[TASK],
        changed_loops=changed[LOOP],
        changed_paused=changed[PAUSED],
        changed_tasks=changed[TASK],
        tokens=(tokens[0], tokens[1]),
        by_words=by_words,
    )


def _grouped(refused: Iterable[Refusal]) -> tuple[tuple[str, int], ...]:
    """Count equal reasons, ignoring the names of the patterns."""
    reasons = Counter(one.why.replace(visible_line(one.pattern_id, _NAMED), "it") for one in refused)
    return tuple(reasons.most_common())


def _turned(before: Scoreboard, after: Scoreboard) -> tuple[tuple[str, str, int], ...]:
    ids = [id for id in after.ids if id in before]
    one, two = shown_codes(before)[before.rows_of(ids)], shown_codes(after)[after.rows_of(ids)]
    moved = np.flatnonzero(one != two)
    turns = Counter(zip(one[moved].tolist(), two[moved].tolist(), strict=True))
    return tuple((SHOWN[old], SHOWN[new], count) for (old, new), count in turns.most_common())
