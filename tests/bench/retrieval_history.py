"""Quality of retrieval with and without the past tasks of a project, on a set of its own; memory of the idle model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from core.records.loops import Loop
from core.records.patterns import Pattern, PatternType
from core.retrieval.embeddings import Embedder, Floats32, is_available, pattern_embedding_text
from core.retrieval.index import PatternIndex
from core.retrieval.past_tasks import PastTasks, SuccessfulTask, WordWeights
from core.retrieval.relevance import WEIGHTS, measure_relevance
from core.retrieval.task import analyse_task
from tests.bench.measured import Measured, resident_mb
from tests.bench.place import Place
from tests.factories import learn_weights

_TOP: Final = 5
_FOLDS: Final = 6
_SET: Final[Mapping[str, Any]] = yaml.safe_load(Path(__file__).with_name("history.yaml").read_text())
_FIELDS: Final = ("title", "description", "category", "error_type", "error_pattern")


@cache
def patterns_of_set() -> dict[str, Pattern]:
    """The patterns of the set, and 500 that help with no task, by ID."""
    made = {f"pat-{slug}": _pattern(slug, fields) for slug, fields in _SET["patterns"].items()}
    others = _SET["distractors"]
    for number, (part, symptom) in enumerate(product(others["parts"], others["symptoms"])):
        description = f"{others['cures'][number % len(others['cures'])]} in the {part}"
        kind = tuple(PatternType)[number % 4]
        fields = {"type": kind, "title": f"The {part} {symptom}", "description": description, "tags": [part]}
        made[f"pat-distractor-{number}"] = _pattern(f"distractor-{number}", fields)
    return made


def _pattern(slug: str, fields: Mapping[str, Any]) -> Pattern:
    texts = {name: fields[name] for name in _FIELDS if name in fields}
    return Pattern(id=f"pat-{slug}", type=PatternType(fields["type"]), tags=tuple(fields["tags"]), **texts)


def tasks_of_set() -> Iterator[tuple[str, str]]:
    """Yield each paraphrased task with the ID of its pattern."""
    for slug, fields in _SET["patterns"].items():
        for task in fields["tasks"]:
            yield task, f"pat-{slug}"


def past_tasks_of_set() -> PastTasks:
    """The tasks of the set in which patterns worked; none of them is a task to find patterns for."""
    found = []
    for slug, fields in _SET["patterns"].items():
        for number, text in enumerate(fields.get("worked", ())):
            found.append(SuccessfulTask.of(Loop(id=f"{slug}-{number}", task=text), (f"pat-{slug}",)))
    return PastTasks.of(found)


@cache
def learned_weights() -> dict[str, WordWeights]:
    """Weights for each pattern, learned in six folds from past tasks in which this pattern did not work."""
    patterns, past = patterns_of_set(), past_tasks_of_set()
    ids = list(dict.fromkeys(pattern_id for _, pattern_id in tasks_of_set()))
    found: dict[str, WordWeights] = {}
    for fold in range(_FOLDS):
        held_out = set(ids[fold::_FOLDS])
        others = PastTasks(tuple(task for task in past.tasks if not held_out.intersection(task.pattern_ids)))
        found |= dict.fromkeys(held_out, learn_weights(others, patterns))
    return found


@cache
def _vectors(texts: tuple[str, ...]) -> Floats32:
    return Embedder().embed(texts)


def ranks(*, with_vectors: bool, with_past: bool, names: str = "tasks") -> list[int]:
    """Return the place of the pattern of each task, from 0; a large number if it is not found."""
    patterns, past = patterns_of_set(), past_tasks_of_set()
    index = PatternIndex.build(patterns)
    wanted = list(tasks_of_set())
    if names == "literal":
        wanted = [(task, f"pat-{slug}") for task, (slug,) in _SET["literal"].items()]
    found = []
    asked = _vectors(tuple(task for task, _ in wanted)) if with_vectors else None
    for number, (task, pattern_id) in enumerate(wanted):
        profile, closeness, past_closeness = analyse_task(task), None, None
        if asked is not None:
            closeness = _vectors(tuple(map(pattern_embedding_text, patterns.values()))) @ asked[number]
            past_closeness = _vectors(tuple(task.task for task in past.tasks)) @ asked[number]
        similar = past.similarity(profile, index, past_closeness) if with_past else None
        weights = learned_weights()[pattern_id].by_type if with_past else WEIGHTS
        relevance = measure_relevance(profile, index, patterns, closeness, similar, weights)
        order = relevance.rows[np.argsort(-relevance.values, kind="stable")].tolist()
        row = index.rows[pattern_id]
        found.append(order.index(row) if row in order else 10**6)
    return found


def highest_without_need(*, with_vectors: bool, with_past: bool) -> float:
    """Mean relevance of the best pattern for tasks that need none."""
    patterns, past = patterns_of_set(), past_tasks_of_set()
    index = PatternIndex.build(patterns)
    best = []
    for task in _SET["none"]:
        profile, closeness, past_closeness = analyse_task(task), None, None
        if with_vectors:
            asked = _vectors((task,))[0]
            closeness = _vectors(tuple(map(pattern_embedding_text, patterns.values()))) @ asked
            past_closeness = _vectors(tuple(task.task for task in past.tasks)) @ asked
        similar = past.similarity(profile, index, past_closeness) if with_past else None
        best.append(measure_relevance(profile, index, patterns, closeness, similar).values.max(initial=0.0))
    return float(np.mean(best))


def _quality(_place: Place, *, with_vectors: bool, with_past: bool) -> Measured:
    if with_vectors and not is_available():
        return Measured(float("nan"), "%", note="needs the extra `semantic`")
    places = np.array(ranks(with_vectors=with_vectors, with_past=with_past))
    first, rank = np.mean(places < 1) * 100, np.mean(1 / (1 + places))
    note = f"in the first {_TOP}; first {first:.0f} %, MRR {rank:.2f}, {len(places)} tasks"
    return Measured(float(np.mean(places < _TOP)) * 100, "%", note=note)


by_words = partial(_quality, with_vectors=False, with_past=False)
by_words_with_past = partial(_quality, with_vectors=False, with_past=True)
by_meaning = partial(_quality, with_vectors=True, with_past=False)
by_meaning_with_past = partial(_quality, with_vectors=True, with_past=True)


def idle_model(_place: Place) -> Measured:
    """Memory that the embedding model needs when it is idle; in the note while it is used."""
    if not is_available():
        return Measured(float("nan"), "MB", note="needs the extra `semantic`")
    before = resident_mb()
    embedder = Embedder(idle_seconds=0.5)
    embedder.embed(["a text of a task"] * 64)
    child = embedder._child
    assert child is not None
    pages = int(Path(f"/proc/{child.pid}/statm").read_text().split()[1])
    used = resident_mb() - before + pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    child.wait()
    return Measured(resident_mb() - before, "MB", note=f"in use {used:.0f} MB")
