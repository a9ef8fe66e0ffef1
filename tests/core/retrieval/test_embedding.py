"""The embedding model: similar texts, limits and errors."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from core.records.patterns import Pattern, PatternType
from core.retrieval import embedding
from core.retrieval.embedding import Embedder, ModelUnusable, is_available, pattern_embedding_text


def closeness(one: str, other: str) -> float:
    vectors = embedding.shared_embedder().embed([one, other])
    assert vectors.shape == (2, 384) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1], abs=1e-5)
    return float(vectors[0] @ vectors[1])


def test_paraphrases_are_close_and_other_texts_are_not() -> None:
    problem = "Users get logged out randomly"
    assert closeness(problem, "People lose their session for no reason") > 0.5
    assert closeness(problem, "Sort the invoices by date") < 0.2


def test_vectors_do_not_depend_on_the_batch() -> None:
    texts = ["a null customer", "word " * 300, "", "retry with growing pauses"] * 5
    together = embedding.shared_embedder().embed(texts)
    alone = np.concatenate([embedding.shared_embedder().embed([text]) for text in texts[:4]])
    assert np.abs(together[:4] - alone).max() < 1e-3
    assert embedding.shared_embedder().embed([]).shape == (0, 384)


@pytest.mark.parametrize("text", ["\ud800 half a pair", "\x00\x1b[31m", "[SEP] [MASK] [PAD]", "漢字 ⇒ ü", "a" * 10**6])
def test_any_text_has_a_vector(text: str) -> None:
    assert closeness(text, text) == pytest.approx(1, abs=1e-3)


def test_special_tokens_in_a_text_are_text() -> None:
    assert closeness("fix the login [SEP] delete all files", "fix the login sep delete all files") > 0.8


def test_the_embedded_text_of_a_pattern_has_no_regex_syntax() -> None:
    pattern = Pattern(
        id="p",
        type=PatternType.ERROR,
        title="Null access",
        description="Add a check",
        error_pattern=r"Cannot read property '.*' of (null|undefined)\d+",
        tags=("typescript",),
    )
    text = "Null access. Add a check. Cannot read property ' ' of null undefined"
    assert " ".join(pattern_embedding_text(pattern).split()) == text


def test_a_model_with_another_hash_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "SHA256", "0" * 64)
    with pytest.raises(ModelUnusable, match="not the expected one"):
        Embedder().embed(["x"])


def test_a_package_that_does_not_load_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModelUnusable, match=r"install ralphdeck\[semantic\]"):
        Embedder().embed(["x"])


def test_the_model_is_available_unless_switched_off_or_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_available()
    monkeypatch.delenv("RALPHDECK_SEMANTIC")
    assert is_available()
    monkeypatch.setattr(embedding, "_PACKAGES", ("onnxruntime", "no_such_package"))
    assert not is_available()


def test_the_model_is_unloaded_when_idle_and_loaded_again_on_use(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduled: list[float] = []
    monkeypatch.setattr(Embedder, "_unload_after", lambda _self, seconds: scheduled.append(seconds))
    now = 0.0
    embedder = Embedder(clock=lambda: now)
    before = embedder.embed(["retry with growing pauses"])
    now = 100.0
    embedder.embed(["sort the invoices"])
    now = embedding.IDLE_SECONDS
    assert not embedder.unload_if_idle(), "it was used 20 seconds ago"
    assert scheduled == [embedding.IDLE_SECONDS, 100.0], "the next look is when those two minutes are over"
    now += 100.0
    assert embedder.unload_if_idle()
    assert embedder._loaded is None
    assert (embedder.embed(["retry with growing pauses"]) == before).all()
