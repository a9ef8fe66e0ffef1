"""What one decision about many patterns would change, all in all; worked out by making it on copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from core.base.errors import RalphdeckError
from core.base.text import visible_line
from core.curation.curator import Decided, Refusal
from core.forecast.forecast import SHOWN, SUPPOSED, Stop, shown_codes
from core.learning.scoreboard import Scoreboard
from core.project.project import Project
from core.records.decisions import Verb
from core.retrieval.embeddings import Coverage
from core.review.context_recipients import LOOP, PAUSED, TASK, Contexts, audience, same_texts

_NAMED = 80
"""Characters of an id as refusals name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkForecast:
    """The effect of one decision about many patterns.

    Attributes:
        asked: How many patterns it is about.
        decided: About how many of them something would be decided.
        refused: Why not about the others, and for how many each, the most frequent reason first.
        turned: State before, state after, and how many patterns would turn so, the most first.
        gone: How many would leave the registry.
        loops, paused, tasks: Number of running loops, paused loops and past tasks whose contexts were compared.
        changed_loops, changed_paused, changed_tasks: How many of them would get another context.
        tokens: Of all these contexts, before and after, estimated.
        by_words: See `Forecast`.
    """

    asked: int
    decided: int
    refused: tuple[tuple[str, int], ...]
    turned: tuple[tuple[str, str, int], ...] = ()
    gone: int = 0
    loops: int = 0
    paused: int = 0
    tasks: int = 0
    changed_loops: int = 0
    changed_paused: int = 0
    changed_tasks: int = 0
    tokens: tuple[int, int] = (0, 0)
    by_words: Coverage | None = None


def foretell(deck: Project, verb: Verb, pattern_ids: Sequence[str], stop: Stop = lambda: False) -> BulkForecast | None:
    """Rehearse the decision, and inject again for the running and paused loops and the last tasks.

    Args:
        deck: The project; nothing is written.
        verb: See `Project.decide_many`.
        pattern_ids: The patterns.
        stop: Asked now and then whether nobody waits for it any more.

    Returns:
        None if it was stopped.
    """
    view, made = deck.view, list[Decided]()
    by_words = view.coverage

    def decide(stage: Project) -> Decided:
        made.append(stage.decide_many(verb, pattern_ids, reason=SUPPOSED))
        return made[-1]

    asked = len(set(pattern_ids))
    try:
        after = deck.rehearsed(decide, view)
    except RalphdeckError as error:
        return BulkForecast(asked=asked, decided=0, refused=((str(error), asked),))
    readers, contexts, changed, tokens = audience(view.snapshot), Contexts(), Counter[str](), [0, 0]
    same = same_texts(view, after)
    for reader in readers:
        if stop():
            return None
        one, two = contexts.given(view, reader.task), contexts.supposed(after, reader.task, same=same)
        changed[reader.kind] += one.context != two.context
        tokens[0] += one.tokens
        tokens[1] += two.tokens
    kinds = Counter(reader.kind for reader in readers)
    return BulkForecast(
        asked=asked,
        decided=len(made[-1].decisions),
        refused=_grouped(made[-1].refused),
        turned=_turned(view.board, after.board),
        gone=len(view.snapshot.patterns.keys() - after.snapshot.patterns.keys()),
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
    """The reasons, which are the same for several patterns but for their names."""
    reasons = Counter(one.why.replace(visible_line(one.pattern_id, _NAMED), "it") for one in refused)
    return tuple(reasons.most_common())


def _turned(before: Scoreboard, after: Scoreboard) -> tuple[tuple[str, str, int], ...]:
    ids = [id for id in after.ids if id in before]
    one, two = shown_codes(before)[before.rows_of(ids)], shown_codes(after)[after.rows_of(ids)]
    moved = np.flatnonzero(one != two)
    turns = Counter(zip(one[moved].tolist(), two[moved].tolist(), strict=True))
    return tuple((SHOWN[old], SHOWN[new], count) for (old, new), count in turns.most_common())
