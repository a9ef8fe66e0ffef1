"""Contradictions and repeats of instructions, measured on labelled pairs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from core.records.instructions import Relation
from core.retrieval.embeddings import shared_embedder
from core.retrieval.instructions import compare_instructions, find_areas, parse_instruction

PAIRS = Path(__file__).with_name("instruction_pairs")


class LabelledPair(NamedTuple):
    label: str
    one: str
    other: str


def read_pairs(half: str) -> Iterator[LabelledPair]:
    for line in (PAIRS / f"{half}.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            yield LabelledPair(*(part.strip() for part in line.split(" | ")))


def compare(one: str, other: str, closeness: float | None = None) -> str:
    result = compare_instructions(parse_instruction(one), parse_instruction(other), closeness)
    return str(result.relation) if result is not None else "neither"


def measure(half: str, *, by_vectors: bool) -> dict[str, tuple[float, float]]:
    """Return precision (1.0 if nothing was found) and recall for each relation."""
    pairs = list(read_pairs(half))
    closeness: list[float | None] = [None] * len(pairs)
    if by_vectors:
        ones, others = (shared_embedder().embed([pair[place] for pair in pairs]) for place in (1, 2))
        closeness = [float(one @ other) for one, other in zip(ones, others, strict=True)]
    found = [compare(one, other, close) for (_, one, other), close in zip(pairs, closeness, strict=True)]
    result = {}
    for relation in Relation:
        right = sum(label == relation == answer for (label, *_), answer in zip(pairs, found, strict=True))
        result[str(relation)] = (
            right / found.count(relation) if found.count(relation) else 1.0,
            right / sum(pair.label == relation for pair in pairs),
        )
    return result


def test_the_labelled_set_is_large_enough() -> None:
    labels = [pair.label for half in ("development", "second") for pair in read_pairs(half)]
    assert len(labels) >= 120
    assert all(labels.count(label) >= 40 for label in ("contradicts", "repeats", "neither"))


NO_MODEL = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="the model is not installed")


@pytest.mark.parametrize("half", ["development", "second"])
@pytest.mark.parametrize("by_vectors", [False, pytest.param(True, marks=NO_MODEL)])
def test_precision_is_at_least_90_percent_at_a_recall_of_60(half: str, by_vectors: bool) -> None:
    for precision, recall in measure(half, by_vectors=by_vectors).values():
        assert precision >= 0.9
        assert recall >= 0.6


def test_the_order_of_the_texts_does_not_matter() -> None:
    for half in ("development", "second"):
        for _, one, other in read_pairs(half):
            assert compare(one, other) == compare(other, one)


def test_hostile_texts_are_compared_in_bounded_time() -> None:
    texts = ["never " * 5_000, "`" * 5_000, "a" * 100_000, "- " * 9_000, "use \x00\ud800 x " * 999, "1 " * 9_000, ""]
    for one in texts:
        for other in texts:
            compare(one, other, 0.9)


def test_areas_are_languages_and_parts_of_a_project() -> None:
    assert find_areas("Python files") == find_areas("in Python")
    assert find_areas("Python files").isdisjoint(find_areas("TypeScript files"))
    assert not find_areas("Be brief")
