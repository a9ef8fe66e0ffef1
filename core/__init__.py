"""The headless core of ralphdeck: reading, scoring, curation and injection."""

import sys

if "typing_extensions" not in sys.modules:
    # msgspec imports it if it is installed, which takes every hook 8 ms, and needs nothing of it from Python 3.11 on.
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    import msgspec as msgspec

    del sys.modules["typing_extensions"]

__version__ = "0.1.0"
