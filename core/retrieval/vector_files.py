"""Files of embedding vectors below `.aiwg/ralph`; in a module of its own, because most projects have none."""

from __future__ import annotations

from typing import Final

OF_PATTERNS: Final = "memory/embeddings/patterns.vec"
OF_TASKS: Final = "index/embeddings/tasks.vec"
VECTOR_FILES: Final = (OF_PATTERNS, OF_TASKS)
