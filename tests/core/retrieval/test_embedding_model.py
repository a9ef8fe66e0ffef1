"""The embedding model: similar texts, limits and errors."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core.records.patterns import Pattern, PatternType
from core.retrieval import embedding_model, embeddings
from core.retrieval.embedding_model import UnexpectedModel
from core.retrieval.embeddings import Embedder, ModelUnusable, is_available, pattern_embedding_text


def closeness(one: str, other: str) -> float:
    vectors = embeddings.shared_embedder().embed([one, other])
    assert vectors.shape == (2, 384) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1], abs=1e-5)
    return float(vectors[0] @ vectors[1])


def test_paraphrases_are_close_and_other_texts_are_not() -> None:
    problem = "Users get logged out randomly"
    assert closeness(problem, "People lose their session for no reason") > 0.5
    assert closeness(problem, "Sort the invoices by date") < 0.2


def test_vectors_do_not_depend_on_the_batch() -> None:
    texts = ["a null customer", "word " * 300, "", "retry with growing pauses"] * 5
    together = embeddings.shared_embedder().embed(texts)
    alone = np.concatenate([embeddings.shared_embedder().embed([text]) for text in texts[:4]])
    assert np.abs(together[:4] - alone).max() < 1e-3
    assert embeddings.shared_embedder().embed([]).shape == (0, 384)


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
    text = "typescript. Null access. Add a check. Cannot read property ' ' of null undefined"
    assert " ".join(pattern_embedding_text(pattern).split()) == text


def test_a_model_with_another_hash_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_model, "SHA256", "0" * 64)
    with pytest.raises(UnexpectedModel, match="not the expected one"):
        embedding_model.load()


def test_a_package_that_does_not_load_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "onnxruntime.py").write_text("print('noise'); raise ImportError('wrong \x1b[31m system')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ModelUnusable, match=r"wrong \S+ system\); reinstall the extra semantic"):
        Embedder().embed(["x"])


def test_a_child_that_does_not_start_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("/no/such/program", "/bin/false", "/bin/ls"):
        monkeypatch.setattr(sys, "executable", program)
        with pytest.raises(ModelUnusable, match="ends unexpectedly"):
            Embedder().embed(["x"])


def test_the_child_imports_nothing_from_the_folder_it_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    assert Embedder().embed(["x"]).shape == (1, 384)


def test_the_model_is_available_unless_switched_off_or_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_available()
    monkeypatch.delenv("RALPHDECK_SEMANTIC")
    assert is_available()
    monkeypatch.setattr(embeddings, "_PACKAGES", ("onnxruntime", "no_such_package"))
    assert not is_available()


def test_the_child_ends_when_idle_and_starts_again_on_use() -> None:
    embedder = Embedder(idle_seconds=0.05)
    before = embedder.embed(["retry with growing pauses"])
    child = embedder._child
    assert child is not None and child.wait() == 0
    assert (embedder.embed(["retry with growing pauses"]) == before).all()
    assert embedder._child is not child


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_the_child_ends_with_its_parent(end: str) -> None:
    program = f"""
import os, signal, sys
from core.retrieval.embeddings import Embedder
embedder = Embedder(idle_seconds=3600)
embedder.embed(["x"])
assert not {{"onnxruntime", "tokenizers"}} & sys.modules.keys(), "only the child loads them"
print(embedder._child.pid, flush=True)
input()
{end}
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        assert not select.select([child], [], [], 0)[0], "it waits for the next text"
        parent.stdin.close()
        assert select.select([child], [], [], 60)[0]
        os.close(child)


def test_a_model_that_answers_late_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_model, "__file__", "/dev/stdin")  # a child that waits for its program
    embedder = Embedder(timeout=0.01)
    for _ in range(2):
        with pytest.raises(ModelUnusable, match="in time"):
            embedder.embed(["x"])
