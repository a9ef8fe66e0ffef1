"""Return freed memory to the system (only with glibc, which otherwise keeps it for later)."""

from __future__ import annotations

import ctypes
from typing import Final

_libc: Final = ctypes.CDLL(None)
_OPTIONS: Final = {
    -3: 1 << 18,  # M_MMAP_THRESHOLD: larger blocks are returned at once; without a limit, this grows to 32 MB
    -1: 16 << 20,  # M_TRIM_THRESHOLD: most that is kept at the end of the heap
    -8: 1,  # M_ARENA_MAX: heaps of threads, each of which keeps what it has freed
}


def limit_free_memory() -> None:
    """Keep little freed memory from now on."""
    if hasattr(_libc, "mallopt"):
        for option, value in _OPTIONS.items():
            _libc.mallopt(option, value)


def release_memory() -> None:
    """Return all freed memory to the system; after loading, this is a fifth of it."""
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)
