"""Encoded vectors preserve the cosine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.retrieval.embedding import Floats32
from core.retrieval.embeddings import Vectors, encode_vectors


def directions(seed: int, count: int) -> Floats32:
    made = np.random.default_rng(seed).normal(size=(count, 384)).astype(np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 40), st.floats(1e-3, 1e3))
def test_the_cosine_survives_the_encoding(seed: int, count: int, length: float) -> None:
    made = directions(seed, count)
    stored = Vectors.of([str(number) for number in range(count)], encode_vectors(made * np.float32(length)))
    assert stored.closeness(made[0]) == pytest.approx(made @ made[0], abs=0.01)


def test_many_rows_are_compared_in_chunks() -> None:
    made = directions(1, 9000)
    closeness = Vectors.of([str(number) for number in range(9000)], encode_vectors(made)).closeness(made[8999])
    assert int(closeness.argmax()) == 8999 and closeness[8999] == pytest.approx(1, abs=0.001)


def test_a_zero_vector_has_no_cosine() -> None:
    stored = Vectors.of(["a"], np.zeros((1, 384), np.int8))
    assert np.isnan(stored.closeness(directions(1, 1)[0])).all()


def test_the_last_vector_of_a_hash_counts() -> None:
    made = directions(2, 3)
    stored = Vectors.of(["a", "b"], encode_vectors(made[:2])).extended(["a"], encode_vectors(made[2:]))
    assert stored.places == {"a": 2, "b": 1}
    assert len(Vectors.of([], encode_vectors(made[:0])).closeness(made[0])) == 0
