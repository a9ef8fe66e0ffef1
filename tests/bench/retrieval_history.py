"""Quality of retrieval with and without the past tasks of a project, on a set of its own; memory of the idle model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml
from numpy.typing import NDArray

from core.records.loops import Loop
from core.records.patterns import Pattern, PatternType
from core.retrieval.embeddings import (
    Closeness,
    Embedder,
    Floats,
    Floats32,
    Vectors,
    encode_vectors,
    is_available,
    pattern_embedding_text,
)
from core.retrieval.past_tasks import PastTasks, SuccessfulTask, WordWeights
from core.retrieval.relevance import (
    RELEVANCE_PARTS,
    SEMANTIC_WEIGHTS,
    TYPES,
    PatternIndex,
    Relevance,
    measure_relevance,
)
from core.retrieval.task import analyse_task
from tests.bench.measured import Measured, resident_mb
from tests.bench.place import Place
from tests.factories import learn_weights

_TOP: Final = 5
_FOLDS: Final = 6
_FIELDS: Final = (
    *("title", "description", "category", "error_type", "error_pattern", "use_case"),
    *("why_it_fails", "better_alternative", "steps", "symptoms"),
)
_FACTORS: Final = (0.5, 1.0, 2.0)  # of the weights of these parts, tried in the folds
_TRIED: Final = ("words", "category", "tags", "language")
_DEFAULT: Final = WordWeights()


@cache
def read_set(name: str) -> Mapping[str, Any]:
    """Return a labelled set: `history` or `paraphrases`; both have the same distractors."""
    read = [yaml.safe_load(Path(__file__).with_name(f"{one}.yaml").read_text()) for one in ("history", name)]
    return {**read[1], "distractors": read[0]["distractors"]}


@cache
def patterns_of_set(name: str = "history") -> dict[str, Pattern]:
    """The patterns of a set, and 500 that help with no task, by ID."""
    made = {f"pat-{slug}": _pattern(slug, fields) for slug, fields in read_set(name)["patterns"].items()}
    others = read_set(name)["distractors"]
    for number, (part, symptom) in enumerate(product(others["parts"], others["symptoms"])):
        description = f"{others['cures'][number % len(others['cures'])]} in the {part}"
        kind = tuple(PatternType)[number % 4]
        fields = {"type": kind, "title": f"The {part} {symptom}", "description": description, "tags": [part]}
        made[f"pat-distractor-{number}"] = _pattern(f"distractor-{number}", fields)
    return made


def _pattern(slug: str, fields: Mapping[str, Any]) -> Pattern:
    texts: dict[str, Any] = {}
    for field in set(_FIELDS).intersection(fields):
        texts[field] = fields[field] if isinstance(fields[field], str) else tuple(fields[field])
    return Pattern(id=f"pat-{slug}", type=PatternType(fields["type"]), tags=tuple(fields["tags"]), **texts)


def tasks_of_set(name: str = "history") -> Iterator[tuple[str, str]]:
    """Yield each paraphrased task with the ID of its pattern."""
    for slug, fields in read_set(name)["patterns"].items():
        for task in fields["tasks"]:
            yield task, f"pat-{slug}"


@cache
def past_tasks_of_set(name: str = "history") -> PastTasks:
    """The tasks from which patterns were extracted, or in which they worked; never one to find patterns for."""
    found = []
    for slug, fields in read_set(name)["patterns"].items():
        for number, text in enumerate(fields.get("worked") or filter(None, [fields.get("source")])):
            found.append(SuccessfulTask.of(Loop(id=f"{slug}-{number}", task=text), (f"pat-{slug}",)))
    return PastTasks.of(found)


@cache
def learned_weights(name: str = "history") -> dict[str, WordWeights]:
    """Weights for each pattern, learned in six folds from past tasks in which this pattern did not work."""
    patterns, past = patterns_of_set(name), past_tasks_of_set(name)
    found: dict[str, WordWeights] = {}
    for held_out in _folds(name):
        others = PastTasks(tuple(task for task in past.tasks if not held_out.intersection(task.pattern_ids)))
        found |= dict.fromkeys(held_out, learn_weights(others, patterns))
    return found


def _folds(name: str) -> list[set[str]]:
    """Divide the patterns of a set into groups that are held out in turn."""
    ids = list(dict.fromkeys(pattern_id for _, pattern_id in tasks_of_set(name)))
    return [set(ids[fold::_FOLDS]) for fold in range(_FOLDS)]


@cache
def _vectors(texts: tuple[str, ...]) -> Floats32:
    return Embedder().embed(texts)


@cache
def _stored(texts: tuple[str, ...]) -> Vectors:
    return Vectors.of([text.encode() for text in texts], encode_vectors(_vectors(texts)))


def compare_texts(task: str, texts: Iterable[str]) -> Closeness:
    """Return the cosine of a task with each of the texts, as a project compares them."""
    return _stored(tuple(texts)).closeness(_vectors((task,))[0])


def relevance_in_set(
    task: str, name: str, weights: WordWeights = _DEFAULT, *, with_vectors: bool, with_past: bool
) -> Relevance:
    """Return the patterns of a set that are relevant to a task."""
    patterns, past = patterns_of_set(name), past_tasks_of_set(name)
    index, profile = _index(name), analyse_task(task)
    closeness, past_closeness = None, None
    if with_vectors:
        closeness = compare_texts(task, map(pattern_embedding_text, patterns.values()))
        past_closeness = compare_texts(task, (one.task for one in past.tasks)) if with_past else None
    similar = past.similarity(profile, index, past_closeness) if with_past else None
    return measure_relevance(profile, index, patterns, closeness, similar, weights.by_type)


@cache
def _index(name: str) -> PatternIndex:
    return PatternIndex.build(patterns_of_set(name))


def ranks(*, with_vectors: bool, with_past: bool, name: str = "history", tasks: str = "tasks") -> list[int]:
    """Return the place of the pattern of each task, from 0; a large number if it is not found."""
    wanted = list(tasks_of_set(name))
    if tasks == "literal":
        wanted = [(task, f"pat-{slug}") for task, (slug,) in read_set(name)["literal"].items()]
    found = []
    for task, pattern_id in wanted:
        weights = learned_weights(name)[pattern_id] if with_past else _DEFAULT
        relevance = relevance_in_set(task, name, weights, with_vectors=with_vectors, with_past=with_past)
        found.append(_find_place(relevance, relevance.values, _index(name).rows[pattern_id]))
    return found


def _find_place(relevance: Relevance, values: Floats, row: int) -> int:
    order = relevance.rows[np.argsort(-values, kind="stable")].tolist()
    return order.index(row) if row in order else 10**6


def highest_without_need(*, with_vectors: bool, with_past: bool, name: str = "history") -> tuple[float, float]:
    """Mean relevance of the best pattern for tasks that need none, and mean number of patterns given to them."""
    found = [
        relevance_in_set(task, name, with_vectors=with_vectors, with_past=with_past) for task in read_set(name)["none"]
    ]
    best = [one.values.max(initial=0.0) for one in found]
    return float(np.mean(best)), float(np.mean([min(len(one.rows), _TOP) for one in found]))


def _quality(_place: Place, *, with_vectors: bool, with_past: bool, name: str = "history") -> Measured:
    if with_vectors and not is_available():
        return Measured(float("nan"), "%", note="needs the extra `semantic`")
    places = np.array(ranks(with_vectors=with_vectors, with_past=with_past, name=name))
    highest, given = highest_without_need(with_vectors=with_vectors, with_past=with_past, name=name)
    unneeded = f"unrelated tasks get {given:.1f} patterns, the best of {highest:.2f}"
    return _measured(places, unneeded)


def _measured(places: NDArray[np.int64], more: str) -> Measured:
    first, rank = np.mean(places < 1) * 100, np.mean(1 / (1 + places))
    note = f"in the first {_TOP}; first {first:.0f} %, MRR {rank:.2f}, {len(places)} tasks; {more}"
    return Measured(float(np.mean(places < _TOP)) * 100, "%", note=note)


by_words = partial(_quality, with_vectors=False, with_past=False)
by_words_with_past = partial(_quality, with_vectors=False, with_past=True)
by_meaning = partial(_quality, with_vectors=True, with_past=False)
by_meaning_with_past = partial(_quality, with_vectors=True, with_past=True)


def by_fitted_weights(_place: Place, name: str = "paraphrases") -> Measured:
    """Recall with weights for vectors that are chosen in six folds from tasks of other patterns."""
    if not is_available():
        return Measured(float("nan"), "%", note="needs the extra `semantic`")
    tried = [dict(zip(_TRIED, factors, strict=True)) for factors in product(_FACTORS, repeat=len(_TRIED))]
    wanted = list(tasks_of_set(name))
    found = [relevance_in_set(task, name, with_vectors=True, with_past=False) for task, _ in wanted]
    places = np.array(
        [
            [_find_place(one, _weighted(one, name, factors), _index(name).rows[id]) for factors in tried]
            for one, (_, id) in zip(found, wanted, strict=True)
        ]
    )
    held_out = np.empty(len(wanted), np.int64)
    for fold in _folds(name):
        is_tested = np.array([id in fold for _, id in wanted])
        best = int(np.argmax(np.mean(1 / (1 + places[~is_tested]), axis=0)))
        held_out[is_tested] = places[is_tested, best]
    return _measured(held_out, f"weights chosen of {len(tried)}")


def _weighted(relevance: Relevance, name: str, factors: Mapping[str, float]) -> Floats:
    """Return the relevance with other weights of the parts."""
    kinds, values, total = _index(name).types[relevance.rows], np.zeros(len(relevance.rows)), np.zeros(len(TYPES))
    for part in RELEVANCE_PARTS:
        weights = np.array([SEMANTIC_WEIGHTS[kind].get(part, 0.0) for kind in TYPES]) * factors.get(part, 1.0)
        values, total = values + weights[kinds] * relevance.parts[part], total + weights
    return values / total[kinds]


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
