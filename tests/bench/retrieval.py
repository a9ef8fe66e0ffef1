"""How well patterns are found: recall and rank on a labelled set, by words alone and by meaning."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from core.records.patterns import Pattern, PatternType
from core.retrieval.embedding import Embedder, available, meaning_text
from core.retrieval.index import PatternIndex
from core.retrieval.relevance import relevance
from core.retrieval.task import analyse_task
from core.retrieval.vectors import Vectors, encoded

_TOP: Final = 5
_SET: Final[Mapping[str, Any]] = yaml.safe_load(Path(__file__).with_name("labelled.yaml").read_text())


def labelled_patterns() -> dict[str, Pattern]:
    """The patterns that help with some task, and a thousand that help with none, by id."""
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
    # Nothing was read from a file, so the hash that a vector is kept by has to be made here.
    hash = sha256(slug.encode()).hexdigest()
    return Pattern(id=slug, type=PatternType(type), tags=tuple(tags), content_hash=hash, **fields)  # type: ignore[arg-type]


def found_by_words(tasks: str) -> str:
    """Recall and rank of the tasks `paraphrased` or `literal`, without vectors."""
    return _scored(tasks, None)


def found_by_meaning(tasks: str) -> str:
    """The same with a vector for every pattern."""
    return _scored(tasks, Embedder()) if available() else "without the extra `semantic` there is no meaning"


def _scored(tasks: str, embedder: Embedder | None) -> str:
    patterns = labelled_patterns()
    index = PatternIndex.build(patterns)
    vectors = None
    if embedder:
        vectors = Vectors.of(list(patterns), encoded(embedder.embed(list(map(meaning_text, patterns.values())))))
    recalls, ranks = [], []
    for task, helpful in _SET[tasks].items():
        closeness = vectors.closeness(embedder.embed([task])[0]) if embedder and vectors else None
        found = relevance(analyse_task(task), index, patterns, closeness)
        best = [index.ids[row] for row in found.rows[np.argsort(-found.values, kind="stable")]]
        places = [best.index(slug) for slug in helpful if slug in best]
        recalls.append(sum(place < _TOP for place in places) / min(len(helpful), _TOP))
        ranks.append(1 / (1 + min(places)) if places else 0.0)
    return f"recall@{_TOP} {np.mean(recalls):.2f}, MRR {np.mean(ranks):.2f} ({len(ranks)} tasks)"
