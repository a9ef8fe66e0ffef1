"""Return unused memory to the system."""

from __future__ import annotations

import ctypes
from typing import Final

_malloc_trim: Final = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only in glibc


def release_memory() -> None:
    """Return memory that was freed to the system; the C library would keep half of what loading used."""
    if _malloc_trim is not None:
        _malloc_trim(0)
