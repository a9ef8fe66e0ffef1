"""Quality of retrieval: recall and rank on a labelled set, by words and by semantic similarity."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import count, product
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from core.index.contexts import prepare_task_injection
from core.index.texts import Texts
from core.project.project import Project
from core.records.episodes import Task
from core.records.patterns import Pattern, PatternType
from core.records.reflections import Reflection
from core.retrieval.embeddings import (
    DIMENSIONS,
    PATTERNS,
    TASKS,
    Embedder,
    Embeddings,
    Floats32,
    Vectors,
    encode_vectors,
    is_available,
    pattern_embedding_text,
    vector_file,
)
from core.retrieval.relevance import PatternIndex, measure_relevance
from core.retrieval.task import analyse_task
from core.tasks.task_links import embeddable_work
from tests.bench.measured import Measured, milliseconds, resident_mb, spread
from tests.bench.place import Place
from tests.bench.trees import NOW
from tests.bench.words import text

_TOP: Final = 5
_SET: Final[Mapping[str, Any]] = yaml.safe_load(Path(__file__).with_name("labelled.yaml").read_text())


def labelled_patterns() -> dict[str, Pattern]:
    """Patterns that help with a task of the set, and 1,000 that help with none, by ID."""
    made = [_pattern(slug, **fields) for slug, fields in _SET["patterns"].items()]
    others = _SET["distractors"]
    for number, (part, symptom) in enumerate(product(others["parts"], others["symptoms"])):
        made.append(
            _pattern(
                f"distractor-{number}",
                type=tuple(PatternType)[number % 4],
                title=f"The {part} {symptom}",
                description=f"{others['cures'][number % len(others['cures'])]} in the {part}",
                tags=[part],
            )
        )
    return {pattern.id: pattern for pattern in made}


def _pattern(slug: str, *, type: str, tags: list[str], **fields: str) -> Pattern:
    # The hash that identifies a vector is normally set by the reader.
    hash = sha256(slug.encode()).hexdigest()
    return Pattern(id=slug, type=PatternType(type), tags=tuple(tags), content_hash=hash, **fields)  # type: ignore[arg-type]


def found_by_words(_place: Place, tasks: str) -> Measured:
    """Recall and rank of the tasks `paraphrased` or `literal`, without vectors."""
    return _scored(tasks, None)


def found_by_meaning(_place: Place, tasks: str) -> Measured:
    """Recall and rank with a vector for every pattern."""
    return _scored(tasks, Embedder() if is_available() else None)


def _scored(tasks: str, embedder: Embedder | None) -> Measured:
    patterns = labelled_patterns()
    index = PatternIndex.build(patterns)
    vectors = None
    if embedder:
        vectors = Vectors.of(
            [id.encode() for id in patterns],
            encode_vectors(embedder.embed(list(map(pattern_embedding_text, patterns.values())))),
        )
    recalls, ranks = [], []
    for task, helpful in _SET[tasks].items():
        closeness = vectors.closeness(embedder.embed([task])[0]) if embedder and vectors else None
        found = measure_relevance(analyse_task(task), index, patterns, closeness)
        best = [index.ids[row] for row in found.rows[np.argsort(-found.values, kind="stable")]]
        places = [best.index(slug) for slug in helpful if slug in best]
        recalls.append(sum(place < _TOP for place in places) / min(len(helpful), _TOP))
        ranks.append(1 / (1 + min(places)) if places else 0.0)
    recall = float(np.mean(recalls)) * 100
    return Measured(recall, "%", note=f"in the first {_TOP}; MRR {np.mean(ranks):.2f}, {len(ranks)} tasks")


def write_vectors(project: Project, near: Floats32 | float = 0.0) -> None:
    """Write random vectors of all patterns, tasks and loops; `near` is added to a quarter of them."""
    snapshot = project.view.snapshot
    of_patterns = [PATTERNS.key(pattern) for pattern in snapshot.patterns.values()]
    of_tasks = [key for task in embeddable_work(snapshot).values() if (key := TASKS.key(task))]
    for file, keys in (
        (vector_file(project.project, PATTERNS), of_patterns),
        (vector_file(project.project, TASKS), of_tasks),
    ):
        keys = list(dict.fromkeys(keys))
        made = np.random.default_rng(1).normal(size=(len(keys), DIMENSIONS)).astype(np.float32)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        made[::4] += near
        file.path.unlink(missing_ok=True)
        with file.writing(set(keys)) as append:
            append(keys, encode_vectors(made))


def injection_by_meaning(place: Place) -> Measured:
    """Build the context of a new task with a vector for every pattern.

    The vectors are generated, because the model would need minutes; a quarter of them are as close to the task as
    patterns that could help with it.
    """
    project, task = place.opened_many, "Fix the deadlock in the payment webhook migration"
    write_vectors(project, 0.4 * Embedder().embed([task])[0])
    view = replace(project.view, embeddings=Embeddings(project.project, PATTERNS))
    (first,) = milliseconds(lambda: prepare_task_injection(view, "warm up"))
    numbers = count()
    taken = milliseconds(lambda: prepare_task_injection(view, f"{task} {next(numbers)}"), 20)
    return Measured(spread(taken).value, note=f"first {first:.0f}; {resident_mb():.0f} MB in all")


def preview_with_reflections(place: Place) -> Measured:
    """Build the context of a task with 30,000 indexed reflections on 10,000 tasks."""
    source = random.Random(7)
    tasks = {f"task-{number}": Task(id=f"task-{number}", description=text(source, 10)) for number in range(10_000)}
    reflections = {
        f"refl-{number}": Reflection(
            id=f"refl-{number}",
            shape="episodic",
            file="reflections.jsonl",
            task_id=f"task-{number % len(tasks)}",
            learning=text(source, 12),
            at=NOW,
        )
        for number in range(3 * len(tasks))
    }
    view = place.view_of_many
    snapshot = view.snapshot.with_changes(tasks=tasks, reflections=reflections)
    full = replace(view, snapshot=snapshot, texts=Texts(snapshot, board=view.board))
    (first,) = milliseconds(lambda: full.learnings)
    full.prepare()
    taken = milliseconds(lambda: prepare_task_injection(full, tasks["task-5"].description), 20)
    return Measured(spread(taken).value, note=f"index {first:.0f}")
